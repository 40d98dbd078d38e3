# SPDX-License-Identifier: Apache-2.0
"""Which accesses of a tensor program are inside of their buffers, and what the others need of sizes.

    for i in range(n): r[i] = a[i]        # a: (m,)      ->    a, dimension 0: n <= m, unless n <= 0

What is known at a place: the loops around it are not empty, the conditions hold. Values that are read from memory are unknown, but the same
wherever they are read: a value that a condition is about is the one that is used under it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Set
from contextlib import contextmanager
from functools import cached_property
from math import inf
from typing import Any

from ...arith import Analyzer, bounds, compare, reads_memory
from ...ir import tir
from ...ir.dataclass import dataclass
from ...ir.node import Node
from ...ir.tir import Expr, Range
from ...ir.visit import Rewriter, Substitution, Visitor, free_vars, on, statements, substitute, walk
from .index_ranges import static
from .iterations import Fact, always

TRUE, FALSE = tir.const(True), tir.const(False)


@dataclass(frozen=True)
class Need:
    """``condition`` on sizes has to hold, ``unless`` the place is not reached, so that dimension ``dim`` of ``buffer`` is accessed inside (without
    a buffer: so that nothing is divided by zero).

    ``condition`` is None where sizes cannot tell; ``by_data``: the position depends on data, or on a loop as long as data tells.
    """

    condition: Expr | None
    unless: Expr
    buffer: tir.Buffer | None = None
    dim: int = 0
    by_data: bool = False


def needs(func: tir.PrimFunc) -> list[Need]:
    """What the accesses of a program need of sizes that is not proven: neither with its dimensions as expressions of sizes, nor for any value
    that these expressions may have."""
    found = _unproven(func)
    computed = {n: tir.Var("size", n.dtype, True) for b in func.buffer_params for n in b.shape if not isinstance(n, tir.Var | tir.IntImm)}
    if not found or not computed:
        return found
    for_any = _ForAny(computed, {})
    left = {(n.buffer, n.dim) for n in _unproven(for_any.rewrite(func))}
    return [n for n in found if (n.buffer and for_any.buffer(n.buffer), n.dim) in left]


def _unproven(func: tir.PrimFunc) -> list[Need]:
    found = _Accesses(func)
    found.visit(func.body)
    return list(dict.fromkeys(found.needs))


class _ForAny(Substitution):
    """Expressions of sizes become sizes of their own, which may have any value."""

    def rewrite(self, node: Any) -> Any:
        if not isinstance(node, Expr):
            return super().rewrite(node)
        if node not in self.memo:  # not left to ``Substitution``, which looks for variables alone
            self.memo[node] = self.variables[node] if node in self.variables else self.generic(node)
        return self.memo[node]


class Place:
    """A place in a program: within a loop or block, or under a condition. ``held``: conditions that are known to hold there."""

    def __init__(self, parent: Place | None, fact: Fact | None = None) -> None:
        self.parent, self.fact = parent, fact
        self.held: frozenset[Expr] = parent.held if parent else frozenset()
        if isinstance(fact, Expr):
            self.held |= set(_parts(fact, tir.And))

    def by_data(self, read: Collection[tir.Var]) -> bool:
        """Whether only what was ``read`` tells if this place is reached."""
        mine = isinstance(self.fact, Expr) and not free_vars(self.fact).isdisjoint(read)
        return mine or (self.parent is not None and self.parent.by_data(read))

    def facts(self) -> list[Fact]:
        """What is known here, from the outside in."""
        outer = self.parent.facts() if self.parent is not None else []
        return outer if self.fact is None else [*outer, self.fact]

    @cached_property
    def an(self) -> Analyzer:
        """What is known here; made only where it is asked for."""
        an = Analyzer()
        if self.parent is not None:
            an.facts = self.parent.an.facts.copy()
        if isinstance(self.fact, Expr):
            an.assume(self.fact)
        elif self.fact is not None:
            an.bind(*self.fact)
        return an

    def unreached(self, is_size: Callable[[tir.Var], bool]) -> Expr:
        """A condition on sizes under which this place is not reached."""
        out = FALSE if self.parent is None else self.parent.unreached(is_size)
        fixed = lambda e: not reads_memory(e) and all(map(is_size, free_vars(e)))
        if isinstance(self.fact, Expr):
            an = self.parent.an  # type: ignore[union-attr]
            for part in _parts(an.simplify(self.fact), tir.And):
                never = tir.logical_not(part) if fixed(part) else _never(an, part, is_size)
                out = tir.logical_or(out, never)
        elif self.fact is not None and isinstance(self.fact[1], Range) and fixed(self.fact[1].extent):
            out = tir.logical_or(out, tir.le(self.fact[1].extent, 0))
        return out


def _never(an: Analyzer, condition: Expr, is_size: Callable[[tir.Var], bool]) -> Expr:
    """A condition on sizes under which a comparison holds in no iteration."""
    if not isinstance(condition, tir.LT | tir.LE | tir.GT | tir.GE) or not condition.a.dtype.is_int or condition.a.dtype.lanes > 1:
        return FALSE
    never = an.size_needs(compare.difference(an, condition) * -1 + 1, is_size)
    return FALSE if never is None else never


def _parts(condition: Expr, kind: type) -> Iterator[Expr]:
    """The parts of a conjunction or disjunction."""
    if type(condition) is kind:
        yield from _parts(condition.a, kind)  # type: ignore[attr-defined]
        yield from _parts(condition.b, kind)  # type: ignore[attr-defined]
    else:
        yield condition


class _Numbers:
    """Bounds of integer expressions as numbers, from those of loops alone: all that most accesses of known sizes need."""

    def __init__(self) -> None:
        self.memo: dict[Expr, bounds.Bounds] = {}

    def bind(self, var: tir.Var, ends: bounds.Bounds) -> None:
        """A variable's bounds."""
        if self.memo.get(var, ends) != ends:
            self.memo.clear()
        self.memo[var] = ends

    def bounds(self, e: Expr) -> bounds.Bounds:
        """The least and the greatest value."""
        hit = self.memo.get(e)
        if hit is None:
            hit = self.memo[e] = bounds.from_parts(self, e)
        return hit


