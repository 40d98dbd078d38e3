# SPDX-License-Identifier: Apache-2.0
"""The register tile of a contraction: how many rows and vectors of accumulators run together.

Each step of the reduction loads ``vectors`` vectors of one operand and broadcasts ``rows`` elements of the other for
``rows * vectors`` multiply-adds. A tile must fit the registers (one more holds the broadcast) and have enough independent
multiply-adds to hide their latency; what is left over at the edge costs as much as a tile of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...ir import tir
from ...schedule import Schedule
from ...target import Target
from ..times import streamed_cycles

STREAMED = 0.3  # of the time that a vector takes from the second-level cache, what multiply-adds do not hide
PER_LOAD = 0.1  # cycles of a broadcast that they do not hide
EDGE = 1.01  # cost of masks at the edge
TILE_CYCLES = 8.0  # to start and end the reduction of a tile
ENTRY_CYCLES = 1.0  # to start and end its innermost loop
STORED_CYCLES = 1.5  # for each vector of results: its first value, what is fused after it, the store
ASSUMED_ROWS = 120  # of a symbolic axis that is rows
ASSUMED = 256  # of other symbolic axes
MAX_VECTORS = 4


@dataclass(frozen=True)
class Tile:
    """``rows`` x ``vectors`` accumulators of ``lanes`` elements."""

    rows: int
    vectors: int
    lanes: int


def step_cycles(target: Target, rows: int, vectors: int) -> float:
    """Cycles of one step of the reduction for a tile."""
    chains = rows * vectors
    busy = chains / target.fma_ports
    latency = target.fma_latency
    loads = (rows + vectors) / target.loads
    return max(busy, latency, loads) + PER_LOAD * rows + streamed_cycles(target, STREAMED) * vectors


def _waste(vectors: int, in_all: int | None) -> float:
    """What tiles that reach over the edge cost, as a factor."""
    if in_all is None or in_all % vectors == 0:
        return 1.0
    return EDGE * -(-in_all // vectors) * vectors / in_all


def rows_in_cache(target: Target, row_bytes: int | None) -> int:
    """How many rows that are so far apart the first-level cache holds a line of: rows apart by a multiple of a way (mostly 4 KiB) share one set
    of lines (a set is picked by the address within a way), a third of which other operands need."""
    if not row_bytes or row_bytes % target.line_bytes:
        return target.vector_registers
    sets = max(target.l1_bytes // target.l1_ways // target.line_bytes, 1)
    distinct = sets // math.gcd(row_bytes // target.line_bytes, sets)
    return max(distinct * target.l1_ways * 2 // 3, 4)


def choose_tile(target: Target, rows: int | None, columns: Sequence[int], lanes: int, vectors_in_all: int | None = None,
                row_bytes: int | None = None, whole: bool = False) -> Tile:
    """The tile with the fewest cycles over the whole product. ``rows``: extent of the row axis (None: symbolic); ``columns``: the numbers
    of vectors that a tile may have; ``vectors_in_all``: of the whole product, where these need not divide it; ``row_bytes``: from
    one row of the broadcast operand to the next; ``whole``: the rows are a whole number of tiles."""
    best: tuple[float, Tile] | None = None
    extent = 120 if rows is None else rows
    most = rows_in_cache(target, row_bytes)
    for vectors in columns:
        if vectors > MAX_VECTORS:
            continue
        for height in range(1, min(extent, most, target.vector_registers) + 1):
            if height * vectors + vectors + 1 > target.vector_registers:
                break
            if whole and extent % height:
                continue
            full, rest = divmod(extent, height)
            cycles = full * step_cycles(target, height, vectors) + (step_cycles(target, rest, vectors) if rest else 0.0)
            cost = cycles / (extent * vectors) * _waste(vectors, vectors_in_all)
            if best is None or cost < best[0] - 1e-9:
                best = cost, Tile(height, vectors, lanes)
    return best[1] if best else Tile(1, 1, lanes)


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
