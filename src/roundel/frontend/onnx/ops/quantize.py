# SPDX-License-Identifier: Apache-2.0
"""ONNX quantisation: QuantizeLinear, DequantizeLinear and their integer relatives."""

from __future__ import annotations

from typing import Any

from ....ir import graph, tir
from ..importer import NodeContext, Value
from ..load import dtype_of
from ..registry import converter
from .math import const_like, converted
from .nn import convolution

LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535), "int4": (-8, 7), "uint4": (0, 15),
           "int2": (-2, 1), "uint2": (0, 3)}


def _along(node: NodeContext, v: Any, x: Any, axis: int, block: int) -> Any:
    """A scale or zero point shaped to broadcast against ``x``: scalar, per axis, or repeated in blocks."""
    if _is_one(v):
        return node.make("reshape", v, graph.ShapeExpr(()))
    if block:
        out = node.make("repeat", v, repeats=block, axis=axis)
        return node.make("strided_slice", out, axes=(axis,), begin=(tir.index_const(0),), end=(x.sinfo.shape[axis],), strides=(tir.index_const(1),))
    shape = [tir.index_const(1)] * x.sinfo.ndim
    shape[axis] = v.sinfo.shape[0]
    return node.make("reshape", v, graph.ShapeExpr(tuple(shape)))


def _is_one(v: Any) -> bool:
    """Whether a scale or zero point is one for all elements: a scalar, or a list of one."""
    return v.sinfo.ndim == 0 or (v.sinfo.ndim == 1 and v.sinfo.shape[0] is tir.index_const(1))


def _axis(node: NodeContext, x: Any, scale: Any) -> int:
    """The axis of the scales; one scale for all has none, whatever the attribute says (its default is beyond the rank of a vector)."""
    return 0 if _is_one(scale) or not x.sinfo.ndim else node.axis(node.attr("axis", 1), x.sinfo.ndim)


@converter("QuantizeLinear", since=10)
def _quantize(node: NodeContext, x: Value, scale: Value, zero: Value | None = None) -> Any:
    v = x.expr
    axis = _axis(node, v, scale.expr)
    code = node.attr("output_dtype", 0)
    dtype = zero.expr.sinfo.dtype if zero is not None else dtype_of(code) if code else dtype_of(2)
    wide = "float32" if v.sinfo.dtype.bits < 64 else v.sinfo.dtype
    block = node.attr("block_size", 0)
    s = node.make("astype", _along(node, scale.expr, v, axis, block), dtype=wide)
    ratio = node.make("divide", node.make("astype", v, dtype=wide), s)
    if dtype.is_float:
        return converted(node, ratio, dtype)
    out = node.make("round", ratio)
    if zero is not None:
        out = node.make("add", out, node.make("astype", _along(node, zero.expr, v, axis, block), dtype=wide))
    low, high = LIMITS[dtype]
    out = node.make("minimum", node.make("maximum", out, const_like(low, out)), const_like(high, out))
    return node.make("astype", out, dtype=dtype)


@converter("DequantizeLinear", since=10)
def _dequantize(node: NodeContext, x: Value, scale: Value, zero: Value | None = None) -> Any:
    v, s = x.expr, scale.expr
    axis = _axis(node, v, scale.expr)
    block = node.attr("block_size", 0)
    code = node.attr("output_dtype", 0)
    out_dtype = dtype_of(code) if code else s.sinfo.dtype
    wide = "int32" if v.sinfo.dtype.is_int and v.sinfo.dtype.bits < 32 else "float32" if v.sinfo.dtype.is_float else v.sinfo.dtype
    out = node.make("astype", v, dtype=wide)
    if zero is not None:
        out = node.make("subtract", out, node.make("astype", _along(node, zero.expr, v, axis, block), dtype=wide))
    out = node.make("multiply", node.make("astype", out, dtype="float32"), node.make("astype", _along(node, s, v, axis, block), dtype="float32"))
    return node.make("astype", out, dtype=out_dtype)


