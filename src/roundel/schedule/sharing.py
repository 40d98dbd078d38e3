# SPDX-License-Identifier: Apache-2.0
"""Who else touches the memory: what a primitive asks of the other blocks, conditions and names of buffers in a scope."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from roundel.arith import disjoint
from roundel.ir import Buffer, tir
from roundel.ir.tir import Block, BlockRealize, IterKind, Stmt

from .accesses import accesses_of, loads_of
from .dependence import name_of, same_instance, touched_besides
from .primitive import refuse
from .regions import regions_of, touched
from .scopes import asked_around, asked_of, bare_statements, needed_by, writers, writes_of
from .tree import Tree


def require_own_condition(tree: Tree, realize: BlockRealize, doing: str) -> None:
    """What a block stores does not decide whether and where its instances run."""
    for buffer in asked_of(realize) & writes_of(realize.block):
        refuse(tree, realize, f"cannot {doing}", f"whether or where block {realize.block.name} runs depends on {buffer.name}, which it stores")


def require_only_users(tree: Tree, realize: BlockRealize, buffer: Buffer, users: Sequence[BlockRealize], doing: str) -> None:
    """Nothing in the scope but these blocks touches the memory of a buffer: no other block, condition, or statement outside of blocks, and none of
    these to know whether and where it runs."""
    found = touched_besides(tree.scope(realize).body, buffer, users)
    if found is not None:
        refuse(tree, realize, f"cannot {doing}", f"{name_of(found)} also touches {buffer.name}")
    asking = [r.block.name for r in users if buffer in asked_of(r)]
    if asking:
        refuse(tree, realize, f"cannot {doing}", f"whether and where block {asking[0]} runs depends on {buffer.name}")


def require_inner_buffer(tree: Tree, block: Block, doing: str) -> Buffer:
    """The one buffer a block writes, which nothing outside of its scope sees."""
    realize = tree.realize(block.token)
    if len(block.writes) != 1:
        refuse(tree, realize, f"cannot {doing} block {block.name}", "it writes several buffers")
    buffer = block.writes[0].buffer
    if buffer not in tree.scope(realize).alloc_buffers:
        refuse(
            tree,
            realize,
            f"cannot {doing} block {block.name}",
            f"it is an output block: its result {buffer.name} is seen outside of this scope",
        )
    return buffer


def require_inner_buffers(tree: Tree, block: Block, doing: str) -> None:
    """All that a block writes is allocated in its scope, and nothing else there writes it."""
    realize = tree.realize(block.token)
    scope = tree.scope(realize)
    for buffer in writes_of(block):
        if buffer not in scope.alloc_buffers:
            refuse(
                tree,
                realize,
                f"cannot {doing} block {block.name}",
                f"it is an output block: its result {buffer.name} is seen outside of this scope",
            )
        others = [w.block.name for w in writers(tree, scope, buffer) if w is not realize]
        if others:
            refuse(tree, realize, f"cannot {doing} block {block.name}", f"it is no complete block: block {others[0]} writes {buffer.name} too")


def require_own_elements(tree: Tree, realize: BlockRealize, doing: str) -> None:
    """A block that reads what it stores reads the very elements that its instance stores, and each instance runs once, so that none sees what
    another one did, or itself before."""
    if realize.block.init is not None or any(iv.kind is not IterKind.SPATIAL for iv in realize.block.iter_vars):
        refuse(tree, realize, f"cannot {doing}", f"block {realize.block.name} reduces into what it would read")
    require_own_condition(tree, realize, doing)
    once = same_instance(tree, realize)
    for x in tree.loops(realize):
        if x.loop_var not in once:
            why = f"block {realize.block.name} runs again in each iteration of {x.loop_var.name} and would read what it stored"
            refuse(tree, realize, f"cannot {doing}", why)
    if type(realize.block.body) is not tir.BufferStore:
        refuse(tree, realize, f"cannot {doing}", f"block {realize.block.name} is more than one store, and would read what it stored")
    found = accesses_of(realize.block)
    for store in found:
        for load in found:
            same = all(x.min is y.min and x.extent is y.extent for x, y in zip(store.region, load.region))
            if store.store and not load.store and load.buffer is store.buffer and not same:
                why = f"block {realize.block.name} would read elements of {store.buffer.name} that other instances of it overwrite"
                refuse(tree, realize, f"cannot {doing}", why)


def require_no_conflict(tree: Tree, moving: BlockRealize, passed: list[BlockRealize], doing: str) -> None:
    """The moving block neither feeds, nor is fed by, nor overwrites (or shares outputs with) the blocks it passes."""
    me = moving.block
    require_only_blocks(tree, moving, writes_of(me), needed_by(moving), f"{doing} block {me.name}")
    for other in passed:
        if other is moving:
            continue
        clash = (writes_of(me) & needed_by(other)) | (needed_by(moving) & writes_of(other.block))
        clash |= {b for b in writes_of(me) & writes_of(other.block) if not _apart(tree, moving, other, b)}
        if clash:
            names = ", ".join(b.name for b in clash)
            refuse(
                tree,
                moving,
                f"cannot {doing} block {me.name}",
                f"it would move past block {other.block.name}, and both touch {names}",
            )


def require_only_blocks(tree: Tree, realize: BlockRealize, stored: set[Buffer], read: set[Buffer], doing: str) -> None:
    """No statement outside of blocks stores what the block touches, or loads what it stores; and no other name of that memory is used in the scope."""
    require_no_alias(tree, realize, stored | read, doing)
    for s in bare_statements(tree.scope(realize).body):
        for a in accesses_of(s):
            if a.buffer in stored or (a.store and a.buffer in read):
                refuse(tree, realize, f"cannot {doing}", f"a statement outside of blocks touches {a.buffer.name}")
    for a in loads_of(*asked_around(tree.scope(realize).body)) if stored else ():
        if a.buffer in stored:
            refuse(tree, realize, f"cannot {doing}", f"a condition outside of blocks reads {a.buffer.name}")


def require_no_alias(tree: Tree, realize: BlockRealize, buffers: Collection[Buffer], doing: str) -> None:
    """No view that a block around made, and no other declaration of the same memory, is touched beside buffers in the scope of a block."""
    of = tree.memory(realize)
    memory, body = {of(b): b for b in buffers}, tree.scope(realize).body
    outside = {a.buffer for s in bare_statements(body) if not _comes_first(tree, s) for a in accesses_of(s)} | {a.buffer for a in loads_of(*asked_around(body))}
    for other in outside | {b for x in tree.children(tree.scope(realize)) for b in writes_of(x.block) | needed_by(x)}:
        mine = memory.get(of(other))
        if mine is not None and mine is not other and other not in buffers:
            refuse(tree, realize, f"cannot {doing}", f"{other.name} is another name of the memory of {mine.name}")
    require_single_names(tree, realize, doing)


def _comes_first(tree: Tree, s: Stmt) -> bool:
    """Whether a statement runs once before all blocks of its scope and what is declared for them, as those that fill a constant do."""
    first = min((tree.order[r] for r in tree.children(tree.scope(s))), default=-1)
    return tree.order[s] < first and not tree.loops(s) and not any(type(a) is tir.DeclBuffer for a in tree.ancestors(s))


def require_single_names(tree: Tree, realize: BlockRealize, doing: str) -> None:
    """A block touches no memory under two names, those of views that blocks around made."""
    of, touched = tree.memory(realize), writes_of(realize.block) | needed_by(realize)
    if len({of(b) for b in touched}) < len(touched):
        refuse(tree, realize, f"cannot {doing}", f"block {realize.block.name} touches one memory under two names")


def _apart(tree: Tree, a: BlockRealize, b: BlockRealize, buffer: Buffer) -> bool:
    an = tree.analyzer(tree.scope(a), inside=True)
    boxes = [[touched(tree, r, w, None) for w in regions_of(r.block, buffer, written=True)] for r in (a, b)]
    return all(disjoint(x, y, an) for x in boxes[0] for y in boxes[1])
