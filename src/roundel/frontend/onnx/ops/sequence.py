# SPDX-License-Identifier: Apache-2.0
"""ONNX sequences and optional values. Where their lengths are known at compile time they are Python lists of values, else rows of a
tensor (see ``stacked``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....arith import Analyzer
from ....ir import graph, tir
from ...common.recurrent import at as row_at
from .. import stacked
from ..importer import NodeContext
from ..load import dtype_of
from ..registry import converter
from ..run_time_sizes import check
from ..values import EmptyOptional, ListValue, SequenceValue, StackedValue, Value
from .control import scan_loop

_LISTED = 64
"""Pieces of a tensor that are values of their own; more of one size are the rows of a tensor."""


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


def _is_listed(items: SequenceValue, position: Value | None) -> bool:
    """Whether both the length of a sequence and a position in it are known."""
    return isinstance(items, ListValue) and (position is None or position.is_constant or not items.items)


def _stack(node: NodeContext, items: SequenceValue, item: Value | None = None) -> StackedValue:
    info = stacked.item_of(items) or (None if item is None else item.expr.sinfo)
    if info is None:
        raise node.error("the sequence is empty")
    return stacked.stack_of(node, items, info)


@converter("SequenceInsert")
def _insert(node: NodeContext, items: SequenceValue, item: Value, position: Value | None = None) -> Any:
    if not _is_listed(items, position):
        return stacked.insert(node, _stack(node, items, item), item, position)
    items = stacked.listed(items)
    k = _place(node, position, len(items.items), len(items.items)) if items.items else 0
    return ListValue((*items.items[:k], item, *items.items[k:]))


@converter("SequenceErase")
def _erase(node: NodeContext, items: SequenceValue, position: Value | None = None) -> Any:
    if not _is_listed(items, position):
        return stacked.erase(node, _stack(node, items), position)
    items = stacked.listed(items)
    if not items.items:
        raise node.error("the sequence is empty")
    k = _place(node, position, len(items.items), len(items.items) - 1)
    return ListValue((*items.items[:k], *items.items[k + 1:]))


@converter("SequenceAt")
def _at(node: NodeContext, items: SequenceValue, position: Value) -> Any:
    if not _is_listed(items, position):
        return stacked.at(node, _stack(node, items), position)
    items = stacked.listed(items)
    if not items.items:
        raise node.error("the sequence is empty")
    return items.items[_place(node, position, len(items.items), 0)]


@converter("SequenceLength")
def _length(node: NodeContext, items: SequenceValue) -> Any:
    import numpy as np

    return stacked.length(node, items) if isinstance(items, StackedValue) else node.value(np.asarray(len(stacked.listed(items).items), dtype=object))


@converter("ConcatFromSequence")
def _concat(node: NodeContext, items: SequenceValue) -> Any:
    axis, is_new = node.attr("axis"), bool(node.attr("new_axis", 0))
    if isinstance(items, StackedValue):
        return stacked.concatenated(node, items, axis, is_new)
    items = stacked.listed(items)
    tensors = [v.expr for v in items.items]
    axis = node.axis(axis, tensors[0].sinfo.ndim + is_new)
    if not is_new:
        return node.make("concat", graph.Tuple(tuple(tensors)), axis=axis)
    grown = tuple(node.make("expand_dims", t, axis=(axis,)) for t in tensors)
    return node.make("concat", graph.Tuple(grown), axis=axis)


@converter("SplitToSequence")
def _split(node: NodeContext, x: Value, sizes: Value | None = None) -> Any:
    axis = node.axis(node.attr("axis", 0), x.expr.sinfo.ndim)
    extent, keep = x.expr.sinfo.shape[axis], bool(node.attr("keepdims", 1))
    if sizes is None or not _shape(sizes):
        step = 1 if sizes is None else node.ints(sizes, "the size of a piece")[0]
        if not isinstance(extent, tir.IntImm) or not isinstance(step, int):
            return stacked.pieces(node, x, axis, step, keep or sizes is not None)
        if step <= 0:
            raise node.error(f"pieces of size {step}")
        if extent.value > _LISTED * step and extent.value % step == 0:
            return stacked.pieces(node, x, axis, step, keep or sizes is not None)
        node.importer.limits.count(node.title, -(-extent.value // step))
        parts = [min(step, extent.value - k) for k in range(0, extent.value, step)]
    else:
        parts = node.ints(sizes, "the sizes of the pieces")
        if any(isinstance(n, tir.Expr) for n in parts) or not isinstance(extent, tir.IntImm):
            check(node, tir.as_index(sum(parts)), extent, "sum_of_the_pieces")
    return ListValue([Value(p, is_text=x.is_text) for p in _pieces(node, x.expr, axis, parts, sizes is None and not keep)])


def _shape(v: Value) -> tuple[Any, ...]:
    return v.content.shape if v.content is not None else v.expr.sinfo.shape


def _pieces(node: NodeContext, x: Any, axis: int, sizes: Sequence[Any], squeeze: bool) -> list[Any]:
    out, start = [], 0
    for n in sizes:
        part = node.make("strided_slice", x, axes=(axis,), begin=(tir.as_index(start),), end=(tir.as_index(start + n),),
                         strides=(tir.index_const(1),))
        out.append(node.make("squeeze", part, axis=(axis,)) if squeeze else part)
        start += n
    return out


@converter("SequenceMap")
def _map(node: NodeContext, first: SequenceValue, *more: Any) -> Any:
    values = (first, *more)
    if any(isinstance(v, StackedValue) for v in values):
        return _map_rows(node, values)
    first = stacked.listed(first)
    rows = []
    for k in range(len(first.items)):
        rows.append(node.subgraph(node.attr("body"), [v.items[k] if isinstance(v, ListValue) else v for v in values]))
    if not rows:
        return tuple(ListValue(()) for _ in node.attr("body").output)
    return tuple(ListValue(column) for column in zip(*rows, strict=True))


def _map_rows(node: NodeContext, values: Sequence[Any]) -> Any:
    count, rows = stacked.columns(node, values)
    texts: list[bool] = []

    def step(i: Any, state: list[Any]) -> tuple[list[Any], list[Any]]:
        items = [v if r is None else Value(row_at(node, r, i), is_text=_is_text(v)) for v, r in zip(values, rows, strict=True)]
        out = node.subgraph(node.attr("body"), items)
        texts[:] = [v.is_text for v in out]
        return [], [v.expr for v in out]

    _, made = scan_loop(node, count, [], step)
    return tuple(StackedValue(m, is_text=t) for m, t in zip(made, texts, strict=True))


def _is_text(value: Any) -> bool:
    return value.items[0].is_text if isinstance(value, ListValue) else value.is_text


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
    v, time, batch = x.expr, *(node.axis(node.attr(f"{name}_axis", k), x.expr.sinfo.ndim) for k, name in enumerate(("time", "batch")))
    rank, an = v.sinfo.ndim, Analyzer()
    n, b = v.sinfo.shape[time], v.sinfo.shape[batch]
    ramp = node.make("arange", graph.PrimValue(tir.index_const(0)), graph.PrimValue(n), graph.PrimValue(tir.index_const(1)), dtype="int64")
    t = node.make("reshape", ramp, graph.ShapeExpr((n, tir.index_const(1))))
    within = node.make("astype", node.positions(lengths.expr, n + 1), dtype="int64")
    length = node.make("reshape", within, graph.ShapeExpr((tir.index_const(1), an.simplify(b))))
    back = node.make("subtract", node.make("subtract", length, t), graph.Constant.of(1))
    place = node.make("where", node.make("less", t, length), back, t)
    if time > batch:
        place = node.make("permute_dims", place, axes=(1, 0))
    shape = [n if k == time else b if k == batch else tir.index_const(1) for k in range(rank)]
    index = node.make("broadcast_to", node.make("reshape", place, graph.ShapeExpr(tuple(shape))), graph.ShapeExpr(v.sinfo.shape))
    return node.make("gather_elements", v, index, axis=time)


