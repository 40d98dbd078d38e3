# SPDX-License-Identifier: Apache-2.0
"""Relay's quantised operators (``qnn.*``): integers that stand for ``scale * (value - zero_point)``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir import graph
from ..importer import NodeContext
from ..registry import converter
from .elementwise import along, round_half_away
from .nn import convolved, swapped


def _spread(node: NodeContext, v: Any, x: Any, axis: int) -> Any:
    """A scale or zero point, scalar or one for each element along an axis, shaped to broadcast against ``x``."""
    if v.sinfo.ndim == 0:
        return v
    if v.sinfo.ndim == 1 and getattr(v.sinfo.shape[0], "value", 0) == 1:
        return node.reshape(v, ())
    return along(node, v, axis % x.sinfo.ndim, x.sinfo.ndim)


def real(node: NodeContext, x: Any, scale: Any, zero: Any, axis: int = -1) -> Any:
    """The numbers that quantised ones stand for, float32."""
    scale, zero = _spread(node, scale, x, axis), _spread(node, zero, x, axis)
    whole = node.make("subtract", node.make("astype", x, dtype="int32"), node.make("astype", zero, dtype="int32"))
    return node.make("multiply", node.make("astype", whole, dtype="float32"), scale)


def _limits(dtype: Any) -> tuple[int, int]:
    kind = np.iinfo(dtype.numpy if hasattr(dtype, "numpy") else np.dtype(dtype))
    return int(kind.min), int(kind.max)


def stored(node: NodeContext, value: Any, zero: Any, dtype: Any, rounding: str = "UPWARD") -> Any:
    """Numbers in units of their scale as integers: rounded (``UPWARD``: halves up; ``TONEAREST``: halves away from zero), moved, saturated."""
    if rounding == "UPWARD":
        whole = node.make("floor", node.make("add", value, node.like(0.5, value)))
    else:
        whole = round_half_away(node, value)
    whole = node.make("add", whole, node.make("astype", zero, dtype="float32"))
    low, high = _limits(dtype)
    inside = node.make("minimum", node.make("maximum", whole, node.like(low, whole)), node.like(high, whole))
    if low < -2 ** 24:  # 2**31 - 1 is no float32
        wide = node.make("astype", inside, dtype="float64")
        inside = node.make("astype", node.make("minimum", wide, node.like(high, wide)), dtype="int64")
    return node.make("astype", inside, dtype=dtype)


@converter("qnn.quantize")
def _quantize(node: NodeContext, x: Any, scale: Any, zero: Any) -> Any:
    axis = node.attr("axis", -1)
    ratio = node.make("divide", x, _spread(node, scale, x, axis))
    return stored(node, ratio, _spread(node, zero, x, axis), node.attr("out_dtype", "int8"), "TONEAREST")


@converter("qnn.dequantize")
def _dequantize(node: NodeContext, x: Any, scale: Any, zero: Any) -> Any:
    out = real(node, x, scale, zero, node.attr("axis", -1))
    return node.make("astype", out, dtype=node.attr("out_dtype", "float32"))


@converter("qnn.requantize")
def _requantize(node: NodeContext, x: Any, scale: Any, zero: Any, out_scale: Any, out_zero: Any) -> Any:
    """From one scale to another. TVM multiplies in fixed point, which gives the same but for values that lie between two integers within its precision."""
    axis, dtype = node.attr("axis", -1), node.attr("out_dtype", "int8")
    rounding = node.attr("rounding", "UPWARD")
    whole = node.make("subtract", node.make("astype", x, dtype="int32"), node.make("astype", _spread(node, zero, x, axis), dtype="int32"))
    ratio = node.make("divide", _spread(node, scale, x, axis), _spread(node, out_scale, x, axis))
    moved = node.make("multiply", node.make("astype", whole, dtype="float32"), ratio)
    return stored(node, moved, _spread(node, out_zero, x, axis), dtype, "TONEAREST" if rounding == "TONEAREST" else "UPWARD")


def _minus(node: NodeContext, x: Any, zero: Any) -> Any:
    """``x - zero`` as int32; the integers themselves where the zero point is 0."""
    if isinstance(zero, graph.Constant) and not zero.data.numpy().any():
        return x
    return node.make("subtract", node.make("astype", x, dtype="int32"), node.make("astype", zero, dtype="int32"))


def _as_one_kind(node: NodeContext, a: Any, b: Any) -> tuple[Any, Any]:
    return (a, b) if a.sinfo.dtype == b.sinfo.dtype else (node.make("astype", a, dtype="int32"), node.make("astype", b, dtype="int32"))


def _kernel_zero(node: NodeContext, weight: Any, zero: Any, layout: str) -> Any:
    return zero if zero.sinfo.ndim == 0 else _spread(node, zero, weight, layout.index("O"))


@converter("qnn.conv2d")
def _conv2d(node: NodeContext, x: Any, weight: Any, x_zero: Any, w_zero: Any, x_scale: Any, w_scale: Any) -> Any:
    """Sums of products of the integers without their zero points, int32; padding stands for the real number 0."""
    x = _minus(node, x, node.reshape(x_zero, ()))
    weight = _minus(node, weight, _kernel_zero(node, weight, w_zero, node.attr("kernel_layout", "OIHW")))
    return convolved(node, *_as_one_kind(node, x, weight), out_dtype=node.attr("out_dtype", "int32"))


@converter("qnn.dense")
def _dense(node: NodeContext, x: Any, weight: Any, x_zero: Any, w_zero: Any, x_scale: Any, w_scale: Any) -> Any:
    x, weight = _as_one_kind(node, _minus(node, x, node.reshape(x_zero, ())), _minus(node, weight, _spread(node, w_zero, weight, 0)))
    return node.make("matmul", x, swapped(node, weight), out_dtype=node.attr("out_dtype", "int32"))


@converter("qnn.batch_matmul")
def _batch_matmul(node: NodeContext, x: Any, y: Any, x_zero: Any, y_zero: Any, x_scale: Any, y_scale: Any) -> Any:
    """The second operand is transposed, as it was in TVM's early products."""
    x, y = _as_one_kind(node, _minus(node, x, x_zero), _minus(node, y, y_zero))
    return node.make("matmul", x, swapped(node, y), out_dtype=node.attr("out_dtype", "int32"))


