# SPDX-License-Identifier: Apache-2.0
"""Copies of buffers in other scopes: cache_read and cache_write."""

from __future__ import annotations

from collections.abc import Sequence

from roundel.arith import Analyzer, covers, union
from roundel.ir import Buffer, Rewriter, decl_buffer, on, tir
from roundel.ir.tir import Block, BlockRealize, BufferLoad, BufferRegion, BufferStore, Expr, For, Range, Stmt

from . import inits, ordering, scopes, sharing
from .copyable import require_told_by_loops, require_told_places
from .handed_on import stored_by
from .kinds import known_scope, read_buffer, replace_buffers, written_buffer
from .primitive import BlockToken, Change, primitive, refuse
from .regions import Region, regions_of
from .stages import Site, after, copied_region, copy_part, copy_region, place, scope_region, stored_region
from .stored import reads_own_results, stores_all
from .tree import Tree, is_one


@primitive
def cache_read(
    tree: Tree,
    block: BlockToken,
    read_buffer_index: int | str,
    storage_scope: str,
    consumer_blocks: Sequence[BlockToken] | None = None,
) -> Change:
    """Copy what is read of a buffer into a buffer of another scope, and read that; gives back the copying block.

        for i: B[i] = A[i]     ->    for ax0: A_local[ax0] = A[ax0]
                                     for i: B[i] = A_local[i]

    All blocks of the scope that read the buffer, or only ``consumer_blocks``, read the copy.
    """
    node: Block = tree.nodes[block]
    realize = tree.realize(block)
    scope = tree.scope(realize)
    buffer = read_buffer(tree, node, read_buffer_index)
    sharing.require_only_blocks(tree, realize, set(), {buffer}, f"cache {buffer.name} of block {node.name}")
    writers = scopes.writers(tree, scope, buffer)
    if realize in writers:
        refuse(tree, realize, f"cannot cache {buffer.name}", f"block {node.name} reads it and also writes it", "cache_inplace")
    late = [w for w in writers if tree.order[w] > tree.order[realize] and not _take_turns(tree, w, realize)]
    made = [w for w in writers if w not in late]
    site = place(tree, made, [realize], realize, early=not made)
    users = _asked_for(tree, realize, buffer, consumer_blocks) or scopes.readers(tree, scope, buffer)
    users = after(site, [u for u in users if buffer in scopes.reads_of(u.block)])
    stale = [u for u in users if any(tree.order[w] <= tree.order[u] or _take_turns(tree, w, u) for w in late)]
    if stale and consumer_blocks:
        refuse(tree, realize, f"cannot cache {buffer.name}", f"block {stale[0].block.name} reads what block {late[0].block.name} writes after the copy")
    users = [u for u in users if u not in stale]
    if not users:
        refuse(tree, realize, f"cannot cache {buffer.name}", "none of the blocks that are to read the copy runs after it")
    region = copied_region(site, users, buffer, written=False)
    box = scope_region(site, buffer, region, written=False)
    cache = _like(buffer, known_scope(tree, realize, storage_scope), box)
    copied = copy_region(site, buffer, cache, region, cache.name) if box is None else copy_part(site, buffer, cache, region, box, cache.name)
    changed = site.insert(copied[0], _replaced(users, buffer, cache, box), cache)
    ordering.require_no_races(changed, cache, f"cache {buffer.name}")
    return Change(changed, copied[1])


def _asked_for(tree: Tree, realize: BlockRealize, buffer: Buffer, blocks: Sequence[BlockToken] | None) -> list[BlockRealize]:
    """The blocks that are said to read a copy, of those that read the buffer."""
    found = [tree.realize(t) for t in blocks or ()]
    for u in found:
        if tree.scope(u) is not tree.scope(realize):
            refuse(tree, u, f"cannot cache {buffer.name}", f"block {u.block.name} is not in the scope of block {realize.block.name}")
    users = [u for u in dict.fromkeys(found) if buffer in scopes.reads_of(u.block)]
    if found and not users:
        refuse(tree, realize, f"cannot cache {buffer.name}", f"none of {', '.join(u.block.name for u in found)} reads it")
    return users


