# SPDX-License-Identifier: Apache-2.0
"""ONNX gathers and scatters."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir import graph, tir
from ..importer import NodeContext, Value
from ..registry import converter
from .math import const_like


def wrapped(node: NodeContext, indices: Any, extent: Any) -> Any:
    """Indices with negative ones counted from the end."""
    if not indices.sinfo.dtype.kind == "int":
        return indices
    if isinstance(indices, graph.Constant) and isinstance(extent, tir.IntImm):  # one out of range meets no position
        values = indices.data.numpy()
        return graph.Constant.of(np.where(values < 0, values + extent.value, values).astype(values.dtype))
    n = const_like(extent.value, indices) if isinstance(extent, tir.IntImm) else node.make("astype", node.number(extent), dtype=indices.sinfo.dtype)
    return node.make("where", node.make("less", indices, const_like(0, indices)), node.make("add", indices, n), indices)


def known_wrapped(indices: Any, extent: Any) -> Any:
    """Constant indices counted from the beginning; any others are as they are (gathers and scatters count negative ones from the end)."""
    if not isinstance(indices, graph.Constant) or not isinstance(extent, tir.IntImm):
        return indices
    values = indices.data.numpy()
    outside = (values < -extent.value) | (values >= extent.value)  # is told when the model runs
    return indices if (values >= 0).all() or outside.any() else graph.Constant.of(np.where(values < 0, values + extent.value, values).astype(values.dtype))


@converter("Gather")
def _gather(node: NodeContext, x: Value, indices: Value) -> Any:
    axis = node.axis(node.attr("axis", 0), x.expr.sinfo.ndim)
    return node.make("take", x.expr, known_wrapped(indices.expr, x.expr.sinfo.shape[axis]), axis=axis)


@converter("GatherElements")
def _gather_elements(node: NodeContext, x: Value, indices: Value) -> Any:
    axis = node.axis(node.attr("axis", 0), x.expr.sinfo.ndim)
    return node.make("gather_elements", x.expr, known_wrapped(indices.expr, x.expr.sinfo.shape[axis]), axis=axis)


@converter("GatherND")
def _gather_nd(node: NodeContext, x: Value, indices: Value) -> Any:
    return node.make("gather_nd", x.expr, indices.expr, batch_dims=node.attr("batch_dims", 0))


@converter("Scatter", "ScatterElements")
def _scatter_elements(node: NodeContext, x: Value, indices: Value, updates: Value) -> Any:
    axis = node.axis(node.attr("axis", 0), x.expr.sinfo.ndim)
    if indices.expr.sinfo.ndim != x.expr.sinfo.ndim:
        raise node.error(f"data has {x.expr.sinfo.ndim} dimensions, indices {indices.expr.sinfo.ndim}")
    for k, (a, b) in enumerate(zip(x.expr.sinfo.shape, indices.expr.sinfo.shape, strict=True)):
        if k != axis:
            node.same_size(tir.max_(a, b), a, f"dimension {k} of the indices is longer than that of the data")
    return node.make("scatter_elements", x.expr, known_wrapped(indices.expr, x.expr.sinfo.shape[axis]), updates.expr, axis=axis,
                     reduction=_reduction(node))


@converter("ScatterND")
def _scatter_nd(node: NodeContext, x: Value, indices: Value, updates: Value) -> Any:
    return node.make("scatter_nd", x.expr, indices.expr, updates.expr, reduction=_reduction(node))


def _reduction(node: NodeContext) -> str:
    return {"none": "update"}.get(node.attr("reduction", "none"), node.attr("reduction", "none"))


@converter("OneHot")
def _one_hot(node: NodeContext, indices: Value, depth: Value, values: Value) -> Any:
    n = int(node.static_ints(depth, "the depth")[0])
    known = values.constant()
    if known is None:
        raise node.data_dependent("the values")
    off, on = known.reshape(-1)
    index = indices.expr
    index = node.make("astype", index, dtype="int64") if index.sinfo.dtype != "int64" else index
    return node.make("one_hot", wrapped(node, index, tir.index_const(n)), graph.PrimValue(tir.const(on.item(), str(known.dtype))),
                     graph.PrimValue(tir.const(off.item(), str(known.dtype))), depth=n, axis=node.axis(node.attr("axis", -1), index.sinfo.ndim + 1))
