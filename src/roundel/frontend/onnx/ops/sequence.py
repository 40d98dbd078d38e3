# SPDX-License-Identifier: Apache-2.0
"""ONNX sequences and optional values: their lengths are known at compile time, so they are Python lists of values here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....arith import Analyzer
from ....ir import graph, tir
from ..importer import NodeContext
from ..load import dtype_of
from ..registry import converter
from ..values import EmptyOptional, ListValue, Value


def _place(node: NodeContext, position: Value | None, length: int, default: int) -> int:
    if position is None:
        return default
    k = int(node.static_ints(position, "the position in a sequence")[0])
    if not -length <= k <= length:
        raise node.error(f"position {k} is outside of a sequence of {length}")
    return k + length if k < 0 else k


@converter("SequenceEmpty")
def _empty(node: NodeContext) -> Any:
    return ListValue((), dtype_of(node.attr("dtype", 1)))


@converter("SequenceConstruct")
def _construct(node: NodeContext, *items: Value) -> Any:
    return ListValue(items)


@converter("SequenceInsert")
def _insert(node: NodeContext, items: ListValue, item: Value, position: Value | None = None) -> Any:
    k = _place(node, position, len(items.items), len(items.items))
    return ListValue((*items.items[:k], item, *items.items[k:]))


@converter("SequenceErase")
def _erase(node: NodeContext, items: ListValue, position: Value | None = None) -> Any:
    k = _place(node, position, len(items.items), len(items.items) - 1)
    return ListValue((*items.items[:k], *items.items[k + 1:]))


@converter("SequenceAt")
def _at(node: NodeContext, items: ListValue, position: Value) -> Any:
    return items.items[_place(node, position, len(items.items), 0)]


@converter("SequenceLength")
def _length(node: NodeContext, items: ListValue) -> Any:
    import numpy as np

    return node.value(np.asarray(len(items.items), dtype=object))


@converter("ConcatFromSequence")
def _concat(node: NodeContext, items: ListValue) -> Any:
    tensors, axis = [v.expr for v in items.items], node.attr("axis")
    if not node.attr("new_axis", 0):
        return node.make("concat", graph.Tuple(tuple(tensors)), axis=axis)
    rank = tensors[0].sinfo.ndim + 1
    grown = tuple(node.make("expand_dims", t, axis=(axis % rank,)) for t in tensors)
    return node.make("concat", graph.Tuple(grown), axis=axis % rank)


@converter("SplitToSequence")
def _split(node: NodeContext, x: Value, sizes: Value | None = None) -> Any:
    axis = node.attr("axis", 0) % x.expr.sinfo.ndim
    extent = x.expr.sinfo.shape[axis]
    if not isinstance(extent, tir.IntImm):
        raise node.unsupported("splitting an axis of unknown size into a sequence")
    parts = [1] * extent.value if sizes is None else node.static_ints(sizes, "the sizes")
    is_scalar = sizes is not None and len(_shape(sizes)) == 0
    if is_scalar:
        step = parts[0]
        parts = [min(step, extent.value - k) for k in range(0, extent.value, step)]
    squeeze = sizes is None and not node.attr("keepdims", 1)
    return ListValue([Value(p) for p in _pieces(node, x.expr, axis, parts, squeeze)])


def _shape(v: Value) -> tuple[Any, ...]:
    return v.content.shape if v.content is not None else v.expr.sinfo.shape


def _pieces(node: NodeContext, x: Any, axis: int, sizes: Sequence[int], squeeze: bool) -> list[Any]:
    out, start = [], 0
    for n in sizes:
        part = node.make("strided_slice", x, axes=(axis,), begin=(tir.index_const(start),), end=(tir.index_const(start + n),),
                         strides=(tir.index_const(1),))
        out.append(node.make("squeeze", part, axis=(axis,)) if squeeze else part)
        start += n
    return out


@converter("SequenceMap")
def _map(node: NodeContext, first: ListValue, *more: Any) -> Any:
    rows = []
    for k in range(len(first.items)):
        items = [v.items[k] if isinstance(v, ListValue) else v for v in (first, *more)]
        rows.append(node.subgraph(node.attr("body"), items))
    return tuple(ListValue(column) for column in zip(*rows, strict=True))


@converter("Optional")
def _optional(node: NodeContext, value: Any = None) -> Any:
    return EmptyOptional() if value is None else value


@converter("OptionalHasElement")
def _has_element(node: NodeContext, value: Any = None) -> Any:
    import numpy as np

    from ....ir.dtype import BOOL

    return node.value(np.asarray(value is not None and not isinstance(value, EmptyOptional), dtype=object), BOOL)


@converter("OptionalGetElement")
def _get_element(node: NodeContext, value: Any) -> Any:
    if value is None or isinstance(value, EmptyOptional):
        raise node.error("the optional value is empty")
    return value


@converter("ReverseSequence")
def _reverse_sequence(node: NodeContext, x: Value, lengths: Value) -> Any:
    """The first ``lengths[b]`` elements along the time axis, reversed, of each batch element."""
    v, time, batch = x.expr, node.attr("time_axis", 0), node.attr("batch_axis", 1)
    rank, an = v.sinfo.ndim, Analyzer()
    n, b = v.sinfo.shape[time], v.sinfo.shape[batch]
    ramp = node.make("arange", graph.PrimValue(tir.index_const(0)), graph.PrimValue(n), graph.PrimValue(tir.index_const(1)), dtype="int64")
    t = node.make("reshape", ramp, graph.ShapeExpr((n, tir.index_const(1))))
    length = node.make("reshape", node.make("astype", lengths.expr, dtype="int64"), graph.ShapeExpr((tir.index_const(1), an.simplify(b))))
    back = node.make("subtract", node.make("subtract", length, t), graph.Constant.of(1))
    place = node.make("where", node.make("less", t, length), back, t)
    if time > batch:
        place = node.make("permute_dims", place, axes=(1, 0))
    shape = [n if k == time else b if k == batch else tir.index_const(1) for k in range(rank)]
    index = node.make("broadcast_to", node.make("reshape", place, graph.ShapeExpr(tuple(shape))), graph.ShapeExpr(v.sinfo.shape))
    return node.make("gather_elements", v, index, axis=time)


