# SPDX-License-Identifier: Apache-2.0
"""Looking around in a program: blocks by name, loops, children, producers and consumers. These change nothing."""

from __future__ import annotations

from difflib import get_close_matches

from roundel.ir import Buffer
from roundel.ir.errors import ScheduleError
from roundel.ir.tir import Block, BlockRealize

from . import scopes
from .primitive import BlockToken, Change, Target, primitive
from .tree import Tree


def find_block(tree: Tree, name: str) -> Block:
    """The block of this name; raises ScheduleError when there is none or more than one."""
    found = [b for b in tree.blocks() if b.name == name]
    if len(found) == 1:
        return found[0]
    names = [b.name for b in tree.blocks()]
    if found:
        raise ScheduleError(f"{len(found)} blocks are named {name!r}", where=tree.name, hint="use get_child_blocks, or rename them")
    near = get_close_matches(name, names)
    raise ScheduleError(
        f"there is no block {name!r}",
        where=tree.name,
        why=f"the blocks are {', '.join(names)}",
        hint=f"did you mean {near[0]}?" if near else "",
    )


@primitive
def get_block(tree: Tree, name: str, func_name: str | None = None) -> Change:
    """The block of this name (``tree`` is that of the function ``func_name``)."""
    return Change(tree, find_block(tree, name).token)


@primitive
def get_loops(tree: Tree, block: BlockToken) -> Change:
    """The loops around a block inside its scope, outermost first."""
    return Change(tree, [x.token for x in tree.loops(tree.realize(block))])


@primitive
def get_child_blocks(tree: Tree, block_or_loop: Target) -> Change:
    """Blocks directly inside a block or loop, in program order."""
    return Change(tree, [r.block.token for r in tree.realizes(tree.nodes[block_or_loop].body)])


def _tokens(found: list[BlockRealize]) -> list:
    return [r.block.token for r in found]


@primitive
def get_producers(tree: Tree, block: BlockToken) -> Change:
    """Blocks of the same scope before this one that write what it reads."""
    return Change(tree, _tokens(scopes.producers(tree, tree.nodes[block])))


@primitive
def get_consumers(tree: Tree, block: BlockToken) -> Change:
    """Blocks of the same scope after this one that read what it writes."""
    return Change(tree, _tokens(scopes.consumers(tree, tree.nodes[block])))


@primitive
def get_output_blocks(tree: Tree, scope_block: BlockToken) -> Change:
    """Blocks inside ``scope_block``, at any depth, that write what is seen outside of it."""
    node: Block = tree.nodes[scope_block]
    inside = [b for b in tree.blocks() if b is not node and tree.under(b, node)]
    inner: set[Buffer] = {a for b in (node, *inside) for a in b.alloc_buffers}
    views = {m.buffer: m.source.buffer for b in inside for m in b.match_buffers}
    return Change(tree, [b.token for b in inside if {views.get(w, w) for w in scopes.writes_of(b)} - inner])


@primitive
def enter_postproc(tree: Tree) -> Change:
    """Mark in the trace where postprocessing begins (``Trace.apply_to_schedule`` may leave out what follows); changes nothing."""
    return Change(tree)