def _take_turns(tree: Tree, a: BlockRealize, b: BlockRealize) -> bool:
    """Whether one of two blocks runs again after the other: they share a loop of more than one iteration."""
    return any(x in tree.loops(b) and not is_one(x.extent) for x in tree.loops(a))


@primitive
def cache_write(
    tree: Tree,
    block: BlockToken,
    write_buffer_index: int | str,
    storage_scope: str,
    consumer_blocks: Sequence[BlockToken] | None = None,
) -> Change:
    """Write into a buffer of another scope, and copy that to the original after; gives back the copying block.

        for i: B[i] = A[i]     ->    for i: B_local[i] = A[i]
                                     for ax0: B[ax0] = B_local[ax0]

    ``consumer_blocks`` read the copy directly.
    """
    node: Block = tree.nodes[block]
    realize = tree.realize(block)
    scope = tree.scope(realize)
    buffer = written_buffer(tree, node, write_buffer_index)
    others = [w for w in scopes.writers(tree, scope, buffer) if w is not realize]
    if buffer in scopes.reads_of(node) and not reads_own_results(tree, node, buffer):
        refuse(
            tree,
            realize,
            f"cannot cache {buffer.name}",
            f"block {node.name} also reads it",
            hint="cache_write before decompose_reduction",
        )
    sharing.require_no_conflict(tree, realize, others, f"cache {buffer.name} of")
    sharing.require_own_condition(tree, realize, f"cache {buffer.name} of block {node.name}")
    if node.init is not None:
        inits.require_own_results(tree, realize, f"cache {buffer.name}")
    users = _asked_for(tree, realize, buffer, consumer_blocks)
    for u in users:
        if u in (realize, *others) or tree.order[u] < tree.order[realize] or not stored_by(tree, realize, u, buffer):
            refuse(tree, realize, f"cannot cache {buffer.name}", f"block {u.block.name} reads or writes elements of it that are not stored there before")
    site = place(tree, [realize], scopes.later_readers(tree, realize, buffer, users), realize)
    if not stores_all(tree, realize, buffer, site.loop):
        why = f"block {node.name} may leave out elements of the part of {buffer.name} that would be copied back"
        refuse(tree, realize, f"cannot cache {buffer.name}", why)
    region = stored_region(site, realize, buffer)
    box = scope_region(site, buffer, region, written=True)
    cache = _like(buffer, known_scope(tree, realize, storage_scope), box)
    copied = copy_region(site, cache, buffer, region, cache.name) if box is None else copy_part(site, cache, buffer, region, box, cache.name)
    changed = site.insert(copied[0], _replaced([realize, *users], buffer, cache, box), cache)
    ordering.require_no_races(changed, cache, f"cache {buffer.name}")
    return Change(changed, copied[1])


