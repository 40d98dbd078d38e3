# SPDX-License-Identifier: Apache-2.0
"""Sequences through loops and branches, whose states and results are tensors: a sequence is its rows and its length there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arith import Analyzer
from ...ir import graph, tir
from ...ir.dtype import BOOL, INT64
from .run_time_sizes import inner_sizes, sizes_in
from .stacked import exact, item_of, length, padded, stack_of
from .values import EmptyOptional, ListValue, SequenceValue, StackedValue, Value

if TYPE_CHECKING:
    from .importer import NodeContext

Run = Callable[[Sequence[Any]], list[Any]]
"""Converts a body: values of its inputs to values of its outputs."""


def holds_sequence(values: Sequence[Any]) -> bool:
    """Whether a sequence is among them."""
    return any(isinstance(v, SequenceValue) for v in values)


class PackedLoop:
    """The body of a Loop with sequences among its states, as one whose states are tensors: ``run`` and ``state``."""

    def __init__(self, node: NodeContext, body: Run, state: Sequence[Any], trips: Any) -> None:
        self.node, self.body = node, body
        infos, texts = self._items(state)
        state = [s if info is None else stack_of(node, s, info) for s, info in zip(state, infos, strict=True)]
        self.rooms = self._growth(state)
        if any(self.rooms.values()) and trips is None:
            raise node.data_dependent("how long a sequence becomes in a loop without a number of iterations")
        self.texts, self.state = texts, list[Any]()
        self.infos = infos
        for k, s in enumerate(state):
            if infos[k] is None:
                self.state.append(s)
                continue
            more = tir.as_index(trips) * self.rooms[k] if self.rooms[k] else 0
            full = padded(node, exact(node, s), Analyzer().simplify(s.capacity + more))
            self.state += [Value(full.rows), Value(full.count)]

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The body on ``(number, go on, *states)``, all tensors."""
        go_on, *out = self.body([*inputs[:2], *self._unpacked(inputs[2:])])
        flat = [go_on]
        capacity = {k: s.capacity for k, s in enumerate(self._unpacked(inputs[2:])) if isinstance(s, StackedValue)}
        for k, value in enumerate(out):
            if k in capacity:
                full = padded(self.node, stack_of(self.node, value, self.infos[k]), capacity[k])
                flat += [Value(full.rows), Value(full.count)]
            else:
                flat.append(value)
        return flat

    def results(self, fields: Sequence[Any]) -> tuple[Any, ...]:
        """What the loop gives: sequences with a row for each item, then whatever it collects."""
        last = self._unpacked([Value(f) for f in fields[: len(self.state)]])
        return (*(exact(self.node, s) if isinstance(s, StackedValue) else s for s in last), *fields[len(self.state):])

    def _unpacked(self, flat: Sequence[Any]) -> list[Any]:
        parts = iter(flat)
        return [next(parts) if info is None else StackedValue(next(parts).expr, next(parts).expr, self.rooms[k], self.texts[k])
                for k, info in enumerate(self.infos)]

    def _attempt(self, state: Sequence[Any]) -> list[Any]:
        """What the body makes of such states, tried aside; raises UnsupportedDataError for items of a shape that only the body knows."""
        found: list[Any] = []

        def attempt() -> graph.Tuple:
            number, go_on = Value(graph.Var("i", graph.TensorInfo((), INT64))), self.node.value(np.asarray(True, dtype=object), BOOL)
            inputs = [s if isinstance(s, SequenceValue) else Value(graph.Var("s", s.expr.sinfo)) for s in state]
            found.extend(self.body([number, go_on, *inputs])[1: 1 + len(state)])
            return graph.Tuple(())

        inner = inner_sizes(self.node, self.node.importer.sequence(attempt))
        items = [item_of(v) for v in found if isinstance(v, SequenceValue)]
        if any(v in inner for item in items for v in sizes_in(item)):
            raise self.node.data_dependent("the shape of what a loop inserts into a sequence")
        return found

    def _items(self, state: Sequence[Any]) -> tuple[list[graph.TensorInfo | None], list[bool]]:
        """What the items of each sequence are, and which of them are strings; of one that begins empty, what the body puts there."""
        after = self._attempt(state)
        infos, texts = list[graph.TensorInfo | None](), list[bool]()
        for before, value in zip(state, after, strict=True):
            if not isinstance(before, SequenceValue):
                infos.append(None)
                texts.append(False)
                continue
            if not isinstance(value, SequenceValue):
                raise self.node.error("a state of the loop is a sequence before the body and a tensor after it")
            info = item_of(before) or item_of(value)
            if info is None:
                raise self.node.data_dependent("what a sequence holds that begins empty and stays so in its loop's first iteration")
            infos.append(info)
            texts.append(any(_is_text(v) for v in (before, value)))
        return infos, texts

    def _growth(self, state: Sequence[Any]) -> dict[int, int]:
        """By how many items an iteration makes each sequence longer, at most."""
        sizes = {k: tir.Var("most", INT64, True) for k, s in enumerate(state) if isinstance(s, StackedValue)}
        given = list(state)
        for k, size in sizes.items():
            rows = graph.Var("rows", graph.TensorInfo((size, *state[k].item.shape), state[k].item.dtype))
            given[k] = StackedValue(rows, graph.Var("count", graph.TensorInfo((), INT64)))
        after, out = self._attempt(given), {}
        for k, size in sizes.items():
            value = after[k]
            more = tir.index_const(len(value.items)) if isinstance(value, ListValue) else Analyzer().simplify(value.capacity - size)
            if not isinstance(more, tir.IntImm):
                raise self.node.data_dependent("how long a sequence becomes in a loop")
            out[k] = max(more.value, 0)
        return out


