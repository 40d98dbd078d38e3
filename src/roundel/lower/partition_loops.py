# SPDX-License-Identifier: Apache-2.0
"""Boundary conditions leave the main loop: a loop is split into a main loop in which its guards always hold, and a remainder.

    for io in range(13):                             for io in range(12):
        for ii in T.vectorized(8):                       for ii in T.vectorized(8):
            if io * 8 + ii < 100:            ->              C[io * 8 + ii] = ...
                C[io * 8 + ii] = ...                 for io in range(12, 13):
                                                         for ii in T.vectorized(8):
                                                             if io * 8 + ii < 100: ...

A parallel loop, or one with guards that are not linear in the loop variable, is not split. It gets one test per iteration, which chooses
between two versions of each guarded statement: one without the guards and one with them. Statements beside it that have no guards are not
duplicated, as long as it is memory and not registers by which they hand values on, or they follow a long loop: what stores a tile of sums asks by
itself, and the loop stands once. A budget of statements bounds the growth of the code.

Two annotations (``ir.annotations``) steer this. A loop with ``edge`` is itself split where its guards demand it, and the loops around it stay
whole. In the remainder of a loop nest over a ``window``, the loops inside are split again, and a loop of few iterations whose guards differ
between the rows of a register tile is unrolled, so that no guard is left in it. In other remainders the loops inside are split where the main loop is short:
a guard between the rows of a register tile costs more than all of the tile's arithmetic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import field, replace
from math import inf
from types import MappingProxyType

import numpy as np

from roundel.arith import Analyzer, numpy_function
from roundel.arith.compare import SLACK
from roundel.ir import Rewriter, Var, free_vars, on, tir
from roundel.ir.annotations import EDGE, WINDOW
from roundel.ir.dataclass import dataclass
from roundel.ir.dtype import VOID
from roundel.ir.errors import ArithError
from roundel.ir.visit import statements, substitute, walk

from .accesses import interval
from .copies import fresh_copy
from .kernel_pass import kernel_pass
from .loop_facts import inside
from .remembered import expressions, remembered
from .statements import StatementRewriter
from .trimmed_rows import trimmed
from .vector_expr import conjuncts

GROWTH = 6  # a function may grow to this multiple of its number of nodes
MOST_UNROLLED = 8  # iterations of a loop at a border that are unrolled
FEW = 16  # iterations of a main loop beside which a remainder with guards inside would be seen
SELDOM = 1 / 6  # of the iterations: guards that are asked there in a tile that is written out are not seen
MOST_PLACES = 4096  # iterations that are looked at one by one
MANY = 16  # iterations that are worth a test of their own inside of a loop
SMALL = 10000  # ... or to this number of nodes, whichever is more

_CHOICES = (tir.IfThenElse, tir.Select)
_SCOPES = (tir.Allocate, tir.DeclBuffer, tir.Let, tir.AttrStmt)


@dataclass
class _Cut:
    """How a loop can be split: the values that its guards have between ``low`` and ``high`` (exclusive), or where ``test`` holds."""

    value: dict[tir.Expr, bool] = field(default_factory=dict)
    low: list[tir.Expr] = field(default_factory=list)
    high: list[tir.Expr] = field(default_factory=list)
    test: dict[tir.Expr, list[tir.Expr]] = field(default_factory=dict)  # and which conditions hold under each
    exact: dict[tir.Expr, tir.Expr] = field(default_factory=dict)  # conditions that do not hold from this end on
    early: dict[tir.Expr, tir.Expr] = field(default_factory=dict)  # conditions that do not hold before this beginning
    over: dict[tir.Expr, tir.Expr] = field(default_factory=dict)  # conditions of statements that never hold from this iteration on

    def guards(self, stmt: tir.Stmt) -> bool:
        """Whether a statement has one of the guards."""
        return any(c in self.value for c in _conditions(stmt))

    def without(self, conditions: Set[tir.Expr]) -> _Cut:
        """The same without some of the conditions on which it has a test."""
        test = {t: [c for c in held if c not in conditions] for t, held in self.test.items()}
        asked = {c for held in self.test.values() for c in held if c in conditions}
        return replace(self, test={t: held for t, held in test.items() if held}, value={c: v for c, v in self.value.items() if c not in asked})

    def of(self, stmt: tir.Stmt) -> _Cut:
        """The same, with only those tests on which a guard of the statement depends."""
        here = set(_conditions(stmt))
        return replace(self, test={t: held for t, held in self.test.items() if not here.isdisjoint(held)})


class _Partition(StatementRewriter):
    def __init__(self, size: int) -> None:
        self.analyzer = Analyzer()
        self.budget = max(size * (GROWTH - 1), SMALL - size)

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        """The places of the split are worked out outside of the loop, where it is not known that the loop runs at all."""
        if loop.kind in (tir.ForKind.VECTORIZED, tir.ForKind.UNROLLED) or loop.step is not None:
            return self.whole(loop)
        inner = {n.loop_var: n for n in statements(loop.body) if type(n) is tir.For}
        cut = self.find(loop, inner)
        if loop.kind is not tir.ForKind.SERIAL:
            cut = cut.without(_at_ends(loop.body))
        linear = loop.kind is tir.ForKind.SERIAL and not cut.test
        if not cut.value or (not linear and not inner):
            return self.whole(loop)
        if not linear:
            with inside(self.analyzer, loop):
                return loop.replace(body=self.chosen(loop, loop.body, cut))
        return self.split(loop, cut) if self.affords(loop.body, 2) else self.whole(loop)

    @on(tir.Seq)
    def _seq(self, seq: tir.Seq) -> tir.Stmt:
        """What follows a long loop has a test of its own."""
        ends = {id(s) for s in _ends(seq)}
        return tir.seq(*(self.tested(s) if id(s) in ends else self.rewrite(s) for s in seq.stmts))

    def tested(self, stmt: tir.Stmt) -> tir.Stmt:
        """A statement of unrolled loops without its guards where they all hold, and with them elsewhere."""
        inner = {n.loop_var: n for n in statements(stmt) if type(n) is tir.For}
        value, tests = {}, []
        for c in dict.fromkeys(_conditions(stmt)):
            box = interval(SLACK[type(c)](c), _closure(free_vars(c), inner), self.analyzer) if type(c) in SLACK and c.is_index else None
            if box is not None and free_vars(box[0]).isdisjoint(inner):
                tests.append(self.analyzer.simplify(box[0] >= 0))
                value[c] = True
        test = tir.logical_and(*dict.fromkeys(tests))
        if type(test) is tir.IntImm and test.value:
            return self.rewrite(_Decide(value).rewrite(stmt))
        if not value or type(test) is tir.IntImm or not self.affords(stmt, 1):
            return self.rewrite(stmt)
        return tir.If(test, self.under(stmt, value), self.rewrite(stmt))

    def affords(self, stmt: tir.Stmt, copies: int) -> bool:
        """Whether the budget allows more copies of a statement; if so, they are deducted from it."""
        size = _size(stmt)
        if size * 2 > self.budget:
            return False
        self.budget -= size * copies
        return True

    def whole(self, loop: tir.For) -> tir.Stmt:
        """The loop unsplit, with the loops inside of it split."""
        with inside(self.analyzer, loop):
            return self.generic(loop)

    def find(self, loop: tir.For, inner: dict[Var, tir.For]) -> _Cut:
        cut = _Cut()
        local = {n.var for n in statements(loop.body) if type(n) is tir.Let}
        edges = {v for v, n in inner.items() if EDGE in n.annotations}
        for c in _conditions(loop.body):
            names = free_vars(c)
            if c in cut.value or loop.loop_var not in names or not c.is_index or not names.isdisjoint(local | edges):
                continue
            if type(c) in (tir.EQ, tir.NE):
                self.ends(loop, c, cut)
            elif type(c) in SLACK:
                self.bound(loop, inner, c, cut)
        return cut

    def ends(self, loop: tir.For, c: tir.Compare, cut: _Cut) -> None:
        """``i == first`` or ``i == last`` is false in between."""
        if loop.kind is not tir.ForKind.SERIAL or c.a is not loop.loop_var or loop.loop_var in free_vars(c.b):
            return
        last = self.analyzer.simplify(loop.min + loop.extent - 1)
        at = self.analyzer.simplify(c.b)
        if at is self.analyzer.simplify(loop.min):
            cut.low.append(loop.min + 1)
        elif at is last:
            cut.high.append(last)
        else:
            return
        cut.value[c] = type(c) is tir.NE

    def bound(self, loop: tir.For, inner: dict[Var, tir.For], c: tir.Compare, cut: _Cut) -> None:
        """An inequality holds for all inner iterations where the least difference of its sides is not negative."""
        an, v = self.analyzer, loop.loop_var
        box = interval(SLACK[type(c)](c), _closure(free_vars(c), inner), an)
        if box is None or not free_vars(box[0]).isdisjoint(inner):
            return
        least = box[0]
        if v not in free_vars(least):
            return
        step = an.simplify(substitute(least, {v: v + 1}) - least)
        linear = type(step) is tir.IntImm and loop.kind is tir.ForKind.SERIAL
        if not linear:
            cut.test.setdefault(an.simplify(least >= 0), []).append(c)
            cut.value[c] = True
            return
        at_zero = an.simplify(substitute(least, {v: tir.const(0, v.dtype)}))
        if step.value > 0:
            limit = an.simplify(tir.const(0, v.dtype) - tir.floordiv(at_zero, step.value))
            if an.prove(limit >= loop.min + loop.extent) or an.prove(limit <= loop.min):
                return
            cut.low.append(limit)
            if inner.keys().isdisjoint(free_vars(c)):
                cut.early[c] = limit
        else:
            limit = an.simplify(tir.floordiv(at_zero, -step.value) + 1)
            if an.prove(limit <= loop.min) or an.prove(limit >= loop.min + loop.extent):
                return
            cut.high.append(limit)
            if inner.keys().isdisjoint(free_vars(c)):
                cut.exact[c] = limit
            self.ceases(loop, box[1], step.value, inner, c, cut)
        cut.value[c] = True

    def ceases(self, loop: tir.For, most: tir.Expr, step: int, inner: dict[Var, tir.For], c: tir.Compare, cut: _Cut) -> None:
        """An inequality holds for no inner iteration any more from where the greatest difference of its sides, which falls by ``step``, is negative."""
        an, v = self.analyzer, loop.loop_var
        if free_vars(most).isdisjoint(inner) and an.prove_equal(substitute(most, {v: v + 1}) - most, step):
            limit = an.simplify(tir.floordiv(substitute(most, {v: tir.const(0, v.dtype)}), -step) + 1)
            if not an.prove(limit >= loop.min + loop.extent):
                cut.over[c] = limit

    def split(self, loop: tir.For, cut: _Cut) -> tir.Stmt:
        an, end = self.analyzer, self.analyzer.simplify(loop.min + loop.extent)
        start = loop.min
        for low in cut.low:
            start = tir.max_(start, low)
        start = an.simplify(tir.min_(start, end))
        stop = end
        for high in cut.high:
            stop = tir.min_(stop, high)
        stop = an.simplify(tir.max_(stop, start))
        clean = _Decide(cut.value).rewrite(loop.body)
        beyond = {c: False for c, limit in cut.exact.items()} if len(set(cut.high)) == 1 else {}
        if cut.over and not beyond and not _does_anything(_Decide(dict.fromkeys(cut.over, False)).rewrite(loop.body)):
            last = stop
            for limit in cut.over.values():
                last = tir.max_(last, limit)
            end = an.simplify(tir.min_(end, last))
        before = {c: False for c in cut.early} if len(set(cut.low)) == 1 else {}
        extent = an.simplify(stop - start)
        few = type(extent) is tir.IntImm and extent.value <= FEW
        parts = [
            self.piece(loop, loop.min, start, _Decide(before).rewrite(loop.body) if before else loop.body, few),
            self.whole(loop.replace(min=start, extent=extent, body=clean)),
            self.piece(loop, stop, end, _Decide(beyond).rewrite(loop.body) if beyond else loop.body, few),
        ]
        return tir.seq(
            *[p for p in parts if not (type(p) is tir.For and type(p.extent) is tir.IntImm and p.extent.value <= 0)]
        )

    def piece(self, loop: tir.For, start: tir.Expr, stop: tir.Expr, body: tir.Stmt, again: bool) -> tir.Stmt:
        """What is split off at one end; ``again``: it is so much of the loop that the loops inside are split too."""
        if not _does_anything(body):
            return tir.Seq(())
        made = trimmed(fresh_copy(loop.replace(min=start, extent=self.analyzer.simplify(stop - start), body=body, token=None)))
        if any(WINDOW in n.annotations for n in statements(made) if type(n) is tir.For):
            return self.whole(_unrolled(made))
        return self.whole(made) if again else made

    def chosen(self, loop: tir.For, stmt: tir.Stmt, cut: _Cut) -> tir.Stmt:
        """A statement of a loop's body, with one test around the parts that are guarded."""
        if not cut.guards(stmt):
            return self.rewrite(stmt)
        if type(stmt) in _SCOPES and not _in_registers(stmt):
            return stmt.replace(body=self.chosen(loop, stmt.body, cut))
        if type(stmt) is tir.Seq and not all(map(cut.guards, stmt.stmts)):
            return tir.seq(*(self.chosen(loop, s, cut) for s in stmt.stmts))
        if type(stmt) is tir.For and _worth_entering(stmt, cut):
            with inside(self.analyzer, stmt):
                return stmt.replace(body=self.chosen(loop, stmt.body, cut))
        return self.choose(loop, stmt, cut.of(stmt)) if self.affords(stmt, 1) else self.rewrite(stmt)

    def choose(self, loop: tir.For, stmt: tir.Stmt, cut: _Cut) -> tir.Stmt:
        """The statement in two versions under one test; in four where two independent tests (borders along two axes) make it, and in
        three or four where some test fails often, such as that of columns of which there are two tiles and a half."""
        v = loop.loop_var
        ends = [*(v >= low for low in cut.low), *(v < high for high in cut.high)]
        if len(cut.test) == 2 and not ends and any(map(_of_one_axis, cut.test)) and self.affords(stmt, 2):
            return self.borders(loop, stmt, cut)
        holding = _holding(loop, [*cut.test, *ends])
        often = min(range(len(cut.test)), key=lambda k: holding[k].mean()) if len(holding) > 1 and cut.test else -1
        if often >= 0 and _fails(holding[often]) and self.affords(stmt, 1):
            test, held = list(cut.test.items())[often]
            seldom = np.logical_and.reduce([x for k, x in enumerate(holding) if k != often])
            rest = tir.logical_and(*(t for t in cut.test if t is not test), *ends)  # of which one may be the same test
            others = self.either(stmt, test, held) if _fails(seldom) and self.affords(stmt, 1) else self.under(stmt)
            return tir.If(rest, self.either(stmt, test, held, [c for c, holds in cut.value.items() if holds and c not in held]), others)
        return tir.If(tir.logical_and(*cut.test, *ends), self.under(stmt, cut.value), self.elsewhere(stmt, holding))

    def borders(self, loop: tir.For, stmt: tir.Stmt, cut: _Cut) -> tir.Stmt:
        """The statement in a version for each way in which two tests may come out."""
        (first, mine), (second, others) = sorted(cut.test.items(), key=lambda t: _size(t[0]))  # the simpler one bounds the variable
        holding = _holding(loop, [first, second])
        main, beyond = self.under(stmt, dict.fromkeys((*mine, *others), True)), self.elsewhere(stmt, holding, mine)
        before = self.elsewhere(stmt, holding, others)
        if not holding or not np.logical_or(*holding).all():  # both may fail
            before = tir.If(second, before, self.elsewhere(stmt, holding))
        return tir.If(first, tir.If(second, main, beyond), before)

    def elsewhere(self, stmt: tir.Stmt, holding: Sequence[np.ndarray], known: Sequence[tir.Expr] = ()) -> tir.Stmt:
        """A version for where some of the tests fail, though the guards ``known`` hold. Where that is seldom, what is written out keeps its other guards."""
        seldom = len(holding) > 0 and float(np.logical_and.reduce(holding).mean()) >= 1 - SELDOM
        value = dict.fromkeys(known, True)
        return _copied(stmt, value) if seldom and _is_written_out(stmt) else self.under(stmt, value)

    def either(self, body: tir.Stmt, test: tir.Expr, held: list[tir.Expr], known: Sequence[tir.Expr] = ()) -> tir.Stmt:
        """Two versions of the body where the guards ``known`` hold: one in which those that hold under ``test`` are decided too, and one for the rest."""
        return tir.If(test, self.under(body, dict.fromkeys((*known, *held), True)), self.under(body, dict.fromkeys(known, True)))

    def under(self, body: tir.Stmt, value: Mapping[tir.Expr, bool] = MappingProxyType({})) -> tir.Stmt:
        """A copy of the body with some guards decided and the loops inside split."""
        return self.rewrite(_copied(body, value))


