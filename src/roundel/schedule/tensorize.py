# SPDX-License-Identifier: Apache-2.0
"""tensorize: a tile of a program that does what an instruction does becomes that instruction.

The loops of the tile may stand in any order, and the axes of an operand in memory too (a transposed matrix): then the instruction's accesses are
made in that order, element by element where it would have read a row. An operand whose address the implementation hands on lies as it is described: in that
order, and without gaps unless its strides are parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

from roundel.arith import Analyzer
from roundel.intrinsics import TensorIntrin
from roundel.ir import Buffer, Var, decl_buffer, free_vars, substitute, tir
from roundel.ir.dataclass import dataclass
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
from roundel.ir.visit import on, walk

from .accesses import accesses_of
from .blockize import blockize
from .kinds import replace_buffers
from .primitive import Change, Target, primitive, refuse
from .redirect import Redirect
from .regions import bindings
from .tree import Tree, fresh_copy, is_true


@primitive
def tensorize(tree: Tree, block_or_loop: Target, tensor_intrin: str, preserve_unit_iters: bool = True) -> Change:
    """Replace a loop nest (or a blockized block) by the implementation of an instruction whose description it equals.

    for i1, j1, k1:                      with block("C_o"):
        C[vi, vj] += A[vi, vk] * B[..]      A1 = match_buffer(A[...])
                                    ->      ...
                                            implementation(A1, B1, C1)

    The operands that it stores share no memory with others.
    """
    intrin = TensorIntrin.get(tensor_intrin)
    changed, token = tree, block_or_loop
    if type(tree.nodes[block_or_loop]) is For:
        made = blockize(tree, block_or_loop, preserve_unit_iters)
        changed, token = made.tree, made.made
    outer: Block = changed.nodes[token]
    match = _Match(changed, outer, _addressed(intrin))
    why = match.function(intrin.desc)
    if why:
        refuse(
            changed,
            changed.realize(token),
            f"this is not what {tensor_intrin} does",
            f"{why}; the instruction is\n{intrin.desc.script()}",
        )
    new = _implement(outer, intrin.impl, dict(zip(intrin.impl.buffer_params, map(match.buffers.__getitem__, intrin.desc.buffer_params))))
    return Change(changed.edit({outer: new}), token if changed is not tree else None)


def _addressed(intrin: TensorIntrin) -> frozenset[Buffer]:
    """Operands of a description of which the implementation hands on the address, and nothing says how far apart their elements are."""
    taken = {n.args[0].buffer for n in walk(intrin.impl.body) if type(n) is tir.Call and n.op == "address_of" and type(n.args[0]) is BufferLoad}
    return frozenset(d for d, i in zip(intrin.desc.buffer_params, intrin.impl.buffer_params, strict=True) if i in taken and not i.strides)


def _single(stmt: Stmt) -> tuple[list[For], BlockRealize] | None:
    """Loops around the one block of a nest."""
    loops = []
    while type(stmt) is For:
        loops.append(stmt)
        stmt = stmt.body
    return (loops, stmt) if type(stmt) is BlockRealize else None


def _flat(stmt: Stmt) -> tuple[list[For], Stmt] | None:
    """Loops of more than one iteration, and the block's body in terms of their variables; None when it is no such nest."""
    found = _single(stmt)
    if found is None or not is_true(found[1].predicate) or found[1].block.init is not None or found[1].block.alloc_buffers:
        return None
    loops, realize = found
    once = {x.loop_var: x.min for x in loops if _is_one(x.extent)}
    return [x for x in loops if not _is_one(x.extent)], substitute(substitute(realize.block.body, bindings(realize)), once)


@dataclass(frozen=True)
class _Place:
    """Where a buffer of the description lies in one of the program: which axis there is each of its own, and where the tile begins along each axis
    there."""

    source: Buffer
    axes: tuple[int, ...]
    offsets: tuple[Expr, ...]

    @property
    def is_plain(self) -> bool:
        """Whether its axes are the last ones of the program's buffer, in their order."""
        return self.axes == tuple(range(self.source.ndim - len(self.axes), self.source.ndim))

    def lies_as(self, shape: Sequence[Expr]) -> bool:
        """Whether memory has the elements of a buffer of this shape in its order: axes of one element may stand anywhere."""
        long = [d for d, n in zip(self.axes, shape, strict=True) if not _is_one(n)]
        behind = range(min(long, default=self.source.ndim), self.source.ndim)
        return self.is_plain or long == [d for d in behind if d in long or not _is_one(self.source.shape[d])]

    def region(self, shape: Sequence[Expr]) -> BufferRegion:
        """The elements of a buffer of this shape."""
        extents = dict(zip(self.axes, shape, strict=True))
        return BufferRegion(self.source, tuple(Range(o, extents.get(d, tir.const(1, o.dtype))) for d, o in enumerate(self.offsets)))


