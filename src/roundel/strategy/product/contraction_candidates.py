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
from typing import Any

import numpy as np

from ...target import Target
from ...target.target import L2, L3, MEMORY
from ..candidates import Candidates, Columns, combinations
from ..match.accesses import extent_of, product
from ..match.contraction import Contraction
from ..nest import Nest, operand
from ..times import EXPOSED, capacities, exposed, step_cycles, together, traffic_cycles
from .panels import shared_half, shared_tile
from .register_tile import ASSUMED, ASSUMED_ROWS, EDGE, ENTRY_CYCLES, STORED_CYCLES, TILE_CYCLES, rows_in_cache

UNROLLED_FMAS = 128   # multiply-adds in the body of the inner loop, at most: more are no faster, and often slower
MOST_LINES = 16       # of the vector operand that it reads, at most: fetching ahead follows each of the instructions that read them
UNROLLS = (1, 2, 4, 8)
NEAR = 1.2            # arithmetic of candidates whose traffic is worked out first, as a share of the least
MOST_VECTORS = 8
TYPICAL_ROWS = (17, 64, 128, 300)  # of a symbolic axis
COPIED = 0.533        # of the rate of the last cache, at which an operand is copied into panels
STRIDED_LINE = 0.4    # of the time of a line from the second-level cache that does not follow the one before
FIRST_LINE = 0.527    # ... of one from memory, the first time that a panel of constants is read
BLOCKS = (1, 2, 4)    # of the reduction
LEAST_STEPS = 128     # of the reduction in a block: to start and end a tile costs more than what a shorter one can save
L2_SHARE = 0.25       # of the second-level cache: smaller panels stream from there beside the arithmetic, there is nothing to gain by blocks
SUMMED_CYCLES = 20.0  # for each vector of results, where there are blocks: its sum begins in memory and ends there
ADDED_CYCLES = 2.6    # ... and for each block
MISSED_ROW = 1.0      # of the time of a line from the second-level cache, for an element that the first one could not keep


def candidates(c: Contraction, target: Target) -> Candidates:
    """Every choice that fits the registers. Traffic is worked out where it can matter: where arithmetic alone is not worse already
    than all of the best."""
    tiles = _tiles(c, target, c.is_data and _crowded(c, target))
    wide = {n: x[:, None] for n, x in tiles.items()} | {"unroll": np.array([UNROLLS])}
    legal = _legal_steps(c, wide)
    extent = c.extent(c.rows[-1]) if c.rows else 1
    if extent is not None:
        cycles = _cycles(c, target, tiles, wide, legal, extent, NEAR)
    else:  # one tile for all sizes
        cycles = np.exp(sum(np.log(_cycles(c, target, tiles, wide, legal, n, np.inf)) for n in TYPICAL_ROWS) / len(TYPICAL_ROWS))
    tile, step = np.nonzero(legal)
    return Candidates({n: x[tile] for n, x in tiles.items()} | {"unroll": np.array(UNROLLS)[step]}, cycles[tile, step])


def _cycles(c: Contraction, target: Target, tiles: Columns, wide: Columns, legal: np.ndarray, row: int, first: float) -> np.ndarray:
    """Of every tile (down) and number of steps (across), with so many rows. Traffic is added where arithmetic takes less than ``first``
    times the least, and where else it can matter."""
    cycles = np.maximum(np.broadcast_to(_arithmetic(c, target, wide, row), legal.shape), 1.0)  # nothing at all where an extent is 0
    least = np.where(legal, cycles, np.inf).min(axis=1)
    best, near = np.inf, least <= first * least.min()
    while near.any():
        traffic = _traffic(c, target, {n: x[near] for n, x in tiles.items()}, row)
        cycles[near] = together(cycles[near], *(np.reshape(t, (-1, 1)) for t in traffic))  # a number is the same for all tiles
        best = min(best, np.where(legal, cycles, np.inf)[near].min())
        least[near] = np.inf
        near = least <= best
    return cycles


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
    return depth * math.gcd(apart, way) > 0.8 * way * target.l2_ways  # others need lines too


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
        fits = t["rows"] * t["vectors"] + t["vectors"] + 1 <= registers
        if extent is not None and extent > full:
            fits &= (t["vectors"] - 1) * t["lanes"] < extent
        fits &= (t["blocks"] == 1) | _may_block(c, target, t)
        return fits | ((t["rows"] == 1) & (t["vectors"] == 1))

    heights = range(1, min(row, registers) + 1)
    inner = [k for k in c.reduce[::-1] if k not in c.windows]
    domains = {"rows": heights, "vectors": vectors, "lanes": lanes, "order": orders, "inner": inner, "blocks": _blocks(c)}
    return combinations(domains | ({"copied": (0, 1)} if copied else {}), legal)


