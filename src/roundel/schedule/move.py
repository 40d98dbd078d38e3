# SPDX-License-Identifier: Apache-2.0
"""Moving a block under a loop of its consumers (compute_at) or of its producers (reverse_compute_at)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from roundel.arith import Analyzer, end, estimate_region, intersect, reads_memory, same_region, union
from roundel.arith.int_set import interval
from roundel.ir import Buffer, Var, free_vars, substitute, tir, walk
from roundel.ir.tir import Block, BlockRealize, BufferRegion, Expr, For, ForKind, IterKind, Range, Stmt

from . import inits, ordering, scopes, sharing
from .accesses import told_by
from .inline import compute_inline
from .limits import independent
from .primitive import BlockToken, Change, Loop, Place, primitive, refuse
from .rebind import serial, wrap
from .regions import Region, domain, inner_loops, regions_of, run_domain, touched
from .stages import require_known_place
from .tree import TRUE, Tree, conjuncts, is_one


def _sampled(tree: Tree, block: BlockToken, place: tir.Expr) -> int:
    """-1 or -2, as sample_compute_location gives them in place of a loop."""
    if type(place) is not tir.IntImm or place.value not in (-1, -2):
        refuse(tree, block, f"{place!r} is no loop", hint="a loop, or what sample_compute_location gave")
    return place.value


@primitive
def compute_at(tree: Tree, block: BlockToken, loop: Place, preserve_unit_loops: bool = False, index: int = -1) -> Change:
    """Compute what one iteration of ``loop`` needs of a block right there, where its consumers are.

        for i: B(i)                    for i0:
        for i0, i1: C(i0 * 4 + i1) ->      for ax0 in range(4): B(i0 * 4 + ax0)
                                           for i1: C(i0 * 4 + i1)

    ``index`` is the position among the loop's statements: -1 as late as possible, -2 as early as possible.
    For ``loop`` also -1 (leave the block where it is) and -2 (inline it), which sample_compute_location gives.

    The block computes what it stores from what nothing on the way stores, and whoever reads that, or runs or not by it, is under the loop,
    after it.
    """
    if isinstance(loop, tir.Expr):
        return compute_inline(tree, block) if _sampled(tree, block, loop) == -2 else Change(tree)
    move = _Move(tree, block, loop)
    ordering.require_pure(tree, move.block, "move")
    inits.require_single_updates(tree, move.realize, "move")
    sharing.require_inner_buffers(tree, move.block, "move")
    users = scopes.consumers(tree, move.block)
    for user in users:
        if not tree.under(user, move.loop):
            move.refuse(f"this requires all the consumers to be under that loop, and block {user.block.name} is not")
    if not users:
        move.refuse("nothing reads what it writes")
    parts = list(move.parts)
    first = min(k for k, p in enumerate(parts) if any(tree.under(u, p) for u in users))
    at = _position(move, index, 0, first)
    passed = [r for r in move.between() if r not in users]
    passed += [r for p in parts[:at] for r in tree.realizes(p)]
    sharing.require_no_conflict(tree, move.realize, passed, "move")
    for user in users:
        move.require_apart(user, scopes.writes_of(move.block) & scopes.asked_of(user))
    for other in (r for p in parts[at:] for r in tree.realizes(p)):
        move.require_apart(other, scopes.writes_of(other.block) & scopes.needed_by(move.realize))
    return move.to(at, _needed(move, users), [], preserve_unit_loops)


@primitive
def reverse_compute_at(tree: Tree, block: BlockToken, loop: Place, preserve_unit_loops: bool = False, index: int = -1) -> Change:
    """Run a block on what one iteration of ``loop`` has produced, right after its producers.

        for i0, i1: B(i0 * 4 + i1)     for i0:
        for i: C(i)                ->      for i1: B(i0 * 4 + i1)
                                           for ax0 in range(4): C(i0 * 4 + ax0)

    ``index`` is the position among the loop's statements: -1 as late as possible, -2 as early as possible. A reduction may run in parts, each on
    what an iteration has produced of what it reduces over (as ``rfactor`` makes it), where the parts make up the whole in order.

    What the block reads is the same after the iteration as after the loop: no later iteration touches what it stores or stores what it reads.
    """
    if isinstance(loop, tir.Expr):
        _sampled(tree, block, loop)
        return Change(tree)
    move = _Move(tree, block, loop)
    ordering.require_pure(tree, move.block, "move")
    inits.require_single_updates(tree, move.realize, "move")
    sources = [p for p in scopes.producers(tree, move.block) if tree.under(p, move.loop) and scopes.writes_of(p.block) & scopes.reads_of(move.block)]
    if not sources:
        move.refuse(f"no block under loop {move.loop.loop_var.name} writes what it reads")
    alone = [c for c in tree.conditions(move.loop) if c not in tree.ancestors(move.realize)]
    if alone:
        move.refuse(f"the loop runs under {'a condition' if type(alone[0]) is tir.If else 'a loop with a condition'}, and the block need not")
    parts = list(move.parts)
    last = max(k for k, p in enumerate(parts) if any(tree.under(s, p) for s in sources))
    users = scopes.consumers(tree, move.block)
    until = min([k for k, p in enumerate(parts) if any(tree.under(u, p) for u in users)] or [len(parts)])
    at = _position(move, index, last + 1, until)
    passed = [r for r in move.between() if not tree.under(r, move.loop)]
    passed += [r for p in parts[at:] for r in tree.realizes(p)]
    sharing.require_no_conflict(tree, move.realize, passed, "move")
    for other in (r for p in parts[:at] for r in tree.realizes(p)):
        move.require_apart(other, scopes.writes_of(other.block) & scopes.asked_of(move.realize))
        move.require_apart(other, scopes.writes_of(move.block) & (scopes.needed_by(other) | scopes.writes_of(other.block)))
    _require_finished(move, sources)
    doms, conditions = _provided(move, sources)
    change = move.to(at, doms, conditions, preserve_unit_loops)
    if move.parted:
        _require_whole_sums(move, change.tree)
    moved = change.tree.realize(block)
    chain = [x for x in change.tree.loops(moved) if x.token in {y.token for y in move.within}]
    ordering.require_moved_in_order(change.tree, moved, chain, f"move block {move.block.name} under loop {move.loop.loop_var.name}")
    return change


class _Move:
    """A block on its way under a loop."""

    def __init__(self, tree: Tree, block: BlockToken, loop: Loop) -> None:
        self.tree = tree
        self.realize = tree.realize(block)
        self.block: Block = tree.nodes[block]
        self.loop: For = tree.nodes[loop]
        if tree.scope(self.loop) is not tree.scope(self.realize):
            self.refuse("the two are not in the same block scope")
        if tree.under(self.realize, self.loop):
            self.refuse(f"it is already under that loop, which is an ancestor of block {self.block.name}")
        asked = [c for c in tree.conditions(self.realize) if c not in tree.ancestors(self.loop)]
        if asked:
            self.refuse(f"it runs under {'a condition' if type(asked[0]) is tir.If else 'a loop with a condition'} of its own")
        self.shared = [x for x in tree.loops(self.realize) if x in tree.loops(self.loop)]
        self.within = [x for x in (*tree.loops(self.loop), self.loop) if x not in self.shared]
        if any(reads_memory(e) for x in tree.loops(self.realize) if x not in self.shared for e in (x.min, x.extent)):
            self.refuse("memory says how far its loops run")
        box, self.where = run_domain(tree, self.realize), TRUE
        if box is None:
            box, self.where = self._guarded()
        self.block = self.block.replace(iter_vars=tuple(iv.replace(dom=box[iv.var]) for iv in self.block.iter_vars))
        self.an = tree.analyzer(self.loop, inside=True)
        self.parts: Sequence[Stmt] = self.loop.body.stmts if type(self.loop.body) is tir.Seq else (self.loop.body,)
        self.parted: set[Var] = set()  # what it reduces over, of which one iteration has a part

    def refuse(self, why: str) -> NoReturn:
        """Raise, with the block shown."""
        refuse(self.tree, self.realize, f"cannot move block {self.block.name} under loop {self.loop.loop_var.name}", why)

    def require_apart(self, other: BlockRealize, buffers: set[Buffer]) -> None:
        """Blocks that will take turns do not also touch one buffer the other way round."""
        if buffers:
            self.refuse(f"it would take turns with block {other.block.name}, and both touch {', '.join(b.name for b in buffers)}")

    def _guarded(self) -> tuple[dict[Var, Range], Expr]:
        """The domain and the condition on the block's variables under which it runs, where these are its loops one by one."""
        loops = {x.loop_var: Range(x.min, x.extent) for x in self.tree.loops(self.realize)}
        names = {v: iv.var for iv, v in zip(self.block.iter_vars, self.realize.iter_values, strict=True) if v in loops}
        known = all(v in names or v.size for v in free_vars(self.realize.predicate))
        if len(names) < len(self.block.iter_vars) or not known or not independent(loops):
            self.refuse("the part of its domain that it runs on is not known to be a box")
        return {names[v]: r for v, r in loops.items() if v in names}, substitute(self.realize.predicate, names)

    def between(self) -> list[BlockRealize]:
        """Blocks of the scope between the block and the loop, in either direction, and those in loops around one of them only."""
        inside = set(self.tree.realizes(self.loop))
        return [r for r in scopes.passed(self.tree, self.realize, self.loop) if r not in inside]

    def to(self, at: int, doms: dict[Var, Range], conditions: list[Expr], keep_units: bool) -> Change:
        """The program with the block in front of part ``at`` of the loop, over ``doms`` of its variables."""
        values, loops, predicate = self._bind(doms, conditions, keep_units)
        moved = wrap(loops, self.realize.replace(iter_values=values, predicate=predicate))
        parts = [*self.parts[:at], moved, *self.parts[at:]]
        return Change(self.tree.edit({self.realize: None, self.loop.body: tir.seq(*parts)}))

    def _in_shared_loops(self, doms: dict[Var, Range]) -> dict[Var, Range]:
        """Domains of variables bound to loops that are around the target, too: what they are in one iteration of these, where nothing limits them."""
        around = {x.loop_var for x in self.shared}
        bound = [iv for iv, v in zip(self.realize.block.iter_vars, self.realize.iter_values) if free_vars(v) & around and iv.var not in doms]
        if not bound:
            return doms
        here = run_domain(self.tree, self.realize, self.shared[-1])
        if here is None:
            self.refuse(f"what it runs on in one iteration of {self.shared[-1].loop_var.name} is not known to be a box")
        return {**doms, **{iv.var: here[iv.var] for iv in bound}}

    def _bind(self, doms: dict[Var, Range], conditions: list[Expr], keep_units: bool) -> tuple[tuple[Expr, ...], list[For], Expr]:
        values, loops, checks = [], [], [*conditions, self.where]
        doms = self._in_shared_loops(doms)
        with self.an.scope() as an:
            for k, iv in enumerate(self.block.iter_vars):
                value, loop, inside = _cut(an, iv, doms.get(iv.var), f"ax{k}", keep_units)
                loops += [loop] if loop is not None else []
                checks += inside
                values.append(value)
            table = dict(zip((iv.var for iv in self.block.iter_vars), values))
            found = [c for check in checks for c in conjuncts(substitute(check, table)) if not an.prove(c)]
            return tuple(values), loops, tir.logical_and(*(_unless_reordered(an, c) for c in found)) if found else TRUE