def _copied(body: tir.Stmt, value: Mapping[tir.Expr, bool]) -> tir.Stmt:
    """A copy of the body with some guards decided."""
    return fresh_copy(_Decide(value).rewrite(body))


def _is_written_out(stmt: tir.Stmt) -> bool:
    """Whether the body of every serial loop is a tile that is written out: of the guards in it, few are not known to hold, and those are asked once."""
    inner = ({n.kind for n in statements(s.body) if type(n) is tir.For} for s in statements(stmt) if type(s) is tir.For and s.kind is tir.ForKind.SERIAL)
    return all(tir.ForKind.SERIAL not in kinds and tir.ForKind.UNROLLED in kinds for kinds in inner)


def _in_registers(scope: tir.Stmt) -> bool:
    """Whether a scope allocates registers; a test between the statements that use them would force them into memory."""
    return type(scope) in (tir.Allocate, tir.DeclBuffer) and scope.buffer.scope == "local"


def _ends(seq: tir.Seq) -> list[tir.Stmt]:
    """The statements of unrolled loops behind the last long loop: what becomes of a tile when its sums are done."""
    long = [k for k, s in enumerate(seq.stmts) if _iterations(s) >= MANY]
    rest = seq.stmts[long[-1] + 1 :] if long else ()
    straight = all(n.kind is not tir.ForKind.SERIAL for s in rest for n in statements(s) if type(n) is tir.For)
    return [s for s in rest if type(s) is tir.For] if straight else []


