# SPDX-License-Identifier: Apache-2.0
"""ONNX quantisation: QuantizeLinear, DequantizeLinear and their integer relatives."""

from __future__ import annotations

from typing import Any

from ....ir import graph, tir
from ..importer import NodeContext, Value
from ..load import dtype_of
from ..registry import converter
from .math import const_like

_LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535), "int4": (-8, 7), "uint4": (0, 15),
           "int2": (-2, 1), "uint2": (0, 3)}


def _along(node: NodeContext, v: Any, x: Any, axis: int, block: int) -> Any:
    """A scale or zero point shaped to broadcast against ``x``: scalar, per axis, or repeated in blocks."""
    if v.sinfo.ndim == 0 or (v.sinfo.ndim == 1 and v.sinfo.shape[0] is tir.index_const(1)):
        return node.make("reshape", v, graph.ShapeExpr(()))
    if block:
        out = node.make("repeat", v, repeats=block, axis=axis)
        return node.make("strided_slice", out, axes=(axis,), begin=(tir.index_const(0),), end=(x.sinfo.shape[axis],), strides=(tir.index_const(1),))
    shape = [tir.index_const(1)] * x.sinfo.ndim
    shape[axis] = v.sinfo.shape[0]
    return node.make("reshape", v, graph.ShapeExpr(tuple(shape)))


@converter("QuantizeLinear", since=10)
def _quantize(node: NodeContext, x: Value, scale: Value, zero: Value | None = None) -> Any:
    v = x.expr
    axis = node.attr("axis", 1)
    axis = axis % v.sinfo.ndim if v.sinfo.ndim else 0
    code = node.attr("output_dtype", 0)
    dtype = zero.expr.sinfo.dtype if zero is not None else dtype_of(code) if code else dtype_of(2)
    wide = "float32" if v.sinfo.dtype.bits < 64 else v.sinfo.dtype
    block = node.attr("block_size", 0)
    s = node.make("astype", _along(node, scale.expr, v, axis, block), dtype=wide)
    ratio = node.make("divide", node.make("astype", v, dtype=wide), s)
    if dtype.is_float:
        return node.make("astype", ratio, dtype=dtype)
    out = node.make("round", ratio)
    if zero is not None:
        out = node.make("add", out, node.make("astype", _along(node, zero.expr, v, axis, block), dtype=wide))
    low, high = _LIMITS[dtype]
    out = node.make("minimum", node.make("maximum", out, const_like(low, out)), const_like(high, out))
    return node.make("astype", out, dtype=dtype)


@converter("DequantizeLinear", since=10)
def _dequantize(node: NodeContext, x: Value, scale: Value, zero: Value | None = None) -> Any:
    v, s = x.expr, scale.expr
    axis = node.attr("axis", 1)
    axis = axis % v.sinfo.ndim if v.sinfo.ndim else 0
    block = node.attr("block_size", 0)
    code = node.attr("output_dtype", 0)
    out_dtype = dtype_of(code) if code else s.sinfo.dtype
    wide = "int32" if v.sinfo.dtype.is_int and v.sinfo.dtype.bits < 32 else "float32" if v.sinfo.dtype.is_float else v.sinfo.dtype
    out = node.make("astype", v, dtype=wide)
    if zero is not None:
        out = node.make("subtract", out, node.make("astype", _along(node, zero.expr, v, axis, block), dtype=wide))
    out = node.make("multiply", node.make("astype", out, dtype="float32"), node.make("astype", _along(node, s, v, axis, block), dtype="float32"))
    return node.make("astype", out, dtype=out_dtype)
