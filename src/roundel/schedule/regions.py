# SPDX-License-Identifier: Apache-2.0
"""Regions of buffers that blocks touch, seen from loops around them."""

from __future__ import annotations

from roundel.arith import Analyzer, block_access, estimate_region
from roundel.ir import Buffer, Var, substitute, tir
from roundel.ir.tir import Block, BlockRealize, BufferRegion, Expr, For, Range, Stmt

from .tree import Tree

Region = tuple[Range, ...]


def inner_loops(tree: Tree, realize: BlockRealize, top: Stmt | None) -> list[For]:
    """The loops of the scope strictly inside ``top`` (None: all) around a realize, outermost first."""
    loops = tree.loops(realize)
    return loops if top is None else [x for x in loops if x is not top and tree.under(x, top)]


def bindings(realize: BlockRealize) -> dict[Var, Expr]:
    """Block variables to their values."""
    return {iv.var: v for iv, v in zip(realize.block.iter_vars, realize.iter_values)}


def domain(loops: list[For]) -> dict[Var, Range]:
    """Loop variables to their ranges."""
    return {x.loop_var: Range(x.min, x.extent) for x in loops}


def touched(
    tree: Tree, realize: BlockRealize, region: BufferRegion, top: Stmt | None, an: Analyzer | None = None
) -> Region:
    """The box that a block's region makes during one iteration of the loop ``top`` (None: during the whole scope)."""
    an = an or tree.analyzer(top if top is not None else tree.scope(realize), inside=True)
    values = bindings(realize)
    at = BufferRegion(region.buffer, tuple(substitute(r, values) for r in region.region))
    return estimate_region(at, domain(inner_loops(tree, realize, top)), an=an)


def regions_of(block: Block, buffer: Buffer, *, written: bool) -> list[BufferRegion]:
    """The regions of one buffer that a block reads or writes."""
    return [r for r in (block.writes if written else block.reads) if r.buffer is buffer]


def with_access(tree: Tree, block: Block) -> Block:
    """The block with ``reads`` and ``writes`` as its body has them."""
    reads, writes = block_access(block, [b for _, b in tree.func.buffer_map])
    return block.replace(reads=reads, writes=writes)


def full_region(buffer: Buffer) -> Region:
    """All of a buffer."""
    return tuple(Range(tir.index_const(0), n) for n in buffer.shape)