def _blocks(c: Contraction) -> list[int]:
    """How many pieces the first axis of the reduction may be cut into."""
    steps, first = product([c.extent(k) for k in c.reduce], 1), c.extent(c.reduce[0]) or 1
    known = None not in [c.extent(k) for k in (*c.batch, *c.rows, *c.columns, *c.reduce, c.vector_axis)] and not c.windows
    return [n for n in BLOCKS if n == 1 or (known and first % n == 0 and steps >= n * LEAST_STEPS)]


def _may_block(c: Contraction, target: Target, t: Columns) -> Any:
    """Where a panel is much of the second-level cache, and there are others for other cores."""
    width = t["vectors"] * t["lanes"] * (c.vector.buffer.dtype.storage_bits / 8)
    others = product([c.extent(k) for k in c.batch], 1) * np.maximum(_column_tiles(c, t)[0], 1)
    return (t["order"] == 0) & (product([c.extent(k) for k in c.reduce], ASSUMED) * width > L2_SHARE * target.l2_bytes) & (others >= max(2, target.cores))


def _unroll_limit(c: Contraction, axis: int) -> tuple[int, int]:
    """Of steps written out in a tile of more than the second number of rows: more would read the same elements for different rows, which
    code generation would keep in registers, of which there are not enough."""
    step = c.broadcast.stride(c.info.block.iter_vars[axis].var)
    row = c.broadcast.stride(c.info.block.iter_vars[c.rows[-1]].var) if c.rows else None
    if not isinstance(step, int) or not isinstance(row, int) or not step or not row:
        return 8, 1
    common = math.gcd(step, row)
    return row // common, max(step // common, 1)


