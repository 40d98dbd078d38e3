# SPDX-License-Identifier: Apache-2.0
"""What blocks hand to each other within one iteration of loops: whether everything read there was stored there before."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from roundel.arith import Analyzer, end, reads_memory, union
from roundel.ir import Buffer, Var, free_vars, tir, walk
from roundel.ir.tir import BlockRealize, BufferStore, For, IterKind

from .accesses import INIT, accesses_of, loads_of, told_by
from .regions import Region, inner_loops, regions_of, surely_touched, touched, touched_under_limits
from .tree import Tree, conjuncts, is_true


def covered(tree: Tree, chain: Sequence[For], buffer: Buffer, users: Sequence[BlockRealize]) -> bool:
    """Whether blocks under nested loops read of a buffer only what was stored, and finished, in the same iteration of all of the loops."""
    top = chain[-1]
    an = tree.analyzer(top, inside=True)
    users, of = sorted(users, key=lambda r: tree.order[r]), tree.memory(top)
    if any(of(a.buffer) is of(buffer) for r in users for a in loads_of(*r.iter_values, r.predicate)):
        return False  # whether and where a block runs depends on it
    touching = [(u, r) for u in users for w in (True, False) for r in regions_of(u.block, buffer, written=w)]
    told = frozenset[Var]().union(*(told_by(r.region, *u.iter_values, of=of) for u, r in touching))
    if told and any(of(w.buffer) in told for r in tree.realizes(chain[0]) for w in r.block.writes):
        return False  # memory tells where it is, and changes
    for k, reader in enumerate(users):
        before = [w for w in users[:k] if regions_of(w.block, buffer, written=True)]
        if any(w.block.init is not None and reduces_over(w, chain) for w in users[: k + 1] if regions_of(w.block, buffer, written=True)):
            return False
        read = regions_of(reader.block, buffer, written=False)
        if reader.block.init is not None and regions_of(reader.block, buffer, written=True):
            if not reads_what_it_stores(reader.block, buffer):
                return False
            continue  # its init comes first
        always = [w for w in before if not reads_memory(w.predicate)]
        together = [w for w in before if w not in always and _where(tree, w, reader)]
        for region in read:
            if not _covered(tree, an, always, reader, region, top) and not any(_covered_there(tree, w, reader, region, top) for w in together):
                return False
    return True


def reads_what_it_stores(block: tir.Block, buffer: Buffer) -> bool:
    """Whether an instance of a block reads of a buffer the elements that it stores, and no others."""
    found = [a for a in accesses_of(block) if a.buffer is buffer]
    stored = [a.region for a in found if a.store]
    return all(a.store or any(all(x.min is y.min and x.extent is y.extent for x, y in zip(a.region, r)) for r in stored) for a in found)


def stored_by(tree: Tree, writer: BlockRealize, reader: BlockRealize, buffer: Buffer) -> bool:
    """Whether a block reads of a buffer only what an earlier one of its scope stored, in the same iteration of the loops around both."""
    shared = [x for x in tree.loops(writer) if x in tree.loops(reader)]
    if shared:
        return covered(tree, shared, buffer, [writer, reader])
    of = tree.memory(reader)
    if any(of(a.buffer) is of(buffer) for a in loads_of(*reader.iter_values, reader.predicate)) or reads_memory(writer.predicate):
        return False
    an = tree.analyzer(tree.scope(reader), inside=True)
    boxes = written(tree, writer, buffer, None, an)
    return all(any(_holds(an, box, touched(tree, reader, r, None, an), buffer) for box in boxes) for r in regions_of(reader.block, buffer, written=False))


def _where(tree: Tree, writer: BlockRealize, reader: BlockRealize) -> bool:
    """Whether a block runs in every iteration of the loops around both in which the other does, although memory decides that."""
    asked = [c for c in conjuncts(writer.predicate) if reads_memory(c)]
    shared = {x.loop_var for x in tree.loops(writer) if x in tree.loops(reader)}
    if not set(asked) <= set(conjuncts(reader.predicate)) or any(v not in shared and not v.size for c in asked for v in free_vars(c)):
        return False
    of = tree.memory(writer)
    read = {of(a.buffer) for a in loads_of(*asked)}
    between = [r for r in tree.children(tree.scope(writer)) if tree.order[writer] <= tree.order[r] < tree.order[reader]]
    return not any(of(w.buffer) in read for r in between for w in r.block.writes)


def _covered_there(tree: Tree, writer: BlockRealize, reader: BlockRealize, region: tir.BufferRegion, top: For) -> bool:
    """Whether one iteration of the innermost loop around both stores all that is read in it."""
    inner = [x for x in tree.loops(writer) if x in tree.loops(reader) and tree.under(x, top)][-1]
    return _covered(tree, tree.analyzer(inner, inside=True), [writer], reader, region, inner)


def written(tree: Tree, realize: BlockRealize, buffer: Buffer, top: For | None, an: Analyzer | None = None, given: Collection[tir.Expr] = ()) -> list[Region]:
    """The boxes of a buffer that a block stores in one iteration of ``top`` (None: in its scope) where the conditions ``given`` hold, those that are
    known. ``an``: what else is known there."""
    block = realize.block
    if type(block.body) is BufferStore:
        boxes = [surely_touched(tree, realize, r.region, top, an, given) for r in regions_of(block, buffer, written=True)]
    else:
        part = block.body if block.init is None else block.init
        if any(type(n) in _CONDITIONAL or (type(n) is BlockRealize and not is_true(n.predicate)) for n in walk(part)):
            return []
        mine = [x for x in accesses_of(block) if x.store and x.buffer is buffer and (block.init is None or x.update == INIT)]
        boxes = [surely_touched(tree, realize, x.region, top, an, given, x.inside) for x in mine]
    return [b for b in boxes if b is not None]


_CONDITIONAL = (tir.If, tir.While)


def reduces_over(realize: BlockRealize, chain: Sequence[For]) -> bool:
    """Whether some of the loops are part of a variable that reduces."""
    if type(realize) is not BlockRealize:
        return False
    loops = {x.loop_var for x in chain}
    return any(iv.kind is not IterKind.SPATIAL and free_vars(v) & loops for iv, v in zip(realize.block.iter_vars, realize.iter_values))


def _covered(tree: Tree, an: Analyzer, before: list[BlockRealize], reader: BlockRealize, region: tir.BufferRegion, top: For) -> bool:
    inside = {x.loop_var for x in inner_loops(tree, reader, top)}
    given = [c for c in conjuncts(reader.predicate) if free_vars(c).isdisjoint(inside)]  # where these do not hold, nothing is read
    wanted = touched_under_limits(tree, reader, region, top, an)
    pieces = [p for w in before for p in written(tree, w, region.buffer, top, an, given)]
    if any(_holds(an, p, wanted, region.buffer) for p in pieces):
        return True
    joined: Region | None = pieces[0] if pieces else None
    for p in pieces[1:]:
        joined = _join(an, joined, p) if joined is not None else None
    return joined is not None and _holds(an, joined, wanted, region.buffer)


def _holds(an: Analyzer, outer: Region, inner: Region, buffer: Buffer) -> bool:
    """Whether ``outer`` provably holds what of ``inner`` lies in the buffer."""
    return all(
        (an.prove(x.min <= y.min) or an.prove(x.min <= 0)) and (an.prove(end(y) <= end(x)) or an.prove(n <= end(x)))
        for x, y, n in zip(outer, inner, buffer.shape)
    )


def _join(an: Analyzer, a: Region, b: Region) -> Region | None:
    """The union of two boxes where it is a box that could be shown: neighbours along one dimension."""
    differing = [k for k, (x, y) in enumerate(zip(a, b)) if not (an.prove_equal(x.min, y.min) and an.prove_equal(x.extent, y.extent))]
    if not differing:
        return a
    k = differing[0]
    return None if len(differing) > 1 or not an.prove(b[k].min <= end(a[k])) else union(a, b, an)


