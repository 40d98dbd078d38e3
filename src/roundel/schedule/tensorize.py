# SPDX-License-Identifier: Apache-2.0
"""tensorize: a tile of a program that does what an instruction does becomes that instruction."""

from __future__ import annotations

from typing import Any

from roundel.arith import Analyzer
from roundel.intrinsics import TensorIntrin
from roundel.ir import Buffer, Var, free_vars, substitute, tir
from roundel.ir.tir import (
    Block,
    BlockRealize,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Expr,
    For,
    MatchBufferRegion,
    PrimFunc,
    Range,
    Stmt,
)

from .blockize import blockize
from .kinds import replace_buffers
from .primitive import Change, Target, primitive, refuse
from .regions import bindings
from .tree import Tree, fresh_copy, is_true


@primitive
def tensorize(tree: Tree, block_or_loop: Target, tensor_intrin: str, preserve_unit_iters: bool = True) -> Change:
    """Replace a loop nest (or a blockized block) by the implementation of an instruction whose description it equals.

    for i1, j1, k1:                      with block("C_o"):
        C[vi, vj] += A[vi, vk] * B[..]      A1 = match_buffer(A[...])
                                    ->      ...
                                            implementation(A1, B1, C1)
    """
    intrin = TensorIntrin.get(tensor_intrin)
    changed, token = tree, block_or_loop
    if type(tree.nodes[block_or_loop]) is For:
        made = blockize(tree, block_or_loop, preserve_unit_iters)
        changed, token = made.tree, made.made
    outer: Block = changed.nodes[token]
    match = _Match(changed, outer)
    why = match.function(intrin.desc)
    if why:
        refuse(
            changed,
            changed.realize(token),
            f"this is not what {tensor_intrin} does",
            f"{why}; the instruction is\n{intrin.desc.script()}",
        )
    new = _implement(outer, intrin.impl, dict(zip(intrin.impl.buffer_params, match.regions(intrin.desc))))
    return Change(changed.edit({outer: new}), token if changed is not tree else None)


def _single(stmt: Stmt) -> tuple[list[For], BlockRealize] | None:
    """Loops around the one block of a nest."""
    loops = []
    while type(stmt) is For:
        loops.append(stmt)
        stmt = stmt.body
    return (loops, stmt) if type(stmt) is BlockRealize else None


def _flat(stmt: Stmt) -> tuple[list[For], Stmt] | None:
    """Loops and the block's body in terms of their variables; None when it is no such nest."""
    found = _single(stmt)
    if found is None or not is_true(found[1].predicate) or found[1].block.init is not None or found[1].block.alloc_buffers:
        return None
    loops, realize = found
    return loops, substitute(realize.block.body, bindings(realize))


class _Match:
    """Compares a tile with a description; buffers correspond up to an offset that is fixed inside the tile."""

    def __init__(self, tree: Tree, outer: Block) -> None:
        self.tree, self.outer = tree, outer
        self.an = Analyzer()
        for iv in outer.iter_vars:
            self.an.bind(iv.var, iv.dom)
        self.vars: dict[Var, Expr] = {}
        self.mine: set[Var] = set()
        self.buffers: dict[Buffer, tuple[Buffer, tuple[Expr, ...]]] = {}

    def function(self, desc: PrimFunc) -> str:
        """Why the tile is not the description; empty when it is."""
        want = _flat(desc.root_block.body) if desc.root_block is not None else None
        have = _flat(self.outer.body)
        if want is None or have is None:
            return "it is not one block without init in a nest of loops"
        if len(want[0]) != len(have[0]):
            return f"it has {len(have[0])} loops, and the instruction {len(want[0])}"
        for w, h in zip(want[0], have[0]):
            if not self.an.prove_equal(w.extent, h.extent):
                have_extent, want_extent = h.extent.script(), w.extent.script()
                return f"loop {h.loop_var.name} runs {have_extent} times, and the instruction's {want_extent} times"
            self.vars[w.loop_var] = h.loop_var
            self.mine.add(h.loop_var)
            self.an.bind(h.loop_var, Range(h.min, h.extent))
        return "" if self.same(want[1], have[1]) else "its computation differs"

    def same(self, want: Any, have: Any) -> bool:
        """Whether two statements or expressions correspond."""
        if type(want) is tuple:
            return len(want) == len(have) and all(map(self.same, want, have))
        if isinstance(want, Expr) and want.dtype is not have.dtype:
            return False
        if type(want) in (BufferLoad, BufferStore):
            return type(have) is type(want) and self.access(want, have) and (type(want) is BufferLoad or self.same(want.value, have.value))
        if isinstance(want, Expr) and want.is_index:
            return have.is_index and self.an.prove_equal(substitute(want, self.vars), have)
        if type(want) is not type(have):
            return False
        if type(want) in (tir.Add, tir.Mul):
            return self.either_way(want, have)
        return all(
            self.same(getattr(want, f), getattr(have, f)) if f in want._children else getattr(want, f) == getattr(have, f)
            for f in want._fields
            if f not in want._hidden
        )

    def either_way(self, want: Any, have: Any) -> bool:
        saved = dict(self.buffers)
        if self.same(want.a, have.a) and self.same(want.b, have.b):
            return True
        self.buffers = saved
        return self.same(want.a, have.b) and self.same(want.b, have.a)

    def access(self, want: Any, have: Any) -> bool:
        """Whether an access is at the description's index plus a fixed offset."""
        if want.buffer.dtype is not have.buffer.dtype or len(want.indices) > len(have.indices):
            return False
        lead = len(have.indices) - len(want.indices)
        offsets = [self.an.simplify(i) for i in have.indices[:lead]]
        offsets += [self.an.simplify(h - substitute(w, self.vars)) for w, h in zip(want.indices, have.indices[lead:])]
        if any(free_vars(o) & self.mine for o in offsets):
            return False
        return self.buffers.setdefault(want.buffer, (have.buffer, tuple(offsets))) == (have.buffer, tuple(offsets))

    def regions(self, desc: PrimFunc) -> list[BufferRegion]:
        """Where in the program each buffer of the description lies."""
        out = []
        for b in desc.buffer_params:
            source, offsets = self.buffers[b]
            lead = len(offsets) - b.ndim
            extents = [tir.const(1, o.dtype) for o in offsets[:lead]] + list(b.shape)
            out.append(BufferRegion(source, tuple(Range(o, n) for o, n in zip(offsets, extents))))
        return out


def _implement(outer: Block, impl: PrimFunc, where: dict[Buffer, BufferRegion]) -> Block:
    """The outer block with the implementation as its body, on views of the program's buffers (which are in their memory)."""
    assert impl.root_block is not None
    placed = {b: b.replace(scope=r.buffer.scope) for b, r in where.items() if b.scope != r.buffer.scope}
    root = replace_buffers(impl.root_block, placed)
    views = tuple(MatchBufferRegion(placed.get(b, b), r) for b, r in where.items())
    wrapper = Block((), (), (), outer.name, root.body, None, root.alloc_buffers, (*views, *root.match_buffers))
    copy: Any = fresh_copy(wrapper)[0]
    new = outer.replace(
        body=copy.body,
        alloc_buffers=(*outer.alloc_buffers, *copy.alloc_buffers),
        match_buffers=(*outer.match_buffers, *copy.match_buffers),
        annotations=outer.annotations | root.annotations,
    )
    return new