def minus_zero(node: NodeContext, v: Any, zero: Value | None, shape: tuple[Any, ...] | None = None) -> Any:
    """Integers as int32 without their zero point; ``shape`` is what a list of zero points broadcasts as."""
    out = node.make("astype", v, dtype="int32")
    if zero is None:
        return out
    return node.make("subtract", out, node.make("astype", spread(node, zero.expr, shape), dtype="int32"))


def spread(node: NodeContext, v: Any, shape: tuple[Any, ...] | None) -> Any:
    """A scale or zero point as a scalar, or its list along the axis where ``shape`` has None."""
    if _is_one(v):
        return node.make("reshape", v, graph.ShapeExpr(()))
    return v if shape is None or v.sinfo.ndim != 1 else node.make("reshape", v, graph.ShapeExpr(tuple(v.sinfo.shape[0] if d is None else tir.index_const(d)
                                                                                                      for d in shape)))


def _requantized(node: NodeContext, total: Any, scale: Any, out_scale: Value, zero: Value) -> Any:
    """An int32 sum times ``scale``, in units of the output's scale, rounded half to even and saturated."""
    ratio = node.make("divide", scale, node.make("astype", spread(node, out_scale.expr, None), dtype="float32"))
    out = node.make("round", node.make("multiply", node.make("astype", total, dtype="float32"), ratio))
    out = node.make("add", out, node.make("astype", spread(node, zero.expr, None), dtype="float32"))
    low, high = LIMITS[zero.expr.sinfo.dtype]
    out = node.make("minimum", node.make("maximum", out, const_like(low, out)), const_like(high, out))
    return node.make("astype", out, dtype=zero.expr.sinfo.dtype)


def _scales(node: NodeContext, a: Any, b: Any) -> Any:
    return node.make("multiply", node.make("astype", a, dtype="float32"), node.make("astype", b, dtype="float32"))


@converter("MatMulInteger", since=10)
def _matmul_integer(node: NodeContext, a: Value, b: Value, a_zero: Value | None = None, b_zero: Value | None = None) -> Any:
    return node.make("matmul", minus_zero(node, a.expr, a_zero, (None, 1)), minus_zero(node, b.expr, b_zero, (None,)))


@converter("QLinearMatMul", since=10)
def _qlinear_matmul(node: NodeContext, a: Value, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value, y_scale: Value,
                    y_zero: Value) -> Any:
    total = node.make("matmul", minus_zero(node, a.expr, a_zero, (None, 1)), minus_zero(node, b.expr, b_zero, (None,)))
    scale = _scales(node, spread(node, a_scale.expr, (None, 1)), spread(node, b_scale.expr, (None,)))
    return _requantized(node, total, scale, y_scale, y_zero)


def _integer_conv(node: NodeContext, x: Value, w: Value, x_zero: Value | None, w_zero: Value | None) -> Any:
    rank = w.expr.sinfo.ndim
    data = Value(minus_zero(node, x.expr, x_zero))
    return convolution(node, data, Value(minus_zero(node, w.expr, w_zero, (None, *(1,) * (rank - 1)))))


@converter("ConvInteger", since=10)
def _conv_integer(node: NodeContext, x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None) -> Any:
    return _integer_conv(node, x, w, x_zero, w_zero)


@converter("QLinearConv", since=10)
def _qlinear_conv(node: NodeContext, x: Value, x_scale: Value, x_zero: Value, w: Value, w_scale: Value, w_zero: Value, y_scale: Value, y_zero: Value,
                  bias: Value | None = None) -> Any:
    total = _integer_conv(node, x, w, x_zero, w_zero)
    channels = (None, *(1,) * (w.expr.sinfo.ndim - 2))
    if bias is not None:
        total = node.make("add", total, spread(node, bias.expr, channels))
    scale = _scales(node, spread(node, x_scale.expr, None), spread(node, w_scale.expr, channels))
    return _requantized(node, total, scale, y_scale, y_zero)
