# SPDX-License-Identifier: Apache-2.0
"""Convolutions in tiles of one size, whose data is copied once and not for each place of a window: slide_einsum."""

from __future__ import annotations

from collections.abc import Sequence

from roundel.arith import inverse_index_map
from roundel.ir import Buffer, Var, decl_buffer, free_vars, substitute, tir, walk
from roundel.ir.dataclass import dataclass
from roundel.ir.errors import ArithError
from roundel.ir.tir import Block, BufferLoad, BufferStore, Expr, IterKind, IterVar, Range, Stmt

from .layout import as_index_map
from .primitive import BlockToken, Change, Map, primitive, refuse
from .regions import with_access
from .tiles import Moved, TileEinsum, nest, new_extents
from .tree import Tree, unique_block_name


@primitive
def slide_einsum(tree: Tree, block: BlockToken, consumer: BlockToken, factor: int, index_map: Map, copy_map: Map,
                 slides: Sequence[Sequence[int]]) -> Change:
    """``tile_einsum`` for sums whose windows slide over the copied factor: of this each element is copied once. ``slides``: for each variable of a
    window (row, window, stride, dilation), the first two by their positions among the block's variables: the factor moves with row * stride + window *
    dilation. ``copy_map``: from the block's variables, without those of windows, to the indices of the copy, one of them of rows. Rows run over as many
    places as there are for windows (``wide_rows``), so that one row further is one element further in the copy, whatever the place in the window;
    what is more than rows is dropped. A stride has its phases apart, first in the copy.

    for i, j, k: C[i, j] += A[i + k] * B[k, j]    ->    for p, c: A_tiles[p] = A[p] if inside, else 0
                                                        for a, b, i, j, k: C_tiles[a, b, i, j] += A_tiles[a * 16 + i + k] * B[k, b * 16 + j]
    """
    return _SlideEinsum(tree, block, consumer, factor, index_map, copy_map, slides).run()


def wide_rows(rows: int, window: int, stride: int, dilation: int) -> int:
    """The places that windows of a row of results reach, by steps of the stride."""
    return ((rows - 1) * stride + (window - 1) * dilation) // stride + 1


@dataclass(frozen=True)
class _Slide:
    row: IterVar
    window: IterVar
    stride: int
    dilation: int

    @property
    def last(self) -> int:
        """The last element that is reached."""
        return (_number(self.row) - 1) * self.stride + (_number(self.window) - 1) * self.dilation

    @property
    def width(self) -> int:
        return wide_rows(_number(self.row), _number(self.window), self.stride, self.dilation)

    @property
    def phases(self) -> int:
        """Elements between neighbours in the copy that windows touch."""
        return min(self.stride, _number(self.window))

    def away(self, place: Expr) -> Expr:
        """How many rows further a place of the window is in the copy."""
        return place * self.dilation if self.stride == 1 else place // self.stride


def _number(iv: IterVar) -> int:
    return iv.dom.extent.value if type(iv.dom.extent) is tir.IntImm else 0