def _at_ends(stmt: tir.Stmt) -> set[tir.Expr]:
    """The conditions that only such statements have."""
    ends = Counter(c for seq in statements(stmt) if type(seq) is tir.Seq for s in _ends(seq) for c in _conditions(s))
    everywhere = Counter(_conditions(stmt)) if ends else ends
    return {c for c, n in ends.items() if everywhere[c] == n}


def _worth_entering(loop: tir.For, cut: _Cut) -> bool:
    """Whether a test in each iteration of this loop costs little and saves copies of unguarded loops in its body."""
    body = loop.body
    while type(body) in _SCOPES and not _in_registers(body):
        body = body.body
    if loop.kind is not tir.ForKind.SERIAL or type(body) is not tir.Seq or any(loop.loop_var in free_vars(c) for c in _conditions(body)):
        return False
    guarded = list(map(cut.guards, body.stmts))
    return not all(guarded) and all(type(s) is tir.For and (not a or _iterations(s) >= MANY) for s, a in zip(body.stmts, guarded, strict=True))


def _iterations(stmt: tir.Stmt) -> float:
    """The product of the trip counts of perfectly nested serial loops."""
    if type(stmt) is not tir.For or stmt.kind is not tir.ForKind.SERIAL:
        return 1
    return (stmt.extent.value if type(stmt.extent) is tir.IntImm else inf) * _iterations(stmt.body)


