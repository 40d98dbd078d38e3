# SPDX-License-Identifier: Apache-2.0
"""ATen operators whose result's size, or whose number, depends on data."""

from __future__ import annotations

from typing import Any

from ....ir import graph, tir
from ....ir.dtype import INT64
from ....ops.data_dependent import counted, nonzero_of, unique_of
from ..importer import NodeContext
from ..registry import converter
from .math import scalar, tensor

_ZERO, _ONE = tir.index_const(0), tir.index_const(1)


def _flat(node: NodeContext, x: Any) -> Any:
    return node.make("reshape", x, graph.ShapeExpr((tir.product_of(x.sinfo.shape),)))


def _places(node: NodeContext, mask: Any) -> Any:
    """Where a vector is true."""
    at = nonzero_of(node.importer.bb, mask)
    return node.make("reshape", at, graph.ShapeExpr((at.sinfo.shape[1],)))


@converter("nonzero")
def _nonzero(node: NodeContext, x: Any) -> Any:
    if x.sinfo.ndim == 0:
        at = nonzero_of(node.importer.bb, x)
        return node.make("zeros", graph.ShapeExpr((at.sinfo.shape[1], _ZERO)), dtype="int64")
    return node.make("permute_dims", nonzero_of(node.importer.bb, x), axes=(1, 0))


@converter("nonzero_static")
def _nonzero_static(node: NodeContext, x: Any, *, size: int, fill_value: int = -1) -> Any:
    found = _nonzero(node, x)
    pad = node.make("full", graph.ShapeExpr((tir.index_const(size), found.sinfo.shape[1])), scalar(fill_value, found.sinfo.dtype), dtype="int64")
    both = node.make("concat", graph.Tuple((found, pad)), axis=0)
    return node.make("strided_slice", both, axes=(0,), begin=(_ZERO,), end=(tir.index_const(size),), strides=(_ONE,), assume_inbound=True)


@converter("masked_select")
def _masked_select(node: NodeContext, x: Any, mask: Any) -> Any:
    from ....ir.op import get_op
    from ....ops.dims import broadcast_shapes

    shape = graph.ShapeExpr(broadcast_shapes(get_op("broadcast_to"), [x.sinfo.shape, mask.sinfo.shape]))
    flat, chosen = (_flat(node, node.make("broadcast_to", v, shape)) for v in (x, mask))
    return node.make("take", flat, _places(node, chosen), axis=0)


@converter("_unique2", "unique_dim", "_unique")
def _unique(node: NodeContext, x: Any, *args: Any, **kwargs: Any) -> Any:
    axis = args[0] % max(x.sinfo.ndim, 1) if "unique_dim" in str(node.node.target) else None
    values, inverse, counts = unique_of(node.importer.bb, x, axis=axis, parts=("values", "inverse", "counts"))
    return values, node.make("reshape", inverse, graph.ShapeExpr(x.sinfo.shape)) if axis is None else inverse, counts


