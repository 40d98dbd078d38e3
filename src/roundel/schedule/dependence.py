# SPDX-License-Identifier: Apache-2.0
"""Dependences between iterations of loops: the one analysis that says whether their order may change.

Two iterations depend on each other when both touch one element of a buffer and one of them stores it. Every primitive that runs iterations
together or in another order (parallel, vectorize, bind, reorder, merge) asks here. Three things do not count:

* a buffer that serves each iteration alone: everything that an iteration reads of it was stored in that iteration, and nobody reads it outside
  of the loops (lowering gives each iteration its own);
* a value that is computed again: the stores of different iterations store the same;
* updates that may come in any order (``B[i] += ...``): they count where iterations run at the same time, not where they only change places.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

from roundel.arith import Analyzer, disjoint, estimate_region
from roundel.ir import Buffer, Var, free_vars, substitute, tir
from roundel.ir.dataclass import dataclass
from roundel.ir.tir import Block, BlockRealize, BufferRegion, Expr, For, IterKind, Range, Stmt
from roundel.ir.visit import Substitution

from .accesses import INIT, Access, accesses_of, loads_of, told_by, variables_of
from .distance import Meeting, meet
from .handed_on import covered
from .regions import bindings
from .tree import Tree, child_stmts, is_one

_remembered = lru_cache(maxsize=4096)  # statements are never changed


def name_of(s: Stmt) -> str:
    """A statement of a scope, for messages."""
    return f"block {s.block.name}" if type(s) is BlockRealize else "a statement outside of blocks"


@dataclass(frozen=True, eq=False)
class Place:
    """An access by a statement (a block's realize, or one outside of blocks), in terms of the loops around the statement."""

    stmt: Stmt
    access: Access | _Placed
    loops: tuple[For, ...]

    @property
    def who(self) -> str:
        """The statement, for messages."""
        return name_of(self.stmt)


@dataclass(frozen=True, eq=False)
class Conflict:
    """Iterations that differ in some of ``loops`` may touch one element, the first or the second storing it."""

    first: Place
    second: Place
    loops: tuple[For, ...]

    @property
    def any_order(self) -> bool:
        """Whether they are updates of which any order is good: an init comes first, but among the iterations that only reduce."""
        a, b = self.first.access.update, self.second.access.update
        if self.first.stmt is not self.second.stmt or a is None or b is None:
            return False
        return _only_reduce(self.first.stmt, self.loops) if INIT in (a, b) else a == b

    @property
    def why(self) -> str:
        """The two statements in words."""
        did = "stores" if self.first.access.store else "reads"
        also = "stores" if self.second.access.store else "reads"
        loops = " or ".join(x.loop_var.name for x in self.loops)
        who = f"{self.first.who} {did}" if self.first.stmt is self.second.stmt and did == also else f"{self.first.who} {did} and {self.second.who} {also}"
        return f"{who} elements of {self.first.access.buffer.name} that are the same in different iterations of {loops}"


def _only_reduce(s: Stmt, loops: Sequence[For]) -> bool:
    """Whether none of the loops is part of a variable of a block that does not reduce."""
    variables = {x.loop_var for x in loops}
    kinds = [iv.kind for iv, v in zip(s.block.iter_vars, s.iter_values) if free_vars(v) & variables] if type(s) is BlockRealize else []
    return bool(kinds) and all(kind is IterKind.REDUCE for kind in kinds)


def places_under(tree: Tree, stmt: Stmt) -> list[Place]:
    """Every access at or under a statement of a scope, blocks with all that is in them."""
    out: list[Place] = []
    stack: list[tuple[Stmt, dict[Var, Any]]] = [(stmt, {})]
    while stack:
        s, lets = stack.pop()
        children = () if type(s) is BlockRealize else child_stmts(s)
        if children:
            inside = {**lets, s.var: substitute(s.value, lets)} if type(s) is tir.Let else lets
            stack.extend((c, inside) for c in reversed(children))
        found = _own_accesses(s, bool(children))
        if found:
            around, put = tuple(tree.loops(s)), Substitution(lets, {})
            out += [Place(s, _Placed(a, put) if lets else a, around) for a in found]
    return out


def _own_accesses(s: Stmt, has_children: bool) -> Sequence[Access | _Placed]:
    """What a statement touches itself: a block all that is in it, a loop or condition what its own expressions load."""
    if type(s) is BlockRealize:
        return _of_realize(s)
    return _loads_of(*_conditions(s)) if has_children else accesses_of(s)


@_remembered
def _of_realize(s: BlockRealize) -> tuple[Access | _Placed, ...]:
    put = Substitution(bindings(s), {})
    return (*(_Placed(a, put) for a in _of_block(s.block)), *_loads_of(*s.iter_values, s.predicate))


@_remembered
def _of_block(block: Block) -> tuple[Access, ...]:
    return accesses_of(block)


def _loads_of(*exprs: Any) -> Sequence[Access]:
    """What expressions load: nothing, where all of them are indices."""
    data = [e for e in exprs if not e.is_index]
    return loads_of(*data) if data else ()


def _conditions(s: Stmt) -> list[Any]:
    return [getattr(s, name) for name in ("condition", "min", "extent", "value") if isinstance(getattr(s, name, None), tir.Expr)]


class _Placed:
    """An access of a block in terms of what is around it, which is worked out when it is asked for: most are to buffers that nothing stores."""

    def __init__(self, access: Access | _Placed, put: Substitution) -> None:
        self.buffer, self.store, self.update = access.buffer, access.store, access.update
        self._access, self._put = access, put

    @cached_property
    def region(self) -> tuple[Range, ...]:
        return tuple(map(self._moved, self._access.region))

    @cached_property
    def inside(self) -> Mapping[Var, Range]:
        return {v: self._moved(r) for v, r in self._access.inside.items()}

    def _moved(self, r: Range) -> Range:
        return Range(self._put.rewrite(r.min), self._put.rewrite(r.extent))


def conflicts(tree: Tree, chain: Sequence[For], own: Sequence[str] | None = None) -> Iterator[Conflict]:
    """Pairs of accesses under nested loops that touch one element in different iterations of some of these loops; those that count.

    ``own`` are the scopes of the buffers of which each iteration can have its own (None: any).
    """
    moving = [x for x in chain if _is_many(tree, chain[0], x.extent)]
    if not moving:
        return
    places = places_under(tree, chain[-1].body)
    stored = dict.fromkeys(p.access.buffer for p in places if p.access.store)
    of = tree.memory(chain[0])
    changed = {of(b) for b in stored}
    for memory, buffer in {of(b): b for b in stored}.items():
        mine = [known(p, changed, of) for p in places if of(p.access.buffer) is memory]
        may_be_own = own is None or buffer.scope.split(".")[0] in own
        many = len(mine) > 4  # which of the two questions takes less time is asked first
        if many and may_be_own and _private(tree, chain, buffer, mine):
            continue
        found = [c for a, b in combinations_with_replacement(mine, 2) if (c := conflict(tree, moving, a, b)) is not None]
        if not found or (not many and may_be_own and _private(tree, chain, buffer, mine)):
            continue
        if any(p.access.buffer is not buffer for p in mine) or not _recomputed(tree, chain, found, places):
            yield from found


def known(p: Place, stored: Collection[Var], of: Callable[[Buffer], Var]) -> Place:
    """A place by what is known of it where memory is ``stored``: anywhere in the buffer, where that memory tells it. ``of``: see ``Tree.memory``."""
    return Place(p.stmt, _anywhere(p.access), p.loops) if told_by(p.access.region, of=of) & frozenset(stored) else p


def _anywhere(a: Access | _Placed) -> Access:
    return Access(a.buffer, tuple(map(Range.of, a.buffer.shape)), a.store, a.inside, a.update)


def _is_many(tree: Tree, top: For, extent: Expr) -> bool:
    return (extent.value if type(extent) is tir.IntImm else tree.analyzer(top).bounds(extent)[1]) > 1


def conflict(tree: Tree, loops: Sequence[For], a: Place, b: Place) -> Conflict | None:
    """How two accesses conflict in iterations that differ in some of these nested loops."""
    if not a.access.store and not b.access.store:
        return None
    if a.access.buffer is not b.access.buffer:
        return Conflict(a, b, tuple(loops))
    if all(_is_index_of_both(x.loop_var, a.access.region, b.access.region) for x in loops):
        return None
    met = meeting(tree, loops[0], a, b)
    differing = [x for x in loops if x.loop_var not in met.equal] if met.possible else []
    if differing and a.stmt is b.stmt and _is_one_instance(tree, a.stmt, a.access.buffer):
        same = same_instance(tree, a.stmt)  # type: ignore[arg-type]
        differing = [x for x in differing if x.loop_var not in same]
    return Conflict(a, b, tuple(differing)) if differing else None


def _is_one_instance(tree: Tree, stmt: Stmt, buffer: Buffer) -> bool:
    """Whether one instance of a block alone touches an element of a buffer, one of them storing it, as far as the domains of its variables go, to which
    the block's condition keeps them."""
    if type(stmt) is not BlockRealize or _loads_of(*stmt.iter_values, stmt.predicate) \
            or any(a.buffer.data is buffer.data for a, *_ in instance_conflicts(stmt.block)):
        return False
    an = tree.analyzer(stmt, inside=True)
    return all(an.prove(v >= iv.dom.min) and an.prove(v < iv.dom.min + iv.dom.extent) for iv, v in zip(stmt.block.iter_vars, stmt.iter_values, strict=True))


def _is_index_of_both(v: Var, first: Sequence[Range], second: Sequence[Range]) -> bool:
    """Whether a variable is an index of two regions, so that they meet in none but its equal values."""
    return any(x.min is v and y.min is v and is_one(x.extent) and is_one(y.extent) for x, y in zip(first, second))


def meeting(tree: Tree, top: For, a: Place, b: Place) -> Meeting:
    """How an instance of one access meets one of another; loops around ``top`` are at one iteration.

    In the root block, whose loops are all that is known there, two regions under the same loops meet alike after every step, so that is remembered."""
    inner = [_Instance(tuple(_run(x) for x in p.loops[p.loops.index(top) :]), _runs(p.access.inside), _pairs(p.access.region)) for p in (a, b)]
    if tree.scope(top) is tree.func.root_block and not tree.facts:
        return _meeting_of(tuple(_run(x) for x in tree.loops(top)), *inner)
    return _instances_meet(tree.analyzer(top), *inner)


Run = tuple[Var, Expr, Expr]


class _Instance(NamedTuple):
    """An access: the loops around it, those inside, and its region; each a minimum and an extent, of a loop with its variable before."""

    around: tuple[Run, ...]
    inside: tuple[Run, ...]
    region: tuple[tuple[Expr, Expr], ...]


def _run(x: For) -> Run:
    return x.loop_var, x.min, x.extent


def _runs(domain: Mapping[Var, Range]) -> tuple[Run, ...]:
    return tuple((v, r.min, r.extent) for v, r in domain.items())


def _pairs(region: Sequence[Range]) -> tuple[tuple[Expr, Expr], ...]:
    return tuple((r.min, r.extent) for r in region)


@_remembered
def _meeting_of(outside: tuple[Run, ...], a: _Instance, b: _Instance) -> Meeting:
    an = Analyzer()
    for v, low, extent in outside:
        an.bind(v, Range(low, extent))
    return _instances_meet(an, a, b)


def _instances_meet(an: Analyzer, a: _Instance, b: _Instance) -> Meeting:
    copies: dict[Var, Var] = {}
    for v, low, extent in (*a.around, *a.inside):
        an.bind(v, Range(low, extent))
    for v, low, extent in (*b.around, *b.inside):
        here, copies[v] = Range(substitute(low, copies), substitute(extent, copies)), Var(v.name, v.dtype)
        an.bind(copies[v], here)
    there = [Range(substitute(low, copies), substitute(extent, copies)) for low, extent in b.region]
    return meet(an, [Range(*r) for r in a.region], there, copies)


def stays_before(tree: Tree, loop: For, a: Place, b: Place, places: list[Place]) -> bool:
    """Whether no iteration of ``loop`` has ``b`` touch what ``a`` touches in a later one (or what it finds there is the same in all)."""
    of = tree.memory(loop)
    if of(a.access.buffer) is not of(b.access.buffer) or not (a.access.store or b.access.store):
        return True
    if a.access.buffer is not b.access.buffer:
        return False
    met = meeting(tree, loop, a, b)
    if not met.possible or met.distance.get(loop.loop_var, -1) >= 0:
        return True
    if _later_is_apart(tree, loop, a, b):
        return True
    if not a.access.store or b.access.store or type(b.stmt) is not BlockRealize or not _same_in_all(tree, a.stmt, [loop], places):
        return False
    return covered(tree, [loop], a.access.buffer, [a.stmt, b.stmt])  # type: ignore[list-item]


def _later_is_apart(tree: Tree, loop: For, a: Place, b: Place) -> bool:
    """Whether what ``a`` touches in later iterations is beside what ``b`` touches in one."""
    later = Var(loop.loop_var.name, loop.loop_var.dtype)
    with tree.analyzer(loop, inside=True).scope() as an:
        an.bind(later, Range(loop.loop_var + 1, loop.min + loop.extent - loop.loop_var - 1))
        boxes = []
        for p in (a, b):
            inner = {x.loop_var: Range(x.min, x.extent) for x in p.loops if x is not loop and tree.under(x, loop)}
            boxes.append(estimate_region(BufferRegion(p.access.buffer, p.access.region), {**inner, **p.access.inside}, an=an))
        return disjoint([substitute(r, {loop.loop_var: later}) for r in boxes[0]], boxes[1], an)


def same_instance(tree: Tree, realize: BlockRealize) -> set[Any]:
    """Of the loops around a block in its scope, those that are at one iteration wherever the block's variables have the same values."""
    an = tree.analyzer(tree.scope(realize), inside=True)
    copies: dict[Var, Var] = {}
    for x in tree.loops(realize):
        an.bind(x.loop_var, Range(x.min, x.extent))
    for x in tree.loops(realize):
        here, copies[x.loop_var] = Range(substitute(x.min, copies), substitute(x.extent, copies)), Var(x.loop_var.name, x.loop_var.dtype)
        an.bind(copies[x.loop_var], here)
    one = [Range(v, tir.const(1, v.dtype)) for v in realize.iter_values]
    met = meet(an, one, [Range(substitute(r.min, copies), r.extent) for r in one], copies)
    return met.equal | {x.loop_var for x in tree.loops(realize) if an.bounds(x.extent)[1] <= 1}


@_remembered
def instance_conflicts(block: Block) -> list[tuple[Access, Access, tuple[Var, ...], bool]]:
    """Pairs of accesses by which different instances of a block touch one element, one storing it; with the block's variables in which the
    instances may differ, and whether they are updates that may come in any order."""
    return list(_instances(block))


def _instances(block: Block) -> Iterator[tuple[Access, Access, tuple[Var, ...], bool]]:
    found: Sequence[Access] = _of_block(block)
    stored = {a.buffer.data for a in found if a.store}
    found = [_anywhere(a) if told_by(a.region) & stored else a for a in found]
    for a, b in combinations_with_replacement(found, 2):
        if not (a.store or b.store) or a.buffer.data is not b.buffer.data:
            continue
        an = Analyzer()
        met = _met(an, block, a, b)
        differing = tuple(iv.var for iv in block.iter_vars if iv.var not in met.equal and an.bounds(iv.dom.extent)[1] > 1)
        if met.possible and differing:
            yield a, b, differing, a.update is not None and b.update is not None and (a.update == b.update or INIT in (a.update, b.update))


def _met(an: Analyzer, block: Block, a: Access, b: Access) -> Meeting:
    """How an access of one instance of a block meets an access of another one."""
    if a.buffer is not b.buffer:
        return Meeting()
    if all(x.min is y.min and type(x.min) is Var and is_one(x.extent) and is_one(y.extent) for x, y in zip(a.region, b.region)):
        return Meeting(equal={x.min for x in a.region})  # the element B[i, j], as mostly
    copies: dict[Var, Var] = {}
    for v, r in (*((iv.var, iv.dom) for iv in block.iter_vars), *a.inside.items()):
        an.bind(v, r)
    for v, r in (*((iv.var, iv.dom) for iv in block.iter_vars), *b.inside.items()):
        here, copies[v] = Range(substitute(r.min, copies), substitute(r.extent, copies)), Var(v.name, v.dtype)
        an.bind(copies[v], here)
    there = [Range(substitute(r.min, copies), substitute(r.extent, copies)) for r in b.region]
    return meet(an, a.region, there, copies)


# --- conflicts that do not count


def _private(tree: Tree, chain: Sequence[For], buffer: Buffer, mine: list[Place]) -> bool:
    """Whether each iteration of the loops stores what it reads of a buffer, which nothing outside of them touches."""
    scope = tree.scope(chain[0])
    if buffer not in scope.alloc_buffers or any(type(p.stmt) is not BlockRealize for p in mine):
        return False
    users = list(dict.fromkeys(p.stmt for p in mine))
    if any(p.access.buffer is not buffer for p in mine) or not covered(tree, chain, buffer, users):  # type: ignore[arg-type]
        return False
    return touched_besides(scope.body, buffer, users) is None


def touched_besides(stmt: Stmt, buffer: Buffer, users: Sequence[Stmt]) -> Stmt | None:
    """The first statement at or under ``stmt`` that touches the memory of a buffer, ``users`` left aside; None where there is none."""
    if stmt not in users and buffer.data in _memory_of(stmt):
        return stmt
    inside = () if type(stmt) is BlockRealize else child_stmts(stmt)
    return next((found for s in inside if (found := touched_besides(s, buffer, users)) is not None), None)


@_remembered
def _memory_of(s: Stmt) -> frozenset[Var]:
    """The memory that a statement touches itself (see ``_own_accesses``)."""
    found = (*_of_block(s.block), *_loads_of(*s.iter_values, s.predicate)) if type(s) is BlockRealize else _own_accesses(s, bool(child_stmts(s)))
    return frozenset(a.buffer.data for a in found)


def _recomputed(tree: Tree, chain: Sequence[For], found: list[Conflict], places: list[Place]) -> bool:
    """Whether the conflicting iterations all store the same values: a block that does not depend on the loops they differ in, nor on what is stored in them."""
    for c in found:
        if c.first.access.store and c.second.access.store:
            if c.first.stmt is not c.second.stmt or not _same_in_all(tree, c.first.stmt, c.loops, places):
                return False
    users = list(dict.fromkeys(p.stmt for c in found for p in (c.first, c.second)))
    if any(type(s) is not BlockRealize for s in users):
        return False
    return covered(tree, chain, found[0].first.access.buffer, users)  # type: ignore[arg-type]


def _same_in_all(tree: Tree, stmt: Stmt, loops: Sequence[For], places: list[Place]) -> bool:
    if type(stmt) is not BlockRealize or variables_of(stmt) & {x.loop_var for x in loops}:
        return False
    of = tree.memory(stmt)
    read = {of(p.access.buffer) for p in places if p.stmt is stmt and not p.access.store}
    stored = {of(p.access.buffer) for p in places if p.access.store}
    return not read & stored

