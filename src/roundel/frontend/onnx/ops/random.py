# SPDX-License-Identifier: Apache-2.0
"""ONNX random operators. Element i of a tensor is a hash (SplitMix64's finaliser) of the seed and i: the same in every run, on every
machine and for any number of threads. Without a seed the node's place in the graph gives one.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

from .... import te
from ....ir import graph, tir
from ....ir.dtype import DType
from ..importer import NodeContext, Value
from ..load import dtype_of
from ..registry import converter
from ..run_time_sizes import require
from .math import const_like

_U64 = DType("uint64")
_MASK = (1 << 64) - 1


def _seed(node: NodeContext) -> int:
    given = node.attr("seed", None)
    text = struct.pack("<d", given) if given is not None else ",".join(node.node.output).encode()
    return (zlib.crc32(text) * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & _MASK


def _u64(v: int) -> tir.Expr:
    return tir.IntImm(v, _U64)


def _shifted(x: Any, bits: int) -> tir.Expr:
    return tir.call("shift_right", x, _u64(bits))


def _hash(index: Any, seed: int) -> tir.Expr:
    x = te.cast(index, _U64) * _u64(0x9E3779B97F4A7C15) + _u64(seed)
    x = tir.call("bitwise_xor", x, _shifted(x, 30)) * _u64(0xBF58476D1CE4E5B9)
    x = tir.call("bitwise_xor", x, _shifted(x, 27)) * _u64(0x94D049BB133111EB)
    return tir.call("bitwise_xor", x, _shifted(x, 31))


def uniform(node: NodeContext, shape: tuple[Any, ...], salt: int = 0) -> Any:
    """Numbers in [0, 1), float32 with 24 random bits."""
    seed = (_seed(node) + salt * 0xD1B54A32D192ED03) & _MASK

    def build() -> Any:
        def body(*at: Any) -> tir.Expr:
            flat: Any = tir.index_const(0)
            for i, n in zip(at, shape, strict=True):
                flat = flat * n + i
            return te.cast(te.cast(_shifted(_hash(flat, seed), 40), "int32"), "float32") * tir.const(2.0 ** -24, "float32")

        return te.compute(shape, body, "uniform")

    return node.te(build)


def _normal(node: NodeContext, shape: tuple[Any, ...]) -> Any:
    """Standard normal numbers, by Box and Muller."""
    u, v = uniform(node, shape), uniform(node, shape, 1)
    u = node.make("subtract", const_like(1.0, u), u)
    radius = node.make("sqrt", node.make("multiply", node.make("log", u), const_like(-2.0, u)))
    return node.make("multiply", radius, node.make("cos", node.make("multiply", v, const_like(6.283185307179586, v))))


def _scaled(node: NodeContext, x: Any, factor: float, shift: float, dtype: Any) -> Any:
    out = node.make("add", node.make("multiply", x, const_like(factor, x)), const_like(shift, x))
    return node.make("astype", out, dtype=dtype)


def _type(node: NodeContext, like: Value | None, default: Any) -> Any:
    code = node.attr("dtype", 0)
    if code:
        return dtype_of(code)
    return default if like is None else like.expr.sinfo.dtype


def _draw(node: NodeContext, shape: tuple[Any, ...], dtype: Any) -> Any:
    if "Normal" in node.node.op_type:
        return _scaled(node, _normal(node, shape), node.attr("scale", 1.0), node.attr("mean", 0.0), dtype)
    low, high = node.attr("low", 0.0), node.attr("high", 1.0)
    return _scaled(node, uniform(node, shape), high - low, low, dtype)


@converter("RandomUniform", "RandomNormal")
def _random(node: NodeContext) -> Any:
    return _draw(node, tuple(tir.index_const(n) for n in node.attr("shape")), _type(node, None, DType("float32")))


@converter("RandomUniformLike", "RandomNormalLike")
def _random_like(node: NodeContext, x: Value) -> Any:
    return _draw(node, x.expr.sinfo.shape, _type(node, x, None))


@converter("Bernoulli", since=15)
def _bernoulli(node: NodeContext, x: Value) -> Any:
    wide = node.make("astype", x.expr, dtype="float32")
    return node.make("astype", node.make("less", uniform(node, x.expr.sinfo.shape), wide), dtype=_type(node, x, None))


@converter("Dropout")
def _dropout_of_inference(node: NodeContext, x: Value) -> Any:
    """The ratio is an attribute, and training is left to those who train."""
    _require_ratio(node, node.attr("ratio", 0.5))
    return x, _all_kept(node, x)


@converter("Dropout", since=12)
def _dropout(node: NodeContext, x: Value, ratio: Value | None = None, training: Value | None = None) -> Any:
    """Where ``training_mode`` is true a part of the elements is 0, and the others are larger by 1 / (1 - ratio)."""
    known = None if ratio is None else ratio.constant()
    if ratio is None or known is not None:
        _require_ratio(node, 0.5 if known is None else float(known.reshape(-1)[0]))
    else:
        zero, one = (graph.Constant.of(np.array(v, ratio.expr.sinfo.dtype.numpy)) for v in (0, 1))
        inside = node.make("logical_and", node.make("greater_equal", ratio.expr, zero), node.make("less", ratio.expr, one))
        require(node, node.make("all", inside), _RATIO)
    on = graph.Constant.of(np.array(False)) if training is None else training.expr
    if isinstance(on, graph.Constant) and not on.data.numpy().any():
        return x, _all_kept(node, x)
    part = graph.Constant.of(np.float32(0.5)) if ratio is None else node.make("astype", ratio.expr, dtype="float32")
    keep = node.make("greater_equal", uniform(node, x.expr.sinfo.shape), part)
    rest = node.make("astype", node.make("subtract", const_like(1.0, part), part), dtype=x.expr.sinfo.dtype)
    dropped = node.make("where", keep, node.make("divide", x.expr, rest), const_like(0, x.expr))
    return node.make("where", on, dropped, x.expr), node.make("logical_or", keep, node.make("logical_not", on))


_RATIO = "the ratio must be at least 0 and less than 1"


def _require_ratio(node: NodeContext, ratio: float) -> None:
    if not 0 <= ratio < 1:
        raise node.error(f"the ratio is {ratio:g}: it must be at least 0 and less than 1")


def _all_kept(node: NodeContext, x: Value) -> Any:
    """The mask of what dropped nothing; None where the node does not have it as an output."""
    shape = graph.ShapeExpr(x.expr.sinfo.shape)
    return node.make("full", shape, graph.Constant.of(np.asarray(True)), dtype="bool") if len(node.node.output) > 1 else None


@converter("Multinomial", since=7)
def _multinomial(node: NodeContext, x: Value) -> Any:
    """The largest of log-probabilities with Gumbel noise, for each sample."""
    batch, classes = x.expr.sinfo.shape
    shape = (batch, tir.index_const(node.attr("sample_size", 1)), classes)
    u = node.make("maximum", uniform(node, shape), const_like(1e-12, x.expr))
    noise = node.make("negative", node.make("log", node.make("negative", node.make("log", u))))
    scores = node.make("add", node.make("expand_dims", node.make("astype", x.expr, dtype="float32"), axis=(1,)), noise)
    return node.make("astype", node.make("argmax", scores, axis=2, keepdims=False), dtype=dtype_of(node.attr("dtype", 6)))