class _SlideEinsum(TileEinsum):
    def __init__(self, tree: Tree, block: BlockToken, consumer: BlockToken, factor: int, index_map: Map, copy_map: Map,
                 slides: Sequence[Sequence[int]]) -> None:
        axes = tree.nodes[block].iter_vars
        rows, windows = ([k for k, iv in enumerate(axes) if iv.kind is kind] for kind in (IterKind.SPATIAL, IterKind.REDUCE))
        self.slides = []
        for given in slides:
            if len(given) != 4 or given[0] not in rows or given[1] not in windows or min(given[2:]) < 1:
                refuse(tree, tree.realize(block), f"cannot slide by {[*map(int, given)]}",
                       "that is no variable of the result and one that is summed over, by "
                       "their positions, a stride and a dilation")
            row, window, stride, dilation = map(int, given)
            slide = _Slide(axes[row], axes[window], stride, dilation)
            if not _number(slide.row) or not _number(slide.window) or (stride > 1 < dilation):
                refuse(tree, tree.realize(block), f"cannot slide {slide.window.var.name} along {slide.row.var.name}", "a size is not known, or it has both "
                       "a stride and a dilation")
            self.slides.append(slide)
        super().__init__(tree, block, consumer, factor, index_map)
        self.copy_map = as_index_map(copy_map, len(axes))

    def run(self) -> Change:
        change = super().run()
        return Change(change.tree, change.made, recorded={"index_map": self.map, "copy_map": self.copy_map})

    def extents(self) -> list[Expr]:
        moving = free_vars(self.factor)
        rows = [iv for iv in self.block.iter_vars if iv.kind is IterKind.SPATIAL and iv.var in moving and _number(iv) != 1]
        wide = {s.row.var: tir.index_const(s.width) for s in self.slides if s.row not in rows[:1]}  # nothing follows after the end of the outermost
        return [wide.get(iv.var, iv.dom.extent) for iv in self.block.iter_vars]

    def tiles(self, moving: set[Var]) -> tuple[Buffer, Stmt, object]:
        """The buffer of what windows slide over, the nest that fills it, and its block's token."""
        windows = {s.window.var for s in self.slides}
        wide = {s.row.var: tir.index_const(s.width) for s in self.slides}
        one = tir.index_const(1)
        shape = [wide.get(iv.var, iv.dom.extent) if iv.var in moving - windows else one for iv in self.block.iter_vars]
        try:
            inverse, _ = inverse_index_map(self.copy_map, shape, self.an)
            extents = new_extents(self.copy_map, shape, self.an)
        except ArithError as e:
            refuse(self.tree, self.realize, f"cannot copy a factor of block {self.block.name} by this index map", str(e))
        indices = self.indices()
        bounds = [self.an.bounds(i)[1] for i in indices]
        if not all(isinstance(b, int) for e, b in zip(self.copy_map.final_indices, bounds, strict=True) if self.is_of_rows(e)):
            self.refuse("it is not known how many rows there are")
        extents = [tir.index_const(int(b) + 1) if self.is_of_rows(e) else n
                   for e, n, b in zip(self.copy_map.final_indices, extents, bounds, strict=True)]
        phased = [s for s in self.slides if s.phases > 1]
        axes = tuple(IterVar(Var(f"v{k}", n.dtype), Range.of(n), IterKind.SPATIAL)
                     for k, n in enumerate([*(tir.index_const(s.phases) for s in phased), *extents]))
        for iv in axes:
            self.an.bind(iv.var, iv.dom)
        phase = {s.window.var: iv.var for s, iv in zip(phased, axes, strict=False)}
        there = dict(zip(inverse.initial_indices, (iv.var for iv in axes[len(phased) :]), strict=True))
        at = {iv.var: substitute(e, there) for iv, e in zip(self.block.iter_vars, inverse.final_indices, strict=True)}
        value, inside = self.value(at, phase, moving)
        made = decl_buffer([iv.dom.extent for iv in axes], self.factor.dtype, self.name())
        if not self.an.prove(inside):
            value = tir.if_then_else(inside, value, tir.const(0, self.factor.dtype))
        store = BufferStore(made, value, tuple(iv.var for iv in axes))
        block = with_access(self.tree, Block(axes, (), (), unique_block_name(self.tree, made.name), store))
        return made, nest(axes, block), block.token

    def name(self) -> str:
        """Of the copy."""
        return next((n.buffer.name for n in walk(self.factor) if type(n) is BufferLoad), "factor") + "_tiles"

    def is_of_rows(self, e: Expr) -> bool:
        """Whether an index of the copy map is of variables of the result."""
        kinds = dict(zip(self.copy_map.initial_indices, (iv.kind for iv in self.block.iter_vars), strict=True))
        return any(kinds[v] is IterKind.SPATIAL for v in free_vars(e) if v in kinds)

    def value(self, at: dict[Var, Expr], phase: dict[Var, Expr], moving: set[Var]) -> tuple[Expr, Expr]:
        """The factor at a place of the copy, and whether that is one that a window reaches."""
        conditions, place, reached = [], dict(at), {}
        for s in self.slides:
            z, row, window = Var(f"z_{s.row.var.name}", s.row.var.dtype), s.row.var, s.window.var
            reached[z] = self.an.simplify(at[row] * s.stride + phase.get(window, tir.index_const(0)))
            if s.stride == 1:
                place[row], place[window] = z - window * s.dilation, window
            else:
                place[window], place[row] = z - row * s.stride, row
            if not self.an.prove(reached[z] <= s.last):
                conditions.append(reached[z] <= s.last)
        value = self.an.simplify(Moved(place, self.an).rewrite(self.factor))
        for s in self.slides:
            if {s.row.var, s.window.var} & free_vars(value):
                self.refuse(f"its factor is not the same where {s.row.var.name} * {s.stride} + {s.window.var.name} * {s.dilation} is the same")
        slid = {s.row.var for s in self.slides} | {s.window.var for s in self.slides}
        for iv in self.block.iter_vars:
            if iv.var in moving - slid and not self.an.prove(at[iv.var] < iv.dom.extent):
                conditions.append(at[iv.var] < iv.dom.extent)
        return Moved(reached, self.an).rewrite(value), self.an.simplify(tir.logical_and(*conditions))

    def indices(self) -> list[Expr]:
        """Those of the copy, phases left aside, that the product reads."""
        place = dict(self.place)
        steps = {s.row.var: s.away(self.place[s.window.var]) for s in self.slides}
        out = []
        for e in self.copy_map.final_indices:
            old = dict(zip(self.copy_map.initial_indices, (iv.var for iv in self.block.iter_vars), strict=True))
            e = substitute(e, old)
            moved = self.an.simplify(substitute(e, place))
            for row, away in steps.items():
                if row in free_vars(e):
                    moved = moved + away * self.an.simplify(substitute(e, {row: row + 1}) - e)
            out.append(self.an.simplify(moved))
        return out

    def copied(self, tiles: Buffer, moving: set[Var]) -> BufferLoad:
        phases = [self.an.simplify(self.place[s.window.var] % s.stride) for s in self.slides if s.phases > 1]
        return BufferLoad(tiles, (*phases, *self.indices()))
