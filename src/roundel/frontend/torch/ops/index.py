# SPDX-License-Identifier: Apache-2.0
"""ATen gathers, scatters and embeddings."""

from __future__ import annotations

from typing import Any

from ....ir import graph, tir
from ..importer import NodeContext
from ..registry import converter
from .math import scalar, tensor


def wrapped(node: NodeContext, index: Any, extent: tir.Expr) -> Any:
    """Indices with negative ones counted from the end."""
    if index.sinfo.dtype.kind != "int":
        return index
    zero = scalar(0, index.sinfo.dtype)
    n = node.emit(scalar(extent.value if isinstance(extent, tir.IntImm) else extent, index.sinfo.dtype))
    return node.make("where", node.make("less", index, zero), node.make("add", index, n), index)


@converter("embedding")
def _embedding(node: NodeContext, weight: Any, indices: Any, *_: Any, **__: Any) -> Any:
    return node.make("take", weight, indices, axis=0)


@converter("index_select")
def _index_select(node: NodeContext, x: Any, dim: int, index: Any) -> Any:
    return node.make("take", x, index, axis=dim)


@converter("gather")
def _gather(node: NodeContext, x: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    return node.make("gather_elements", x, index, axis=dim % max(x.sinfo.ndim, 1))


@converter("index.Tensor", "_unsafe_index.Tensor")
def _index(node: NodeContext, x: Any, indices: list[Any]) -> Any:
    """Advanced indexing: the index tensors are broadcast together and replace their axes (moved to the front when not adjacent)."""
    where = [k for k, i in enumerate(indices) if i is not None]
    if any(indices[k].sinfo.dtype == "bool" for k in where):
        raise node.unsupported("indexing by a mask gives a shape that depends on data")
    rest = [k for k in range(x.sinfo.ndim) if k not in where]
    lead = where == list(range(where[0], where[0] + len(where)))
    parts = [wrapped(node, node.make("astype", indices[k], dtype="int64"), x.sinfo.shape[k]) for k in where]
    rank = max(p.sinfo.ndim for p in parts)
    out = node.out_shape().values
    start = where[0] if lead else 0
    common = graph.ShapeExpr(out[start:start + rank])
    parts = [node.make("expand_dims", node.make("broadcast_to", p, common), axis=(rank,)) for p in parts]
    joined = parts[0] if len(parts) == 1 else node.make("concat", graph.Tuple(tuple(parts)), axis=rank)
    moved = node.make("permute_dims", x, axes=tuple(where + rest)) if where + rest != list(range(x.sinfo.ndim)) else x
    found = node.make("gather_nd", moved, joined, batch_dims=0)
    if not lead or start == 0:
        return found
    front = list(range(rank, rank + start))
    return node.make("permute_dims", found, axes=(*front, *range(rank), *range(rank + start, found.sinfo.ndim)))


@converter("scatter.src", "scatter_add", "scatter.value")
def _scatter(node: NodeContext, x: Any, dim: int, index: Any, src: Any) -> Any:
    updates = tensor(node, src, x.sinfo.dtype) if isinstance(src, graph.GraphExpr) else node.make(
        "full", graph.ShapeExpr(index.sinfo.shape), scalar(src, x.sinfo.dtype), dtype=x.sinfo.dtype)
    if updates.sinfo.shape != index.sinfo.shape:
        n = index.sinfo.ndim
        updates = node.make("strided_slice", updates, axes=tuple(range(n)), begin=(tir.index_const(0),) * n, end=index.sinfo.shape,
                            strides=(tir.index_const(1),) * n)
    reduction = "add" if "scatter_add" in str(node.node.target) else "update"
    return node.make("scatter_elements", x, index, updates, axis=dim % max(x.sinfo.ndim, 1), reduction=reduction)
