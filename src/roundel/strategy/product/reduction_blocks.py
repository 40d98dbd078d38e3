# SPDX-License-Identifier: Apache-2.0
"""Contractions whose reduction is cut into blocks, so that what a block reads of the vector operand stays in a cache while all rows pass.

    for panel (in parallel):
        sums[:, panel] = 0
        for block, for tile of rows:
            accumulators = 0
            for k in block:  accumulators += rows[tile, k] * columns[k, panel]
            sums[tile, panel] += accumulators
        result[:, panel] = what is fused after it

Of a symbolic number of rows, which may be few, constant panels come from memory: while the rows pass over one block the next one is fetched.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...ir import tir
from ...ir.annotations import PREFETCH, Prefetch
from ...schedule import Schedule
from ..match.accesses import BlockInfo, product
from ..match.borders import leave_out_borders
from ..match.contraction import Contraction, match
from ..partial import partial_results
from .register_tile import Tile, multiply_in_registers


def cut_reduction(sch: Schedule, c: Contraction, blocks: int) -> tuple[Contraction, Any]:
    """Partial sums of ``blocks`` pieces of the first axis of the reduction, and the block that adds them."""
    total = sch.get_block(c.info.name)
    outer = sch.split(sch.get_loops(total)[c.reduce[0]], [blocks, None])[0]
    partial = partial_results(sch, total, outer)
    sch.set_scope(partial, 0, "local")
    found = match(BlockInfo(sch.get(partial)))
    assert found is not None
    return replace(found, is_data=c.is_data, windows=tuple(k + 1 for k in c.windows)), total


def schedule_blocks(sch: Schedule, c: Contraction, total: Any, tile: Tile, choice: Mapping[str, int], panels: tir.Buffer,
                    weights: tir.Buffer | None) -> list[Any]:
    """Order the loops; returns those around a whole panel. ``c`` computes the partial sums, and its first axis counts the blocks. ``weights``: the
    panels, where they are packed constants."""
    *spatial, block = sch.get_loops(total)
    loops = {k + 1: loop for k, loop in enumerate(spatial)}  # by axis of the partial sums
    vectors, lanes, columns = _columns(sch, c, tile, loops)
    row = None
    if c.rows:
        loops[c.rows[-1]], row = sch.split(loops[c.rows[-1]], [None, tile.rows])
    around = [*(loops[k] for k in c.batch if k), *columns]
    outside = [*around, block, *(loops[k] for k in c.rows)]
    sch.reorder(*outside, *(x for x in (row, vectors, lanes) if x is not None))
    if weights is not None and streams_blocks(c):
        sch.annotate(loops[c.rows[0]], PREFETCH, _next_block(c, tile, choice, weights))
    users = sch.get_consumers(total)
    _partial_sums(sch, c, tile, choice, panels, outside)
    init = sch.decompose_reduction(total, block)
    _a_panel(sch, init, tile)
    for part in (row, vectors):
        if part is not None:
            sch.unroll(part)
    sch.vectorize(lanes)
    for user in users:
        if around:  # of a single panel there is no loop, and its users come after all
            sch.reverse_compute_at(user, around[-1])
        _a_panel(sch, user, tile)
    return around


def streams_blocks(c: Contraction) -> bool:
    """Whether blocks of constant panels come from memory one after another: of a symbolic number of rows, which may be few."""
    return len(c.rows) == 1 and c.extent(c.rows[0]) is None and len(c.reduce) == 1 and not c.is_data


def _next_block(c: Contraction, tile: Tile, choice: Mapping[str, int], weights: tir.Buffer) -> Prefetch:
    """While rows pass over a block, the next one comes from memory; that after the last one of a panel is the first of the next panel."""
    width = tile.vectors * tile.lanes
    block = product([c.extent(k) for k in c.reduce], 0) * width
    return Prefetch(weights.name, block, step=choice["unroll"] * width, panel=block * choice["blocks"], apart=math.prod(n.value for n in weights.shape[1:]))


def _columns(sch: Schedule, c: Contraction, tile: Tile, loops: Mapping[int, Any]) -> tuple[Any, Any, list[Any]]:
    """Loops over the vectors of a tile and their lanes, and those over columns outside of them."""
    columns = [loops[k] for k in c.columns]
    if c.is_split(tile.lanes):
        panel, vectors, lanes = sch.split(loops[c.vector_axis], [None, tile.vectors, tile.lanes])
        return vectors, lanes, [*columns, panel]
    if tile.vectors == 1:
        return None, loops[c.vector_axis], columns
    panel, vectors = sch.split(columns[-1], [None, tile.vectors])
    return vectors, loops[c.vector_axis], [*columns[:-1], panel]


def _partial_sums(sch: Schedule, c: Contraction, tile: Tile, choice: Mapping[str, int], panels: tir.Buffer, outside: list[Any]) -> None:
    """The register tile over one block of the reduction."""
    partial = sch.get_block(c.info.name)
    sch.compute_at(partial, outside[-1], preserve_unit_loops=True)
    inside = sch.get_loops(partial)[len(outside):]
    tiled = {c.vector_axis, *c.rows[-1:]}
    if c.is_split(tile.lanes):
        vectors, lanes = sch.split(inside[c.vector_axis], [None, tile.lanes])
    else:
        vectors, lanes = (inside[c.columns[-1]] if tile.vectors > 1 else None), inside[c.vector_axis]
        tiled |= {*c.columns[-1:]} if tile.vectors > 1 else set()
    row = inside[c.rows[-1]] if c.rows else None
    innermost = choice["inner"] + 1
    reduce = [inside[k] for k in (*c.windows, *(k for k in c.reduce if k not in c.windows and k != innermost), innermost)]
    step = None
    if choice["unroll"] > 1:
        reduce[-1], step = sch.split(reduce[-1], [None, choice["unroll"]])
    units = [x for k, x in enumerate(inside) if k not in tiled and k not in c.reduce]
    sch.reorder(*units, *reduce, *(x for x in (step, row, vectors, lanes) if x is not None))
    inner = [x for x in (step, row, vectors) if x is not None]
    multiply_in_registers(sch, partial, panels, tile, reduce[0], reduce[-1] if step is None else step, inner, lanes)
    leave_out_borders(sch, partial, c, inside)


def _a_panel(sch: Schedule, block: Any, tile: Tile) -> None:
    """Compute all rows of a panel, with its columns in unrolled vectors."""
    last = sch.get_loops(block)[-1]
    extent = sch.get(last).extent
    if isinstance(extent, tir.IntImm) and extent.value > tile.lanes:
        vectors, last = sch.split(last, [None, tile.lanes])
        sch.unroll(vectors)
    sch.vectorize(last)