def _cut(an: Analyzer, iv: tir.IterVar, need: Range | None, name: str, keep_units: bool) -> tuple[Expr, For | None, list[Expr]]:
    """Value, loop and conditions of an iteration variable that runs over the needed part of its domain."""
    if need is None or (an.prove_equal(need.min, iv.dom.min) and an.prove(need.extent >= iv.dom.extent)):
        need = iv.dom
    extent = _loop_extent(an, need.extent)
    exact = extent is not None
    start = need.min if exact else iv.dom.min
    extent = extent if extent is not None else iv.dom.extent
    if is_one(extent) and not keep_units:
        value, loop = an.simplify(start), None
    else:
        loop = serial(name, extent, iv.var)
        an.bind(loop.loop_var, Range(loop.min, extent))
        value = an.simplify(start) + loop.loop_var
    checks = [] if need is iv.dom else [value >= iv.dom.min, *_below(value, end(iv.dom))]
    if not exact or not an.prove_equal(extent, need.extent):
        checks += [value >= need.min, *_below(value, end(need))]
    return value, loop, checks


def _unless_reordered(an: Analyzer, condition: Expr) -> Expr:
    """A condition in simple form; as it is, where that is the same in another order."""
    simple = an.simplify(condition)
    parts = lambda e: sorted(repr(n) if type(n) in (Var, tir.IntImm) else type(n).__name__ for n in walk(e))
    return condition if parts(simple) == parts(condition) else simple


