# SPDX-License-Identifier: Apache-2.0
"""Copies of buffers: cache_read, cache_write, reindex."""

from __future__ import annotations

from collections.abc import Sequence

from roundel.arith import end, union
from roundel.ir import Buffer, Token, Var, decl_buffer, tir
from roundel.ir.tir import Block, BlockRealize, BufferRegion, Range, Stmt

from . import legality
from .kinds import read_buffer, replace_buffers, written_buffer
from .primitive import BlockToken, Change, primitive, refuse
from .rebind import serial, wrap
from .regions import Region, full_region, regions_of, touched
from .tree import TRUE, Tree, unique_block_name


@primitive
def cache_read(
    tree: Tree,
    block: BlockToken,
    read_buffer_index: int | str,
    storage_scope: str,
    consumer_blocks: Sequence[BlockToken] = (),
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
    users = [tree.realize(t) for t in consumer_blocks] or legality.readers(tree, scope, buffer)
    users = [u for u in users if buffer in legality.reads_of(u.block)]
    made = [w for w in legality.writers(tree, scope, buffer)]
    first_user = min(users, key=lambda u: tree.order[u])
    if any(tree.order[w] > tree.order[first_user] for w in made):
        refuse(tree, realize, f"cannot cache {buffer.name}", "a block writes it after (or while) it is read")
    region = _region(tree, users, buffer, written=False)
    cache = _like(buffer, storage_scope)
    copy, token = _copy(tree, buffer, cache, region)
    changes = _replaced(users, {buffer: cache}, tree)
    position = position_after(tree, scope, made) if made else 0
    return Change(insert_stage(tree, scope, changes, copy, position, cache), token)


@primitive
def cache_write(
    tree: Tree,
    block: BlockToken,
    write_buffer_index: int | str,
    storage_scope: str,
    consumer_blocks: Sequence[BlockToken] = (),
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
    region = _region(tree, [realize], buffer, written=True)
    cache = _like(buffer, storage_scope)
    copy, token = _copy(tree, cache, buffer, region, name=f"{buffer.name}_{storage_scope}")
    users = [tree.realize(t) for t in consumer_blocks]
    changes = _replaced([realize, *users], {buffer: cache}, tree)
    return Change(insert_stage(tree, scope, changes, copy, position_after(tree, scope, [realize]), cache), token)


def _like(buffer: Buffer, scope: str) -> Buffer:
    """A contiguous buffer of the same shape in another scope."""
    return decl_buffer(buffer.shape, buffer.dtype, f"{buffer.name}_{scope}", scope=scope)


def _region(tree: Tree, users: list[BlockRealize], buffer: Buffer, *, written: bool) -> Region:
    """What blocks touch of a buffer during the scope, within the buffer's bounds."""
    scope = tree.scope(users[0])
    an = tree.analyzer(scope, inside=True)
    boxes = [touched(tree, u, r, None, an) for u in users for r in regions_of(u.block, buffer, written=written)]
    region = boxes[0]
    for b in boxes[1:]:
        region = union(region, b, an)
    out = []
    for r, whole in zip(region, full_region(buffer)):
        inside = an.prove(r.min >= 0) and an.prove(end(r) <= whole.extent)
        out.append(r if inside else whole)
    return tuple(out)


def _copy(tree: Tree, source: Buffer, target: Buffer, region: Region, name: str | None = None) -> tuple[Stmt, Token]:
    """A nest that copies a region element by element, and its block's token."""
    ivs = [tir.IterVar(Var(f"v{k}", r.extent.dtype), r, tir.IterKind.SPATIAL) for k, r in enumerate(region)]
    at = tuple(iv.var for iv in ivs)
    return copy_nest(tree, ivs, tir.BufferStore(target, source[at], at), name or target.name)


def copy_nest(tree: Tree, ivs: Sequence[tir.IterVar], store: tir.BufferStore, name: str) -> tuple[Stmt, Token]:
    """A nest of loops around a block with these variables that stores one loaded element; and the block's token."""
    loops = [serial(f"ax{k}", iv.dom.extent, iv.var) for k, iv in enumerate(ivs)]
    region = lambda x: BufferRegion(x.buffer, tuple(Range(i, tir.const(1, i.dtype)) for i in x.indices))
    block = Block(tuple(ivs), (region(store.value),), (region(store),), unique_block_name(tree, name), store)
    values = tuple(tir.add(iv.dom.min, x.loop_var) for iv, x in zip(ivs, loops))
    return wrap(loops, BlockRealize(values, TRUE, block)), block.token  # type: ignore[return-value]


def _replaced(users: Sequence[BlockRealize], table: dict[Buffer, Buffer], tree: Tree) -> dict[Stmt, Stmt | None]:
    return {u: u.replace(block=replace_buffers(u.block, table)) for u in users}


def position_after(tree: Tree, scope: Block, blocks: list[BlockRealize]) -> int:
    """The position in the scope's body after the statement with the last of these blocks."""
    parts = _parts(scope)
    return 1 + max(k for k, p in enumerate(parts) if any(tree.under(b, p) for b in blocks))


def _parts(scope: Block) -> tuple[Stmt, ...]:
    return scope.body.stmts if type(scope.body) is tir.Seq else (scope.body,)


def insert_stage(
    tree: Tree, scope: Block, changes: dict[Stmt, Stmt | None], stmt: Stmt, position: int, buffer: Buffer | None
) -> Tree:
    """The program with changes, a statement put into a scope's body and a buffer allocated there."""
    changed = tree.edit(changes) if changes else tree
    old: Block = changed.nodes[scope.token]  # type: ignore[index]
    parts = list(_parts(old))
    parts.insert(position, stmt)
    new = old.replace(
        body=tir.seq(*parts), alloc_buffers=(*old.alloc_buffers, *([buffer] if buffer is not None else []))
    )
    return changed.edit({old: new})
