# SPDX-License-Identifier: Apache-2.0
"""ATen convolutions, matrix products, normalisation, pooling, attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .... import te
from ....ir import graph, tir
from ..importer import NodeContext
from ..registry import converter
from .math import scalar, tensor
from .reduce import at_least_1d

_LAYOUTS = {1: ("NCW", "OIW"), 2: ("NCHW", "OIHW"), 3: ("NCDHW", "OIDHW")}


def _spread(v: Any, n: int) -> tuple[Any, ...]:
    items = list(v) if isinstance(v, list | tuple) else [v]
    return tuple(items * n if len(items) == 1 else items)


@converter("convolution")
def _convolution(node: NodeContext, x: Any, w: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
                 groups: int) -> Any:
    n = w.sinfo.ndim - 2
    if n not in _LAYOUTS:
        raise node.unsupported(f"convolution over {n} spatial dimensions")
    data, kernel = _LAYOUTS[n]
    pad = _spread(padding, n)
    common = {"strides": _spread(stride, n), "padding": (*pad, *pad), "dilation": _spread(dilation, n), "groups": groups, "data_layout": data}
    if transposed:
        out = node.make(f"nn.conv{n}d_transpose", x, w, output_padding=_spread(output_padding, n), kernel_layout="IO" + kernel[2:], **common)
    else:
        out = node.make(f"nn.conv{n}d", x, w, kernel_layout=kernel, **common)
    return out if bias is None else node.make("add", out, per_channel(node, bias, out.sinfo.ndim))


def per_channel(node: NodeContext, v: Any, ndim: int) -> Any:
    """A vector shaped to broadcast along axis 1."""
    one = tir.index_const(1)
    return node.make("reshape", v, graph.ShapeExpr((one, v.sinfo.shape[0], *[one] * (ndim - 2))))


@converter("mm", "bmm", "matmul", "mv", "dot")
def _matmul(node: NodeContext, a: Any, b: Any) -> Any:
    return node.make("matmul", a, b)


@converter("_int_mm")
def _int_matmul(node: NodeContext, a: Any, b: Any) -> Any:
    return node.make("matmul", a, b, out_dtype="int32")


@converter("_grouped_mm", "transformers.grouped_mm_fallback")
def _grouped_mm(node: NodeContext, x: Any, weights: Any, ends: Any, bias: Any = None, out_dtype: Any = None) -> Any:
    """Each row of ``x`` times the matrix of its group (mixtures of experts). Rows are in the order of groups, which end at ``ends``; rows
    after the last are 0."""
    if x.sinfo.ndim != 2 or weights.sinfo.ndim != 3 or bias is not None or out_dtype is not None:
        raise node.unsupported("a grouped product of other ranks, with a bias or of another type")
    one, (count, inner, width) = tir.index_const(1), weights.sinfo.shape
    rows = node.make("arange", tir.index_const(0), x.sinfo.shape[0], one, dtype=ends.sinfo.dtype)
    after = node.make("greater_equal", node.make("expand_dims", rows, axis=(1,)), node.make("expand_dims", ends, axis=(0,)))
    group = node.make("sum", node.make("astype", after, dtype="int64"), axis=(1,))

    def product(x: Any, weights: Any, group: Any) -> Any:
        k = te.reduce_axis(inner, "k")
        out = te.compute((x.shape[0], width), lambda s, j: te.sum(x(s, k) * weights(tir.min_(group(s), count - 1), k, j), axis=k), "product")
        return te.compute(out.shape, lambda s, j: te.if_then_else(group(s) < count, out(s, j), tir.const(0, x.dtype)), "grouped")

    return node.te(product, x, weights, group)


@converter("addmm", "baddbmm", "addmv")
def _addmm(node: NodeContext, bias: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    out = node.make("matmul", a, b)
    dtype = out.sinfo.dtype
    out = out if alpha == 1 else node.make("multiply", out, scalar(alpha, dtype))
    if beta == 0:
        return out
    return node.make("add", out, bias if beta == 1 else node.make("multiply", bias, scalar(beta, dtype)))


@converter("linear")
def _linear(node: NodeContext, x: Any, w: Any, bias: Any = None) -> Any:
    out = node.make("matmul", x, node.make("permute_dims", w, axes=(1, 0)))
    return out if bias is None else node.make("add", out, bias)


@converter("_native_batch_norm_legit_no_training")
def _batch_norm(node: NodeContext, x: Any, weight: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float) -> Any:
    shape = graph.ShapeExpr((x.sinfo.shape[1],))
    ones = node.make("ones", shape, dtype=x.sinfo.dtype) if weight is None else weight
    zeros = node.make("zeros", shape, dtype=x.sinfo.dtype) if bias is None else bias
    out = node.make("nn.batch_norm", x, ones, zeros, mean, var, axis=1, epsilon=eps)
    empty = node.make("zeros", graph.ShapeExpr((tir.index_const(0),)), dtype=x.sinfo.dtype)
    return node.emit(graph.TupleGetItem(out, 0)), empty, empty


@converter("_native_batch_norm_legit.no_stats")
def _batch_norm_of_batch(node: NodeContext, x: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float) -> Any:
    over = (0, *range(2, x.sinfo.ndim))
    out = _standardized(node, x, over, eps)
    out = out if weight is None else node.make("multiply", out, per_channel(node, weight, x.sinfo.ndim))
    out = out if bias is None else node.make("add", out, per_channel(node, bias, x.sinfo.ndim))
    return _with_statistics(node, out, x, over, eps, graph.ShapeExpr((x.sinfo.shape[1],)))


def _standardized(node: NodeContext, x: Any, axes: tuple[int, ...], eps: float) -> Any:
    """``(x - mean) / sqrt(variance + eps)`` over the axes."""
    return node.make("nn.layer_norm", x, axes=axes, epsilon=eps, center=False, scale=False)


def _with_statistics(node: NodeContext, out: Any, x: Any, axes: tuple[int, ...], eps: float, shape: Any = None) -> Any:
    """``out``, then mean and reciprocal deviation of x over the axes, which stay with extent 1 unless a ``shape`` is given: only where they are read."""
    if not any(user.args[1] for user in node.node.users if len(user.args) > 1 and isinstance(user.args[1], int)):
        return out, out, out
    mean = node.make("mean", x, axis=axes, keepdims=True)
    centred = node.make("subtract", x, mean)
    var = node.make("mean", node.make("multiply", centred, centred), axis=axes, keepdims=True)
    inverse = node.make("rsqrt", node.make("add", var, scalar(eps, x.sinfo.dtype)))
    return (out, mean, inverse) if shape is None else (out, node.make("reshape", mean, shape), node.make("reshape", inverse, shape))


@converter("native_layer_norm")
def _layer_norm(node: NodeContext, x: Any, shape: list[Any], weight: Any, bias: Any, eps: float) -> Any:
    axes = tuple(range(x.sinfo.ndim - len(shape), x.sinfo.ndim))
    tail = graph.ShapeExpr(tuple(x.sinfo.shape[a] for a in axes))
    gamma = node.make("ones", tail, dtype=x.sinfo.dtype) if weight is None else weight
    beta = node.make("zeros", tail, dtype=x.sinfo.dtype) if bias is None else bias
    return _with_statistics(node, node.make("nn.layer_norm", x, gamma, beta, axes=axes, epsilon=eps), x, axes, eps)


@converter("native_group_norm")
def _group_norm(node: NodeContext, x: Any, weight: Any, bias: Any, n: Any, c: Any, hw: Any, groups: int, eps: float) -> Any:
    each = tir.floordiv(tir.as_index(c), groups)
    split = node.make("reshape", x, node.shape([n, groups, each, hw]))
    out = _standardized(node, split, (2, 3), eps)
    per_group = node.shape([groups, each, 1])
    out = out if weight is None else node.make("multiply", out, node.make("reshape", weight, per_group))
    out = out if bias is None else node.make("add", out, node.make("reshape", bias, per_group))
    return _with_statistics(node, node.make("reshape", out, graph.ShapeExpr(x.sinfo.shape)), split, (2, 3), eps, node.shape([n, groups]))


@converter("_softmax", "_log_softmax", "softmax.int", "log_softmax.int", "_safe_softmax")
def _softmax(node: NodeContext, x: Any, dim: int, *_: Any) -> Any:
    op = "nn.log_softmax" if "log_softmax" in str(node.node.target) else "nn.softmax"
    x = tensor(node, x, node.out_dtype())
    out = node.make(op, at_least_1d(node, x), axis=dim)
    out = out if x.sinfo.ndim else node.make("reshape", out, graph.ShapeExpr(()))
    if "_safe" not in str(node.node.target):
        return out
    return node.make("where", node.make("isnan", out), scalar(0, out.sinfo.dtype), out)  # rows that are all -inf


def _spatial(node: NodeContext) -> int:
    """How many axes a pooling is over, by its name."""
    return next(n for n in (1, 2, 3) if f"pool{n}d" in str(node.node.target))


def _pool(node: NodeContext, op: str, x: Any, n: int, **attrs: Any) -> Any:
    """A pooling; of one image without a batch axis too."""
    alone = x.sinfo.ndim == n + 1
    batch = node.make("expand_dims", x, axis=(0,)) if alone else x
    out = node.make(f"nn.{op}_pool{n}d", batch, layout=_LAYOUTS[n][0], **attrs)
    return node.make("reshape", out, graph.ShapeExpr(out.sinfo.shape[1:])) if alone else out


def _asks_for_indices(node: NodeContext) -> bool:
    """Whether a result depends on where the largest elements of a pooling stand. (What pooling over one axis becomes reshapes these places, for nobody.)"""
    waiting = [u for u in node.node.users if "getitem" not in str(u.target) or u.args[1] == 1]
    met = set(waiting)
    while waiting:
        user = waiting.pop()
        if user.op == "output":
            return True
        waiting += (new := set(user.users) - met)
        met |= new
    return False


@converter("max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices")
def _max_pool(node: NodeContext, x: Any, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False) -> Any:
    n = _spatial(node)
    pad = _spread(padding, n)
    if "with_indices" in str(node.node.target) and _asks_for_indices(node):
        if not all(isinstance(v, tir.IntImm) for v in node.out_shape().values[-n:]):
            raise node.unsupported("the indices of max_pool over symbolic sizes")
        windows = zip(node.out_shape().values[-n:], _spread(kernel, n), _spread(stride or kernel, n), pad, _spread(dilation, n))
        return _max_of_windows(node, x, [np.arange(o.value)[:, None] * s - p + np.arange(k) * d for o, k, s, p, d in windows])
    out = _pool(node, "max", x, n, pool_size=_spread(kernel, n), strides=_spread(stride or kernel, n), padding=(*pad, *pad),
                dilation=_spread(dilation, n), ceil_mode=ceil_mode)
    return (out, out) if "with_indices" in str(node.node.target) else out


@converter("adaptive_max_pool2d", "adaptive_max_pool3d")
def _adaptive_max_pool(node: NodeContext, x: Any, size: Any) -> Any:
    sizes = x.sinfo.shape[-len(size):]
    if any(not isinstance(d, tir.IntImm) for d in sizes):
        return _adaptive_max_pool_of_any_size(node, x, size)
    places = []
    for n, o in zip(sizes, size):
        begin, end = np.arange(o) * n.value // max(o, 1), -(-(np.arange(o) + 1) * n.value // max(o, 1))
        place = begin[:, None] + np.arange((end - begin).max(initial=1))
        places.append(np.where(place < end[:, None], place, -1))
    return _max_of_windows(node, x, places)


def _adaptive_max_pool_of_any_size(node: NodeContext, x: Any, size: Any) -> tuple[Any, Any]:
    n, shape = len(size), x.sinfo.shape
    if set(size) == {1}:
        joined = node.make("reshape", x, graph.ShapeExpr((*shape[:-n], tir.product_of(shape[-n:]))))
        best = node.make("argmax", joined, axis=-1, keepdims=True)
        values = node.make("max", joined, axis=(-1,), keepdims=True)
        return tuple(node.make("reshape", v, node.out_shape()) for v in (values, best))  # type: ignore[return-value]
    if _asks_for_indices(node):
        raise node.unsupported("the indices of adaptive max pooling over symbolic sizes")
    out = _pool(node, "adaptive_max", x, n, output_size=tuple(size))
    return out, out


def _max_of_windows(node: NodeContext, x: Any, places: Any) -> tuple[Any, Any]:
    """The largest element of each window, and where it stands. ``places``: for each axis the positions (outputs, window); those outside
    do not count. Windows are gathered and the place of each largest element is looked up in a table; sizes have to be known."""
    n = len(places)
    lead = x.sinfo.ndim - n
    sizes = [d.value if isinstance(d, tir.IntImm) else None for d in x.sinfo.shape[lead:]]
    if None in sizes:
        raise node.unsupported("the indices of max_pool over symbolic sizes")
    inside, flat = np.ones((1, 1), bool), np.zeros((1, 1), np.int64)
    for place, size in zip(places, sizes):  # over (outputs so far, window so far) and this axis
        ok, at = (place >= 0) & (place < size), np.clip(place, 0, size - 1)
        shape = (flat.shape[0] * at.shape[0], flat.shape[1] * at.shape[1])
        flat = (flat[:, None, :, None] * size + at[None, :, None, :]).reshape(shape)
        inside = (inside[:, None, :, None] & ok[None, :, None, :]).reshape(shape)
    joined = node.make("reshape", x, graph.ShapeExpr((*x.sinfo.shape[:lead], tir.index_const(math.prod(sizes)))))
    windows = node.make("take", joined, graph.Constant.of(flat), axis=lead)
    least = scalar(-np.inf if x.sinfo.dtype.is_float else np.iinfo(x.sinfo.dtype.numpy).min, x.sinfo.dtype)
    windows = windows if inside.all() else node.make("where", graph.Constant.of(inside), windows, least)
    values = node.make("max", windows, axis=(lead + 1,), keepdims=False)
    best = node.make("argmax", windows, axis=lead + 1, keepdims=True)
    table = node.make("broadcast_to", graph.Constant.of(flat), graph.ShapeExpr(windows.sinfo.shape))
    indices = node.make("gather_elements", table, best, axis=lead + 1)
    return tuple(node.make("reshape", v, node.out_shape()) for v in (values, indices))


@converter("grid_sampler_2d", "grid_sampler_3d")
def _grid_sampler(node: NodeContext, x: Any, grid: Any, mode: int = 0, padding: int = 0, align_corners: bool = False) -> Any:
    n = x.sinfo.ndim
    return node.make("image.grid_sample", x, node.make("permute_dims", grid, axes=(0, n - 1, *range(1, n - 1))), layout="NCDHW" if n == 5 else "NCHW",
                     method=("bilinear", "nearest", "bicubic")[mode], padding_mode=("zeros", "border", "reflection")[padding],
                     align_corners=bool(align_corners))


@converter("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(node: NodeContext, x: Any, kernel: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
              divisor_override: Any = None) -> Any:
    n = _spatial(node)
    pad, size = _spread(padding, n), _spread(kernel, n)
    if divisor_override is not None and ceil_mode:
        return _window_sums(node, x, size, _spread(stride or kernel, n), pad, divisor_override)
    out = _pool(node, "avg", x, n, pool_size=size, strides=_spread(stride or kernel, n), padding=(*pad, *pad), ceil_mode=ceil_mode,
                count_include_pad=count_include_pad or divisor_override is not None)
    return out if divisor_override is None else node.make("multiply", out, scalar(math.prod(size) / divisor_override, x.sinfo.dtype))


def _window_sums(node: NodeContext, x: Any, size: Any, stride: Any, pad: Any, divisor: Any) -> Any:
    """Sums of windows over a divisor: zeros all around, windows that begin inside."""
    n, ndim = len(size), x.sinfo.ndim
    wide = [(0, 0)] * (ndim - n) + [(p, p + s) for p, s in zip(pad, stride)]
    padded = node.make("nn.pad", x, pad_value=scalar(0, x.sinfo.dtype), pad_width=tuple(tir.as_index(w) for pair in wide for w in pair), pad_mode="constant")
    out = _pool(node, "avg", padded, n, pool_size=size, strides=stride, padding=(0,) * (2 * n))
    axes = tuple(range(ndim - n, ndim))
    out = node.make("strided_slice", out, axes=axes, begin=(tir.index_const(0),) * n, end=node.out_shape().values[ndim - n:], strides=(tir.index_const(1),) * n)
    return node.make("multiply", out, scalar(math.prod(size) / divisor, x.sinfo.dtype))


@converter("_adaptive_avg_pool2d", "adaptive_avg_pool2d", "adaptive_avg_pool1d", "_adaptive_avg_pool3d")
def _adaptive_avg_pool(node: NodeContext, x: Any, size: Any) -> Any:
    n = _spatial(node)
    size = _spread(size, n)
    if all(s == 1 for s in size):
        return node.make("mean", x, axis=tuple(range(x.sinfo.ndim - n, x.sinfo.ndim)), keepdims=True)
    return _pool(node, "adaptive_avg", x, n, output_size=size)