def _is_text(value: Any) -> bool:
    return value.is_text if isinstance(value, StackedValue) else any(v.is_text for v in value.items)


class PackedBranches:
    """Results of both branches of an If as tensors of the same number: ``flat`` of a branch's values, ``results`` of the If's."""

    def __init__(self, node: NodeContext, first: Sequence[Any], second: Sequence[Any]) -> None:
        self.node = node
        self.forms = [_form(node, a, b) for a, b in zip(first, second, strict=True)]

    def flat(self, values: Sequence[Any]) -> list[graph.GraphExpr]:
        """Tensors in place of these values."""
        emit, out = self.node.importer.emit, list[graph.GraphExpr]()
        for value, form in zip(values, self.forms, strict=True):
            out += [emit(e) for e in form.pack(self.node, value)]
        return out

    def results(self, fields: Sequence[graph.GraphExpr]) -> tuple[Any, ...]:
        """The values that these tensors stand for."""
        parts = iter(fields)
        return tuple(form.unpack(self.node, [next(parts) for _ in range(form.count)]) for form in self.forms)


class _Tensor:
    count = 1

    def pack(self, node: NodeContext, value: Any) -> list[Any]:
        return [value.expr]

    def unpack(self, node: NodeContext, parts: list[Any]) -> Any:
        return parts[0]


class _Items:
    """Sequences of equally many items: one by one."""

    def __init__(self, like: ListValue) -> None:
        self.count, self.texts, self.dtype = len(like.items), [v.is_text for v in like.items], like.dtype

    def pack(self, node: NodeContext, value: Any) -> list[Any]:
        return [v.expr for v in value.items]

    def unpack(self, node: NodeContext, parts: list[Any]) -> Any:
        return ListValue([Value(p, is_text=t) for p, t in zip(parts, self.texts, strict=True)], self.dtype)


class _Rows:
    """Sequences of which one branch may give more items than the other."""

    def __init__(self, item: graph.TensorInfo, is_text: bool) -> None:
        self.item, self.is_text, self.count = item, is_text, 1

    def pack(self, node: NodeContext, value: Any) -> list[Any]:
        return [exact(node, stack_of(node, value, self.item)).rows]

    def unpack(self, node: NodeContext, parts: list[Any]) -> Any:
        info = graph.TensorInfo((tir.Var("items", INT64, True), *self.item.shape), self.item.dtype)
        return StackedValue(node.importer.bb.match_cast(parts[0], info, "items"), is_text=self.is_text)


class _FullRows:
    """Sequences in a loop's body: with rows that are no items yet."""

    def __init__(self, item: graph.TensorInfo, is_text: bool, capacity: tir.Expr, room: int) -> None:
        self.item, self.is_text, self.capacity, self.room, self.count = item, is_text, capacity, room, 2

    def pack(self, node: NodeContext, value: Any) -> list[Any]:
        full = padded(node, stack_of(node, value, self.item), self.capacity)
        return [full.rows, length(node, full).expr]

    def unpack(self, node: NodeContext, parts: list[Any]) -> Any:
        return StackedValue(parts[0], parts[1], self.room, self.is_text)


def _form(node: NodeContext, a: Any, b: Any) -> Any:
    if not holds_sequence((a, b)):
        return _Tensor()
    if not (isinstance(a, SequenceValue) and isinstance(b, SequenceValue)) or any(isinstance(v, EmptyOptional) for v in (a, b)):
        raise node.data_dependent("which branch gives a sequence")
    if isinstance(a, ListValue) and isinstance(b, ListValue) and _alike(a, b):
        return _Items(a)
    item = item_of(a) or item_of(b)
    assert item is not None  # both empty are alike
    is_text, stacks = _is_text(a) or _is_text(b), [stack_of(node, v, item) for v in (a, b)]
    if all(s.count is None for s in stacks):
        return _Rows(item, is_text)
    capacity = Analyzer().simplify(tir.max_(*(s.capacity for s in stacks)))
    return _FullRows(item, is_text, capacity, min(s.room for s in stacks if s.count is not None))


def _alike(a: ListValue, b: ListValue) -> bool:
    return len(a.items) == len(b.items) and all(x.expr.sinfo.dtype == y.expr.sinfo.dtype and x.expr.sinfo.ndim == y.expr.sinfo.ndim
                                                for x, y in zip(a.items, b.items, strict=True))
