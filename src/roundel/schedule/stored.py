# SPDX-License-Identifier: Apache-2.0
"""Whether a block stores all of what it is said to write: only then may that part of a buffer be copied back over what was there."""

from __future__ import annotations

from collections.abc import Mapping

from roundel.arith import covers, detect_iter_map, estimate_region, reads_memory, same_region
from roundel.ir import Buffer, Var, free_vars, tir, walk
from roundel.ir.errors import ArithError
from roundel.ir.tir import Block, BlockRealize, BufferRegion, BufferStore, For, IterKind, Range

from . import scopes
from .accesses import INIT, Access, accesses_of, loads_of
from .handed_on import reads_what_it_stores, written
from .limits import has_iterations
from .regions import init_domain, regions_of, run_domain, touched
from .tree import Tree, conjuncts, is_one, is_true


def stores_all(tree: Tree, realize: BlockRealize, buffer: Buffer, within: For | None = None, box: Mapping[Var, Range] | None = None) -> bool:
    """Whether a block stores every element of the region it is said to write of a buffer in its scope (in one iteration of ``within``, or
    where its variables are in ``box``): its variables make a box, no condition leaves out a part, the places are dense and not told by memory."""
    block = realize.block
    domain = run_domain if block.init is None else init_domain
    box = domain(tree, realize, within) if box is None else box
    if box is None or tree.conditions(realize, within) or any(reads_memory(e) for e in (*realize.iter_values, *conjuncts(realize.predicate))):
        return False
    if not always_stores(block):
        return False
    mine = [a for a in accesses_of(block) if a.store and a.buffer is buffer and (block.init is None or a.update == INIT)]
    said = regions_of(block, buffer, written=True)
    return len(said) == 1 and any(_without_gaps(tree, realize, a, said[0], box) for a in mine)


def always_stores(block: Block) -> bool:
    """Whether each instance of a block runs through all of its stores (a reduction: those of its init): no condition is in it."""
    part = block.body if block.init is None else block.init
    return not any(type(n) in (tir.If, tir.While) or (type(n) is BlockRealize and not is_true(n.predicate)) or _masked(n) for n in walk(part))


def _masked(n: object) -> bool:
    return type(n) is BufferStore and n.predicate is not None


def _without_gaps(tree: Tree, realize: BlockRealize, a: Access, said: BufferRegion, box: Mapping[Var, Range]) -> bool:
    """Whether the indices of a store take every value between their least and greatest, in all combinations, and this is what the block is said
    to write."""
    doms, an = {**box, **a.inside}, tree.analyzer(realize)
    points = [r.min for r in a.region if is_one(r.extent)]
    used = frozenset().union(*map(free_vars, points))
    moving = {v: r for v, r in doms.items() if v in used and not is_one(r.extent)}
    told = any(free_vars(e) & doms.keys() for r in moving.values() for e in (r.min, r.extent))  # how far one runs, by another
    if any(map(reads_memory, points)) or told or not all(v in used or has_iterations(r.extent, an) for v, r in doms.items()):
        return False
    regions = [estimate_region(BufferRegion(a.buffer, r), doms, an=an) for r in (a.region, said.region)]
    if not same_region(*regions, an):
        return False
    if all(type(i) is Var for i in points) and len(set(points)) == len(points):
        return True
    try:
        found = detect_iter_map(points, {v: r for v, r in doms.items() if v in used}, an=an)
    except ArithError:
        return False
    return all(is_one(x.scale) for s in found.indices for x in s.splits)


def reads_own_results(tree: Tree, block: Block, buffer: Buffer) -> bool:
    """Whether an instance of a block reads of a buffer only what blocks in it have stored before."""
    if block.init is not None or any(a.buffer is buffer for s in scopes.bare_statements(block.body) for a in accesses_of(s)):
        return False
    if any(type(n) is tir.MatchBufferRegion and n.source.buffer is buffer for n in walk(block)):  # (what is read through the view is read of it)
        return False
    inside, an = tree.children(block), tree.analyzer(block, inside=True)
    if any(buffer in scopes.asked_of(r) for r in inside) or any(a.buffer is buffer for a in loads_of(*scopes.asked_around(block.body))):
        return False
    for k, reader in enumerate(inside):
        own = reader.block.init is not None and buffer in scopes.writes_of(reader.block)
        if own and not reads_what_it_stores(reader.block, buffer):
            return False
        before = [w for w in inside[:k] if buffer in scopes.writes_of(w.block) and not any(x in tree.loops(reader) for x in tree.loops(w))]
        boxes = [box for w in before if _whole(tree, w) and stores_all(tree, w, buffer) for box in written(tree, w, buffer, None)]
        for read in regions_of(reader.block, buffer, written=False) if not own else ():
            if not any(covers(box, touched(tree, reader, read, None, an), an) for box in boxes):
                return False
    return bool(inside)


def _whole(tree: Tree, realize: BlockRealize) -> bool:
    """Whether what a block reduces over is all in its scope."""
    here = {x.loop_var for x in tree.loops(realize)}
    return all(iv.kind is IterKind.SPATIAL or free_vars(v) <= here for iv, v in zip(realize.block.iter_vars, realize.iter_values))
