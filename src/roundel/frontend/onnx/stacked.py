# SPDX-License-Identifier: Apache-2.0
"""Sequences whose length only the run can tell, as rows of a tensor: what the sequence operators do to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arith import Analyzer
from ...ir import graph, tir
from ...ir.dtype import INT64
from ...ir.errors import ModelError
from ...ops.data_dependent import prefix
from ...ops.dims import differ
from .run_time_sizes import require
from .values import ListValue, SequenceValue, StackedValue, Value

if TYPE_CHECKING:
    from .importer import NodeContext

_ZERO, _ONE = tir.index_const(0), tir.index_const(1)


def listed(value: Any) -> ListValue:
    """A sequence whose items are known, as a model says that it is one; raises ModelError for anything else (a tensor, a map, nothing)."""
    if not isinstance(value, ListValue):
        given = "nothing" if value is None else "a tensor" if isinstance(value, Value) else "a map or an empty optional"
        raise ModelError(f"a sequence is wanted where the model gives {given}")
    return value


def item_of(value: SequenceValue) -> graph.TensorInfo | None:
    """What an item of a sequence is; None for a sequence that is known to be empty. Raises ModelError for what is no sequence of tensors."""
    if isinstance(value, StackedValue):
        return value.item
    value = listed(value)
    return value.items[0].expr.sinfo if value.items else None


def stack_of(node: NodeContext, value: SequenceValue, item: graph.TensorInfo) -> StackedValue:
    """A sequence as rows of a tensor; ``item`` says what its items are. Raises UnsupportedDataError where their shapes differ."""
    if isinstance(value, StackedValue):
        return value
    value = listed(value)
    for v in value.items:
        _same(node, v.expr.sinfo, item)
    if not value.items:
        return StackedValue(node.make("zeros", graph.ShapeExpr((_ZERO, *item.shape)), dtype=item.dtype))
    rows = node.make("concat", graph.Tuple(tuple(_row(node, v) for v in value.items)), axis=0)
    return StackedValue(rows, is_text=value.items[0].is_text)


def _same(node: NodeContext, a: graph.TensorInfo, b: graph.TensorInfo) -> None:
    if a.dtype != b.dtype or a.ndim != b.ndim or any(differ(m, n) for m, n in zip(a.shape, b.shape, strict=True)):
        raise node.data_dependent(f"the length of a sequence whose items differ ({_text(a)} and {_text(b)})")


def _text(info: graph.TensorInfo) -> str:
    return f"{info.dtype}[{', '.join(d.script() for d in info.shape)}]"


def _row(node: NodeContext, item: Value) -> Any:
    return node.make("expand_dims", item.expr, axis=(0,))


def _number(value: Any) -> graph.Constant:
    return graph.Constant.of(np.asarray(value, np.int64))


def _numbers(node: NodeContext, count: Any) -> Any:
    return node.make("arange", *(graph.PrimValue(tir.as_index(v)) for v in (0, count, 1)), dtype="int64")


def length(node: NodeContext, s: StackedValue) -> Value:
    """How many items there are."""
    return node.value(np.asarray(s.capacity, dtype=object)) if s.count is None else Value(s.count)


def _place(node: NodeContext, s: StackedValue, position: Value, most: int) -> Any:
    """A position as a scalar tensor, counted from the end where it is negative; the run checks that it is at most the length + ``most``."""
    n, p = length(node, s).expr, position.expr
    p = node.make("reshape", node.make("astype", p, dtype="int64"), graph.ShapeExpr(()))
    p = node.make("where", node.make("less", p, _number(0)), node.make("add", p, n), p)
    inside = node.make("logical_and", node.make("greater_equal", p, _number(0)), node.make("less_equal", p, node.make("add", n, _number(most))))
    require(node, inside, "position is in the sequence")
    return p


def at(node: NodeContext, s: StackedValue, position: Value) -> Value:
    """The item at a position."""
    return Value(node.make("take", s.rows, _place(node, s, position, -1), axis=0, mode="clip"), is_text=s.is_text)


def insert(node: NodeContext, s: StackedValue, item: Value, position: Value | None) -> StackedValue:
    """The sequence with an item put before a position (None: at the end)."""
    _same(node, item.expr.sinfo, s.item)
    is_text = s.is_text or item.is_text
    count = None if s.count is None else node.make("add", s.count, _number(1))
    if position is None and s.room and s.count is not None:
        place = node.make("reshape", s.count, graph.ShapeExpr((_ONE, _ONE)))
        return StackedValue(node.make("scatter_nd", s.rows, place, _row(node, item), reduction="update"), count, s.room - 1, is_text)
    both = node.make("concat", graph.Tuple((s.rows, _row(node, item))), axis=0)
    if position is None and s.count is None:
        return StackedValue(both, is_text=is_text)
    p = length(node, s).expr if position is None else _place(node, s, position, 0)
    k = _numbers(node, s.capacity if s.room else s.capacity + 1)
    behind = node.make("where", node.make("equal", k, p), node.value(np.asarray(s.capacity, dtype=object)).expr, node.make("subtract", k, _number(1)))
    source = node.make("where", node.make("less", k, p), k, behind)
    return StackedValue(node.make("take", both, source, axis=0, mode="clip"), count, max(s.room - 1, 0), is_text)


def erase(node: NodeContext, s: StackedValue, position: Value | None) -> StackedValue:
    """The sequence without the item at a position (None: the last)."""
    p = _place(node, s, Value(_number(-1)) if position is None else position, -1)
    left = s.capacity
    if s.count is None:
        left = tir.Var("left", INT64, True)
        node.importer.bb.match_cast(graph.ShapeExpr((s.capacity - 1,)), graph.ShapeInfo((left,)), "left")
    k = _numbers(node, left)
    source = node.make("where", node.make("less", k, p), k, node.make("add", k, _number(1)))
    count = None if s.count is None else node.make("subtract", s.count, _number(1))
    return StackedValue(node.make("take", s.rows, source, axis=0, mode="clip"), count, 0 if s.count is None else s.room, s.is_text)


def exact(node: NodeContext, s: StackedValue) -> StackedValue:
    """The same with a row for each item and no others."""
    if s.count is None:
        return s
    count = node.ints(Value(s.count), "the length of a sequence", upper=s.capacity)[0]
    return StackedValue(prefix(node.importer.bb, s.rows, tir.as_index(count)), is_text=s.is_text)


def concatenated(node: NodeContext, s: StackedValue, axis: int, new_axis: bool) -> Any:
    """All items along ``axis``, which is a new one or theirs."""
    rows = exact(node, s).rows
    rank = rows.sinfo.ndim
    axis = node.axis(axis, rank if new_axis else rank - 1)
    moved = node.make("permute_dims", rows, axes=(*range(1, axis + 1), 0, *range(axis + 1, rank))) if axis else rows
    if new_axis:
        return moved
    dims = moved.sinfo.shape
    merged = Analyzer().simplify(dims[axis] * dims[axis + 1])
    return node.make("reshape", moved, graph.ShapeExpr((*dims[:axis], merged, *dims[axis + 2:])))


def pieces(node: NodeContext, x: Value, axis: int, step: Any, keep: bool) -> StackedValue:
    """A tensor cut along ``axis`` into pieces of ``step``; the run checks that they are all equal. ``keep``: pieces of 1 keep the axis."""
    dims, given = x.expr.sinfo.shape, tir.as_index(step)
    step = given if isinstance(given, tir.IntImm) else tir.max_(given, 1)
    if step is not given:
        node.importer.bb.match_cast(graph.ShapeExpr((step,)), graph.ShapeInfo((given,)), "size_of_a_piece")
    count = tir.floordiv(dims[axis], step)
    rest = Analyzer().simplify(tir.floormod(dims[axis], step))
    if not isinstance(rest, tir.IntImm):
        node.importer.bb.match_cast(graph.ShapeExpr((rest,)), graph.ShapeInfo((_ZERO,)), "rest_of_split")
    cut = node.make("reshape", x.expr, graph.ShapeExpr((*dims[:axis], Analyzer().simplify(count), Analyzer().simplify(step), *dims[axis + 1:])))
    rank = len(dims) + 1
    rows = node.make("permute_dims", cut, axes=(axis, *(k for k in range(rank) if k != axis))) if axis else cut
    return StackedValue(rows if keep else node.make("squeeze", rows, axis=(axis + 1,)), is_text=x.is_text)


def padded(node: NodeContext, s: StackedValue, capacity: Any) -> StackedValue:
    """The same with so many rows in all, the length as a tensor."""
    count = length(node, s).expr
    more = Analyzer().simplify(tir.as_index(capacity) - s.capacity)
    if isinstance(more, tir.IntImm) and more.value == 0:
        return StackedValue(s.rows, count, s.room, s.is_text)
    if isinstance(more, tir.IntImm) and more.value < 0:
        return StackedValue(prefix(node.importer.bb, s.rows, tir.as_index(capacity)), count, 0, s.is_text)
    empty = node.make("zeros", graph.ShapeExpr((more, *s.item.shape)), dtype=s.item.dtype)
    return StackedValue(node.make("concat", graph.Tuple((s.rows, empty)), axis=0), count, s.room, s.is_text)


def columns(node: NodeContext, values: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The length of the sequences among ``values``, and each of them as rows (other values are None)."""
    items = [None if not isinstance(v, SequenceValue) else item_of(v) for v in values]
    rows = [None if info is None else exact(node, stack_of(node, v, info)).rows for v, info in zip(values, items, strict=True)]
    return next(r.sinfo.shape[0] for r in rows if r is not None), rows
