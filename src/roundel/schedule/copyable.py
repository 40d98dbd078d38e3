# SPDX-License-Identifier: Apache-2.0
"""What a copy of a buffer asks of the block that is to use it: where the block runs and what it touches must be the same when the copy is made.

A copy stands before or behind a block, under loops of its own. It holds the right elements where loops and sizes alone tell which instances run
(memory may change in between), the variables alone tell which elements an instance touches, and these are touched under the buffer's name.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from roundel.arith import reads_memory
from roundel.ir import Buffer, Var, free_vars, tir, walk
from roundel.ir.tir import Block, BlockRealize, IterKind, IterVar

from .accesses import accesses_of, loads_of
from .primitive import refuse
from .regions import Region
from .tree import Tree, is_one, is_zero


def require_told_by_loops(tree: Tree, realize: BlockRealize, doing: str) -> None:
    """Loops and sizes tell whether and where the instances of a block run, and how many there are."""
    bounds = [e for iv in realize.block.iter_vars for e in (iv.dom.min, iv.dom.extent)] + [e for x in tree.loops(realize) for e in (x.min, x.extent)]
    if any(map(reads_memory, (*realize.iter_values, realize.predicate, *bounds))):
        refuse(tree, realize, f"cannot {doing}", f"memory tells whether or where block {realize.block.name} runs, and may change before or after")


def require_told_places(tree: Tree, realize: BlockRealize, buffer: Buffer, doing: str) -> None:
    """The variables of a block tell which elements of a buffer it touches."""
    for a in accesses_of(realize.block):
        if a.buffer.data is buffer.data and loads_of(*(e for r in a.region for e in (r.min, r.extent))):
            refuse(tree, realize, f"cannot {doing}", f"memory tells which elements of {buffer.name} block {realize.block.name} touches")


def require_single_elements(tree: Tree, realize: BlockRealize, buffer: Buffer, ndim: int, doing: str) -> None:
    """A block touches a buffer element by element, through views of one element too, which a copy with ``ndim`` dimensions can have; not by a pointer."""
    for n in walk(realize.block):
        if n is buffer.data:
            refuse(tree, realize, f"cannot {doing}", f"block {realize.block.name} touches {buffer.name} through its pointer")
        if type(n) is tir.MatchBufferRegion and n.source.buffer is buffer:
            if n.buffer.ndim > ndim or not all(is_one(r.extent) for r in n.source.region):
                refuse(tree, realize, f"cannot {doing}", f"the view {n.buffer.name} has more dimensions, or more elements than one")


def require_fixed_domain(tree: Tree, realize: BlockRealize, variables: Sequence[IterVar], doing: str) -> None:
    """Variables of a block run from 0 to what is known outside of the loops around it."""
    around = {x.loop_var for x in tree.loops(realize)} | {iv.var for iv in realize.block.iter_vars}
    for iv in variables:
        if not is_zero(iv.dom.min):
            refuse(tree, realize, f"cannot {doing}", f"variable {iv.var.name} does not start at 0")
        if free_vars(iv.dom.extent) & around or reads_memory(iv.dom.extent):
            refuse(tree, realize, f"cannot {doing}", f"how far variable {iv.var.name} runs is told by the loops around or by memory")


def require_spatial(tree: Tree, realize: BlockRealize, variables: Collection[Var], doing: str) -> None:
    """Each element that a block stores is finished by the instances that differ in other variables than these."""
    for iv in realize.block.iter_vars:
        if iv.var in variables and iv.kind is not IterKind.SPATIAL:
            refuse(tree, realize, f"cannot {doing}", f"its variable {iv.var.name}, by which it finds its results, is {iv.kind.value} and not spatial")


def require_seen(tree: Tree, realize: BlockRealize, buffer: Buffer, region: Region, inside: Collection[Var], doing: str) -> None:
    """A region that is to be copied does not depend on what only the block, or loops within the place of the copy, know."""
    hidden = {iv.var for iv in realize.block.iter_vars} | set(inside)
    used = frozenset().union(*(free_vars(e) for r in region for e in (r.min, r.extent)))
    if used & hidden:
        names = ", ".join(v.name for v in used & hidden)
        refuse(tree, realize, f"cannot {doing}", f"which part of {buffer.name} that is depends on {names}")


def plain_stores(block: Block) -> bool:
    """Whether a block (and its init) is one store, without memory or views of its own."""
    parts = [p for p in (block.body, block.init) if p is not None]
    return all(type(p) is tir.BufferStore and p.predicate is None for p in parts) and not block.alloc_buffers and not block.match_buffers
