# SPDX-License-Identifier: Apache-2.0
"""ATen gathers, scatters and embeddings."""

from __future__ import annotations

from typing import Any

from ....ir import graph, tir
from ....ir.dtype import INT64
from ....ir.op import get_op
from ....ops.data_dependent import nonzero_of
from ....ops.dims import broadcast_shapes, static
from ..importer import NodeContext
from ..registry import converter
from .math import scalar, tensor
from .reduce import at_least_1d

MASKS = ("bool", "uint8")


@converter("embedding")
def _embedding(node: NodeContext, weight: Any, indices: Any, *_: Any, **__: Any) -> Any:
    return node.make("take", weight, node.positions(indices, weight.sinfo.shape[0]), axis=0)


@converter("index_select")
def _index_select(node: NodeContext, x: Any, dim: int, index: Any) -> Any:
    if x.sinfo.ndim == 0:
        return node.make("broadcast_to", x, node.out_shape())
    return node.make("take", x, node.positions(index, x.sinfo.shape[dim % x.sinfo.ndim]), axis=dim)


@converter("gather")
def _gather(node: NodeContext, x: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    if x.sinfo.ndim == 0 or index.sinfo.ndim == 0:
        size = tir.product_of(x.sinfo.shape)
        found = node.make("take", at_least_1d(node, node.make("reshape", x, graph.ShapeExpr((size,)))), node.positions(index, size), axis=0)
        return node.make("reshape", found, node.out_shape())
    if x.sinfo.ndim != index.sinfo.ndim:  # which PyTorch allows only where the index is empty
        return node.make("full", node.out_shape(), scalar(0, x.sinfo.dtype), dtype=x.sinfo.dtype)
    axis = dim % x.sinfo.ndim
    return node.make("gather_elements", x, node.positions(index, x.sinfo.shape[axis]), axis=axis)


def _without_mask(node: NodeContext, index: Any) -> list[Any]:
    """A mask as the positions where it is true, one index for each of its axes; other indices as they are."""
    if index is None or index.sinfo.dtype not in MASKS:
        return [index]
    places = nonzero_of(node.importer.bb, index)
    row = lambda k: node.make("strided_slice", places, axes=(0,), begin=(tir.index_const(k),), end=(tir.index_const(k + 1),), strides=(tir.index_const(1),))
    return [node.make("reshape", row(k), graph.ShapeExpr((places.sinfo.shape[1],))) for k in range(max(index.sinfo.ndim, 1))]


class _Positions:
    """Advanced indexing: the index tensors are broadcast together and replace their axes (moved to the front when not adjacent).

    ``order`` brings the indexed axes of ``x`` to the front; ``joined`` holds the positions along them, in its last axis; ``start`` is where
    the axes of the index stand in the result.
    """

    def __init__(self, node: NodeContext, x: Any, indices: list[Any]) -> None:
        indices = [part for i in indices for part in _without_mask(node, i)]
        where = [k for k, i in enumerate(indices) if i is not None]
        self.order = tuple(where + [k for k in range(x.sinfo.ndim) if k not in where])
        adjacent = where == list(range(where[0], where[0] + len(where)))
        parts = [node.make("astype", node.positions(indices[k], x.sinfo.shape[k], negative=True), dtype="int64") for k in where]
        self.rank = max(p.sinfo.ndim for p in parts)
        self.start = where[0] if adjacent else 0
        self.common = broadcast_shapes(get_op("broadcast_to"), [p.sinfo.shape for p in parts])
        parts = [node.make("expand_dims", node.make("broadcast_to", p, graph.ShapeExpr(self.common)), axis=(self.rank,)) for p in parts]
        self.joined = parts[0] if len(parts) == 1 else node.make("concat", graph.Tuple(tuple(parts)), axis=self.rank)
        self.out_ndim = self.rank + x.sinfo.ndim - len(where)


def _permuted(node: NodeContext, x: Any, axes: tuple[int, ...]) -> Any:
    return x if axes == tuple(range(x.sinfo.ndim)) else node.make("permute_dims", x, axes=axes)


def _along_neighbours(node: NodeContext, x: Any, indices: list[Any]) -> Any:
    """What is indexed along axes beside each other that are not the first ones, without moving them to the front: they are taken as one axis, and the
    indices as one. None where the axes are others, or of unknown size."""
    where = [k for k, i in enumerate(indices) if i is not None]
    sizes = [static(x.sinfo.shape[k]) for k in where]
    if where != list(range(where[0], where[0] + len(where))) or not where[0] or None in sizes or any(indices[k].sinfo.dtype in MASKS for k in where):
        return None
    joined: Any = None
    for k, size in zip(where, sizes, strict=True):
        place = node.make("astype", node.positions(indices[k], x.sinfo.shape[k], negative=True), dtype="int64")
        if len(where) > 1:
            place = node.make("where", node.make("less", place, scalar(0, INT64)), node.make("add", place, scalar(size, INT64)), place)
        joined = place if joined is None else node.make("add", node.make("multiply", joined, scalar(size, INT64)), place)
    if len(where) > 1:
        shape = (*x.sinfo.shape[: where[0]], tir.product_of(x.sinfo.shape[where[0] : where[-1] + 1]), *x.sinfo.shape[where[-1] + 1 :])
        x = node.make("reshape", x, graph.ShapeExpr(shape))
    return node.make("take", x, joined, axis=where[0])


@converter("index.Tensor", "_unsafe_index.Tensor")
def _index(node: NodeContext, x: Any, indices: list[Any]) -> Any:
    found = _along_neighbours(node, x, indices)
    if found is not None:
        return found
    at = _Positions(node, x, indices)
    found = node.make("gather_nd", _permuted(node, x, at.order), at.joined, batch_dims=0)
    middle = range(at.rank, at.rank + at.start)
    return _permuted(node, found, (*middle, *range(at.rank), *range(at.rank + at.start, at.out_ndim)))


@converter("index_put", "_unsafe_index_put")
def _index_put(node: NodeContext, x: Any, indices: list[Any], values: Any, accumulate: bool = False) -> Any:
    given = [i for i in indices if i is not None]
    if len(given) == 1 and given[0].sinfo.dtype == "bool" and values.sinfo.ndim == 0 and not accumulate and indices[0] is not None:
        one = tir.index_const(1)
        mask = node.make("reshape", given[0], graph.ShapeExpr((*given[0].sinfo.shape, *[one] * (x.sinfo.ndim - given[0].sinfo.ndim))))
        return node.make("where", mask, tensor(node, values, x.sinfo.dtype), x)
    at = _Positions(node, x, indices)
    rest = [x.sinfo.shape[k] for k in at.order[x.sinfo.ndim + at.rank - at.out_ndim:]]
    shape = (*rest[:at.start], *at.common, *rest[at.start:])
    spread = node.make("broadcast_to", tensor(node, values, x.sinfo.dtype), graph.ShapeExpr(shape))
    front = range(at.start, at.start + at.rank)
    updates = _permuted(node, spread, (*front, *range(at.start), *range(at.start + at.rank, at.out_ndim)))
    out = node.make("scatter_nd", _permuted(node, x, at.order), at.joined, updates, reduction="add" if accumulate else "update")
    return _permuted(node, out, tuple(at.order.index(k) for k in range(x.sinfo.ndim)))


_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "add": "add", "multiply": "mul"}


