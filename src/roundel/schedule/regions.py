# SPDX-License-Identifier: Apache-2.0
"""Regions of buffers: what blocks touch, as boxes over the iterations of loops around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from roundel.arith import Analyzer
from roundel.arith.linear import factors
from roundel.ir import Buffer, Var, Visitor, free_vars, on, substitute, tir
from roundel.ir.tir import Block, BlockRealize, BufferRegion, Expr, For, IntImm, Range, Stmt

from .tree import Tree, bind_loop

Ends = tuple[Expr, Expr]  # first and last value
Box = tuple[Ends, ...]


class Unbounded(Exception):
    """An index has no box over the iterations asked for."""


# --- intervals of expressions


def ends(an: Analyzer, e: Expr, over: frozenset[Var]) -> Ends:
    """First and last value of an index while the variables ``over`` (bound in ``an``) run; raises Unbounded."""
    s = an.sum(e)
    low: Expr = tir.const(s.const, e.dtype)
    high = low
    for atom, k in s.terms.items():
        l, h = _atom_ends(an, atom, over)
        if k < 0:
            l, h = h, l
        low, high = low + l * k, high + h * k
    return an.simplify(low), an.simplify(high)


def _atom_ends(an: Analyzer, atom: Expr, over: frozenset[Var]) -> Ends:
    if not free_vars(atom) & over:
        return atom, atom
    rule = _RULES.get(type(atom))
    found = rule(an, atom, over) if rule is not None else None
    if found is None:
        l, h = an.bounds(atom)
        if not (isinstance(l, int) and isinstance(h, int)):
            raise Unbounded(f"{atom!r} has no bounds")
        return tir.const(l, atom.dtype), tir.const(h, atom.dtype)
    return found


def _var(an: Analyzer, v: Var, over: frozenset[Var]) -> Ends | None:
    dom = getattr(an, "ranges", {}).get(v)
    return None if dom is None else (dom.min, dom.min + dom.extent - 1)


def _floordiv(an: Analyzer, e: Expr, over: frozenset[Var]) -> Ends | None:
    if free_vars(e.b) & over or not an.prove(e.b > 0):
        return None
    l, h = ends(an, e.a, over)
    return l // e.b, h // e.b


def _floormod(an: Analyzer, e: Expr, over: frozenset[Var]) -> Ends | None:
    if free_vars(e.b) & over or not an.prove(e.b > 0):
        return None
    l, h = ends(an, e.a, over)
    if an.prove_equal(l // e.b, h // e.b):
        return l % e.b, h % e.b
    return tir.const(0, e.dtype), e.b - 1


def _extremum(fn: Callable) -> Callable:
    def rule(an: Analyzer, e: Expr, over: frozenset[Var]) -> Ends:
        (l, h), (m, n) = ends(an, e.a, over), ends(an, e.b, over)
        return fn(l, m), fn(h, n)

    return rule


def _product(an: Analyzer, e: Expr, over: frozenset[Var]) -> Ends | None:
    parts = factors(e)
    moving = [p for p in parts if free_vars(p) & over]
    rest = tir.product_of([p for p in parts if not free_vars(p) & over])
    if len(moving) != 1 or not an.prove(rest >= 0):
        return None
    l, h = ends(an, moving[0], over)
    return l * rest, h * rest


def _choice(an: Analyzer, e: Expr, over: frozenset[Var]) -> Ends:
    (l, h), (m, n) = ends(an, e.true_value, over), ends(an, e.false_value, over)
    return tir.min_(l, m), tir.max_(h, n)


_RULES: dict[type, Callable[..., Any]] = {
    Var: _var, tir.FloorDiv: _floordiv, tir.FloorMod: _floormod, tir.Min: _extremum(tir.min_), tir.Max: _extremum(tir.max_),
    tir.Mul: _product, tir.Select: _choice, tir.IfThenElse: _choice,
}  # fmt: skip


class Ranged(Analyzer):
    """An analyzer that remembers the ranges it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.ranges: dict[Var, Range] = {}

    def bind(self, var: Var, value: Any) -> None:
        """As Analyzer.bind."""
        if isinstance(value, Range):
            self.ranges[var] = value
        super().bind(var, value)


def ranged(tree: Tree, stmt: Stmt) -> Ranged:
    """What is known inside a statement, its own loop included."""
    an = Ranged()
    for s in (*reversed(list(tree.ancestors(stmt))), stmt):
        if type(s) is For:
            bind_loop(an, s)
        elif type(s) is Block:
            for iv in s.iter_vars:
                an.bind(iv.var, iv.dom)
    return an


# --- boxes


def relax(an: Analyzer, region: Iterable[Range], over: frozenset[Var]) -> Box:
    """The box of a region while ``over`` runs; raises Unbounded."""
    out = []
    for r in region:
        l, _ = ends(an, r.min, over)
        _, h = ends(an, r.min + (r.extent - 1), over)
        out.append((l, h))
    return tuple(out)


def hull(an: Analyzer, a: Box, b: Box) -> Box:
    """The smallest box around both."""
    return tuple((_least(an, l, m), _greatest(an, h, n)) for (l, h), (m, n) in zip(a, b))


def _least(an: Analyzer, a: Expr, b: Expr) -> Expr:
    return a if an.prove(a <= b) else b if an.prove(b <= a) else tir.min_(a, b)


def _greatest(an: Analyzer, a: Expr, b: Expr) -> Expr:
    return b if an.prove(a <= b) else a if an.prove(b <= a) else tir.max_(a, b)