@primitive
def cache_inplace(tree: Tree, block: BlockToken, read_buffer_index: int | str, storage_scope: str) -> Change:
    """Copy what a block reads and writes of a buffer into one of another scope, let the block work there, and copy it back; gives back both
    copying blocks.

        for i:                           for i:
            f(A[i * 8 : i * 8 + 8])          for ax0 in range(8): A_local[i * 8 + ax0] = A[i * 8 + ax0]
                                             f(A_local[i * 8 : i * 8 + 8])
                                             for ax0 in range(8): A[i * 8 + ax0] = A_local[i * 8 + ax0]

    The copies stand in the innermost loop around the block. What the block only reads is not copied back, unless it may leave out some of what it is
    said to write, and then in loops that run one after another.
    """
    node: Block = tree.nodes[block]
    realize, buffer = tree.realize(block), read_buffer(tree, tree.nodes[block], read_buffer_index)
    doing = f"cache {buffer.name} of block {node.name}"
    if buffer not in scopes.writes_of(node):
        refuse(tree, realize, f"cannot {doing}", "it does not write it", "cache_read")
    sharing.require_only_blocks(tree, realize, {buffer}, {buffer}, doing)
    sharing.require_own_condition(tree, realize, doing)
    require_told_by_loops(tree, realize, doing)
    require_told_places(tree, realize, buffer, doing)
    top: For | Block = next(iter(reversed(tree.loops(realize))), tree.scope(realize))
    site = Site(tree, tree.scope(realize), top, 0, top.body)
    read, written = (copied_region(site, [realize], buffer, written=w) for w in (False, True))
    if not stores_all(tree, realize, buffer, site.loop):
        read = written = union(read, written, tree.analyzer(top, inside=True))
        _require_alone(tree, site, realize, buffer, written)
    cache = _like(buffer, known_scope(tree, realize, storage_scope), None)
    copied, first = copy_region(site, buffer, cache, read, cache.name)
    back, second = copy_region(site, cache, buffer, written, f"{cache.name}_back")
    (inner,) = _replaced([realize], buffer, cache, None).values()
    changed = tree.edit({realize: tir.seq(copied, inner, back)})
    scope = changed.nodes[site.scope.token]
    changed = changed.edit({scope: scope.replace(alloc_buffers=(*scope.alloc_buffers, cache))})
    ordering.require_no_races(changed, cache, doing)
    return Change(changed, [first, second])


def _require_alone(tree: Tree, site: Site, realize: BlockRealize, buffer: Buffer, region: Region) -> None:
    """Elements that a block did not store are copied back where nobody else can store them in the meantime, and where it is said that they are written."""
    cannot = f"cannot cache {buffer.name} of block {realize.block.name}, which need not store all of the part that would be copied back"
    together = [x for x in tree.ancestors(realize) if type(x) is For and x.kind in ordering.TOGETHER]
    if together:
        refuse(tree, realize, cannot, f"iterations of {together[0].loop_var.name} run at the same time")
    said, an = regions_of(site.scope, buffer, written=True), tree.analyzer(site.top, inside=True)
    if site.scope is not tree.root and not any(covers(r.region, region, an) for r in said):
        refuse(tree, realize, cannot, f"block {site.scope.name} is not said to write all of it")


def _like(buffer: Buffer, scope: str, box: Region | None) -> Buffer:
    """A contiguous buffer of the same shape, or that of a box, in another scope."""
    shape = buffer.shape if box is None else tuple(r.extent for r in box)
    return decl_buffer(shape, buffer.dtype, f"{buffer.name}_{scope}", scope=scope)


def _replaced(users: Sequence[BlockRealize], old: Buffer, new: Buffer, box: Region | None) -> dict[Stmt, Stmt | None]:
    """The blocks with the copy in place of the buffer, of which it holds a box."""
    if box is None:
        return {u: u.replace(block=replace_buffers(u.block, {old: new})) for u in users}
    return {u: u.replace(block=_InBox(old, new, box).rewrite(u.block)) for u in users}


class _InBox(Rewriter):
    """Accesses of a buffer go to one that holds a box of it."""

    def __init__(self, old: Buffer, new: Buffer, box: Region) -> None:
        self.old, self.new, self.box, self.an = old, new, box, Analyzer()

    def within(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(self.an.simplify(i - o.min) for i, o in zip(indices, self.box))

    @on(BufferRegion)
    def _region(self, region: BufferRegion) -> BufferRegion:
        if region.buffer is not self.old:
            return self.generic(region)
        starts = self.within([r.min for r in region.region])
        return BufferRegion(self.new, tuple(Range(i, r.extent) for i, r in zip(starts, region.region)))

    @on(BufferLoad)
    def _load(self, load: BufferLoad) -> Expr:
        load = self.generic(load)
        return load.replace(buffer=self.new, indices=self.within(load.indices)) if load.buffer is self.old else load

    @on(BufferStore)
    def _store(self, store: BufferStore) -> Stmt:
        store = self.generic(store)
        return store.replace(buffer=self.new, indices=self.within(store.indices)) if store.buffer is self.old else store