class _Accesses(Visitor):
    def __init__(self, func: tir.PrimFunc) -> None:
        self.params = set(func.buffer_params)
        self.at: tuple[tir.Buffer | None, int] = None, 0  # the buffer and dimension whose index is looked at
        self.place = Place(None)
        self.numbers = _Numbers()
        self.extents: dict[Expr, Expr] = {}  # variables that are 0 or more and below these
        self.needs: list[Need] = []
        self.seen: set[Node] = set()  # expressions that were gone into where no more is known than here
        self.of_data: set[tir.Var] = set()  # variables whose range depends on values that are read
        self.sizes = {p for p in func.params if p not in func.buffers}
        for buffer in func.buffer_params:
            self.sizes.update(*(free_vars(n) for n in buffer.shape))
        self.estimated: set[tir.Var] = set()  # variables that may never be one of their bounds
        self.values = _Unknown(_tables(func, self.sizes))

    @contextmanager
    def within(self, fact: Fact) -> Iterator[None]:
        """A place where more is known."""
        saved = self.place, self.seen
        self.know(fact)
        yield
        self.place, self.seen = saved

    def know(self, fact: Fact) -> None:
        """From here on, more is known."""
        self.place, self.seen = Place(self.place, fact), set(self.seen)
        if isinstance(fact, tuple):
            var, value = fact
            given = (value.min, value.extent) if isinstance(value, Range) else (value,)
            if any(map(self.is_data, (v for e in given for v in free_vars(e)))):
                self.of_data.add(var)
            if isinstance(value, Range):
                low, high = self.numbers.bounds(value.min)[0], self.numbers.bounds(value.min)[1] + self.numbers.bounds(value.extent)[1] - 1
                if static(value.min) == 0:
                    self.extents[var] = value.extent
            else:
                low, high = self.numbers.bounds(value)
                if value in self.extents:
                    self.extents[var] = self.extents[value]
            self.numbers.bind(var, (low, high))

    def is_data(self, var: tir.Var) -> bool:
        """Whether a variable is a value that is read, or depends on one."""
        return var in self.of_data or var in self.values.made

    def generic(self, node: Node) -> None:
        if isinstance(node, Expr):
            if node in self.seen:
                return
            self.seen.add(node)
        super().generic(node)

    # -- what is known where

    @on(tir.For)
    def _loop(self, loop: tir.For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        with self.within((loop.loop_var, Range(self.values.rewrite(loop.min), self.values.rewrite(loop.extent)))):
            self.visit(loop.body)

    @on(tir.BlockRealize)
    def _block(self, realize: tir.BlockRealize) -> None:
        for value in realize.iter_values:
            self.visit(value)
        with self.within(self.values.rewrite(realize.predicate)):
            for iv, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
                self.know((iv.var, self.values.rewrite(value)))
            for part in (realize.block.init, realize.block.body):
                if part is not None:
                    self.visit(part)

    @on(tir.Let)
    def _let(self, let: tir.Let) -> None:
        self.visit(let.value)
        scalar = let.var.dtype.is_int and let.var.dtype.lanes == 1
        with self.within(self.bound(let.var, self.values.rewrite(let.value)) if scalar else TRUE):
            self.visit(let.body)

    def bound(self, var: tir.Var, value: Expr) -> Fact:
        """What a variable is: its value or, where arithmetic of data computes that (``1 << p``), a number in its bounds. What indices multiply by
        such a value counts as data, of which nothing is proven, for it may wrap; what they multiply by a variable does not."""
        low, high = (0, inf) if value.is_index or any(map(self.is_data, free_vars(value))) else self.place.an.bounds(value)
        if not 0 <= high - low < var.dtype.limits[1]:
            return var, value
        self.estimated.add(var)
        return var, Range(tir.const(low, var.dtype), tir.const(high - low + 1, var.dtype))

    @on(tir.If)
    def _if(self, branch: tir.If) -> None:
        self.either(branch.condition, branch.then_case, branch.else_case)

    @on(tir.IfThenElse)
    def _if_then_else(self, choice: tir.IfThenElse) -> None:
        self.either(choice.condition, choice.true_value, choice.false_value)

    def either(self, condition: Expr, then: Node, otherwise: Node | None) -> None:
        """Two branches, each with what is known there."""
        self.visit(condition)
        condition = self.values.rewrite(condition)
        with self.within(condition):
            self.visit(then)
        if otherwise is not None:
            with self.within(tir.logical_not(condition)):
                self.visit(otherwise)

    @on(tir.While)
    def _while(self, loop: tir.While) -> None:
        self.visit(loop.condition)
        with self.within(self.values.rewrite(loop.condition)):
            self.visit(loop.body)

    @on(tir.Call)
    def _call(self, call: tir.Call) -> None:
        if call.op != "address_of":
            self.generic(call)

    # -- accesses

    @on(tir.BufferLoad, tir.BufferStore)
    def _access(self, access: Any) -> None:
        for dim, (index, size) in enumerate(zip(access.indices, access.buffer.shape, strict=True)):
            for position in _lanes(index):
                if access.predicate is None and not self.inside(position, size):  # of lanes, the predicate tells
                    position = self.values.rewrite(position)
                    self.need(position, size, access.buffer, dim)
                    self.need(tir.index_const(-1), position, access.buffer, dim)
            outer, self.at = self.at, (access.buffer, dim)
            self.visit(index)
            self.at = outer
        for part in (getattr(access, "value", None), access.predicate):
            if part is not None:
                self.visit(part)

    @on(tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod)
    def _divide(self, e: Any) -> None:
        if e.is_index and self.numbers.bounds(e.b)[0] <= 0:
            self.need(tir.index_const(0), self.values.rewrite(e.b), *self.at, divides=True)
        self.generic(e)

    def inside(self, index: Expr, size: Expr) -> bool:
        """Whether an index is quickly seen to be a position."""
        if index in self.extents and self.extents[index] is size:
            return True
        low, high = self.numbers.bounds(index)
        held = self.place.held
        below = high < (static(size) or 0) or tir.lt(index, size) in held
        return below and (low >= 0 or tir.le(tir.index_const(0), index) in held)

    def need(self, less: Expr, more: Expr, buffer: tir.Buffer | None = None, dim: int = 0, divides: bool = False) -> None:
        """What has to hold of sizes so that one expression is less than another in every iteration."""
        an, is_size = self.place.an, self.sizes.__contains__
        difference = an.sum(less - more + 1)
        condition = an.size_needs(difference, is_size, lambda v: v in self.estimated or self.is_data(v))
        if condition is TRUE or self.is_guarded(less, buffer):
            return
        if condition is not None and buffer is not None:
            some = an.simplify(tir.ge(buffer.shape[dim], 1))
            with an.constraint(some):
                enough = condition is some or an.prove(condition)  # all that is needed is that there are elements
            condition = some if enough else condition
            if divides and not enough:
                buffer = None
        by_data = any(map(self.is_data, (v for atom in difference.terms for v in free_vars(atom))))
        if (condition is None or condition is FALSE) and not by_data and always(tir.lt(less, more), self.place.facts()):
            return
        self.needs.append(Need(condition, self.place.unreached(is_size), buffer, dim, by_data))

    def is_guarded(self, index: Expr, buffer: tir.Buffer | None) -> bool:
        """Whether this is a fixed element of a program's own buffer under a condition on data: what the program itself keeps account of."""
        own = buffer is not None and buffer not in self.params
        return own and self.place.by_data(self.values.made) and all(map(self.sizes.__contains__, free_vars(index)))


def _lanes(index: Expr) -> tuple[Expr, ...]:
    """The positions of a vector that are furthest apart; of a scalar, itself."""
    if type(index) is tir.Broadcast:
        return (index.value,)
    if type(index) is tir.Ramp:
        return index.base, index.base + index.stride * (index.lanes - 1)
    return (index,) if index.dtype.lanes == 1 else ()


class _Unknown(Rewriter):
    """An expression with a variable for each value that depends on memory; elements of ``tables`` are what they were computed as."""

    def __init__(self, tables: dict[tir.Buffer, tir.BufferStore]) -> None:
        self.variables: dict[Expr, tir.Var] = {}
        self.made: set[tir.Var] = set()
        self.tables = tables

    @on(tir.BufferLoad, tir.Cast, tir.Call)
    def _value(self, e: Any) -> Expr:
        if not reads_memory(e):
            return e
        if type(e) is tir.BufferLoad and e.buffer in self.tables:
            made = self.tables[e.buffer]
            return self.rewrite(substitute(made.value, dict(zip(made.indices, e.indices, strict=True))))
        if e not in self.variables:
            self.variables[e] = tir.Var("value", e.dtype)
            self.made.add(self.variables[e])
        return self.variables[e]


def _tables(func: tir.PrimFunc, sizes: Set[tir.Var]) -> dict[tir.Buffer, tir.BufferStore]:
    """The stores of a program that compute integers, element by element, for buffers of its own."""
    own = {b for s in statements(func.body) if type(s) is tir.Block for b in s.alloc_buffers if b.dtype.is_int}
    if not own:
        return {}
    stores = [s for s in statements(func.body) if type(s) is tir.BufferStore and s.buffer in own]
    count = Counter(s.buffer for s in stores)
    return {s.buffer: s for s in stores if count[s.buffer] == 1 and s.predicate is None and _by_element(s, sizes)}


def _by_element(store: tir.BufferStore, sizes: Set[tir.Var]) -> bool:
    """Whether a store computes each element from its position, sizes and other buffers."""
    places = set(store.indices)
    if len(places) < len(store.indices) or any(type(i) is not tir.Var for i in places):
        return False
    return free_vars(store.value) <= places | sizes and all(e.buffer is not store.buffer for e in walk(store.value) if type(e) is tir.BufferLoad)