def _of_one_axis(test: tir.Expr) -> bool:
    """Whether a test is about one of several axes that were fused into a loop; tests about the loop variable itself seldom fail together."""
    return any(type(n) in (tir.FloorMod, tir.FloorDiv) for n in walk(test))


def _holding(loop: tir.For, tests: Sequence[tir.Expr]) -> list[np.ndarray]:
    """In which iterations of a loop each test holds; nothing where that depends on more than the loop."""
    if not tests or type(loop.extent) is not tir.IntImm or type(loop.min) is not tir.IntImm:
        return []
    places = loop.min.value + np.arange(min(loop.extent.value, MOST_PLACES))
    try:
        return [np.broadcast_to(holds, places.shape) for holds in numpy_function(tests, [loop.loop_var])(places)]
    except ArithError:
        return []


def _fails(holds: np.ndarray) -> bool:
    """Whether a test fails so often that a version of the code for it is worth having."""
    return float(holds.mean()) * FEW <= FEW - 1


def _unrolled(loop: tir.For) -> tir.For:
    """The loop, unrolled if it has few iterations whose guards differ between unrolled rows. ``keep_order`` stands between the iterations, so that
    values which two of them read are loaded twice: kept in registers, they would leave none for the rows."""
    if type(loop.extent) is not tir.IntImm or not 1 < loop.extent.value <= MOST_UNROLLED:
        return loop
    rows = {n.loop_var for n in statements(loop.body) if type(n) is tir.For and n.kind is tir.ForKind.UNROLLED}
    differ = any(loop.loop_var in (names := free_vars(c)) and not rows.isdisjoint(names) for c in _conditions(loop.body))
    if not differ:
        return loop
    return loop.replace(kind=tir.ForKind.UNROLLED, body=tir.seq(loop.body, tir.Evaluate(tir.Call("keep_order", (), VOID))))


