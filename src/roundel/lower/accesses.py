# SPDX-License-Identifier: Apache-2.0
"""The accesses of a buffer in flat statements: their loops and conditions, the box they touch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roundel.arith import Analyzer
from roundel.ir import Node, Var, Visitor, free_vars, on, tir
from roundel.ir.dataclass import dataclass
from roundel.ir.visit import children

from .tile_operands import TileOperand, tile_operands
from .vector_expr import conjuncts


@dataclass(frozen=True)
class Access:
    """A load or store. ``loops`` and ``conditions`` (parts of conjunctions) are those between the searched statement and the access."""

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

    def visit(self, node: Node) -> None:
        """Expressions that do not mention the memory are not visited."""
        if not isinstance(node, tir.Expr) or self.wanted.data in mentioned(node):
            super().visit(node)

    def generic(self, node: Node) -> None:
        for child in children(node):
            self.visit(child)

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
        self.conditions = (*outside, *conjuncts(stmt.condition))
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
        tiles = tile_operands(call)
        if tiles is not None:
            self.tiles(tiles)
            return
        if call.op in ("address_of", "access_ptr") and any(
            type(a) is tir.BufferLoad and a.buffer.data is self.wanted.data for a in call.args
        ):
            self.escapes = True
        self.generic(call)

    def tiles(self, operands: Sequence[TileOperand]) -> None:
        """Instructions on tiles read all of their operands before they write."""
        for t in operands:
            self.escapes |= t.first.buffer.data is self.wanted.data and t.first.buffer is not self.wanted
            for i in t.first.indices:
                self.visit(i)
        for is_store in (False, True):
            for t in operands:
                if t.first.buffer is self.wanted and (t.writes if is_store else t.reads):
                    self.found.append(Access(t.indices, is_store, self.loops + t.loops, self.conditions))

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


def mentioned(e: Node) -> frozenset[Var]:
    """Variables in an expression, and the pointers of the buffers that it reads (memoised)."""
    if type(e) is Var:
        return frozenset((e,))
    if not isinstance(e, tir.Expr):
        return frozenset().union(*map(mentioned, children(e)))
    if e._facts is None:
        e._facts = {}
    found = e._facts.get("mentioned")
    if found is None:
        found = frozenset().union(*map(mentioned, children(e)))
        if type(e) is tir.BufferLoad:
            found |= {e.buffer.data}
        e._facts["mentioned"] = found
    return found


class Uses:
    """Whether statements touch the memory of a buffer in any way; what each touches is found once."""

    def __init__(self) -> None:
        self.memo: dict[Node, frozenset[Var]] = {}

    def __call__(self, buffer: tir.Buffer, stmt: Node) -> bool:
        return buffer.data in self.of(stmt)

    def of(self, node: Node) -> frozenset[Var]:
        """Variables that a statement or expression mentions, and pointers of buffers that it reads, writes or declares."""
        if isinstance(node, tir.Expr):
            return mentioned(node)
        found = self.memo.get(node)
        if found is None:
            found = frozenset().union(*map(self.of, children(node)))
            if type(node) in (tir.BufferStore, tir.DeclBuffer):
                found |= {node.buffer.data}
            self.memo[node] = found
        return found


def interval(index: tir.Expr, loops: Sequence[tir.For], an: Analyzer) -> tuple[tir.Expr, tir.Expr] | None:
    """Bounds of an index (of all lanes of a vector) while ``loops`` (outermost first) run, free of their variables; None when there are none."""
    low: tir.Expr | None = an.simplify(index)
    high = low
    if type(low) is tir.Ramp and type(low.stride) is tir.IntImm and low.stride.value >= 0:
        index, low, high = low.base, low.base, low.base + low.stride.value * (low.lanes - 1)
    if not index.is_index:
        return None
    for loop in reversed(loops):
        if not any(e is not None and loop.loop_var in free_vars(e) for e in (low, high)):
            continue
        first, last = loop.min, loop.min + loop.extent - 1
        low = None if low is None else _extreme(low, loop.loop_var, first, last, False, an)
        high = None if high is None else _extreme(high, loop.loop_var, first, last, True, an)
    return None if low is None or high is None else (an.simplify(low), an.simplify(high))


def _extreme(e: tir.Expr, v: Var, first: tir.Expr, last: tir.Expr, up: bool, an: Analyzer) -> tir.Expr | None:
    """The largest (``up``) or smallest value of a sum while ``v`` runs from ``first`` to ``last``."""
    if v not in free_vars(e):
        return e
    form = an.sum(e)
    total: tir.Expr = tir.index_const(form.const)
    for atom, k in form.terms.items():
        if v in free_vars(atom):
            rule = _EXTREMES.get(type(atom))
            found = None if rule is None else rule(atom, v, first, last, up == (k > 0), an)
            if found is None:
                return None
            atom = found
        total = total + atom * k
    return total


def _of_product(e: tir.Mul, v: Var, first: tir.Expr, last: tir.Expr, up: bool, an: Analyzer) -> tir.Expr | None:
    changing, fixed = (e.a, e.b) if v in free_vars(e.a) else (e.b, e.a)
    if v in free_vars(fixed) or not an.prove(fixed >= 0):
        return None
    found = _extreme(changing, v, first, last, up, an)
    return None if found is None else found * fixed


def _of_quotient(e: tir.FloorDiv, v: Var, first: tir.Expr, last: tir.Expr, up: bool, an: Analyzer) -> tir.Expr | None:
    if v in free_vars(e.b) or not an.prove(e.b > 0):
        return None
    found = _extreme(e.a, v, first, last, up, an)
    return None if found is None else tir.floordiv(found, e.b)


def _of_remainder(e: tir.FloorMod, v: Var, first: tir.Expr, last: tir.Expr, up: bool, an: Analyzer) -> tir.Expr | None:
    if v in free_vars(e.b) or not an.prove(e.b > 0):
        return None
    return e.b - 1 if up else tir.index_const(0)


def _of_choice(
    e: tir.Min | tir.Max, v: Var, first: tir.Expr, last: tir.Expr, up: bool, an: Analyzer
) -> tir.Expr | None:
    a, b = _extreme(e.a, v, first, last, up, an), _extreme(e.b, v, first, last, up, an)
    return None if a is None or b is None else (tir.min_ if type(e) is tir.Min else tir.max_)(a, b)


_EXTREMES: dict[type, Callable] = {
    Var: lambda e, v, first, last, up, an: last if up else first,
    tir.Mul: _of_product,
    tir.FloorDiv: _of_quotient,
    tir.FloorMod: _of_remainder,
    tir.Min: _of_choice,
    tir.Max: _of_choice,
}


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
