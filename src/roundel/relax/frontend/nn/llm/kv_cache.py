# SPDX-License-Identifier: Apache-2.0
"""A paged cache of keys and values as an argument of a model's methods. The functions that it calls are those of `roundel.embed.paged_kv_cache`, which
whoever runs the model imports.

    def decode(self, hidden: Tensor, cache: PagedKVCache): ...      # in the specification: "cache": nn.spec.Object(object_type=PagedKVCache)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from roundel.ir import graph, tir
from roundel.ir.dtype import DType
from roundel.ir.errors import BuilderError
from roundel.script.relax import call_dps_packed, call_pure_packed

from .. import op
from ..core import Object, Tensor

_BUILTIN = "vm.builtin."


class PagedKVCache(Object):
    """The cache that a method gets; `TIRPagedKVCache` makes one."""

    def attention_with_fused_qkv(self, layer_id: int, qkv: Tensor, num_qo_heads: int, sm_scale: float | None = None, **_: Any) -> Tensor:
        """Appends the keys and values among ``qkv``, (batch, sequence, query heads + 2 * key heads, width), and gives attention to all that the sequences
        hold by then, (batch, sequence, query heads, width). ``sm_scale`` is 1 / sqrt(width) by default."""
        batch, rows, heads, width = qkv.shape
        scale = 1 / math.sqrt(width) if sm_scale is None else sm_scale
        flat = op.call("reshape", qkv, (batch * rows, heads, width))
        operands = (self.expr, graph.PrimValue(tir.const(layer_id, "int64")), graph.PrimValue(tir.const(scale, "float64")), flat.expr)
        out = graph.TensorInfo((batch * rows, num_qo_heads, width), qkv.dtype)
        found = op.wrap(call_dps_packed(_BUILTIN + "attention_kv_cache_attention_with_fused_qkv", operands, out))
        return op.call("reshape", found, (batch, rows, num_qo_heads, width))

    def get_query_positions(self, total_length: Any) -> Tensor:
        """Of each new row its position in its sequence, (total_length,) of int32."""
        info = graph.TensorInfo((total_length,), "int32")
        return op.wrap(call_pure_packed(_BUILTIN + "attention_kv_cache_get_query_positions", self.expr, sinfo_args=info))


class TIRPagedKVCache(PagedKVCache):
    """A new cache, for a method that returns it. Sizes are numbers or arguments of the method (``"page_size": int`` in the specification).

    Attention is that of many heads (``attn_kind="mha"``) without sliding windows; positions rotate keys and queries by ``rope_mode`` (0: not at all).
    What TVM's class takes besides is accepted and changes nothing. Raises BuilderError for what there is not.
    """

    def __init__(self, *, max_batch_size: Any, max_total_seq_len: Any, prefill_chunk_size: Any, page_size: Any, num_hidden_layers: int,
                 num_attention_heads: int, num_key_value_heads: int, qk_head_dim: int, v_head_dim: int | None = None, attn_kind: Any = "mha",
                 support_sliding_window: Any = 0, rope_mode: int = 0, rope_scale: float = 1, rope_theta: float = 10000,
                 rope_scaling: Mapping[str, Any] | None = None, rotary_dim: int | None = None, dtype: str = "float32", **_: Any) -> None:
        for name, asked, known in (("attn_kind", attn_kind, "mha"), ("support_sliding_window", int(support_sliding_window), 0),
                                   ("rope_scaling", dict(rope_scaling or {}), {})):
            if asked != known:
                raise BuilderError(f"a paged cache with {name} = {asked!r}", why=f"there is one with {known!r} only")
        value_width = qk_head_dim if v_head_dim is None else v_head_dim
        whole = (max_batch_size, max_total_seq_len, prefill_chunk_size, page_size, num_hidden_layers, num_attention_heads, num_key_value_heads,
                 qk_head_dim, value_width, int(rope_mode))
        values = [graph.PrimValue(tir.as_index(n)) for n in whole]
        values += [graph.PrimValue(tir.const(float(n), "float64")) for n in (rope_scale, rope_theta)]
        values.append(graph.PrimValue(tir.as_index(qk_head_dim if rotary_dim is None else rotary_dim)))
        made = call_pure_packed(_BUILTIN + "paged_attention_kv_cache_create", *values, graph.StringValue(str(DType(dtype))), sinfo_args=graph.ObjectInfo())
        super().__init__(op.emit(made))


__all__ = ["PagedKVCache", "TIRPagedKVCache"]
