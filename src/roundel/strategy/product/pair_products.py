# SPDX-License-Identifier: Apache-2.0
"""The strategy for products of bytes with a constant matrix on processors that multiply pairs of 16-bit numbers in registers of integers.

    for i, j, k: C[i, j] += int32(A[i, k]) * int32(B[k, j])          A and B signed bytes, B constant

A few rows of A at a time are copied, widened to 16 bits, and filled up with zeros to groups of four. Windows of convolutions are unfolded in the
copy, whose borders are made there too, so that nothing else is copied. All columns pass over these rows, some at a time, whose weights are widened in
registers. Sums of a tile stay in registers, and go through what follows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...intrinsics import TensorIntrin
from ...ir import tir
from ...schedule.schedule import Schedule
from ...target import Target
from ..candidates import Candidates, Columns, combinations
from ..match.accesses import blocks_of
from ..match.moves import surrounds
from ..match.tile_product import TileInstruction, TileProduct, arranged, factors
from ..parallelism import loop_extent
from ..pointwise.elementwise import schedule_spatial
from ..pointwise.inline import inline_moves
from ..program import Program
from ..sketch import Applied, Sketch, rule
from .contraction import store_of
from .contraction_candidates import ASSUMED_ROWS
from .dot_products import INSTRUCTIONS, is_widening
from .tile_products import fused

NAME = "dsp.pairs_4_i16i8i32"
GROUP = 4  # steps of the sum that one use of it adds
MOST_ROWS, MOST_COLUMNS = 4, 4
MOST_STEPS = 4     # of the sum that are written out
COPIED = 3.0       # instructions that copy an element
STORED = 4.0       # ... that begin and end a sum
STEPPED = 4.0      # ... that count an iteration over steps
SPILLED = 4.0      # ... for each value of a step that has no register
BESIDE = 3         # registers for two pointers and a number


@rule(model=INSTRUCTIONS)
def pair_products(program: Program) -> Iterator[Sketch]:
    """Fits programs with one such product, and elementwise blocks before and after it."""
    if not program.target.is_bare or len(program.reductions) != 1 or not program.is_plain:  # asked first: the table of instructions takes long to load
        return
    intrin = TensorIntrin.get(NAME)
    if not intrin.runs_on(program.target):
        return
    block = program.reductions[0]
    prologue = tuple(i.name for i in program.feeding(block) if not is_widening(i))
    start = program.inlined(keep=prologue)
    block = next(i for i in blocks_of(start.func) if i.name == block.name)
    instruction = TileInstruction(intrin, 1, 1, 1, GROUP, ("int8", "int8", "int32"))
    for factor in (0, 1) if factors(block) is not None and str(block.stores[0].buffer.dtype) == "int32" else ():
        if any(str(f.dtype) != "int8" for f in factors(block) or ()):
            continue
        found = arranged(block, instruction, factor, program.is_constant)
        if isinstance(found, TileProduct):
            steps = partial(_scheduled, found=found, prologue=prologue, target=program.target)
            yield Sketch("pair_products", start, steps, candidates(found, program.target))
            return


def candidates(p: TileProduct, target: Target) -> Candidates:
    """Every tile, and the instructions that it takes."""
    rows, columns = p.number(p.rows, ASSUMED_ROWS), p.number(p.columns, 1)
    table = combinations({"rows": range(1, min(MOST_ROWS, rows) + 1), "columns": range(1, min(MOST_COLUMNS, columns) + 1)})
    return Candidates(table, _instructions(p, target, table))


def _instructions(p: TileProduct, target: Target, t: Columns) -> Any:
    """Of all tiles: in a step two words of each row are loaded, one of each column is loaded and widened, and all pairs are multiplied."""
    steps = -(-p.number(p.reduce, 1) // GROUP)
    rows, columns = (-(-p.number(axes, n) // t[name]) for axes, n, name in ((p.rows, ASSUMED_ROWS, "rows"), (p.columns, 1, "columns")))
    sums = t["rows"] * t["columns"]
    held = sums + 2 * np.minimum(t["rows"], t["columns"]) + 2 + BESIDE
    spilled = SPILLED * np.maximum(held - target.vector_registers - BESIDE, 0)
    step = 2 * t["rows"] + 3 * t["columns"] + 2 * sums + spilled + STEPPED / written_out(steps)
    return rows * (columns * (steps * step + STORED * sums) + COPIED * t["rows"] * GROUP * steps)


def written_out(steps: int) -> int:
    """Steps of the sum in an iteration of the loop over them."""
    return next(n for n in range(MOST_STEPS, 0, -1) if steps % n == 0)


def _scheduled(sch: Schedule, choice: dict[str, int], found: TileProduct, prologue: tuple[str, ...], target: Target) -> Applied:
    """The steps for one choice; the blocks ``prologue`` stay, but for those that only surround a picture."""
    inline_moves(sch, [i.name for i in blocks_of(sch.func) if i.name in prologue and surrounds(i)])
    position = sch.func.buffer_params.index(found.weight.buffer)
    mapping = _layout(found, choice["columns"])
    block = sch.get_block(found.info.name)
    read = [r.buffer for r in sch.get(block).reads].index(found.weight.buffer)
    sch.transform_layout(block, ("read", read), mapping, pad_value=0)
    sums = store_of(sch, found.info)
    copy = sch.tile_einsum(block, sums, found.factor, _tiles(found, choice), dtype="int16")
    row, column, step, i, j, y, _ = sch.get_loops(block)
    sch.compute_at(copy, row, preserve_unit_loops=True)
    sch.reverse_compute_at(sums, column, preserve_unit_loops=True)
    outer, inner = sch.split(step, [None, written_out(loop_extent(sch, step) or 1)])
    init = sch.decompose_reduction(block, outer)
    for b in (init, sums):
        for loop in sch.get_loops(b)[2:]:
            sch.unroll(loop)
    for loop in (inner, i, j):
        sch.unroll(loop)
    sch.tensorize(y, found.instruction.intrin.name)
    _copied(sch, found, copy)
    for info in blocks_of(sch.func):
        if info.name in prologue:
            schedule_spatial(sch, info, target)
    return Applied(sch, {position: mapping}, choice)


def _layout(p: TileProduct, columns: int) -> tir.IndexMap:
    """Of the constant: blocks of columns, steps of the sum, then columns and the elements of a group in their order."""
    place = {v: d for d, v in enumerate(p.weight.indices) if isinstance(v, tir.Var)}
    at_axis = {k: place[a.var] for k, a in enumerate(p.info.block.iter_vars) if a.var in place}

    def moved(*i: Any) -> list[Any]:
        at = {k: i[d] for k, d in at_axis.items()}
        n, k = fused(p.columns, at, p), fused(p.reduce, at, p)
        return [n // columns, k // GROUP, n % columns, k % GROUP // 2, k % 2]

    return tir.IndexMap.from_func(moved, len(p.weight.indices))


def _tiles(p: TileProduct, choice: dict[str, int]) -> tir.IndexMap:
    """Of the block's axes: blocks of rows, blocks of columns, steps of the sum, rows, columns, and a group's elements, the even ones first."""
    rows, columns = choice["rows"], choice["columns"]

    def moved(*i: Any) -> list[Any]:
        m, n, k = (fused(axes, i, p) for axes in (p.rows, p.columns, p.reduce))
        return [m // rows, n // columns, k // GROUP, m % rows, n % columns, k % 2, k % GROUP // 2]

    return tir.IndexMap.from_func(moved, len(p.info.block.iter_vars))


def _copied(sch: Schedule, p: TileProduct, copy: Any) -> None:
    """A step after another, which are at one place of the window where channels come in groups."""
    step, *rows, even, half = sch.get_loops(copy)[2 if p.rows else 1:]
    sch.reorder(*rows, step)
    window = p.number(p.windows, 1)
    if window > 1 and p.number(p.others, 1) % GROUP == 0:
        sch.split(step, [*(p.number((k,), 1) for k in p.windows), p.number(p.others, 1) // GROUP])
    for loop in (even, half):
        sch.unroll(loop)
