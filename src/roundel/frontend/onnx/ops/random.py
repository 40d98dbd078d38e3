# SPDX-License-Identifier: Apache-2.0
"""ONNX random operators. Element i of a tensor is a hash (SplitMix64's finaliser) of the seed and i: the same in every run, on every
machine and for any number of threads. Without a seed the node's place in the graph gives one.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

from .... import te
from ....ir import tir
from ....ir.dtype import DType
from ..importer import NodeContext, Value
from ..load import dtype_of
from ..registry import converter
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


@converter("Multinomial", since=7)
def _multinomial(node: NodeContext, x: Value) -> Any:
    """The largest of log-probabilities with Gumbel noise, for each sample."""
    batch, classes = x.expr.sinfo.shape
    shape = (batch, tir.index_const(node.attr("sample_size", 1)), classes)
    u = node.make("maximum", uniform(node, shape), const_like(1e-12, x.expr))
    noise = node.make("negative", node.make("log", node.make("negative", node.make("log", u))))
    scores = node.make("add", node.make("expand_dims", node.make("astype", x.expr, dtype="float32"), axis=(1,)), noise)
    return node.make("astype", node.make("argmax", scores, axis=2, keepdims=False), dtype=dtype_of(node.attr("dtype", 6)))


