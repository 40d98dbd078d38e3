# SPDX-License-Identifier: Apache-2.0
"""Blocks of a scope: what kind they are of, who writes and who reads a buffer, what stands outside of blocks. Nothing is refused here."""

from __future__ import annotations

from collections.abc import Sequence

from roundel.ir import Buffer, Var, free_vars, tir, walk
from roundel.ir.tir import Block, BlockRealize, Expr, For, IterKind, Stmt

from .accesses import loads_of
from .regions import regions_read
from .tree import Tree, child_stmts

FREE_ORDER = (IterKind.SPATIAL, IterKind.REDUCE)


def writes_of(block: Block) -> set[Buffer]:
    """Buffers a block writes."""
    return {r.buffer for r in block.writes}


def reads_of(block: Block) -> set[Buffer]:
    """Buffers a block reads."""
    return {r.buffer for r in regions_read(block)}


def is_complete(block: Block) -> bool:
    """Spatial variables only, no init, nothing read back."""
    return block.init is None and all(iv.kind is IterKind.SPATIAL for iv in block.iter_vars) and not reads_of(block) & writes_of(block)


def is_reduction(block: Block) -> bool:
    """An init, spatial and reduce variables only."""
    return block.init is not None and all(iv.kind in FREE_ORDER for iv in block.iter_vars)


def writers(tree: Tree, scope: Block, buffer: Buffer) -> list[BlockRealize]:
    """Blocks of a scope that write a buffer, in order."""
    return [r for r in tree.children(scope) if buffer in writes_of(r.block)]


def readers(tree: Tree, scope: Block, buffer: Buffer) -> list[BlockRealize]:
    """Blocks of a scope that read a buffer, or of which it decides whether and where they run, in order."""
    return [r for r in tree.children(scope) if buffer in needed_by(r)]


def asked_of(realize: BlockRealize) -> set[Buffer]:
    """Buffers on whose contents it depends whether and where a block runs."""
    return {a.buffer for a in loads_of(*realize.iter_values, realize.predicate)}


def needed_by(realize: BlockRealize) -> set[Buffer]:
    """Buffers that a block reads, or whose contents decide whether and where it runs."""
    return reads_of(realize.block) | asked_of(realize)


def later_readers(tree: Tree, realize: BlockRealize, buffer: Buffer, but: Sequence[BlockRealize] = ()) -> list[BlockRealize]:
    """Blocks of the same scope that read a buffer after a block (in a loop around both, in the same iteration or a later one), ``but`` some."""
    around = tree.loops(realize)
    found = [r for r in tree.children(tree.scope(realize)) if r is not realize and r not in but and buffer in needed_by(r)]
    return [r for r in found if tree.order[r] > tree.order[realize] or any(x in around for x in tree.loops(r))]


def producers(tree: Tree, block: Block) -> list[BlockRealize]:
    """Blocks of the same scope, before this one, that write what it reads (or also writes), or what decides whether and where it runs."""
    scope, me = tree.scope(tree.realize(block.token)), tree.realize(block.token)
    mine = needed_by(me) | writes_of(block)
    return [r for r in tree.children(scope) if r is not me and tree.order[r] < tree.order[me] and writes_of(r.block) & mine]


def consumers(tree: Tree, block: Block) -> list[BlockRealize]:
    """Blocks of the same scope, after this one, that read what it writes, or of which that decides whether and where they run."""
    scope, me = tree.scope(tree.realize(block.token)), tree.realize(block.token)
    return [r for r in tree.children(scope) if r is not me and tree.order[r] > tree.order[me] and needed_by(r) & writes_of(block)]


def passed(tree: Tree, moving: BlockRealize, place: Stmt) -> list[BlockRealize]:
    """Blocks of the scope that a block changes places with when it goes from its loops to ``place`` (a block or a loop): those between
    the two, and those in loops around one of them only."""
    low, high = sorted((tree.order[moving], tree.order[place]))
    here, there = tree.loops(moving), [*tree.loops(place), *([place] if type(place) is For else [])]
    tops = [next((x for x in a if x not in b), None) for a, b in ((here, there), (there, here))]
    spanned = {r for x in tops if x is not None for r in tree.realizes(x)}
    found = tree.children(tree.scope(moving))
    return [r for r in found if r is not moving and r is not place and (low < tree.order[r] < high or r in spanned)]


def asked_around(stmt: Stmt) -> list[Expr]:
    """The conditions, bounds and values of the statements around blocks."""
    out, stack = [], [stmt]
    while stack:
        s = stack.pop()
        inside = () if type(s) is BlockRealize else child_stmts(s)
        if inside and type(s) is not tir.Seq:
            out += [e for name in ("condition", "min", "extent", "value") if isinstance(e := getattr(s, name, None), Expr)]
        stack += inside
    return out


def mixed_loops(realize: BlockRealize) -> frozenset[Var]:
    """Variables that a block's variables of different kinds share."""
    found: dict[Var, set[IterKind]] = {}
    for iv, value in zip(realize.block.iter_vars, realize.iter_values):
        for v in free_vars(value):
            found.setdefault(v, set()).add(iv.kind)
    return frozenset(v for v, kinds in found.items() if len(kinds) > 1)


def _used(block: Block) -> set:
    return {n for n in walk(block) if type(n) is tir.Var}


def leaves(stmt: Stmt) -> list[Stmt]:
    """The blocks (realizes) and the statements outside of blocks at or under a statement, in order."""
    out, stack = [], [stmt]
    while stack:
        s = stack.pop()
        inside = () if type(s) is BlockRealize else child_stmts(s)
        if not inside:
            out.append(s)
        stack.extend(reversed(inside))
    return out


def bare_statements(stmt: Stmt) -> list[Stmt]:
    """The stores and calls outside of blocks at or under a statement."""
    return [s for s in leaves(stmt) if type(s) in (tir.BufferStore, tir.Evaluate)]