def _does_anything(stmt: tir.Stmt) -> bool:
    """Whether a statement has an effect other than writing memory that it allocates itself and prefetching."""
    own = {n.buffer for n in statements(stmt) if type(n) is tir.Allocate}
    calls = (n.value for n in statements(stmt) if type(n) is tir.Evaluate)
    stores = any(type(n) is tir.BufferStore and n.buffer not in own for n in statements(stmt))
    return stores or not all(type(c) is tir.Call and c.op in ("prefetch", "touch", "keep_order") for c in calls)


def _closure(names: frozenset[Var], inner: dict[Var, tir.For]) -> list[tir.For]:
    """The inner loops over these variables and the loops on which their bounds depend, outermost first."""
    found: set[Var] = set()
    todo = [v for v in names if v in inner]
    while todo:
        v = todo.pop()
        if v not in found:
            found.add(v)
            todo.extend(w for w in free_vars(inner[v].min) | free_vars(inner[v].extent) if w in inner)
    return [loop for v, loop in inner.items() if v in found]


def _conditions(stmt: tir.Stmt) -> list[tir.Expr]:
    """The parts of the conditions of statements and expressions, in the order of the program."""
    found: list[tir.Expr] = []
    for s in statements(stmt):
        if type(s) is tir.If:
            found += conjuncts(s.condition)
        for e in s._below():
            if isinstance(e, tir.Expr):
                found += _conditions_in(e)
    return found


