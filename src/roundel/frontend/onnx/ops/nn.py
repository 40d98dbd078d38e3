# SPDX-License-Identifier: Apache-2.0
"""ONNX convolutions and pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import te
from ....arith import Analyzer
from ....ir import graph, tir
from ..importer import NodeContext, Value
from ..registry import converter
from .math import const_like

_LAYOUTS = {1: ("NCW", "OIW"), 2: ("NCHW", "OIHW"), 3: ("NCDHW", "OIDHW")}


def _padding(node: NodeContext, x: Any, kernel: list[int], strides: list[int], dilations: list[int], fill: Any = 0) -> tuple[Any, tuple[int, ...]]:
    """``x`` and pads before, then after, of each spatial axis, by ``pads`` or ``auto_pad``. Pads that depend on sizes known only when
    the model runs are put around ``x``, filled with ``fill``, and the rest is 0."""
    n, mode = len(kernel), node.attr("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        return x, tuple(node.attr("pads", [0] * (2 * n)))
    if mode == "VALID":
        return x, (0,) * (2 * n)
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise node.error(f"auto_pad is {mode!r}, not NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    before, after = [], []
    for extent, k, stride, dilation in zip(x.sinfo.shape[2:], kernel, strides, dilations, strict=True):
        span = (k - 1) * dilation + 1
        total = (tir.ceildiv(extent, stride) - 1) * stride + span - extent
        total = Analyzer().simplify(total if span >= stride else tir.max_(total, 0))
        half = tir.floordiv(total, 2) if mode == "SAME_UPPER" else total - tir.floordiv(total, 2)
        before.append(Analyzer().simplify(half))
        after.append(Analyzer().simplify(total - half))
    if all(isinstance(v, tir.IntImm) for v in (*before, *after)):
        return x, tuple(v.value for v in (*before, *after))
    zero = tir.index_const(0)
    widths = [v for pair in zip(before, after, strict=True) for v in pair]
    return node.make("nn.pad", x, graph.ShapeExpr((zero,) * 4 + tuple(widths)), pad_value=const_like(fill, x)), (0,) * (2 * n)


def _spatial(node: NodeContext, x: Value, weight: Value) -> tuple[int, list[int]]:
    n = x.expr.sinfo.ndim - 2
    if n < 1 or weight.expr.sinfo.ndim != n + 2:
        raise node.error(f"a tensor of {n + 2} dimensions is convolved with weights of {weight.expr.sinfo.ndim}; "
                         "both have two and those of space, [batch, channels, ...] and [out, in, ...]")
    if n not in _LAYOUTS:
        raise node.unsupported(f"convolution over {n} spatial dimensions")
    extents = weight.expr.sinfo.shape[2:]
    kernel = node.attr("kernel_shape", None) or node.static_dims(extents, "the kernel's extent (or the attribute kernel_shape)")
    for name, count in (("kernel_shape", n), ("strides", n), ("dilations", n), ("pads", 2 * n), ("output_padding", n)):
        if len(node.attr(name, None) or [1] * count) != count:
            raise node.error(f"the attribute {name!r} has {len(node.attr(name))} numbers, {count} for {n} spatial axes are needed")
    for wanted, extent in zip(kernel, extents, strict=True):
        node.same_size(extent, wanted, "the weights' extent is not that of kernel_shape")
    return n, list(kernel)


def _with_channels(node: NodeContext, x: Any, channels: Any) -> Any:
    """``x`` with this number of channels where only the run could tell, which is checked then."""
    n, channels = x.sinfo.shape[1], Analyzer().simplify(tir.as_index(channels))
    if isinstance(n, tir.IntImm) or not isinstance(channels, tir.IntImm):
        return x
    node.same_size(n, channels, "the data has another number of channels than the weights are for")
    info = graph.TensorInfo((x.sinfo.shape[0], channels, *x.sinfo.shape[2:]), x.sinfo.dtype)
    return node.importer.bb.match_cast(x, info, "channels")


def with_bias(node: NodeContext, out: Any, bias: Value | None) -> Any:
    """``out`` plus a bias along channels (axis 1)."""
    if bias is None:
        return out
    node.same_size(bias.expr.sinfo.size, out.sinfo.shape[1], "the bias does not have one number per output channel")
    ones = (tir.index_const(1),) * (out.sinfo.ndim - 2)
    return node.make("add", out, node.make("reshape", bias.expr, graph.ShapeExpr((tir.index_const(1), bias.expr.sinfo.shape[0], *ones))))


@converter("Conv")
def convolution(node: NodeContext, x: Value, weight: Value, bias: Value | None = None) -> Any:
    """Conv over one to three axes of space, the bias added."""
    n, kernel = _spatial(node, x, weight)
    strides, dilations = node.attr("strides", [1] * n), node.attr("dilations", [1] * n)
    data, filters = _LAYOUTS[n]
    groups = node.attr("group", 1)
    padded, pads = _padding(node, _with_channels(node, x.expr, weight.expr.sinfo.shape[1] * groups), kernel, strides, dilations)
    out = node.make(f"nn.conv{n}d", padded, weight.expr, strides=tuple(strides), padding=pads,
                    dilation=tuple(dilations), groups=groups, data_layout=data, kernel_layout=filters)
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
    if n != x.expr.sinfo.ndim - 2:
        raise node.error(f"kernel_shape has {n} numbers for a tensor of {x.expr.sinfo.ndim} dimensions, the first two of which are batch and channels")
    if n not in _LAYOUTS:
        raise node.unsupported(f"pooling over {n} spatial dimensions")
    strides, dilations = node.attr("strides", [1] * n), node.attr("dilations", [1] * n)

    fill = _least(x.expr.sinfo.dtype) if kind == "max" else 0

    def pooled(data: Any, pads: Any) -> Any:
        return node.make(f"nn.{kind}_pool{n}d", data, pool_size=tuple(kernel), strides=tuple(strides), dilation=tuple(dilations), padding=pads,
                         ceil_mode=bool(node.attr("ceil_mode", 0)), layout=_LAYOUTS[n][0], **more)

    padded, pads = _padding(node, x.expr, kernel, strides, dilations, fill)
    out = pooled(padded, pads)
    if kind == "avg" and padded is not x.expr and not more.get("count_include_pad"):  # what is around x does not count
        ones = node.make("full_like", x.expr, const_like(1, x.expr))
        return node.make("divide", out, pooled(*_padding(node, ones, kernel, strides, dilations)))
    return out


def _least(dtype: Any) -> Any:
    return -np.inf if dtype.is_float else np.iinfo(dtype.numpy).min


@converter("MaxPool")
def _max_pool(node: NodeContext, x: Value) -> Any:
    out = _pool("max", node, x)
    return (out, _positions(node, x.expr, out)) if len(node.node.output) > 1 and node.node.output[1] else out


def _positions(node: NodeContext, x: Any, out: Any) -> Any:
    """Where in the flattened input the first largest element of each window is."""
    n = x.sinfo.ndim - 2
    kernel, strides, dilations = node.attr("kernel_shape"), node.attr("strides", [1] * n), node.attr("dilations", [1] * n)
    padded, pads = _padding(node, x, kernel, strides, dilations)
    if padded is not x:
        raise node.unsupported(f"the positions of MaxPool with auto_pad={node.attr('auto_pad')} and sizes known only when the model runs")
    column_major = bool(node.attr("storage_order", 0))

    def build(data: Any, size: Any) -> Any:
        shape = data.shape
        axes = [te.reduce_axis(k, f"k{i}") for i, k in enumerate(kernel)]

        def body(b: Any, c: Any, *at: Any) -> Any:
            places = [at[k] * strides[k] - pads[k] + axes[k].var * dilations[k] for k in range(n)]
            inside = te.logical_and(*(te.logical_and(p >= 0, p < d) for p, d in zip(places, shape[2:], strict=True)))
            safe = [tir.max_(tir.min_(p, d - 1), 0) for p, d in zip(places, shape[2:], strict=True)]
            order = list(range(n))[::-1] if column_major else list(range(n))
            flat: Any = tir.index_const(0)
            for k in order:
                flat = flat * shape[2 + k] + safe[k]
            plane = (b * shape[1] + c) * tir.product_of(shape[2:])
            return _first_largest()((plane + flat, te.select(inside, data(b, c, *safe), te.lowest(x.sinfo.dtype))), axis=axes)

        return te.compute(size, body, "positions")[0]

    return node.te(build, x, graph.ShapeExpr(out.sinfo.shape))


def _first_largest() -> Any:
    def combine(a: Any, b: Any) -> Any:
        keep = te.logical_or(a[1] > b[1], te.logical_and(tir.eq(a[1], b[1]), a[0] < b[0]))
        return te.select(keep, a[0], b[0]), te.select(keep, a[1], b[1])

    return te.comm_reducer(combine, lambda i, v: (te.highest(i), te.lowest(v)), "first_largest")


@converter("LpPool", since=2)
def _lp_pool(node: NodeContext, x: Value) -> Any:
    return _pool("lp", node, x, p=float(node.attr("p", 2)))


@converter("GlobalLpPool", since=2)
def _global_lp_pool(node: NodeContext, x: Value) -> Any:
    p = node.attr("p", 2)
    powers = node.make("power", node.make("abs", x.expr), const_like(p, x.expr))
    total = node.make("sum", powers, axis=tuple(range(2, x.expr.sinfo.ndim)), keepdims=True)
    return node.make("power", total, const_like(1 / p, total))


@converter("AveragePool")
def average_pool(node: NodeContext, x: Value) -> Any:
    """AveragePool; whether borders count is an attribute."""
    return _pool("avg", node, x, count_include_pad=bool(node.attr("count_include_pad", 0)))


@converter("GlobalAveragePool")
def _global_average(node: NodeContext, x: Value) -> Any:
    return node.make("mean", x.expr, axis=tuple(range(2, x.expr.sinfo.ndim)), keepdims=True)


@converter("GlobalMaxPool")
def _global_max(node: NodeContext, x: Value) -> Any:
    return node.make("max", x.expr, axis=tuple(range(2, x.expr.sinfo.ndim)), keepdims=True)
