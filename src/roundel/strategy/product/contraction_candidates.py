# SPDX-License-Identifier: Apache-2.0
"""The decisions of a contraction, and the cycles that the model of the target expects of each combination of them.

``rows``, ``vectors`` and ``lanes`` are the size of the register tile: its rows, the vectors of each row, the elements of each vector.
``inner`` is the reduction axis whose loop is the innermost one, by its position in the block, and ``unroll`` is how many of its iterations are
unrolled. ``order`` is how many of the row loops stand outside of the column loops: with 0, a panel of the vector operand stays in the cache
while all rows are computed; with more, rows stay in the cache while all panels are read.

Two decisions exist only where they can pay. ``copied`` is 1 where an operand that is not constant is copied into panels before the product
begins, which avoids conflicts between the lines of a panel in the second-level cache. ``blocks`` is the number of pieces into which the
reduction is cut, so that what one piece reads of a panel stays in a cache while all rows are computed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ...target import Target
from ...target.target import L3, MEMORY
from ..candidates import Candidates, Columns, combinations
from ..cost import capacities, cycles, working
from ..match.accesses import product
from ..match.contraction import Contraction
from ..nest import Operand
from ..statements import ASSUMED, LANES, UNROLLED, Loop, Operation, Statement, in_registers, statement_of
from .panels import shared_half, shared_tile
from .reduction_blocks import streams_blocks

UNROLLED_FMAS = 128   # multiply-adds in the body of the inner loop, at most: more are no faster, and often slower
MOST_LINES = 16       # of the vector operand that it reads, at most: fetching ahead follows each of the instructions that read them
UNROLLS = (1, 2, 4)
MOST_VECTORS = 8
ASSUMED_ROWS = 120   # of a symbolic axis that is rows
TYPICAL_ROWS = (17, 64, 128, 300)  # of a symbolic axis
BLOCKS = (1, 2, 4)    # of the reduction
WINDOW_BLOCKS = (1, 4, 8, 16, 32)  # ... where a window multiplies its length
BLOCK_STEPS = 384     # of the reduction in a block of weights that come from memory, at most
LEAST_STEPS = 128     # of the reduction in a block: to start and end a tile costs more than what a shorter one can save


def candidates(c: Contraction, target: Target) -> Candidates:
    """Every choice that fits the registers."""
    tiles = _tiles(c, target, c.is_data and _crowded(c, target))
    wide = {n: x[:, None] for n, x in tiles.items()} | {"unroll": np.array([UNROLLS])}
    legal = _legal_steps(c, wide) & (wide["unroll"] <= target.unrolled_steps)
    extent = c.extent(c.rows[-1]) if c.rows else 1
    sizes = TYPICAL_ROWS if extent is None else (extent,)  # one tile for all sizes
    times = [np.broadcast_to(np.maximum(_cycles(c, target, wide, n), 1.0), legal.shape) for n in sizes]  # nothing at all where an extent is 0
    expected = times[0] if len(times) == 1 else np.exp(np.mean(np.log(times), axis=0))
    tile, step = np.nonzero(legal)
    return Candidates({n: x[tile] for n, x in tiles.items()} | {"unroll": np.array(UNROLLS)[step]}, expected[tile, step])


def _legal_steps(c: Contraction, t: Columns) -> np.ndarray:
    """Whether so many steps of the innermost axis may be written out."""
    extents, most, apart = np.ones((3, max(c.reduce) + 1), np.int64)
    for k in c.reduce:
        extents[k] = c.extent(k) or 1
        most[k], apart[k] = _unroll_limit(c, k)
    axis = t["inner"]
    few = (t["unroll"] * t["rows"] * t["vectors"] <= UNROLLED_FMAS) & (t["unroll"] * t["vectors"] <= MOST_LINES)
    few &= (t["rows"] <= apart[axis]) | (t["unroll"] <= most[axis])
    inside = extents[axis] // np.where(axis == c.reduce[0], t["blocks"], 1)
    return (t["unroll"] == 1) | (few & (inside % t["unroll"] == 0))


def _crowded(c: Contraction, target: Target) -> bool:
    """Whether the rows of a matrix that is read in vectors lie so far apart that a panel's lines share too few sets of the second-level
    cache (a set is picked by the address within a way)."""
    way = target.l2_bytes // target.l2_ways
    if len(c.reduce) != 1 or c.columns or not way:
        return False
    axes = c.info.block.iter_vars
    depth, width = c.extent(c.reduce[0]), c.extent(c.vector_axis)
    expected = (*(axes[k].var for k in c.batch), axes[c.reduce[0]].var, axes[c.vector_axis].var)
    if c.vector.indices != expected or depth is None or width is None or None in [c.extent(k) for k in c.batch]:
        return False
    apart = width * c.vector.buffer.dtype.storage_bits // 8
    return depth * math.gcd(apart, way) > target.cache_room * way * target.l2_ways


def _tiles(c: Contraction, target: Target, copied: bool = False) -> dict[str, np.ndarray]:
    row = max((c.extent(r) or ASSUMED_ROWS for r in c.rows[-1:]), default=1)
    registers = target.vector_registers
    full = target.vector_bytes // max(c.info.stores[0].buffer.dtype.bits // 8, 1)
    extent = c.extent(c.vector_axis)
    if extent is None:
        lanes, vectors = [full], [1, 2, 4]
    elif extent <= full:
        lanes = [1 << (extent - 1).bit_length()]
        other = (c.extent(c.columns[-1]) if c.columns else 1) if extent == lanes[0] else -(-extent // lanes[0])
        vectors = [v for v in range(1, MOST_VECTORS + 1) if other is not None and other % v == 0] or [1]
    else:
        lanes = [n for n in (full, full // 2) if n >= 4] or [full]
        vectors = list(range(1, MOST_VECTORS + 1))
    half = shared_half(c, target)
    if half is not None:
        lanes, vectors = [full], [shared_tile(target, half, (c.extent(c.reduce[0]) or 2) // 2).vectors]
    orders = [j for j in range(len(c.rows) + 1) if j == 0 or c.extent(c.rows[j - 1]) != 1]

    def legal(t: Columns) -> np.ndarray:
        fits = target.holds_tile(t["rows"], t["vectors"])
        if extent is not None and extent > full:
            fits &= (t["vectors"] - 1) * t["lanes"] < extent
        fits &= (t["blocks"] == 1) | _may_block(c, target, t)
        return fits | ((t["rows"] == 1) & (t["vectors"] == 1))

    heights = range(1, min(row, registers) + 1)
    inner = [k for k in c.reduce[::-1] if k not in c.windows]
    domains = {"rows": heights, "vectors": vectors, "lanes": lanes, "order": orders, "inner": inner, "blocks": _blocks(c, target)}
    return combinations(domains | ({"copied": (0, 1)} if copied else {}), legal)


def _blocks(c: Contraction, target: Target) -> list[int]:
    """How many pieces the first axis of the reduction may be cut into."""
    steps, first = product([c.extent(k) for k in c.reduce], 1), c.extent(c.reduce[0]) or 1
    if streams_blocks(c) and target.far_panels_share < 1:
        return sorted({1, first // max((n for n in range(LEAST_STEPS, BLOCK_STEPS + 1) if first % n == 0), default=first)})
    known = None not in [c.extent(k) for k in (*c.batch, *c.rows, *c.columns, *c.reduce, c.vector_axis)] and c.reduce[0] not in c.windows
    return [n for n in (WINDOW_BLOCKS if c.windows else BLOCKS) if n == 1 or (known and first % n == 0 and steps >= n * LEAST_STEPS)]


def _may_block(c: Contraction, target: Target, t: Columns) -> Any:
    """Where a panel is much of the second-level cache, and there are others for other cores. That of a convolution streams from there as fast as it is
    used while it fits at all, and each of its blocks is waited for in the first of the passes over it."""
    width = t["vectors"] * t["lanes"] * (c.vector.buffer.dtype.storage_bits / 8)
    if streams_blocks(c):
        block = _ahead(c, t)  # a shorter stream begins too often
        return (t["order"] == 0) & (block >= target.l1_bytes) & (block <= target.near_times * target.l1_bytes)
    others = product([c.extent(k) for k in c.batch], 1) * np.maximum(_column_tiles(c, t), 1)
    passes = product([c.extent(k) for k in c.rows[:-1]], 1) * -(-(c.extent(c.rows[-1]) or 1) // t["rows"]) if c.windows else target.block_passes
    room = capacities(target)[1] if c.windows else target.panel_room * target.l2_bytes
    large = (product([c.extent(k) for k in c.reduce], ASSUMED) * width > room) & (passes >= target.block_passes)
    return (t["order"] == 0) & large & (others >= max(2, target.cores))


def _ahead(c: Contraction, t: Columns) -> Any:
    """Bytes of a block, or a whole panel: so far ahead are weights fetched."""
    return (c.extent(c.reduce[0]) or ASSUMED) // t["blocks"] * t["vectors"] * t["lanes"] * (c.vector.buffer.dtype.storage_bits / 8)


def _unroll_limit(c: Contraction, axis: int) -> tuple[int, int]:
    """Of steps written out in a tile of more than the second number of rows: more would read the same elements for different rows, which
    code generation would keep in registers, of which there are not enough."""
    step = c.broadcast.stride(c.info.block.iter_vars[axis].var)
    row = c.broadcast.stride(c.info.block.iter_vars[c.rows[-1]].var) if c.rows else None
    if not isinstance(step, int) or not isinstance(row, int) or not step or not row:
        return 8, 1
    common = math.gcd(step, row)
    return row // common, max(step // common, 1)


def _cycles(c: Contraction, target: Target, t: Columns, row: int) -> Any:
    """Of every candidate, with so many rows."""
    all_, rest = -(-row // t["rows"]), row % t["rows"]
    loops = _loops(c, t, all_, t["rows"])
    pieces = [loops]
    if c.rows and c.extent(c.rows[-1]) is not None:  # of a symbolic number the last tile is as high as the others
        pieces = [_loops(c, t, row // t["rows"], t["rows"]), _loops(c, t, 1 * (rest > 0), np.maximum(rest, 1))]

    def product_of(given: Statement) -> Any:
        step = replace(given, edges=_is_cut(c, t))
        return cycles(target, replace(step, loops=loops), pieces=[replace(step, loops=x) for x in pieces])

    given = _statement(c, target, not c.is_data and c.vector.buffer.ndim == len(c.reduce) + len(c.columns) + 1)  # (of a batch none is)
    spent = product_of(given)
    if "copied" in t:
        spent = np.where(t["copied"], product_of(_statement(c, target, True)) + cycles(target, _copy(c, t, given)), spent)
    if streams_blocks(c):
        weights = c.vector.buffer.dtype.storage_bits / 8 * math.prod(c.extent(k) or ASSUMED for k in (*c.batch, *c.columns, *c.reduce, c.vector_axis))
        late = weights / target.bytes_per_cycle(MEMORY) * (1 / target.far_panels_share - 1)
        spent = spent + np.where((t["order"] == 0) & (_ahead(c, t) > target.near_times * target.l1_bytes), late, 0.0)
    return spent + np.where(t["blocks"] > 1, _adding(c, given, loops, target), 0.0) if np.any(t["blocks"] > 1) else spent


def _statement(c: Contraction, target: Target, is_packed: bool) -> Statement:
    """A step of the reduction, without its loops."""
    found = in_registers(statement_of(c.info.block, c.vector_axis, target, has_guards=False))
    panels = lambda x: replace(x, operand=_in_panels(x.operand, c, target, is_packed))
    return replace(found, touches=tuple(panels(x) if x.buffer is c.vector.buffer else x for x in found.touches))


def _in_panels(operand: Operand, c: Contraction, target: Target, is_packed: bool) -> Operand:
    """The vector operand as it lies in memory: panels are whole, so where tiles reach beyond the columns, so does it."""
    beyond = MOST_VECTORS * target.vector_bytes if is_packed and c.extent(c.vector_axis) is not None else 0
    sides = tuple((n + beyond if steps and n > 1 and c.vector_axis in steps else n, steps) for n, steps in operand.sides)
    return replace(operand, sides=sides, constant=not c.is_data, is_packed=is_packed)


def _adding(c: Contraction, given: Statement, around: tuple[Loop, ...], target: Target) -> Any:
    """Cycles to add the partial sums of all blocks, which begin as zeros in memory and are taken from there in the end."""
    total = given.result
    assert total is not None
    load, blocks = replace(total, is_store=False), next(x for x in around if x.axis == c.reduce[0])
    loops = tuple(x for x in around if x.axis not in c.reduce)
    at = next((k for k, x in enumerate(loops) if x.axis in c.rows), 0)
    passes = [Statement((*loops[:at], blocks, *loops[at:]), (total, load), (Operation(1.0, total.moves, total.bits),)),
              Statement(loops, (total,), ()), Statement(loops, (total, load), ())]
    if streams_blocks(c):  # a panel's sums stay in the nearest caches
        return sum(working(target, [x]) for x in passes)
    return sum(cycles(target, x) for x in passes)


def _copy(c: Contraction, t: Columns, given: Statement) -> Statement:
    """The vector operand copied into panels."""
    source = next(x for x in given.touches if x.buffer is c.vector.buffer)
    panels = -(-(c.extent(c.vector_axis) or ASSUMED) // (t["vectors"] * t["lanes"]))
    around = [*(Loop(k, c.extent(k) or ASSUMED) for k in c.batch), Loop(c.vector_axis, panels), *(Loop(k, c.extent(k) or ASSUMED) for k in c.reduce)]
    return Statement((*around, Loop(c.vector_axis, t["vectors"], UNROLLED), Loop(c.vector_axis, t["lanes"], LANES)),
                     (source, replace(source, is_store=True, buffer=None)), ())


def _loops(c: Contraction, t: Columns, tiles: Any, height: Any) -> tuple[Loop, ...]:
    """The nest that each candidate becomes (``contraction._schedule``, ``reduction_blocks``), with ``tiles`` of ``height`` rows."""
    extent = lambda k: c.extent(k) or ASSUMED
    lanes = [Loop(c.vector_axis, t["lanes"], LANES)]
    columns = [Loop(k, extent(k)) for k in c.columns]
    if c.is_split(int(t["lanes"].flat[0])):
        columns.append(Loop(c.vector_axis, -(-extent(c.vector_axis) // (t["vectors"] * t["lanes"]))))
        lanes.insert(0, Loop(c.vector_axis, t["vectors"], UNROLLED))
    elif columns:
        last = columns.pop()
        columns.append(Loop(last.axis, -(-last.extent // t["vectors"])))
        lanes.insert(0, Loop(last.axis, t["vectors"], UNROLLED))
    rows = [(k, c.extent(k) or ASSUMED_ROWS) for k in c.rows[:-1]] + [(k, tiles) for k in c.rows[-1:]]
    outside = [Loop(k, np.where(t["order"] > j, n, 1)) for j, (k, n) in enumerate(rows)]
    inside = [Loop(k, np.where(t["order"] > j, 1, n)) for j, (k, n) in enumerate(rows)]
    steps = {k: extent(k) // (t["blocks"] if k == c.reduce[0] else 1) for k in c.reduce}
    reduce = [Loop(k, np.where(t["inner"] == k, 1, steps[k])) for k in (*c.windows, *(k for k in c.reduce if k not in c.windows))]
    reduce += [Loop(k, np.where(t["inner"] == k, n, 1), written=np.where(t["inner"] == k, t["unroll"], 1)) for k, n in steps.items()]
    batch = [Loop(k, extent(k)) for k in c.batch]
    around = [*batch, *outside, *columns, Loop(c.reduce[0], t["blocks"]), *inside, *reduce]
    return (*(x for x in around if np.any(x.extent != 1)), *(Loop(k, height, UNROLLED) for k in c.rows[-1:]), *lanes)


def _is_cut(c: Contraction, t: Columns) -> Any:
    """Whether the last vectors of a tile reach beyond the columns."""
    extent = c.extent(c.vector_axis)
    return 0 if extent is None or not c.is_split(int(t["lanes"].flat[0])) else 1 * (extent % (t["vectors"] * t["lanes"]) > 0)


def _column_tiles(c: Contraction, t: Columns) -> Any:
    """How many tiles there are along the columns."""
    extent = c.extent(c.vector_axis)
    other = product([c.extent(k) for k in c.columns], ASSUMED)
    if extent is None or c.is_split(int(t["lanes"].flat[0])):
        return other * -(-(ASSUMED if extent is None else extent) // (t["vectors"] * t["lanes"]))
    return -(-other // t["vectors"])


def copied_rate(target: Target) -> float:
    """Bytes of an operand that are copied into panels in one cycle."""
    return target.copied_share * target.bytes_per_cycle(L3)