def covers(an: Analyzer, outer: Box, inner: Box) -> bool:
    """Whether ``outer`` could be shown to hold ``inner``."""
    return all(an.prove(l <= m) and an.prove(n <= h) for (l, h), (m, n) in zip(outer, inner))


def disjoint(an: Analyzer, a: Box, b: Box) -> bool:
    """Whether the boxes could be shown not to meet."""
    return any(an.prove(h < m) or an.prove(n < l) for (l, h), (m, n) in zip(a, b))


def clip(an: Analyzer, box: Box, buffer: Buffer) -> Box:
    """The part of a box that lies in the buffer."""
    zero = tir.index_const(0)
    return tuple((_greatest(an, l, zero), _least(an, h, n - 1)) for (l, h), n in zip(box, buffer.shape))


def to_ranges(an: Analyzer, box: Box) -> tuple[Range, ...]:
    """As Ranges, in canonical form."""
    return tuple(Range(an.simplify(l), an.simplify(h - l + 1)) for l, h in box)


def inner_vars(tree: Tree, realize: BlockRealize, top: Stmt | None) -> list[For]:
    """The loops strictly inside ``top`` (None: inside the scope) around a realize, outermost first."""
    loops = tree.loops(realize)
    if top is None:
        return loops
    return [x for x in loops if x is not top and tree.under(x, top)]


def bind_values(realize: BlockRealize) -> dict[Var, Expr]:
    """Block variables to their values."""
    return {iv.var: v for iv, v in zip(realize.block.iter_vars, realize.iter_values)}


def touched(tree: Tree, realize: BlockRealize, region: BufferRegion, top: Stmt | None) -> Box:
    """The box of a block's region during one iteration of the loop ``top`` (None: of the whole scope); raises Unbounded."""
    an = ranged(tree, realize)
    over = frozenset(x.loop_var for x in inner_vars(tree, realize, top))
    values = bind_values(realize)
    return relax(an, (substitute(r, values) for r in region.region), over)


def full_box(buffer: Buffer) -> Box:
    """All of a buffer."""
    return tuple((tir.index_const(0), n - 1) for n in buffer.shape)


def touched_or_full(tree: Tree, realize: BlockRealize, region: BufferRegion, top: Stmt | None) -> Box:
    """As ``touched``; the whole buffer where there is no box."""
    try:
        return touched(tree, realize, region, top)
    except Unbounded:
        return full_box(region.buffer)


# --- what a block's body touches


class _Accesses(Visitor):
    """Collects the regions that statements load and store, relaxed over loops inside."""

    def __init__(self, an: Ranged) -> None:
        self.an = an
        self.over: set[Var] = set()
        self.reads: dict[Buffer, Box] = {}
        self.writes: dict[Buffer, Box] = {}
        self.private: set[Buffer] = set()
        self.views: dict[Buffer, BufferRegion] = {}

    def add(self, side: dict[Buffer, Box], buffer: Buffer, region: Iterable[Range]) -> None:
        if buffer in self.views:
            source = self.views[buffer]
            buffer, region = source.buffer, source.region
        if buffer in self.private:
            return
        try:
            box = relax(self.an, region, frozenset(self.over))
        except Unbounded:
            box = full_box(buffer)
        side[buffer] = hull(self.an, side[buffer], box) if buffer in side else box

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> None:
        self.add(self.reads, load.buffer, map(index_range, load.indices))
        for i in load.indices:
            self.visit(i)

    @on(tir.BufferStore)
    def _store(self, store: tir.BufferStore) -> None:
        self.add(self.writes, store.buffer, map(index_range, store.indices))
        self.visit(store.value)
        for i in store.indices:
            self.visit(i)

    @on(For)
    def _for(self, loop: For) -> None:
        bind_loop(self.an, loop)
        self.over.add(loop.loop_var)
        self.visit(loop.body)
        self.over.discard(loop.loop_var)

    @on(tir.Let)
    def _let(self, let: tir.Let) -> None:
        self.visit(let.value)
        self.over.add(let.var)
        self.visit(let.body)

    @on(BlockRealize)
    def _realize(self, realize: BlockRealize) -> None:
        values = bind_values(realize)
        for side, regions in ((self.reads, realize.block.reads), (self.writes, realize.block.writes)):
            for r in regions:
                self.add(side, r.buffer, [substitute(x, values) for x in r.region])


def index_range(index: Expr) -> Range:
    """The range that an index names: one element, or a vector's."""
    if type(index) is tir.Ramp:
        return Range(index.base, (index.stride * (index.lanes - 1)) + 1)
    return Range(index, tir.const(1, index.dtype))


def with_access(block: Block, facts: Mapping[Var, Range] | None = None) -> Block:
    """The block with ``reads`` and ``writes`` as its body has them (a reduction's own accumulation is not a read)."""
    an = Ranged()
    for v, dom in {**(facts or {}), **{iv.var: iv.dom for iv in block.iter_vars}}.items():
        an.bind(v, dom)
    an.facts.values.clear()  # variables of extent 1 stay in regions
    found = _Accesses(an)
    found.private = set(block.alloc_buffers)
    found.views = {m.buffer: m.source for m in block.match_buffers}
    if block.init is not None:
        found.visit(block.init)
    own = set(found.writes)
    found.visit(block.body)
    reads = {b: box for b, box in found.reads.items() if block.init is None or b not in own}
    of = lambda side: tuple(BufferRegion(b, to_ranges(an, box)) for b, box in side.items())
    return block.replace(reads=of(reads), writes=of(found.writes))


def constant(e: Expr) -> int | None:
    """The value of a constant expression."""
    return e.value if type(e) is IntImm else None