def _arithmetic(c: Contraction, target: Target, t: Columns, row: int) -> np.ndarray:
    """Cycles of all tiles, those at the edges included (whole ones where the number of rows is symbolic)."""
    others = product([c.extent(k) for k in (*c.batch, *c.rows[:-1])], ASSUMED_ROWS)
    steps = product([c.extent(k) for k in c.reduce], ASSUMED) / t["blocks"]
    entries = np.zeros(max(c.reduce) + 1)
    for k in c.reduce:
        entries[k] = ENTRY_CYCLES * product([c.extent(j) for j in c.reduce if j != k], ASSUMED)
    width = t["vectors"] * t["lanes"] * (c.vector.buffer.dtype.storage_bits / 8)
    near, far = (target.line_bytes / target.bytes_per_cycle(level) for level in (L2, MEMORY))
    first = 0.0 if c.is_data else FIRST_LINE * far / np.maximum(-(-row // t["rows"]), 1)
    strided = np.where(steps * width > target.l1_bytes, STRIDED_LINE * near, 0.0) + first
    missed = strided * (t["inner"] != _sequential(c)) * t["vectors"] + np.maximum(t["rows"] - rows_in_cache(target, c.row_bytes), 0) * MISSED_ROW * near

    def tile(height: Any) -> Any:
        waiting = exposed(target, steps * (height + 1.0) * (t["vectors"] + 1.0))
        start_and_end = entries[t["inner"]] + (TILE_CYCLES + STORED_CYCLES * height * t["vectors"]) * waiting
        each = steps * (step_cycles(target, height, t["vectors"], t["unroll"], steps) + missed) + start_and_end
        return t["blocks"] * each + np.where(t["blocks"] > 1, SUMMED_CYCLES + ADDED_CYCLES * t["blocks"], 0.0) * height * t["vectors"]

    full, rest = row // t["rows"], row % t["rows"]
    if c.rows and c.extent(c.rows[-1]) is None:
        full, rest = -(-row // t["rows"]), 0 * t["rows"]
    columns, masked = _column_tiles(c, t)
    return others * columns * masked * (full * tile(t["rows"]) + np.where(rest > 0, tile(rest), 0.0))


def _sequential(c: Contraction) -> int:
    """The reduction axis along which the vector operand is read in the order in which it lies in memory."""
    steps = {k: c.vector.stride(c.info.block.iter_vars[k].var) for k in c.reduce if c.extent(k) != 1}
    return min((k for k, step in steps.items() if isinstance(step, int) and step), key=lambda k: abs(steps[k]), default=c.reduce[-1])


def _column_tiles(c: Contraction, t: Columns) -> tuple[Any, Any]:
    """How many tiles there are along the columns, and what masks make of their cost."""
    extent = c.extent(c.vector_axis)
    other = product([c.extent(k) for k in c.columns], ASSUMED)
    if extent is None or c.is_split(int(t["lanes"].flat[0])):
        n = ASSUMED if extent is None else extent
        width = t["vectors"] * t["lanes"]
        return other * -(-n // width), np.where(n % width, EDGE, 1.0)
    return -(-other // t["vectors"]), 1.0


def _traffic(c: Contraction, target: Target, t: Columns, row: int) -> list[Any]:
    """Cycles to bring the operands into each cache."""
    axes = {it.var: k for k, it in enumerate(c.info.block.iter_vars)}
    operands = [operand(a, axes, ASSUMED, target) for a in (c.broadcast, c.vector, c.info.stores[0])]
    extent = lambda k: extent_of(c.info.block.iter_vars[k]) or ASSUMED
    split = c.is_split(int(t["lanes"].flat[0]))
    inner: dict[Any, Any] = {c.vector_axis: t["vectors"] * t["lanes"] if split else t["lanes"]}
    columns: list[tuple[Any, Any]] = [(k, extent(k)) for k in c.columns]
    if split:
        columns.append((c.vector_axis, -(-extent(c.vector_axis) // inner[c.vector_axis])))
    elif columns:
        last = c.columns[-1]
        columns[-1], inner[last] = (last, -(-extent(last) // t["vectors"])), t["vectors"]
    rows: list[tuple[Any, Any]] = [(k, extent_of(c.info.block.iter_vars[k]) or ASSUMED_ROWS) for k in c.rows]
    if rows:
        last = c.rows[-1]
        rows[-1], inner[last] = (last, -(-row // t["rows"])), t["rows"]
    outside = [(k, np.where(t["order"] > j, n, 1)) for j, (k, n) in enumerate(rows)]
    inside = [(k, np.where(t["order"] > j, 1, n)) for j, (k, n) in enumerate(rows)]
    batch = [(k, extent(k)) for k in c.batch]
    blocks, steps = (c.reduce[0], t["blocks"]), {k: extent(k) // (t["blocks"] if k == c.reduce[0] else 1) for k in c.reduce}
    around = [(k, np.where(t["inner"] == k, 1, steps[k])) for k in c.reduce]
    innermost = [(k, np.where(t["inner"] == k, steps[k], 1)) for k in c.reduce]
    loops = [x for x in (*batch, *outside, *columns, blocks, *inside, *around, *innermost) if np.any(x[1] != 1)]
    crossing = Nest(loops, operands, inner).traffic(capacities(target))
    if "copied" not in t:
        return traffic_cycles(target, crossing)
    size = product([extent(k) for k in (*c.batch, *c.reduce, c.vector_axis)], ASSUMED) * operands[1].element_bytes
    tiles = product([n for _, n in rows[:-1]], 1) * -(-row // t["rows"])
    crossing[1] = np.maximum(crossing[1], np.where(t["copied"] == 0, size * tiles, 0))
    return [*traffic_cycles(target, crossing), t["copied"] * size / copied_rate(target) / EXPOSED]  # nothing hides the copy


def copied_rate(target: Target) -> float:
    """Bytes of an operand that are copied into panels in one cycle."""
    return COPIED * target.bytes_per_cycle(L3)
