# SPDX-License-Identifier: Apache-2.0
"""Language models of the llama architecture (Llama, Mistral, SmolLM and others that say so) from the metadata and tensors of a GGUF file.

    main(tokens, past_keys_0, past_values_0, ...) -> logits of the last token, keys_0, values_0, ...

Tokens are (tokens,) int64; keys and values of each layer are (heads, past, width) float32, and come back with those of the new tokens behind them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...builder import BlockBuilder
from ...ir import graph, tir
from ...ir.errors import ModelError, UnsupportedError
from ...ir.module import IRModule
from ...ops import make
from .blocks import KINDS
from .reader import GGUF, Tensor, read

SIZES = ("tokens", "past")


def from_gguf(source: str | Path | GGUF, *, dims: Mapping[str, int] | None = None) -> IRModule:
    """The model of a file; ``dims`` fixes the sizes ``tokens`` and ``past``. Raises ModelError and UnsupportedError."""
    file = source if isinstance(source, GGUF) else read(source)
    unknown = [n for n in dims or {} if n not in SIZES]
    if unknown:
        raise ModelError(f"the model has no size {unknown[0]!r}", hint=f"there are {', '.join(SIZES)}")
    return _Llama(file, dict(dims or {})).module()


class _Llama:
    def __init__(self, file: GGUF, dims: Mapping[str, int]) -> None:
        self.file, self.bb = file, BlockBuilder()
        kind = file.metadata.get("general.architecture")
        if kind != "llama":
            raise UnsupportedError(f"a GGUF file of the architecture {kind!r} cannot be compiled", where=str(file.path), hint="only llama can")
        size = lambda name: tir.index_const(dims[name]) if name in dims else tir.Var(name, "int64", size=True)
        self.tokens, self.past = (size(name) for name in SIZES)
        self.layers, self.heads = self.fact("block_count"), self.fact("attention.head_count")
        self.shared = self.fact("attention.head_count_kv", self.heads)
        self.width = self.fact("attention.key_length", self.fact("embedding_length") // max(self.heads, 1))
        self.epsilon = float(self.fact("attention.layer_norm_rms_epsilon", 1e-5, float))
        self.turned = self.fact("rope.dimension_count", self.width)
        if not 0 < self.layers <= 1024 or not 0 < self.shared <= self.heads or self.heads % self.shared or self.turned % 2 or not 0 < self.turned <= self.width:
            raise ModelError("sizes in the metadata do not fit together", where=str(file.path))

    def fact(self, name: str, default: Any = None, kind: type = int) -> Any:
        """What the metadata say of the architecture."""
        found = self.file.metadata.get(f"llama.{name}", default)
        if isinstance(found, bool) or not isinstance(found, int | kind):
            raise ModelError(f"the metadata have no number llama.{name}", where=str(self.file.path))
        return found

    def module(self) -> IRModule:
        """All of it."""
        info = lambda: graph.TensorInfo((tir.index_const(self.shared), self.past, tir.index_const(self.width)), "float32")
        tokens = graph.Var("tokens", graph.TensorInfo((self.tokens,), "int64"))
        caches = [graph.Var(f"past_{what}_{k}", info()) for k in range(self.layers) for what in ("keys", "values")]
        with self.bb.function("main", [tokens, *caches]):
            with self.bb.dataflow():
                x = self.embedded(tokens)
                turns, kept = self.turns(), []
                for k in range(self.layers):
                    x, *new = self.layer(x, f"blk.{k}.", turns, caches[2 * k: 2 * k + 2])
                    kept += new
                last = self.one("take", x, graph.Constant.of(np.array([-1], np.int64)), axis=0)
                last = self.one("nn.rms_norm", last, self.constant("output_norm.weight"), axes=(-1,), epsilon=self.epsilon)
                logits = self.product(last, "output.weight" if "output.weight" in self.file.tensors else "token_embd.weight")
                outputs = [self.bb.emit_output(v) for v in (self.shaped(logits, logits.sinfo.shape[1]), *kept)]
            self.bb.emit_func_output(graph.Tuple(tuple(outputs)))
        return self.bb.get()

    def layer(self, x: Any, name: str, turns: Any, past: list[Any]) -> tuple[Any, ...]:
        """Attention and the network after it, with what is kept of keys and values."""
        normed = self.one("nn.rms_norm", x, self.constant(f"{name}attn_norm.weight"), axes=(-1,), epsilon=self.epsilon)
        q, k, v = (self.by_heads(self.product(normed, f"{name}attn_{what}.weight", f"{name}attn_{what}.bias"), heads)
                   for what, heads in (("q", self.heads), ("k", self.shared), ("v", self.shared)))
        keys, values = (self.one("concat", graph.Tuple((p, new)), axis=1) for p, new in zip(past, (self.turned_by(k, turns), v), strict=True))
        seen = self.attended(self.turned_by(q, turns), keys, values)
        x = self.one("add", x, self.product(seen, f"{name}attn_output.weight", f"{name}attn_output.bias"))
        normed = self.one("nn.rms_norm", x, self.constant(f"{name}ffn_norm.weight"), axes=(-1,), epsilon=self.epsilon)
        gate = self.one("nn.silu", self.product(normed, f"{name}ffn_gate.weight"))
        inner = self.one("multiply", gate, self.product(normed, f"{name}ffn_up.weight"))
        return self.one("add", x, self.product(inner, f"{name}ffn_down.weight")), keys, values

    def attended(self, q: Any, keys: Any, values: Any) -> Any:
        """Causal attention of (heads, tokens, width); the queries of heads that share keys are the rows of one matrix."""
        group = self.heads // self.shared
        total = keys.sinfo.shape[1]
        q = self.one("multiply", q, graph.Constant.of(np.float32(self.width**-0.5)))
        q = self.shaped(q, self.shared, group * self.tokens, self.width)
        scores = self.shaped(self.one("matmul", q, self.one("permute_dims", keys, axes=(0, 2, 1))), self.shared, group, self.tokens, total)
        if not (isinstance(self.tokens, tir.IntImm) and self.tokens.value == 1):
            rows = self.one("expand_dims", self.positions(), axis=(1,))
            columns = self.one("arange", graph.PrimValue(total), dtype="int64")
            scores = self.one("where", self.one("less_equal", columns, rows), scores, graph.Constant.of(np.float32(-np.inf)))
        weights = self.shaped(self.one("nn.softmax", scores, axis=-1), self.shared, group * self.tokens, total)
        out = self.shaped(self.one("matmul", weights, values), self.heads, self.tokens, self.width)
        return self.shaped(self.one("permute_dims", out, axes=(1, 0, 2)), self.tokens, self.heads * self.width)

    def positions(self) -> Any:
        """Of the tokens, from the first of all."""
        return self.one("arange", graph.PrimValue(self.past), graph.PrimValue(self.past + self.tokens), 1, dtype="int64")

    def turns(self) -> tuple[Any, Any]:
        """Cosines and sines of (tokens, pairs), by which rotary embeddings turn pairs of neighbours."""
        base = float(self.fact("rope.freq_base", 10000.0, float))
        speeds = (base ** (-np.arange(0, self.turned, 2, dtype=np.float64) / self.turned)).astype(np.float32)
        if "rope_freqs.weight" in self.file.tensors:
            speeds = speeds / self.constant("rope_freqs.weight").data.numpy()
        at = self.one("expand_dims", self.one("astype", self.positions(), dtype="float32"), axis=(1,))
        angles = self.one("multiply", at, graph.Constant.of(speeds))
        return self.one("cos", angles), self.one("sin", angles)

    def turned_by(self, x: Any, turns: tuple[Any, Any]) -> Any:
        """(heads, tokens, width) with each pair of neighbours turned."""
        heads, pairs = x.sinfo.shape[0], self.turned // 2
        cut = lambda v, axis, begin, end: self.one("strided_slice", v, axes=(axis,), begin=(tir.index_const(begin),), end=(tir.index_const(end),),
                                                   strides=(tir.index_const(1),))
        first = x if self.turned == self.width else cut(x, 2, 0, self.turned)
        pair = self.shaped(first, heads, self.tokens, pairs, 2)
        a, b = (self.shaped(cut(pair, 3, k, k + 1), heads, self.tokens, pairs) for k in (0, 1))
        cos, sin = turns
        times = lambda v, w: self.one("multiply", v, w)
        parts = [self.one("subtract", times(a, cos), times(b, sin)), self.one("add", times(a, sin), times(b, cos))]
        out = self.shaped(self.one("concat", graph.Tuple(tuple(self.one("expand_dims", p, axis=(3,)) for p in parts)), axis=3), heads, self.tokens, self.turned)
        return out if self.turned == self.width else self.one("concat", graph.Tuple((out, cut(x, 2, self.turned, self.width))), axis=2)

    def by_heads(self, x: Any, heads: int) -> Any:
        """(tokens, heads * width) as (heads, tokens, width)."""
        return self.one("permute_dims", self.shaped(x, self.tokens, heads, self.width), axes=(1, 0, 2))

    def embedded(self, tokens: Any) -> Any:
        """Rows of the table, of which only those are widened."""
        table = self.tensor("token_embd.weight")
        kind = KINDS[table.kind]
        if kind.parts is None:
            return self.one("take", self.constant("token_embd.weight"), tokens, axis=0)
        parts = kind.split(table.data, table.shape[0])
        rows = lambda v: self.one("take", graph.Constant.of(v), tokens, axis=0)
        beside = lambda v: self.one("expand_dims", rows(v), axis=(2,))
        out = self.one("multiply", self.one("astype", rows(parts.levels), dtype="float32"), beside(parts.scale))
        out = out if parts.shift is None else self.one("add", out, beside(parts.shift))
        return self.shaped(out, self.tokens, table.shape[1])

    def product(self, x: Any, name: str, bias: str = "") -> Any:
        """With a matrix of the file, which is (columns, rows) and stays as it is packed."""
        held = self.tensor(name)
        if len(held.shape) != 2:
            raise ModelError(f"tensor {name!r} is no matrix", where=str(self.file.path))
        kind = KINDS[held.kind]
        if kind.parts is None:
            weight: Any = self.constant(name)
        else:
            parts = kind.split(held.data, held.shape[0])
            wide = self.one("multiply", self.one("astype", graph.Constant.of(parts.levels), dtype="float32"), graph.Constant.of(parts.scale[..., None]))
            wide = wide if parts.shift is None else self.one("add", wide, graph.Constant.of(parts.shift[..., None]))
            weight = self.shaped(wide, *held.shape)
        out = self.one("matmul", x, self.one("permute_dims", weight, axes=(1, 0)))
        return self.one("add", out, self.constant(bias)) if bias in self.file.tensors else out

    def constant(self, name: str) -> graph.Constant:
        """A tensor in float32."""
        held = self.tensor(name)
        return graph.Constant.of(KINDS[held.kind].plain(held.data, held.shape))

    def tensor(self, name: str) -> Tensor:
        """A tensor of the file; raises ModelError where it has none of this name."""
        if name not in self.file.tensors:
            raise ModelError(f"the file has no tensor {name!r}", where=str(self.file.path))
        return self.file.tensors[name]

    def shaped(self, x: Any, *sizes: Any) -> Any:
        return self.one("reshape", x, graph.ShapeExpr(tuple(tir.as_index(n) for n in sizes)))

    def one(self, name: str, *args: Any, **attrs: Any) -> Any:
        return self.bb.emit(make(name, *args, **attrs))