def _below(value: Expr, limit: Expr) -> list[Expr]:
    """That a value is less than a limit; than each of them, where it is the lesser of two (one may be provable)."""
    return [*_below(value, limit.a), *_below(value, limit.b)] if type(limit) is tir.Min else [value < limit]


def _loop_extent(an: Analyzer, extent: Expr) -> Expr | None:
    """An extent that does not depend on loops: itself, or a constant bound; None when there is none."""
    extent = an.simplify(extent)
    if all(v.size for v in free_vars(extent)):
        return extent
    high = an.bounds(extent)[1]
    return tir.const(high, extent.dtype) if isinstance(high, int) else None


def _require_finished(move: _Move, sources: list[BlockRealize]) -> None:
    """One iteration of the loop finishes the sources' reductions."""
    new = {x.loop_var for x in (*move.tree.loops(move.loop), move.loop) if x not in move.tree.loops(move.realize)}
    for s in sources:
        for iv, value in zip(s.block.iter_vars, s.iter_values):
            if iv.kind is not IterKind.SPATIAL and free_vars(value) & new:
                move.refuse(f"block {s.block.name} is still reducing over {iv.var.name} in that loop")


def _require_whole_sums(move: _Move, tree: Tree) -> None:
    """The moved reduction, which runs in parts now, does each of its instances once, begins with its init, and is read when it is done."""
    realize = tree.realize(move.block.token)  # type: ignore[arg-type]
    loops, whole = tree.loops(realize), run_domain(tree, realize)
    values = {iv.var: v for iv, v in zip(realize.block.iter_vars, realize.iter_values)}
    parted = frozenset().union(*(free_vars(values[v]) for v in move.parted))
    idle = [x.loop_var.name for x in loops if not is_one(x.extent) and not any(x.loop_var in free_vars(v) for v in realize.iter_values)]
    if idle or whole is None or not all(same_region([whole[iv.var]], [iv.dom], move.an) for iv in move.realize.block.iter_vars):
        move.refuse("the parts of what it reduces over, one for each iteration, are not known to make up the whole once")
    if scopes.mixed_loops(realize):
        move.refuse("a loop is part of a spatial and of a reduce variable, so the init might not come first")
    inits.require_init_first(tree, realize, "move")
    around = [x for x in loops if x.loop_var in parted]
    for x in around:
        if x.kind not in (ForKind.SERIAL, ForKind.UNROLLED) and not (x.thread or "").startswith("threadIdx."):
            move.refuse(f"it would reduce over loop {x.loop_var.name}, whose iterations run at the same time")
    for user in scopes.consumers(tree, realize.block):
        if around and tree.under(user, around[0]):
            move.refuse(f"block {user.block.name} would read it before it is done")


