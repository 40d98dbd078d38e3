# SPDX-License-Identifier: Apache-2.0
"""The accesses of a buffer in flat statements: their loops and conditions, the box they touch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from roundel.arith import Analyzer
from roundel.ir import Var, Visitor, free_vars, on, tir

from .vector_expr import conjuncts


@dataclass(frozen=True)
class Access:
    """A load or store. ``loops`` and ``conditions`` are those between the searched statement and the access."""

    indices: tuple[tir.Expr, ...]
    is_store: bool
    loops: tuple[tir.For, ...]
    conditions: tuple[tir.Expr, ...]


class _Collect(Visitor):
    def __init__(self, buffer: tir.Buffer) -> None:
        self.wanted = buffer
        self.found: list[Access] = []
        self.escapes = False  # the memory is also reached in ways that indices do not show
        self.loops: tuple[tir.For, ...] = ()
        self.conditions: tuple[tir.Expr, ...] = ()

    @on(tir.For)
    def _for(self, loop: tir.For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self.loops += (loop,)
        self.visit(loop.body)
        self.loops = self.loops[:-1]

    @on(tir.If)
    def _if(self, stmt: tir.If) -> None:
        self.visit(stmt.condition)
        outside = self.conditions
        self.conditions = (*outside, stmt.condition)
        self.visit(stmt.then_case)
        if stmt.else_case is not None:
            self.conditions = (*outside, tir.logical_not(stmt.condition))
            self.visit(stmt.else_case)
        self.conditions = outside

    @on(tir.While)
    def _while(self, stmt: tir.While) -> None:
        self.visit(stmt.condition)
        outside, self.conditions = self.conditions, (*self.conditions, stmt.condition)
        self.visit(stmt.body)
        self.conditions = outside

    @on(tir.BufferStore)
    def _store(self, store: tir.BufferStore) -> None:
        self.visit(store.value)
        for i in store.indices:
            self.visit(i)
        self.note(store, True)

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> None:
        for i in load.indices:
            self.visit(i)
        self.note(load, False)

    def note(self, access: tir.BufferLoad | tir.BufferStore, is_store: bool) -> None:
        if access.buffer is self.wanted:
            self.found.append(Access(access.indices, is_store, self.loops, self.conditions))
        elif access.buffer.data is self.wanted.data:
            self.escapes = True

    @on(tir.Call)
    def _call(self, call: tir.Call) -> None:
        if call.op in ("address_of", "access_ptr") and any(
            type(a) is tir.BufferLoad and a.buffer.data is self.wanted.data for a in call.args
        ):
            self.escapes = True
        self.generic(call)

    @on(Var)
    def _var(self, v: Var) -> None:
        self.escapes |= v is self.wanted.data

    @on(tir.DeclBuffer)
    def _decl(self, decl: tir.DeclBuffer) -> None:
        self.escapes |= decl.buffer.data is self.wanted.data
        self.visit(decl.body)


def accesses(buffer: tir.Buffer, stmt: tir.Stmt) -> tuple[list[Access], bool]:
    """Accesses of ``buffer`` in ``stmt`` in program order, and whether its memory is reached in other ways too."""
    collect = _Collect(buffer)
    collect.visit(stmt)
    return collect.found, collect.escapes


def uses(buffer: tir.Buffer, stmt: tir.Node) -> bool:
    """Whether ``stmt`` touches the memory of ``buffer`` in any way."""
    found, escapes = accesses(buffer, stmt)
    return bool(found) or escapes


def interval(index: tir.Expr, loops: Iterable[tir.For], an: Analyzer) -> tuple[tir.Expr, tir.Expr] | None:
    """The smallest and the largest value of an index while ``loops`` run; None when that is not known."""
    dom: dict[Var, tir.Range] = {}
    for loop in loops:
        dom[loop.loop_var] = tir.Range(loop.min, loop.extent)
    index = an.simplify(index)
    if not index.is_index:
        return None
    if free_vars(index).isdisjoint(dom):
        return index, index
    box = an.int_set(index, dom)
    low, high = getattr(box, "min", None), getattr(box, "max", None)
    if (
        not isinstance(low, tir.Expr)
        or not isinstance(high, tir.Expr)
        or not (free_vars(low) | free_vars(high)).isdisjoint(dom)
    ):
        return None
    return an.simplify(low), an.simplify(high)


def hull(parts: Sequence[tuple[tir.Expr, tir.Expr]], an: Analyzer) -> tuple[tir.Expr, tir.Expr] | None:
    """The smallest interval around intervals that differ from each other by constants; None where they do not."""
    base = parts[0][0]
    low, spans = 0, []
    for a, b in parts:
        first, last = an.simplify(a - base), an.simplify(b - a)
        if type(first) is not tir.IntImm:
            return None
        low = min(low, first.value)
        spans.append(an.simplify(last + first.value))
    if all(type(s) is tir.IntImm for s in spans):
        return an.simplify(base + low), an.simplify(base + max(s.value for s in spans))
    if all(s is spans[0] for s in spans):
        return an.simplify(base + low), an.simplify(base + spans[0])
    return None


def pinned(condition: tir.Expr, loops: Sequence[tir.For]) -> dict[Var, tir.Expr] | None:
    """Loop variables that a condition fixes to their first iteration; None when it says anything else."""
    first = {x.loop_var: x.min for x in loops}
    found: dict[Var, tir.Expr] = {}
    for part in conjuncts(condition):
        if type(part) is not tir.EQ or type(part.a) is not Var or first.get(part.a) is not part.b:
            return None
        found[part.a] = part.b
    return found