@converter("scatter_reduce.two", "scatter.reduce", "scatter.value_reduce")
def _scatter_reduce(node: NodeContext, x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    return _scatter(node, x, dim, index, src, reduction=_REDUCTIONS[reduce])


@converter("scatter.src", "scatter_add", "scatter.value")
def _scatter(node: NodeContext, x: Any, dim: int, index: Any, src: Any, reduction: str = "") -> Any:
    if x.sinfo.ndim == 0 or index.sinfo.ndim == 0:
        x, index, src = (at_least_1d(node, v) if isinstance(v, graph.GraphExpr) else v for v in (x, index, src))
        return node.make("reshape", _scatter(node, x, 0, index, src, reduction), node.out_shape())
    if x.sinfo.ndim != index.sinfo.ndim:  # an empty index: nothing is written
        return x
    updates = tensor(node, src, x.sinfo.dtype) if isinstance(src, graph.GraphExpr) else node.make(
        "full", graph.ShapeExpr(index.sinfo.shape), scalar(src, x.sinfo.dtype), dtype=x.sinfo.dtype)
    if updates.sinfo.shape != index.sinfo.shape:
        n = index.sinfo.ndim
        updates = node.make("strided_slice", updates, axes=tuple(range(n)), begin=(tir.index_const(0),) * n, end=index.sinfo.shape,
                            strides=(tir.index_const(1),) * n)
    reduction = reduction or ("add" if "scatter_add" in str(node.node.target) else "update")
    axis = dim % x.sinfo.ndim
    return node.make("scatter_elements", x, node.positions(index, x.sinfo.shape[axis]), updates, axis=axis, reduction=reduction)