def _position(move: _Move, index: int, first: int, last: int) -> int:
    if first > last:
        move.refuse("its producers and consumers leave no place for it")
    at = {-1: last, -2: first}.get(index, index)
    if not first <= at <= last:
        move.refuse(f"position {index} is not between its producers and consumers; possible are {first} to {last}")
    return at


# --- which part of the block's domain


def _needed(move: _Move, users: list[BlockRealize]) -> dict[Var, Range]:
    """Domains of the block's variables that write all the users read in one iteration of the loop."""
    found: dict[Var, Range] = {}
    for written in move.block.writes:
        region: Region | None = None
        for user in users:
            together = running_together(move.tree, move.loop, written.buffer, move.shared)
            inits.require_told_init(move.tree, user, written.buffer, [move.loop, *inner_loops(move.tree, user, move.loop)], f"move block {move.block.name}")
            for r in regions_of(user.block, written.buffer, written=False):
                box = touched(move.tree, user, r, move.loop, move.an)
                of = move.tree.memory(user)
                if told_by(box, of=of) & set(map(of, scopes.writes_of(move.block))):
                    move.refuse(f"what it stores tells which part of {r.buffer.name} is needed")
                require_known_place(move.tree, user, r.buffer, box, together[0] if together else move.loop)
                box = estimate_region(BufferRegion(r.buffer, box), domain(together), an=move.an) if together else box
                region = box if region is None else union(region, box, move.an)
        if region is None:
            continue
        for at, need in zip(written.region, region):
            for v, dom in solve(move.an, move.block, at, need).items():
                found[v] = union([found[v]], [dom], move.an)[0] if v in found else dom
    return found


