# SPDX-License-Identifier: Apache-2.0
"""ONNX convolutions and pooling."""

from __future__ import annotations

from typing import Any

from ....arith import Analyzer
from ....ir import graph, tir
from ..importer import NodeContext, Value
from ..registry import converter

_LAYOUTS = {1: ("NCW", "OIW"), 2: ("NCHW", "OIHW"), 3: ("NCDHW", "OIDHW")}


def _padding(node: NodeContext, shape: Any, kernel: list[int], strides: list[int], dilations: list[int]) -> tuple[Any, ...]:
    """Pads before, then after, of each spatial axis, by ``pads`` or ``auto_pad``."""
    n, mode = len(kernel), node.attr("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        return tuple(node.attr("pads", [0] * (2 * n)))
    if mode == "VALID":
        return (0,) * (2 * n)
    before, after = [], []
    for i in range(n):
        extent = shape[2 + i]
        span = (kernel[i] - 1) * dilations[i] + 1
        total = Analyzer().simplify(tir.max_((tir.ceildiv(extent, strides[i]) - 1) * strides[i] + span - extent, 0))
        if not isinstance(total, tir.IntImm):
            raise node.unsupported(f"auto_pad={mode} with a symbolic extent and stride {strides[i]}")
        low = total.value // 2 if mode == "SAME_UPPER" else total.value - total.value // 2
        before.append(low)
        after.append(total.value - low)
    return (*before, *after)


def _spatial(node: NodeContext, x: Value, weight: Value) -> tuple[int, list[int]]:
    n = x.expr.sinfo.ndim - 2
    if n not in _LAYOUTS:
        raise node.unsupported(f"convolution over {n} spatial dimensions")
    kernel = node.attr("kernel_shape", None) or [d.value for d in weight.expr.sinfo.shape[2:]]
    return n, list(kernel)


def with_bias(node: NodeContext, out: Any, bias: Value | None) -> Any:
    """``out`` plus a bias along channels (axis 1)."""
    if bias is None:
        return out
    ones = (tir.index_const(1),) * (out.sinfo.ndim - 2)
    return node.make("add", out, node.make("reshape", bias.expr, graph.ShapeExpr((tir.index_const(1), bias.expr.sinfo.shape[0], *ones))))


@converter("Conv")
def _conv(node: NodeContext, x: Value, weight: Value, bias: Value | None = None) -> Any:
    n, kernel = _spatial(node, x, weight)
    strides, dilations = node.attr("strides", [1] * n), node.attr("dilations", [1] * n)
    data, filters = _LAYOUTS[n]
    out = node.make(f"nn.conv{n}d", x.expr, weight.expr, strides=tuple(strides), padding=_padding(node, x.expr.sinfo.shape, kernel, strides, dilations),
                    dilation=tuple(dilations), groups=node.attr("group", 1), data_layout=data, kernel_layout=filters)
    return with_bias(node, out, bias)


@converter("ConvTranspose")
def _conv_transpose(node: NodeContext, x: Value, weight: Value, bias: Value | None = None) -> Any:
    n, kernel = _spatial(node, x, weight)
    strides, dilations = node.attr("strides", [1] * n), node.attr("dilations", [1] * n)
    extra = list(node.attr("output_padding", [0] * n))
    pads = list(node.attr("pads", [0] * (2 * n)))
    wanted, mode = node.attr("output_shape", None), node.attr("auto_pad", "NOTSET")
    shape = x.expr.sinfo.shape
    if wanted is not None or mode in ("SAME_UPPER", "SAME_LOWER"):
        for i in range(n):
            span = (kernel[i] - 1) * dilations[i] + 1
            natural = (shape[2 + i] - 1) * strides[i] + span + extra[i]
            target = tir.as_index(wanted[len(wanted) - n + i]) if wanted is not None else shape[2 + i] * strides[i]
            total = Analyzer().simplify(natural - target)
            if not isinstance(total, tir.IntImm):
                raise node.unsupported("output_shape of a ConvTranspose with symbolic extents")
            if total.value < 0:
                extra[i] -= total.value
            cut = max(total.value, 0)
            low = cut // 2 if mode == "SAME_UPPER" else cut - cut // 2
            pads[i], pads[n + i] = low, cut - low
    data, filters = _LAYOUTS[n]
    out = node.make(f"nn.conv{n}d_transpose", x.expr, weight.expr, strides=tuple(strides), padding=tuple(pads), output_padding=tuple(extra),
                    dilation=tuple(dilations), groups=node.attr("group", 1), data_layout=data, kernel_layout="I" + "O" + filters[2:])
    return with_bias(node, out, bias)


def _pool(kind: str, node: NodeContext, x: Value, **more: Any) -> Any:
    kernel = node.attr("kernel_shape")
    n = len(kernel)
    if n not in _LAYOUTS:
        raise node.unsupported(f"pooling over {n} spatial dimensions")
    strides, dilations = node.attr("strides", [1] * n), node.attr("dilations", [1] * n)
    return node.make(f"nn.{kind}_pool{n}d", x.expr, pool_size=tuple(kernel), strides=tuple(strides), dilation=tuple(dilations),
                     padding=_padding(node, x.expr.sinfo.shape, kernel, strides, dilations), ceil_mode=bool(node.attr("ceil_mode", 0)),
                     layout=_LAYOUTS[n][0], **more)


@converter("MaxPool")
def _max_pool(node: NodeContext, x: Value) -> Any:
    if len(node.node.output) > 1 and node.node.output[1]:
        raise node.unsupported("the indices of MaxPool")
    return _pool("max", node, x)


@converter("AveragePool")
def _average_pool(node: NodeContext, x: Value) -> Any:
    return _pool("avg", node, x, count_include_pad=bool(node.attr("count_include_pad", 0)))


@converter("GlobalAveragePool")
def _global_average(node: NodeContext, x: Value) -> Any:
    return node.make("mean", x.expr, axis=tuple(range(2, x.expr.sinfo.ndim)), keepdims=True)


@converter("GlobalMaxPool")
def _global_max(node: NodeContext, x: Value) -> Any:
    return node.make("max", x.expr, axis=tuple(range(2, x.expr.sinfo.ndim)), keepdims=True)
