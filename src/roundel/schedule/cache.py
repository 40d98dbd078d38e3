# SPDX-License-Identifier: Apache-2.0
"""Copies of buffers in other scopes: cache_read and cache_write."""

from __future__ import annotations

from collections.abc import Sequence

from roundel.ir import Buffer, decl_buffer
from roundel.ir.tir import Block, BlockRealize, Stmt

from . import legality
from .kinds import known_scope, read_buffer, replace_buffers, written_buffer
from .primitive import BlockToken, Change, primitive, refuse
from .stages import after, copied_region, copy_region, place
from .tree import Tree


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
    legality.require_only_blocks(tree, realize, set(), {buffer}, f"cache {buffer.name} of block {node.name}")
    users = [tree.realize(t) for t in consumer_blocks or ()] or legality.readers(tree, scope, buffer)
    made = legality.writers(tree, scope, buffer)
    site = place(tree, made, [realize], realize, early=not made)
    if realize in made:
        refuse(tree, realize, f"cannot cache {buffer.name}", f"block {node.name} reads it and also writes it")
    users = after(site, [u for u in users if buffer in legality.reads_of(u.block)])
    region = copied_region(site, users, buffer, written=False)
    cache = _like(buffer, known_scope(tree, realize, storage_scope))
    copy, token = copy_region(site, buffer, cache, region, cache.name)
    return Change(site.insert(copy, _replaced(users, {buffer: cache}), cache), token)


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
    others = [w for w in legality.writers(tree, scope, buffer) if w is not realize]
    if buffer in legality.reads_of(node):
        refuse(
            tree,
            realize,
            f"cannot cache {buffer.name}",
            f"block {node.name} also reads it",
            hint="cache_write before decompose_reduction",
        )
    legality.require_no_conflict(tree, realize, others, f"cache {buffer.name} of")
    if not legality.stores_all(tree, realize, buffer):
        why = f"block {node.name} may leave out elements of the part of {buffer.name} that would be copied back"
        refuse(tree, realize, f"cannot cache {buffer.name}", why)
    users = [tree.realize(t) for t in consumer_blocks or ()]
    site = place(tree, [realize], legality.later_readers(tree, realize, buffer, users), realize)
    region = copied_region(site, [realize], buffer, written=True)
    cache = _like(buffer, known_scope(tree, realize, storage_scope))
    copy, token = copy_region(site, cache, buffer, region, f"{buffer.name}_{storage_scope}")
    return Change(site.insert(copy, _replaced([realize, *users], {buffer: cache}), cache), token)


def _like(buffer: Buffer, scope: str) -> Buffer:
    """A contiguous buffer of the same shape in another scope."""
    return decl_buffer(buffer.shape, buffer.dtype, f"{buffer.name}_{scope}", scope=scope)


def _replaced(users: Sequence[BlockRealize], table: dict[Buffer, Buffer]) -> dict[Stmt, Stmt | None]:
    return {u: u.replace(block=replace_buffers(u.block, table)) for u in users}