_SHARING = {"shared": ("threadIdx", "vthread"), "global": ("blockIdx", "threadIdx", "vthread")}
"""Threads that have memory of a scope together, by the beginning of their names."""


def running_together(tree: Tree, loop: For, buffer: Buffer, but: Sequence[For] = ()) -> list[For]:
    """Loops from ``loop`` outwards (``but`` some) whose iterations are threads that have the buffer together: each makes what all of them need."""
    threads = _SHARING.get(buffer.scope.split(".")[0], ())
    return [x for x in (*tree.loops(loop), loop) if x.thread is not None and x.thread.startswith(threads) and x not in but]


def solve(an: Analyzer, block: Block, at: Range, need: Range) -> dict[Var, Range]:
    """Domains (hulls) of the spatial variables in ``at`` for which it meets ``need``; others are not limited."""
    spatial = {iv.var: iv.dom for iv in block.iter_vars if iv.kind is IterKind.SPATIAL}
    form = an.sum(at.min)
    movers = [(a, k) for a, k in form.terms.items() if free_vars(a) & spatial.keys()]
    if len(movers) == 1 and movers[0][1] == -1 and type(movers[0][0]) is Var and is_one(at.extent):
        start = an.expr(form + an.sum(movers[0][0]), at.min.dtype)  # a variable counted down from here
        return {movers[0][0]: Range(an.simplify(start - end(need) + 1), need.extent)}
    if not movers or any(free_vars(a) - spatial.keys() for a, _ in movers) or any(k <= 0 for _, k in movers):
        return {}
    with an.scope():
        for v, dom in spatial.items():
            an.bind(v, dom)
        movers.sort(key=lambda m: -m[1])
        atom, scale = movers[0]
        below = an.expr(form - an.sum(atom * scale), at.min.dtype)  # the terms of lower weight, and the constant
        low, high = _ends_of(an, below, spatial)
        if low is None or high is None:
            return {}
        first = _ceil(need.min - high - (at.extent - 1), scale)
        last = (end(need) - 1 - low) // scale
    return _invert(an, atom, Range(an.simplify(first), an.simplify(last - first + 1)), spatial)


def _ends_of(an: Analyzer, e: Expr, spatial: dict[Var, Range]) -> tuple[Expr | None, Expr | None]:
    found = interval(an, e, {v: spatial[v] for v in free_vars(e) if v in spatial})
    return found.min, found.max


def _ceil(e: Expr, by: int) -> Expr:
    return e if by == 1 else (e + (by - 1)) // by