@converter("unique_consecutive")
def _unique_consecutive(node: NodeContext, x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    whole = x
    x = _flat(node, x) if dim is None else x
    axis = 0 if dim is None else dim % x.sinfo.ndim
    n = x.sinfo.shape[axis]
    piece = lambda begin, end: node.make("strided_slice", x, axes=(axis,), begin=(tir.as_index(begin),), end=(end,), strides=(_ONE,))
    differs = node.make("astype", node.make("not_equal", piece(1, n), piece(0, n - 1)), dtype="uint8")
    others = tuple(k for k in range(x.sinfo.ndim) if k != axis)
    differs = node.make("max", differs, axis=others) if others else differs
    first = node.make("full", graph.ShapeExpr((tir.min_(n, 1),)), scalar(1, differs.sinfo.dtype), dtype="uint8")
    begins = node.make("concat", graph.Tuple((first, differs)), axis=0)
    places = _places(node, node.make("astype", begins, dtype="bool"))
    values = node.make("take", x, places, axis=axis)
    group = node.make("subtract", node.make("cumsum", node.make("astype", begins, dtype="int64"), axis=0), scalar(1, places.sinfo.dtype))
    inverse = node.make("reshape", group, graph.ShapeExpr(whole.sinfo.shape)) if dim is None else group
    k = places.sinfo.shape[0]
    end = node.make("full", graph.ShapeExpr((_ONE,)), node.emit(scalar(n.value if isinstance(n, tir.IntImm) else n, places.sinfo.dtype)), dtype="int64")
    edges = node.make("concat", graph.Tuple((places, end)), axis=0)
    cut = lambda begin, stop: node.make("strided_slice", edges, axes=(0,), begin=(tir.as_index(begin),), end=(stop,), strides=(_ONE,), assume_inbound=True)
    counts = node.make("subtract", cut(1, k + 1), cut(0, k))
    none = node.make("zeros", graph.ShapeExpr((_ZERO,)), dtype="int64")
    return values, inverse if return_inverse else none, counts if return_counts else none


@converter("bincount")
def _bincount(node: NodeContext, x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each integer from 0 occurs, or the sum of its weights; one element more than the largest integer, at least ``minlength``."""
    size = x.sinfo.shape
    x = node.make("astype", x, dtype="int64")
    least = node.make("full", graph.ShapeExpr((_ONE,)), scalar(minlength - 1, INT64), dtype="int64")
    top = node.make("max", node.make("concat", graph.Tuple((x, least)), axis=0))
    bins = counted(node.importer.bb, node.make("add", top, scalar(1, INT64)), None, "bins")
    if weights is None:
        weights = node.make("ones", graph.ShapeExpr(size), dtype="int64")
    elif not weights.sinfo.dtype.is_float:
        weights = node.make("astype", weights, dtype="float64")
    # A negative integer has no place, also none counted from the end: the check of indices refuses the least integer at run time.
    place = node.make("where", node.make("less", x, scalar(0, INT64)), node.emit(scalar(-(2**63), INT64)), x)
    return node.make("scatter_elements", node.make("zeros", graph.ShapeExpr((bins,)), dtype=str(weights.sinfo.dtype)), place, weights, axis=0, reduction="add")


@converter("repeat_interleave.Tensor")
def _repeat_interleave(node: NodeContext, repeats: Any, *, output_size: Any = None) -> Any:
    """Each position as often as its count says: position k is where the running total of the counts first exceeds k."""
    counts = node.make("astype", repeats, dtype="int64")
    ends = node.make("cumsum", counts, axis=0)
    total = counted(node.importer.bb, node.make("sum", counts), None, "repeated") if output_size is None else tir.as_index(output_size)
    places = node.make("expand_dims", node.make("arange", _ZERO, total, _ONE, dtype="int64"), axis=(1,))
    before = node.make("less_equal", node.make("expand_dims", ends, axis=(0,)), places)
    return node.make("sum", node.make("astype", before, dtype=repeats.sinfo.dtype), axis=(1,))


@converter("_local_scalar_dense")
def _item(node: NodeContext, x: Any) -> Any:
    """A number from a tensor: an integer is a size expression from here on, other numbers stay tensors."""
    x = node.make("reshape", x, graph.ShapeExpr(()))
    if not x.sinfo.dtype.is_int:
        if x.sinfo.dtype.is_float:
            node.importer.sizes.numbers[str(node.value.node.expr)] = x
        return x
    found = whole_number(node, x)
    node.importer.sizes.variables[str(node.value.node.expr)] = found
    return found


def whole_number(node: NodeContext, x: Any) -> tir.Expr:
    """The integer that a tensor holds, which may be negative, as an index expression. The least of all has no opposite: it counts as the next."""
    zero = scalar(0, INT64)
    x = node.make("maximum", tensor(node, x, INT64), scalar(1 - 2**63, INT64))
    parts = (node.make("maximum", v, zero) for v in (x, node.make("negative", x)))
    above, below = (counted(node.importer.bb, p, None, f"{node.name}_{k}") for k, p in enumerate(parts))
    return above - below