class _Match:
    """Compares a tile with a description; buffers correspond up to the order of axes and an offset that is fixed inside the tile."""

    def __init__(self, tree: Tree, outer: Block, addressed: frozenset[Buffer] = frozenset()) -> None:
        self.tree, self.outer, self.addressed = tree, outer, addressed
        self.an = Analyzer()
        for iv in outer.iter_vars:
            self.an.bind(iv.var, iv.dom)
        self.vars: dict[Var, Expr] = {}
        self.mine: set[Var] = set()
        self.buffers: dict[Buffer, _Place] = {}

    def function(self, desc: PrimFunc) -> str:
        """Why the tile is not the description; empty when it is."""
        want = _flat(desc.root_block.body) if desc.root_block is not None else None
        have = _flat(self.outer.body)
        if want is None or have is None:
            return "it is not one block without init in a nest of loops"
        if len(want[0]) != len(have[0]):
            return f"it has {len(have[0])} loops, and the instruction {len(want[0])}"
        self.mine = {h.loop_var for h in have[0]}
        for h in have[0]:
            self.an.bind(h.loop_var, Range(h.min, h.extent))
        reasons = []
        for order in permutations(have[0]):
            self.buffers = {}
            reasons.append(self.extents(want[0], order) or ("" if self.same(want[1], have[1]) else "its computation differs"))
            if not reasons[-1]:
                return self.shared()
        return next((r for r in reasons if r.startswith("its")), reasons[0])

    def shared(self) -> str:
        """Why operands in one memory would get into each other's way; empty when none is stored but alone."""
        of = self.tree.memory(self.tree.realize(self.outer.token))
        stored = {of(a.buffer) for a in accesses_of(self.outer) if a.store}
        memory = [of(place.source) for place in self.buffers.values()]
        return "it stores into the memory of another operand" if any(memory.count(m) > 1 for m in stored) else ""

    def extents(self, want: Sequence[For], have: Sequence[For]) -> str:
        """Why loops in this order are not the description's; empty when they may be."""
        for w, h in zip(want, have, strict=True):
            if not self.an.prove_equal(w.extent, h.extent):
                have_extent, want_extent = h.extent.script(), w.extent.script()
                return f"loop {h.loop_var.name} runs {have_extent} times, and the instruction's {want_extent} times"
            self.vars[w.loop_var] = tir.sub(h.loop_var, h.min)
        return ""

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
        """Whether an access is at the description's index plus a fixed offset, its axes in some order."""
        if want.buffer.dtype is not have.buffer.dtype or len(want.indices) > len(have.indices):
            return False
        known = self.buffers.get(want.buffer)
        for axes in _orders(len(want.indices), len(have.indices)) if known is None else [known.axes]:
            place = _Place(have.buffer, axes, self.offsets(want.indices, have.indices, axes))
            if want.buffer in self.addressed and not place.lies_as(want.buffer.shape):
                continue
            if not any(free_vars(o) & self.mine for o in place.offsets):
                return self.buffers.setdefault(want.buffer, place) == place
        return False

    def offsets(self, want: Sequence[Expr], have: Sequence[Expr], axes: Sequence[int]) -> tuple[Expr, ...]:
        """How far the program's indices are ahead of the description's."""
        at = dict(zip(axes, want, strict=True))
        return tuple(self.an.simplify(h - substitute(at[d], self.vars) if d in at else h) for d, h in enumerate(have))


def _is_one(extent: Expr) -> bool:
    return isinstance(extent, tir.IntImm) and extent.value == 1


def _orders(own: int, others: int) -> Iterator[tuple[int, ...]]:
    """Which axes of a buffer with ``others`` may be the ``own`` ones of another, the last ones in their order first."""
    last = tuple(range(others - own, others))
    yield last
    yield from (axes for axes in permutations(range(others), own) if axes != last)


def _implement(outer: Block, impl: PrimFunc, where: dict[Buffer, _Place]) -> Block:
    """The outer block with the implementation as its body, on views of the program's buffers (which are in their memory)."""
    assert impl.root_block is not None
    root, views = impl.root_block, []
    for buffer, place in where.items():
        view = buffer if buffer.scope == place.source.scope else buffer.replace(scope=place.source.scope)
        region = place.region(buffer.shape)
        if place.is_plain:
            root = replace_buffers(root, {buffer: view}) if view is not buffer else root
        else:
            view = decl_buffer([r.extent for r in region.region], buffer.dtype, buffer.name, scope=place.source.scope)
            root = _InOrder(buffer, view, place.axes).rewrite(root)
        views.append(MatchBufferRegion(view, region))
    wrapper = Block((), (), (), outer.name, root.body, None, root.alloc_buffers, (*views, *root.match_buffers))
    copy: Any = fresh_copy(wrapper)[0]
    new = outer.replace(
        body=copy.body,
        alloc_buffers=(*outer.alloc_buffers, *copy.alloc_buffers),
        match_buffers=(*outer.match_buffers, *copy.match_buffers),
        annotations=outer.annotations | root.annotations,
    )
    return new


class _InOrder(Redirect):
    """Accesses of an operand whose axes stand in another order in memory, between others of which the tile has one element."""

    def __init__(self, old: Buffer, new: Buffer, axes: Sequence[int]) -> None:
        self.old, self.new, self.axes = old, new, axes

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        place = dict(zip(self.axes, indices, strict=True))
        return tuple(place.get(d, tir.index_const(0)) for d in range(self.new.ndim))

    @on(BufferRegion)
    def _region(self, region: BufferRegion) -> BufferRegion:
        if region.buffer is not self.old:
            return region
        place = dict(zip(self.axes, region.region, strict=True))
        one = Range(tir.index_const(0), tir.index_const(1))
        return BufferRegion(self.new, tuple(place.get(d, one) for d in range(self.new.ndim)))