def _invert(an: Analyzer, atom: Expr, need: Range, spatial: dict[Var, Range]) -> dict[Var, Range]:
    if type(atom) is Var:
        return {atom: need}
    if type(atom) is tir.FloorDiv and type(atom.b) is tir.IntImm:  # v // c in [a, b)  ->  v in [a * c, b * c)
        inner = Range(an.simplify(need.min * atom.b), an.simplify(need.extent * atom.b))
        if type(atom.a) is Var and atom.a in spatial:
            return {atom.a: inner}
    return {}


def _provided(move: _Move, sources: list[BlockRealize]) -> tuple[dict[Var, Range], list[Expr]]:
    """Domains of the block's variables whose reads one iteration of the loop has produced, and exact conditions."""
    found: dict[Var, Range] = {}
    conditions: list[Expr] = []
    buffers: dict[Buffer, None] = dict.fromkeys(b for s in sources for b in scopes.writes_of(s.block) & scopes.reads_of(move.block))
    for buffer in buffers:
        for w in scopes.writers(move.tree, move.tree.scope(move.realize), buffer):
            if w not in sources and w is not move.realize:
                move.refuse(f"block {w.block.name}, outside of that loop, writes {buffer.name} too")
        made, all_made = _made(move, sources, buffer, move.loop), _made(move, sources, buffer, None)
        for read in regions_of(move.block, buffer, written=False):
            for at, have, total in zip(read.region, made, all_made):
                if _reads_within(move, at, have, found, conditions):
                    continue
                if not _reads_within(move, at, total, {}, []):
                    move.refuse(f"it also reads parts of {buffer.name} that no block writes in that loop")
                if buffer is not next(iter(buffers)):
                    move.refuse(f"one iteration does not produce the parts of all the buffers, {buffer.name} among them")
                _limit(move, buffer, at, have, found, conditions)
    return found, conditions


def _made(move: _Move, sources: list[BlockRealize], buffer: Buffer, top: For | None) -> Region:
    """What the sources write of a buffer in one iteration of ``top``, or altogether."""
    an = move.an if top is not None else move.tree.analyzer(move.tree.scope(move.realize), inside=True)
    region: Region | None = None
    for s in sources:
        for r in regions_of(s.block, buffer, written=True):
            box = touched(move.tree, s, r, top, an)
            region = box if region is None else union(region, box, an)
    assert region is not None
    return region


def _reads_within(move: _Move, at: Range, have: Range, doms: dict[Var, Range], conditions: list[Expr]) -> bool:
    """Whether the block, with its variables in ``doms`` (and under conditions), reads only what is there."""
    with move.an.scope() as an:
        for iv in move.block.iter_vars:
            an.bind(iv.var, doms.get(iv.var, iv.dom))
        for c in conditions:
            an.assume(c)
        return an.prove(have.min <= at.min) and an.prove(end(at) <= end(have))


def _limit(move: _Move, buffer: Buffer, at: Range, have: Range, found: dict[Var, Range], conditions: list[Expr]) -> None:
    """Take in what one dimension of a read says."""
    if reads_memory(at.min) or reads_memory(at.extent):
        move.refuse(f"memory says which part of {buffer.name} it reads")
    if not is_one(at.extent):
        move.refuse(f"it reads more of {buffer.name} at a time than one iteration has produced")
    reduce = {iv.var for iv in move.block.iter_vars if iv.kind is not IterKind.SPATIAL}
    if free_vars(at.min) & reduce:
        if type(at.min) is not Var:
            move.refuse(f"one iteration has only a part of what it reduces over in {buffer.name}")
        move.parted.add(at.min)
    block = move.block.replace(iter_vars=tuple(iv.replace(kind=IterKind.SPATIAL) for iv in move.block.iter_vars))
    for v, dom in solve(move.an, block, at, have).items():
        found[v] = intersect([found[v]], [dom], move.an)[0] if v in found else dom
    conditions += [at.min >= have.min, at.min < end(have)]
