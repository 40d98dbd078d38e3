# SPDX-License-Identifier: Apache-2.0
"""The register tile of a contraction: how many rows and vectors of accumulators run together.

Each step of the reduction loads ``vectors`` vectors of one operand and broadcasts ``rows`` elements of the other for
``rows * vectors`` multiply-adds. A tile must fit the registers (one more holds the broadcast) and have enough independent
multiply-adds to hide their latency; what is left over at the edge costs as much as a tile of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...ir import tir
from ...ir.dataclass import dataclass
from ...schedule.schedule import Schedule
from ...target import Target
from ..cost import cycles, rows_in_cache
from ..nest import Operand, differs
from ..statements import LANES, UNROLLED, Column, Loop, Operation, Statement, Touch

MAX_VECTORS = 4
STEPS, PANELS = 256, 4  # of a reduction whose length does not matter, and panels of its columns
FLOAT = 32  # bits


@dataclass(frozen=True)
class Tile:
    """``rows`` x ``vectors`` accumulators of ``lanes`` elements."""

    rows: int
    vectors: int
    lanes: int


def product_cycles(target: Target, extent: Column, rows: Column, vectors: Column, lanes: int, row_bytes: int | None = None, steps: int = STEPS,
                   around: tuple[Column, Column, int] = (PANELS, 1, 1)) -> Column:
    """Cycles of one step of a reduction, which has ``steps``, for all of ``extent`` rows and one vector of columns, in tiles whose panels are packed.
    ``row_bytes``: from one row of the broadcast operand to the next; ``around``: panels, blocks of rows that go over each of them, products of
    matrices one after another for each."""
    panels, blocks, matrices = around
    line, pitch = target.line_bytes, (row_bytes or 4 * steps) // 4
    panel, block, matrix, row, column, step = "panel", "block", "matrix", "row", "column", "step"
    highest, widest = int(np.max(extent)), MAX_VECTORS * lanes
    own, rest_of_row = (matrices, {matrix: 1}), (pitch, {step: 1})
    left = Operand((own, (int(np.max(blocks)), {block: 1}), (highest, {row: 1}), rest_of_row), 4.0, line)
    right = Operand(((int(np.max(panels)), {panel: 1}), own, (steps, {step: 1}), (widest, {column: 1})), 4.0, line, is_packed=True)
    made = Operand((own, (highest, {row: 1}), (widest, {column: 1})), 4.0, line)
    result = Touch(made, frozenset((row, column)), 1, True, False, FLOAT, "made", {column: 1})
    touches = (replace(result, register=True), Touch(left, frozenset((row, step)), 0, False, False, FLOAT, "left", {row: pitch, step: 1}),
               Touch(right, frozenset((column, step)), 1, False, False, FLOAT, "right", {column: 1, step: lanes}))

    def nest(tiles: Column, height: Column) -> Statement:
        outside = (x for x in (Loop(panel, panels), Loop(block, blocks), Loop(matrix, matrices)) if differs(x.extent, 1))
        loops = (*outside, Loop(row, tiles), Loop(step, steps, written=min(4, target.unrolled_steps)))
        body = (Loop(row, height, UNROLLED), Loop(column, vectors, UNROLLED), Loop(column, lanes, LANES))
        return Statement((*loops, *body), touches, (Operation(1.0, frozenset((row, column, step)), FLOAT),), accumulates=True, result=result)

    rest = extent % rows
    spent = cycles(target, nest(-(-extent // rows), rows), pieces=[nest(extent // rows, rows), nest(1 * (rest > 0), np.maximum(rest, 1))])
    return spent / (panels * blocks * matrices * steps * vectors)


def choose_tile(target: Target, rows: int, columns: Sequence[int], lanes: int, row_bytes: int | None = None, whole: bool = False,
                steps: int = STEPS) -> Tile:
    """The tile with the fewest cycles over the whole product. ``rows``: extent of the row axis; ``columns``: the numbers of vectors that a tile
    may have; ``row_bytes``: from one row of the broadcast operand to the next; ``whole``: the rows are a whole number of tiles; ``steps``: of the
    reduction."""
    most = range(1, min(rows, rows_in_cache(target, row_bytes), target.vector_registers) + 1)
    pairs = [(h, v) for v in columns if v <= MAX_VECTORS for h in most if target.holds_tile(h, v) and not (whole and rows % h)]
    if not pairs:
        return Tile(1, 1, lanes)
    heights, vectors = np.array(pairs).T
    best = int(np.argmin(product_cycles(target, rows, heights, vectors, lanes, row_bytes, steps)))
    return Tile(int(heights[best]), int(vectors[best]), lanes)


def multiply_in_registers(sch: Schedule, block: Any, panels: tir.Buffer, tile: Tile, first: Any, step: Any, inner: Sequence[Any], lanes: Any) -> None:
    """The inside of a register tile: each ``step`` loads vectors of ``panels`` once for all rows, accumulators are cleared before
    ``first`` of the reduction; the loops ``inner`` are written out, ``lanes`` run together."""
    loops = [sch.get(loop).token for loop in sch.get_loops(block)]
    if tile.rows > 1:
        panel = sch.cache_read(block, [r.buffer for r in sch.get(block).reads].index(panels), "local", [block])
        sch.compute_at(panel, step)
        in_vectors(sch, panel, loops.index(sch.get(step).token) + 1, tile.lanes)
    outside = loops.index(sch.get(first).token)
    in_vectors(sch, sch.decompose_reduction(block, first), outside, tile.lanes)
    for loop in inner:
        sch.unroll(loop)
    sch.vectorize(lanes)


def in_vectors(sch: Schedule, block: Any, outside: int, lanes: int) -> None:
    """Unroll a block's loops inside the tile and run the innermost in vectors."""
    inside = sch.get_loops(block)[outside:]
    if not inside:
        return
    extent = sch.get(inside[-1]).extent
    if isinstance(extent, tir.IntImm) and extent.value != lanes:
        inside = [*inside[:-1], *sch.split(inside[-1], [None, lanes])]
    sch.vectorize(inside[-1])
    for loop in inside[:-1]:
        sch.unroll(loop)