@remembered
def _conditions_in(e: tir.Expr) -> tuple[tir.Expr, ...]:
    own = tuple(conjuncts(e.condition)) if type(e) in _CHOICES else ()
    return own + tuple(c for below in e._below() for c in _conditions_in(below))


def _size(node: tir.Stmt | tir.Expr) -> int:
    """How many nodes there are."""
    if isinstance(node, tir.Expr):
        return _nodes(node)
    return sum(1 for _ in statements(node)) + sum(map(_nodes, expressions(node)))


@remembered
def _nodes(e: tir.Expr) -> int:
    return 1 + sum(map(_nodes, e._below()))


class _Decide(Rewriter):
    """Replaces conditions by their known values."""

    def __init__(self, value: Mapping[tir.Expr, bool]) -> None:
        self.value = value

    def rewrite(self, node: object) -> object:
        if type(node) in _COMPARES and node in self.value:
            return tir.const(self.value[node])
        return super().rewrite(node)

    @on(tir.And)
    def _and(self, e: tir.And) -> tir.Expr:
        return tir.logical_and(self.rewrite(e.a), self.rewrite(e.b))

    @on(tir.If)
    def _if(self, stmt: tir.If) -> tir.Stmt:
        stmt = self.generic(stmt)
        if type(stmt.condition) is not tir.IntImm:
            return stmt
        taken = stmt.then_case if stmt.condition.value else stmt.else_case
        return tir.Seq(()) if taken is None else taken

    @on(tir.Select, tir.IfThenElse)
    def _choice(self, e: tir.Select | tir.IfThenElse) -> tir.Expr:
        e = self.generic(e)
        if type(e.condition) is not tir.IntImm:
            return e
        return e.true_value if e.condition.value else e.false_value


_COMPARES = frozenset((*SLACK, tir.EQ, tir.NE))


@kernel_pass("partition_loops")
def partition_loops(func: tir.PrimFunc) -> tir.PrimFunc:
    """Splits loops into main loops without boundary guards and remainders with them."""
    return func.replace(body=_Partition(_size(func.body)).rewrite(func.body))