@converter("qnn.add", "qnn.mul", "qnn.subtract")
def _binary(node: NodeContext, a: Any, b: Any, a_scale: Any, a_zero: Any, b_scale: Any, b_zero: Any, scale: Any, zero: Any) -> Any:
    op = {"qnn.add": "add", "qnn.mul": "multiply", "qnn.subtract": "subtract"}[node.kind]
    left, right = real(node, a, a_scale, a_zero, node.attr("lhs_axis", -1)), real(node, b, b_scale, b_zero, node.attr("rhs_axis", -1))
    return stored(node, node.make("divide", node.make(op, left, right), scale), zero, a.sinfo.dtype)


@converter("qnn.concatenate")
def _concatenate(node: NodeContext, parts: tuple[Any, ...], scales: tuple[Any, ...], zeros: tuple[Any, ...], scale: Any, zero: Any) -> Any:
    moved = [stored(node, node.make("divide", real(node, p, s, z), scale), zero, p.sinfo.dtype) for p, s, z in zip(parts, scales, zeros, strict=True)]
    return node.make("concat", graph.Tuple(tuple(moved)), axis=node.attr("axis", 0))


@converter("qnn.leaky_relu")
def _leaky_relu(node: NodeContext, x: Any, scale: Any, zero: Any, out_scale: Any, out_zero: Any) -> Any:
    out = node.make("nn.leakyrelu", real(node, x, scale, zero), alpha=node.attr("alpha", 0.25))
    return stored(node, node.make("divide", out, out_scale), out_zero, x.sinfo.dtype)


for _name in ("tanh", "erf", "sigmoid", "exp", "sqrt", "rsqrt", "log"):
    @converter(f"qnn.{_name}")
    def _unary(node: NodeContext, x: Any, scale: Any, zero: Any, out_scale: Any, out_zero: Any) -> Any:
        out = node.make(node.kind.removeprefix("qnn."), real(node, x, scale, zero))
        return stored(node, node.make("divide", out, out_scale), out_zero, x.sinfo.dtype)
