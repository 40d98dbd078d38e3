# SPDX-License-Identifier: Apache-2.0
"""Relay's sorting and gathering."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir import graph, tir
from ..importer import NodeContext
from ..registry import converter


@converter("take")
def _take(node: NodeContext, x: Any, indices: Any) -> Any:
    """Indices out of range are moved to the next valid one (``clip``), taken modulo (``wrap``), or an error of the run (``fast``)."""
    if node.attr("batch_dims", 0):
        raise node.unsupported("take with batch dimensions")
    axis = node.attr("axis", None)
    if axis is None:
        count: Any = 1
        for d in x.sinfo.shape:
            count = d * count
        x, axis = node.reshape(x, [count]), 0
    mode, axis = node.attr("mode", "clip"), axis % x.sinfo.ndim
    if mode == "fast":
        return node.make("take", x, node.positions(indices, x.sinfo.shape[axis]), axis=axis)
    return node.make("take", x, _inside(node, indices, x.sinfo.shape[axis], mode), axis=axis)


def _inside(node: NodeContext, indices: Any, size: Any, mode: str) -> Any:
    """Indices brought into a range, which proves them inside; constants of which all are inside stay."""
    if mode not in ("clip", "wrap"):
        raise node.error(f"the attribute 'mode' is {mode!r}, not clip, wrap or fast")
    if isinstance(indices, graph.Constant) and isinstance(size, tir.IntImm):
        known = indices.data.numpy()
        if not known.size or (0 <= known.min() and known.max() < size.value):
            return indices
    if indices.sinfo.dtype.kind == "uint":
        indices = node.make("astype", indices, dtype="int64")
    if not isinstance(size, tir.IntImm):
        wide = node.make("astype", indices, dtype="int64")
        limit = node.reshape(node.make("shape_to_tensor", graph.ShapeExpr((size,))), ())
    else:
        if not size.value:
            raise node.error("elements are taken along an axis of size 0")
        wide, limit = indices, node.like(size.value, indices)
    if mode == "wrap":
        return node.make("floor_mod", wide, limit)
    return node.make("minimum", node.make("maximum", wide, node.like(0, wide)), node.make("subtract", limit, node.like(1, wide)))


@converter("gather")
def _gather(node: NodeContext, x: Any, indices: Any) -> Any:
    axis = node.attr("axis", 0) % x.sinfo.ndim
    return node.make("gather_elements", x, node.positions(indices, x.sinfo.shape[axis]), axis=axis)


def _indices_last(node: NodeContext, indices: Any) -> Any:
    """Relay's first axis of indices holds the coordinates; here it is the last."""
    n = indices.sinfo.ndim
    return node.make("permute_dims", indices, axes=(*range(1, n), 0)) if n > 1 else indices


@converter("gather_nd")
def _gather_nd(node: NodeContext, x: Any, indices: Any) -> Any:
    batch = node.attr("batch_dims", 0)
    last = _indices_last(node, indices)
    depth = last.sinfo.shape[-1]
    if not isinstance(depth, tir.IntImm):
        raise node.unsupported("the number of coordinates of gather_nd has to be known")
    return node.make("gather_nd", x, node.positions(last, *x.sinfo.shape[batch:batch + depth.value]), batch_dims=batch)


@converter("scatter_nd")
def _scatter_nd(node: NodeContext, x: Any, indices: Any, updates: Any) -> Any:
    last = _indices_last(node, indices)
    depth = last.sinfo.shape[-1]
    if not isinstance(depth, tir.IntImm):
        raise node.unsupported("the number of coordinates of scatter_nd has to be known")
    return node.make("scatter_nd", x, node.positions(last, *x.sinfo.shape[:depth.value]), updates, reduction=node.attr("mode", "update"))


@converter("scatter", "scatter_add", "scatter_elements")
def _scatter(node: NodeContext, x: Any, indices: Any, updates: Any) -> Any:
    axis = node.attr("axis", 0) % x.sinfo.ndim
    reduction = "add" if node.kind == "scatter_add" else node.attr("reduction", "update")
    return node.make("scatter_elements", x, node.positions(indices, x.sinfo.shape[axis], negative=True), updates, axis=axis, reduction=reduction)


@converter("one_hot")
def _one_hot(node: NodeContext, indices: Any, on: Any, off: Any) -> Any:
    """Rows of ``off`` with ``on`` at the index; an index that is not below the depth has a row of ``off``."""
    depth, axis, dtype = node.attr("depth"), node.attr("axis", -1), node.attr("dtype", on.sinfo.dtype)
    n = indices.sinfo.ndim
    axis = axis % (n + 1)
    places = graph.Constant.of(np.arange(depth, dtype=indices.sinfo.dtype.numpy).reshape([depth if k == axis else 1 for k in range(n + 1)]))
    hit = node.make("equal", node.make("expand_dims", indices, axis=(axis,)), places)
    on, off = (node.make("astype", node.reshape(v, ()), dtype=dtype) for v in (on, off))
    return node.make("where", hit, on, off)


@converter("argsort")
def _argsort(node: NodeContext, x: Any) -> Any:
    return node.make("argsort", x, axis=node.attr("axis", -1), descending=not node.flag("is_ascend", True), dtype=node.attr("dtype", "int32"))


@converter("sort")
def _sort(node: NodeContext, x: Any) -> Any:
    return node.make("sort", x, axis=node.attr("axis", -1), descending=not node.flag("is_ascend", True))


@converter("topk")
def _topk(node: NodeContext, x: Any, k: Any = None) -> Any:
    """The largest (with ``is_ascend`` the smallest) elements along an axis, their places, or both."""
    axis, kind = node.attr("axis", -1) % x.sinfo.ndim, node.attr("ret_type", "both")
    count = node.attr("k", None) if k is None else int(node.constant(k, "k").reshape(-1)[0])
    count = x.sinfo.shape[axis] if count is None or count < 1 else tir.as_index(count)
    out = node.make("topk", x, k=count, axis=axis, ret_type="both", largest=not node.flag("is_ascend"), dtype=node.attr("dtype", "int32"))
    values, places = (node.emit(graph.TupleGetItem(out, i)) for i in range(2))
    return {"both": (values, places), "values": values, "indices": places}[kind]
