# SPDX-License-Identifier: Apache-2.0
"""rolling_buffer: tiles that overlap keep what they share, in a buffer that goes round along one dimension.

A tile is what the producer stores in one iteration of the loops that it shares with its consumers: a box whose beginnings grow with these
loops, at most one loop per dimension. Along the dimensions that overlap only what is new is stored. Along the outermost of them the buffer
goes round. An element is then found where it is looked for, because (for a beginning ``m`` that never goes back, and an extent ``e``)

* every element of a tile is new in the first tile that has it, which ran before;
* two elements that share a place are ``e`` or more apart, and no tile from the first that has one to the last that reads it has both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from roundel.arith import Analyzer, detect_iter_map, estimate_region, reads_memory
from roundel.ir import Buffer, Rewriter, Var, free_vars, on, structural_equal, substitute, tir, walk
from roundel.ir.dataclass import dataclass
from roundel.ir.errors import ArithError, ScheduleError
from roundel.ir.tir import Block, BlockRealize, BufferRegion, Expr, For, ForKind, IterKind, Range, Stmt

from . import ordering, scopes, sharing
from .handed_on import covered, reduces_over
from .kinds import written_buffer
from .primitive import BlockToken, Change, primitive, refuse
from .redirect import Redirect
from .regions import bindings, domain, inner_loops, regions_of, with_access
from .tree import Tree, conjuncts, is_one

ORDERED = (ForKind.SERIAL, ForKind.UNROLLED)
_FOLLOWING = (IterKind.SPATIAL, IterKind.OPAQUE)


@primitive
def rolling_buffer(tree: Tree, block: BlockToken, write_buffer_index: int | str) -> Change:
    """Compute what tiles of a block share once only, and keep of the buffer as much as one tile needs along the outermost tiled dimension.

        B = alloc(10)                                B = alloc(6)
        for t in range(2):                           for t in range(2):
            for a in range(6):                           for a in range(6):
                B[t * 4 + a] = A[t * 4 + a]    ->            if t < 1 or 2 <= a:
            for i, k in T.grid(4, 3):                            B[(t * 4 + a) % 6] = A[t * 4 + a]
                C[t * 4 + i] += B[t * 4 + i + k]         for i, k in T.grid(4, 3):
                                                             C[t * 4 + i] += B[(t * 4 + i + k) % 6]

    The block stands in a loop with all of its consumers (``compute_at``). What goes round is bound to opaque variables.
    """
    buffer = written_buffer(tree, tree.nodes[block], write_buffer_index)
    return Change(_Roll(undone(tree, tree.scope(tree.realize(block))), block, buffer).rolled(tree))


@dataclass(frozen=True)
class _Overlap:
    """A dimension along which successive tiles share ``shared`` of ``extent`` elements; ``local`` is the place within a tile."""

    axis: int
    loop: For
    extent: int
    shared: int
    local: Expr


class _Roll:
    """A producer, its consumers and the loops around all of them, in a program where nothing goes round (as far as that is known)."""

    def __init__(self, tree: Tree, block: BlockToken, buffer: Buffer) -> None:
        realize = tree.realize(block)
        self.tree, self.realize, self.buffer = tree, realize, buffer
        doing = f"roll {buffer.name} of"
        ordering.require_pure(tree, realize.block, doing)
        sharing.require_inner_buffers(tree, realize.block, doing)
        sharing.require_only_blocks(tree, realize, {buffer}, set(), f"{doing} block {realize.block.name}")
        self.users = scopes.readers(tree, tree.scope(realize), buffer)
        self.users = [u for u in self.users if u is not realize]
        self.chain = [x for x in tree.loops(realize) if all(x in tree.loops(u) for u in self.users)]
        if not self.users or not self.chain:
            self.refuse("no loop is around it and all of its consumers", hint="compute_at(block, loop of the consumer) first")
        if any(reads_memory(e) for x in tree.loops(realize) for e in (x.min, x.extent)):
            self.refuse("memory says how far its loops run")
        self.require_plain_accesses()
        self.require_same_in_all()
        if not covered(tree, self.chain, buffer, [realize, *self.users]):
            self.refuse("consumers may read what the tile does not have")
        self.overlaps = self.find_overlaps()
        self.require_condition_of_elements()

    def refuse(self, why: str, hint: str = "") -> NoReturn:
        """Raise, with the block shown."""
        refuse(self.tree, self.realize, f"cannot roll {self.buffer.name}, which block {self.realize.block.name} stores", why, hint)

    def require_plain_accesses(self) -> None:
        """One element at a time is stored, and nothing reaches the buffer by a pointer or a view."""
        found = regions_of(self.realize.block, self.buffer, written=True)
        if len(found) != 1 or not all(is_one(r.extent) for r in found[0].region):
            self.refuse("it stores more than one element at a time")
        views = any(m.source.buffer is self.buffer for b in self.tree.blocks() for m in b.match_buffers)
        if views or any(n is self.buffer.data for n in walk(self.tree.func.body)):
            self.refuse("its pointer, or a view of it, is used")
        used = {b.name for b in self.tree.blocks() if scopes.asked_of(self.tree.realize(b.token)) & {self.buffer}} if self.tree.blocks()[1:] else set()
        if used:
            self.refuse(f"whether block {', '.join(used)} runs depends on it")

    def require_same_in_all(self) -> None:
        """An element is computed alike in all iterations: not a part of a sum in each, and from what they do not change."""
        if reduces_over(self.realize, self.chain):
            self.refuse("a loop around its consumers is part of a reduction")
        changed = {r.buffer for x in self.tree.realizes(self.chain[0]) for r in x.block.writes}
        for b in sorted(scopes.reads_of(self.realize.block) & changed - {self.buffer}, key=lambda b: b.name):
            if not _same_in_all(self.tree, b, self.chain):
                self.refuse(f"it reads {b.name}, which is stored in the same loops")

    def find_overlaps(self) -> list[_Overlap]:
        """The dimensions along which tiles overlap; checks the form of tiles."""
        an = self.tree.analyzer(self.chain[-1], inside=True)
        inner = domain(inner_loops(self.tree, self.realize, self.chain[-1]))
        (region,) = regions_of(self.realize.block, self.buffer, written=True)
        at = tuple(substitute(r.min, bindings(self.realize)) for r in region.region)
        box = estimate_region(BufferRegion(self.buffer, tuple(Range(i, tir.const(1, i.dtype)) for i in at)), inner, an=an)
        local = tuple(an.simplify(i - r.min) for i, r in zip(at, box))
        self.require_dense(an, local, box, inner)
        found = [self.overlap(an, k, r, i) for k, (r, i) in enumerate(zip(box, local))]
        overlaps = [o for o in found if o is not None]
        if not overlaps:
            self.refuse("no dimension is tiled so that a tile overlaps the next")
        if len({o.loop for o in overlaps}) < len(overlaps):
            self.refuse("two dimensions are tiled by one loop")
        for x in self.chain:
            if x.kind not in ORDERED:
                self.refuse(f"loop {x.loop_var.name} does not run in order")
        return sorted(overlaps, key=lambda o: self.chain.index(o.loop))

    def require_dense(self, an: Analyzer, local: Sequence[Expr], box: Sequence[Range], inner: dict[Var, Range]) -> None:
        """The places within a tile are all stored."""
        used = frozenset().union(*map(free_vars, local)) if local else frozenset()
        try:
            extents = detect_iter_map(local, {v: r for v, r in inner.items() if v in used}, an=an).extents()
        except ArithError as e:
            self.refuse(f"tiles are not known to be without gaps: {e}")
        if not all(map(an.prove_equal, extents, (r.extent for r in box))):
            self.refuse("tiles have gaps")

    def overlap(self, an: Analyzer, axis: int, tile: Range, local: Expr) -> _Overlap | None:
        """How tiles overlap along one dimension; None where they do not."""
        loops = [x for x in self.chain if x.loop_var in free_vars(tile.min) and an.bounds(x.extent)[1] > 1]
        if not loops:
            return None
        if len(loops) > 1 or type(tile.extent) is not tir.IntImm:
            self.refuse(f"where tiles begin in dimension {axis} is not given by one loop: {tile.min.script()}")
        step = _greatest_step(an, tile.min, loops[0])
        if step is None:
            self.refuse(f"tiles do not move steadily in dimension {axis}: {tile.min.script()}")
        shared = tile.extent.value - step
        return _Overlap(axis, loops[0], tile.extent.value, shared, local) if shared > 0 else None

    def require_condition_of_elements(self) -> None:
        """Whether the block runs depends on the element (or on what is reduced over), not on the tile."""
        an = Analyzer()
        spatial = [v for iv, v in zip(self.realize.block.iter_vars, self.realize.iter_values) if iv.kind is IterKind.SPATIAL]
        moving = {x.loop_var for x in self.tree.loops(self.realize)} & frozenset().union(*map(free_vars, spatial))
        for c in conjuncts(self.realize.predicate):
            parts = (c.a, c.b) if type(c) in (tir.LT, tir.LE, tir.GT, tir.GE) else (c,)
            sides = [p for p in parts if free_vars(p) & moving]
            alone = len(sides) == 1 and any(free_vars(an.simplify(sides[0] - v)).isdisjoint(moving) for v in spatial if sides[0].dtype is v.dtype)
            if sides and not alone:
                self.refuse(f"its condition {c.script()} is no limit of an element's place")

    def rolled(self, tree: Tree) -> Tree:
        """A program with the buffer that goes round: the one that was looked at, or one in which others go round already."""
        first, realize = self.overlaps[0], tree.realize(self.realize.block.token)  # type: ignore[arg-type]
        shape = tuple(tir.const(first.extent, n.dtype) if k == first.axis else n for k, n in enumerate(self.buffer.shape))
        new = self.buffer.replace(shape=shape, data=Var(self.buffer.data.name, self.buffer.data.dtype))
        conditions = []
        for o in sorted(self.overlaps, key=lambda o: o.axis):
            start = tir.add(o.loop.min, tir.const(1, o.loop.min.dtype))
            conditions.append(tir.logical_or(tir.lt(o.loop.loop_var, start), tir.le(tir.const(o.shared, o.local.dtype), o.local)))
        scope = tree.scope(realize)
        changed = realize.replace(predicate=tir.logical_and(realize.predicate, *conditions))
        place = lambda i: tir.floormod(i, tir.const(first.extent, i.dtype))
        change = _Replaced(tree, self.buffer, new, first.axis, place, first.loop.loop_var, IterKind.OPAQUE, {realize: changed})
        return tree.edit({scope: change.rewrite(scope)})


def _greatest_step(an: Analyzer, start: Expr, loop: For) -> int | None:
    """How far a tile's beginning moves at most from one iteration to the next; None where it may move back."""
    v = loop.loop_var
    step = an.simplify(substitute(start, {v: v + 1}) - start)
    if type(step) is tir.IntImm:
        return step.value if step.value > 0 else None
    moving = an.simplify(start - substitute(start, {v: tir.const(0, v.dtype)}))
    if type(moving) is not tir.FloorDiv or type(moving.b) is not tir.IntImm or moving.b.value <= 0:
        return None
    over = an.simplify(substitute(moving.a, {v: v + 1}) - moving.a)
    return -(-over.value // moving.b.value) if type(over) is tir.IntImm and over.value > 0 else None


class _Replaced(Redirect):
    """A buffer becomes another one, with other places along an axis; variables of blocks that touch it and use a loop are of a kind."""

    def __init__(self, tree: Tree, old: Buffer, new: Buffer, axis: int, place: Callable[[Expr], Expr], loop: Var | None, kind: IterKind,
                 changes: Mapping[BlockRealize, BlockRealize]) -> None:
        self.tree, self.old, self.new, self.axis, self.place = tree, old, new, axis, place
        self.loop, self.kind, self.changes = loop, kind, changes

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(self.place(i) if k == self.axis else i for k, i in enumerate(indices))

    @on(BlockRealize)
    def _realize(self, realize: BlockRealize) -> Stmt:
        block = realize.block
        if not any(r.buffer is self.old for r in (*block.reads, *block.writes)):
            return self.generic(realize)
        follows = [iv.kind in _FOLLOWING and self.loop in free_vars(value) for iv, value in zip(block.iter_vars, realize.iter_values)]
        ivs = tuple(iv.replace(kind=self.kind) if f else iv for iv, f in zip(block.iter_vars, follows))
        return self.changes.get(realize, realize).replace(block=self.rewrite(block.replace(iter_vars=ivs)))

    @on(Block)
    def _block(self, block: Block) -> Stmt:
        mine = [r for r in (*block.reads, *block.writes) if r.buffer is self.old]
        new = self.generic(block)
        return new if all(is_one(r.region[self.axis].extent) for r in mine) else with_access(self.tree, new)

    @on(BufferRegion)
    def _region(self, region: BufferRegion) -> BufferRegion:
        if region.buffer is not self.old:
            return self.generic(region)
        starts = self.at([r.min for r in region.region])
        return BufferRegion(self.new, tuple(Range(i, r.extent) for i, r in zip(starts, region.region)))


def _same_in_all(tree: Tree, buffer: Buffer, chain: Sequence[For], asked: frozenset[Buffer] = frozenset()) -> bool:
    """Whether an element of a buffer is the same whenever it is read in a nest: one block makes it, from what the nest does not change either."""
    if buffer in asked:
        return False
    scope = tree.scope(chain[0])
    made = [r for r in tree.realizes(chain[0]) if buffer in scopes.writes_of(r.block)]
    if not made:
        return True
    if len(made) > 1 or buffer not in scope.alloc_buffers or len(scopes.writers(tree, scope, buffer)) > 1 or reduces_over(made[0], chain):
        return False
    try:
        ordering.require_pure(tree, made[0].block, "move")
    except ScheduleError:
        return False
    return all(_same_in_all(tree, b, chain, asked | {buffer}) for b in scopes.reads_of(made[0].block) - {buffer})


# --- buffers that go round already


def undone(tree: Tree, scope: Block) -> Tree:
    """The program in which buffers that go round as ``rolling_buffer`` has it do not: what it was before, rolled, is this program."""
    for realize in tree.children(scope):
        for k, r in enumerate(realize.block.writes[0].region if len(realize.block.writes) == 1 else ()):
            if type(r.min) is tir.FloorMod and is_one(r.extent):
                before = _before(tree, realize, k)
                if before is not None:
                    return undone(before, before.nodes[scope.token])
    return tree


def _before(tree: Tree, made: BlockRealize, axis: int) -> Tree | None:
    """The program before the buffer that a block makes went round along an axis; None where it does not."""
    write = made.block.writes[0]
    size = write.region[axis].min.b  # type: ignore[attr-defined]
    index = write.region[axis].min.a  # type: ignore[attr-defined]
    high = tree.analyzer(made.block, inside=True).bounds(index)[1]
    used = [x.loop_var for x in tree.loops(made) if x.loop_var in free_vars(substitute(index, bindings(made)))]
    if size is not write.buffer.shape[axis] or not isinstance(high, int) or not used:
        return None
    plain: list[Expr] = []

    def place(i: Expr) -> Expr:
        if type(i) is tir.FloorMod and i.b is size:
            return i.a
        plain.append(i)
        return i

    shape = tuple(tir.const(high + 1, n.dtype) if k == axis else n for k, n in enumerate(write.buffer.shape))
    new = write.buffer.replace(shape=shape, data=Var(write.buffer.data.name, write.buffer.data.dtype))
    limits = tir.logical_and(*(c for c in conjuncts(made.predicate) if type(c) is not tir.Or))
    scope = tree.scope(made)
    change = _Replaced(tree, write.buffer, new, axis, place, used[0], IterKind.SPATIAL, {made: made.replace(predicate=limits)})
    before = tree.edit({scope: change.rewrite(scope)})
    try:
        roll = None if plain else _Roll(before, made.block.token, new)  # type: ignore[arg-type]
    except ScheduleError:
        return None
    if roll is None or roll.overlaps[0].axis != axis:
        return None
    return before if structural_equal(_all_spatial(roll.rolled(before).func), _all_spatial(tree.func)) else None


def _all_spatial(func: tir.PrimFunc) -> tir.PrimFunc:
    return _Spatial().rewrite(func)


class _Spatial(Rewriter):
    @on(Block)
    def _block(self, block: Block) -> Stmt:
        block = self.generic(block)
        return block.replace(iter_vars=tuple(iv.replace(kind=IterKind.SPATIAL) if iv.kind is IterKind.OPAQUE else iv for iv in block.iter_vars))
