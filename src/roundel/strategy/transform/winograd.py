# SPDX-License-Identifier: Apache-2.0
"""A batch of small matrix products between two transforms of tiles: Winograd convolutions.

The program is a chain: (padding,) a transform of columns, one of rows, the products of every position of the tiles,
a transform of columns, one of rows, and a store, which takes the results of some tiles from a direct sum instead: which ones, a test
of the data says that runs before. A block of tiles goes through the whole chain at a time, so that what is
between the stages stays in the second-level cache. Where few such blocks would be left for the cores, or reading the weights again for
each moves more bytes from beyond that cache, all tiles are transformed first and the blocks are blocks of result channels. Several images go
through one after another, or, where the weights are much more than the data, all together. Where that leaves cores without work (few result
channels), each thread computes the products of some positions, and results are transformed when all products are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from ...ir import tir
from ...ir.annotations import EDGE, PREFETCH, Prefetch
from ...schedule.schedule import Schedule
from ...target import Target
from ..candidates import Candidates
from ..match.accesses import BlockInfo, blocks_of, extent_of, product
from ..match.contraction import Contraction, match
from ..parallelism import busiest_part, loop_extent, parallelize
from ..product.register_tile import STEPS, Tile, choose_tile, in_vectors, multiply_in_registers, product_cycles
from ..program import Program
from ..sketch import Applied, Sketch, rule
from .winograd_cycles import comes_again, test_cycles, winograd_cycles
from .winograd_stages import Blocking, Stages, spilled

FEW_TILES = 12       # that fill the registers
TASKS = 4            # for each core, where it may be chosen
CLEARLY = 1.25       # times as soon: blocks of tiles are there, and passing on all tiles was measured to cost up to 1.5 times what is expected


def find(infos: Sequence[BlockInfo]) -> Stages | None:
    """The stages of the program, or None where it is not such a chain."""
    sums = _sums(infos)
    if sums is None or not all(i.is_plain for i in infos):
        return None
    direct, at, squares = sums
    first = direct + 1
    if first > 2 or at - first not in (2, 3) or squares != at + 4:
        return None
    stages = [*infos[at - 2 : at + 3], infos[-1]]
    padding = infos[first] if at - first == 3 else None
    products = match(infos[at])
    if [len(i.spatial) for i in stages] != [6, 6, 6, 7, 7, 5] or products is None or len(products.batch) != 2 or len(products.reduce) != 2:
        return None
    chain = [*([padding] if padding else []), *stages]
    if not all(a.stores[0].buffer in {x.buffer for x in b.loads} for a, b in pairwise(chain)):
        return None
    test = tuple(i.name for i in infos[at + 3 : -1])
    patch = infos[0].name if first == 2 else None
    return Stages(test, patch, infos[direct].name, padding.name if padding else None, stages[0], stages[1], products, *stages[3:])


def _sums(infos: Sequence[BlockInfo]) -> tuple[int, int, int] | None:
    """Where the direct sums, the products and the sums of squares are."""
    sums = [k for k, i in enumerate(infos) if i.reduce]
    return tuple(sums) if [len(infos[k].spatial) for k in sums] == [7, 6, 5] else None  # type: ignore[return-value]


@rule
def winograd(program: Program) -> Iterator[Sketch]:
    """Fits chains of two transforms, batched products, two transforms and a store (elementwise blocks go into the store)."""
    if _sums(program.blocks) is None or not program.is_plain:
        return
    start = program.inlined(keep=_chain_of(program.blocks))
    stages = find(blocks_of(start.func))
    if stages is None or stages.edge not in (4, 6) or stages.tile != stages.edge - 2:
        return
    blocking = choose_blocking(stages, program.target)
    if blocking is None:
        return
    blocking = _for_all_cores(program, stages, blocking)

    def scheduled(sch: Schedule, choice: dict[str, int]) -> Applied:
        layouts = _pack(sch, stages.products, blocking)
        _schedule(sch, stages, blocking, next(iter(layouts), None), program.target)
        tile, others = vars(blocking.tile), {k: v for k, v in vars(blocking).items() if k not in ("tile", "rows")}
        return Applied(sch, layouts, tile | {"tile_rows": blocking.rows} | others)

    table = Candidates(_columns(blocking), np.zeros(1))
    yield Sketch("winograd", start, scheduled, table, beside=lambda: winograd_cycles(program.blocks, stages, blocking, program.target))


def _columns(b: Blocking) -> dict[str, np.ndarray]:
    values = {"tile_rows": b.rows, "channels": b.channels, "rows": b.tile.rows, "vectors": b.tile.vectors}
    return {name: np.array([value]) for name, value in values.items()}


def _chain_of(infos: Sequence[BlockInfo]) -> list[str]:
    """The direct sums and the pixels that are padded for them alone, everything up to the second transform of the results, and the test of
    the tiles, whose result is a condition: the blocks after it are elementwise."""
    direct, _, squares = _sums(infos) or (0, 0, 0)
    known = next((k for k in range(squares, len(infos)) if infos[k].stores[0].buffer.dtype.is_bool), squares)
    read = [{a.buffer for a in i.loads} for i in infos]
    patch = [k for k in range(direct) if infos[k].stores[0].buffer in read[direct] and not any(infos[k].stores[0].buffer in r for r in read[direct + 1 :])]
    return [i.name for k, i in enumerate(infos) if direct <= k <= known or k in patch]


def choose_blocking(stages: Stages, target: Target) -> Blocking | None:
    """Blocks of tiles whose data and products fit the second-level cache, and enough of them for the cores."""
    lanes = extent_of(stages.store.spatial[-1])
    blocks, inner = (extent_of(stages.data.spatial[k]) for k in (3, 5))
    outer, down, across = (extent_of(stages.result.spatial[k]) for k in (1, 2, 3))
    if lanes is None or blocks is None or inner is None or outer is None or down is None or across is None:
        return None
    if lanes * 4 != target.vector_bytes:
        return None
    counts = [v for v in (1, 2, 3, 4) if outer % v == 0]
    room = target.l2_bytes * target.stages_room
    per_tile = stages.edge**2 * 4
    heights = [r for r in range(1, down + 1) if down % r == 0]
    fitting = [r for r in heights if r * across * per_tile * (blocks * inner + outer * lanes) <= room] or heights[:1]
    weights = per_tile * blocks * inner * outer * lanes
    enough = [r for r in fitting if r * across >= FEW_TILES and weights <= room]
    rows = min(enough, default=max(fitting))  # weights that stay in the cache need no large blocks to be read for
    images = extent_of(stages.store.spatial[0]) or 1
    data = images * per_tile * down * across * blocks * inner
    read = weights * images * (down // rows) if weights > room else 0  # again for each block of rows
    steps = _steps(stages)
    in_blocks = Blocking(rows, outer, False, choose_tile(target, rows * across, counts, lanes, steps=steps), steps=target.unrolled_steps)
    tile = _narrow(stages, target, lanes)
    whole = replace(in_blocks, rows=down, channels=tile.vectors, first=True, tile=tile)
    again = data * (outer // tile.vectors) if data > target.l2_bytes else 0  # for each panel of weights, which are read once
    if images * (down // rows) >= TASKS and read + spilled(stages, in_blocks, target.l2_bytes) <= weights + again + spilled(stages, whole, target.l2_bytes):
        if rows * across % in_blocks.tile.rows:
            rows, tile = _whole_tiles(enough or [rows], across, counts, lanes, steps, target)
            return replace(in_blocks, rows=rows, tile=tile)
        return in_blocks
    step = _channels(images * per_tile * down * across * lanes, room / 2, outer, tile.vectors, target)
    together = images > 1 and weights > room and weights + data * (1 + outer // step) < images * weights
    apart = images >= 2 * target.cores and not together
    return replace(whole, channels=step if together else tile.vectors, together=together, apart=apart)


def _for_all_cores(program: Program, stages: Stages, b: Blocking) -> Blocking:
    """The same, or the products by positions where the cores are clearly done sooner with these, or each position's data, which stays near a core while all
    channels are computed of it, would come from memory again for each step of them."""
    outer, down = (extent_of(stages.result.spatial[k]) or 1 for k in (1, 2))
    tile = _narrow(stages, program.target, b.tile.lanes)
    other = replace(b, rows=down, channels=outer, first=True, together=True, apart=False, by_positions=True, tile=tile)
    parts = [busiest_part(x.shares(stages), program.target.cores) for x in (b, other)]
    again = comes_again(stages, b, program.target)
    if parts[0] <= parts[1] and not again:
        return b
    spent = [part * winograd_cycles(program.blocks, stages, x, program.target) for part, x in zip(parts, (b, other), strict=True)]
    return other if spent[0] > (1.0 if again else CLEARLY) * spent[1] + program.target.start_cycles else b


def _narrow(stages: Stages, target: Target, lanes: int) -> Tile:
    """A register tile of all rows whose panels are narrow enough to wait in the caches for every row."""
    outer, down, across = (extent_of(stages.result.spatial[k]) or 1 for k in (1, 2, 3))
    return choose_tile(target, down * across, [v for v in (1, 2) if outer % v == 0], lanes, steps=_steps(stages))


def _steps(stages: Stages) -> int:
    """Of the products' reduction; of a short one those of others, whose tiles are the same."""
    return max(product([stages.products.extent(k) for k in stages.products.reduce], STEPS), STEPS)


def _whole_tiles(heights: Sequence[int], across: int, counts: Sequence[int], lanes: int, steps: int, target: Target) -> tuple[int, Tile]:
    """Rows of tiles that go through together, and a register tile of which they are a whole number: another would reach into the next block."""
    pairs = [(r, choose_tile(target, r * across, counts, lanes, whole=True, steps=steps)) for r in heights]
    return min(pairs, key=lambda p: float(product_cycles(target, p[0] * across, p[1].rows, p[1].vectors, lanes, steps=steps)) / p[0])


def _channels(results: int, room: float, outer: int, vectors: int, target: Target) -> int:
    """Blocks of result channels, of which one takes ``results`` bytes: as many as fit the cache and leave enough tasks."""
    fitting = [n for n in range(vectors, outer + 1, vectors) if outer % n == 0 and n * results <= room and outer // n >= TASKS * target.cores]
    return max(fitting, default=vectors)


def _pack(sch: Schedule, c: Contraction, b: Blocking) -> dict[int, tir.IndexMap]:
    """Constant weights go into the order in which the products read them: one panel per step of result channels."""
    params, buffer, v = sch.func.buffer_params, c.vector.buffer, b.tile.vectors
    position = params.index(buffer) if buffer in params else -1
    if position not in sch.func.attrs.get("constant_params", ()):
        return {}
    if b.channels == v:
        mapping = tir.IndexMap.from_func(lambda x, y, k, rk, rc, o: (k // v, x, y, rk, rc, k % v, o), 6)
    else:
        mapping = tir.IndexMap.from_func(lambda x, y, k, rk, rc, o: (x, y, k // v, rk, rc, k % v, o), 6)
    block = sch.get_block(c.info.name)
    reads = [r.buffer for r in sch.get(block).reads]
    sch.transform_layout(block, ("read", reads.index(buffer)), mapping, pad_value=0)
    return {position: mapping}


def _schedule(sch: Schedule, stages: Stages, b: Blocking, packed: int | None, target: Target) -> None:
    n, k, y, x, lane = sch.get_loops(sch.get_block(stages.store.name))
    rows, channels = (1, 1) if b.by_positions else (b.rows, b.channels)
    yo, yi, i = sch.split(y, [None, rows, stages.tile])
    xo, j = sch.split(x, [None, stages.tile])
    ko, ki = sch.split(k, [None, channels])
    sch.reorder(*((ko, n, yo) if b.together and not b.by_positions else (n, yo, ko)), ki, yi, xo, i, j, lane)
    for loop in (i, j):
        sch.unroll(loop)
    sch.vectorize(lane)
    for name in (stages.result.name, stages.result_columns.name):
        _straight(sch, sch.get_block(name), xo, 6)
    rare = _direct(sch, stages, xo)
    products, data = sch.get_block(stages.products.info.name), sch.get_block(stages.data.name)
    accumulated = sch.cache_write(products, 0, "local")
    line = target.line_bytes // 4  # an odd number of lines from one position to the next spreads these over the cache's sets
    for stage in (data, accumulated):
        sch.storage_align(stage, 0, 1, 2 * line, line)
    under = sch.add_unit_loop(n) if b.by_positions else ko
    sch.compute_at(accumulated, under, preserve_unit_loops=True)
    sch.compute_at(products, under, preserve_unit_loops=True)
    _products(sch, products, accumulated, stages, b, packed, target)
    if b.by_positions:
        parallelize(sch, sch.fuse(*sch.get_loops(products)[1:3]), _cycles(stages, b, target) / stages.edge**2, target)
    _test(sch, stages, None if b.first and not b.apart else yo, target)
    _data(sch, data, stages, b, None if b.first and not b.apart else yo, target)
    for block in rare:
        sch.only_where_chosen(block)
    if b.by_positions:
        parallelize(sch, sch.fuse(n, yo, ko), stages.edge**2 * (extent_of(stages.result.spatial[3]) or 8), target)
        return
    whole = ko if b.together else sch.fuse(n, yo) if b.apart or not b.first else sch.fuse(n, yo, ko)
    parallelize(sch, whole, _cycles(stages, b, target), target)


def _straight(sch: Schedule, block: Any, loop: Any, outside: int) -> None:
    """Compute a block under a loop in registers: straight code in vectors."""
    sch.set_scope(block, 0, "local")
    sch.compute_at(block, loop)
    loops = sch.get_loops(block)[outside:]
    for inner in loops[:-1]:
        sch.unroll(inner)
    sch.vectorize(loops[-1])


def _products(sch: Schedule, block: Any, accumulated: Any, stages: Stages, b: Blocking, packed: int | None, target: Target) -> None:
    """A matrix product per position: the register tile over all input channels. Beside it, the next panel of weights is fetched; but panels that a run passes
    over once come one after another at the rate of memory by the hardware's prefetchers alone, and instructions beside them take the places of lines that
    wait for memory (512 channels on 7 x 7 came at 20 GB/s with them, at 34 without)."""
    c, tile, depth = stages.products, b.tile, b.depth
    x, y, n, k, p, lane, rk, rc = sch.get_loops(block)[depth:]
    ko, ki = sch.split(k, [None, tile.vectors])
    po, pi = sch.split(p, [None, tile.rows])
    ro, ri = sch.split(rc, [None, b.unroll(stages)])
    sch.reorder(x, y, *((ko, n) if b.together else (n, ko)), po, rk, ro, ri, pi, ki, lane)
    sch.reverse_compute_at(accumulated, po)
    weight = c.vector.buffer if packed is None else sch.func.buffer_params[packed]
    in_vectors(sch, accumulated, depth + 5, tile.lanes)
    multiply_in_registers(sch, block, weight, tile, rk, ri, (ri, pi, ki), lane)
    if packed is not None:
        width = tile.vectors * tile.lanes
        panel_size = product([c.extent(k) for k in c.reduce], 1) * width
        streams = b.first and not b.together and target.has_prefetch
        passes = next((loop for loop in ((po,) if streams else (po, ro, rk)) if loop_extent(sch, loop) != 1), None)
        if passes is not None:
            ahead = Prefetch(weight.name, panel_size, step=sch.get(ri).extent.value * width, passes=0 if passes is po else 1)
            sch.annotate(passes, PREFETCH, ahead)


def _data(sch: Schedule, block: Any, stages: Stages, b: Blocking, loop: Any | None, target: Target) -> None:
    """Tiles of data one after another, each in registers, with the sums of squares that the test is about; padded rows of one block of
    channels are copied before. All of a block of tiles, under its loop, or of all of them."""
    if loop is not None:
        sch.compute_at(block, loop, preserve_unit_loops=True, index=-2)
    loops = sch.get_loops(block)
    x, y, n, k, p, c = loops[-6:]
    row, tile = sch.split(p, [None, extent_of(stages.result.spatial[3])])
    sch.reorder(n, k, row, tile, x, y, c)
    parts = sch.get_block(stages.test[0])
    q, *tiles, lane = sch.get_loops(parts)[-6:]
    sch.reorder(*tiles, q, lane)
    n, k, row, tile = (sch.merge(*pair) for pair in zip((n, k, row, tile), tiles, strict=True))
    sch.unroll(q)
    sch.vectorize(lane)
    sch.unroll(x)
    sch.unroll(y)
    sch.vectorize(c)
    _straight(sch, sch.get_block(stages.data_columns.name), tile, len(loops) - 6 + 4)
    if stages.padding is not None:
        padding = sch.get_block(stages.padding)
        sch.compute_at(padding, k)
        sch.vectorize(sch.get_loops(padding)[-1])
    if loop is None:
        parallelize(sch, sch.fuse(n, k), product([extent_of(a) for a in stages.data.spatial[4:]], 1) * stages.edge**2, target)


def _direct(sch: Schedule, stages: Stages, loop: Any) -> list[Any]:
    """The sums of one tile and block of channels in registers, where the test chooses them, and before them the tile's pixels with padding:
    the blocks, last ones first."""
    sums = sch.get_block(stages.direct)
    sch.set_scope(sums, 0, "local")
    sch.compute_at(sums, loop)
    around = len(sch.get_loops(sch.get_block(stages.store.name))) - 3
    i, j, lane, *reduce = sch.get_loops(sums)[around:]
    sch.reorder(*reduce, i, j, lane)
    for axis in (i, j):
        sch.unroll(axis)
    sch.vectorize(lane)
    if stages.patch is None:
        return [sums]
    patch = sch.get_block(stages.patch)
    sch.compute_at(patch, loop)
    row, column, lane = sch.get_loops(patch)[-3:]
    for axis in (row, column):
        sch.annotate(axis, EDGE, True)  # the loops around stay whole for what is rare
    sch.vectorize(lane)
    return [sums, patch]


def _test(sch: Schedule, stages: Stages, loop: Any | None, target: Target) -> None:
    """Which tiles are computed directly: of a block of tiles, under its loop, or of all, a row of tiles after the other."""
    parts, *sums, even = map(sch.get_block, stages.test)
    if loop is None:
        tile = sch.get_loops(even)[-1]
        parallelize(sch, sch.fuse(*sch.get_loops(even)[:-1]), test_cycles(stages), target)
    else:
        sch.compute_at(even, loop, preserve_unit_loops=True)
        tile = sch.get_loops(even)[-1]
    for block in reversed(sums):
        sch.set_scope(block, 0, "local")
        sch.compute_at(block, tile)
    if loop is not None:
        sch.compute_at(parts, loop, preserve_unit_loops=True, index=-2)
    squares, margins = sums
    inside = sch.get_loops(squares)[len(sch.get_loops(even)) :]
    at = len(inside) - 1 - (extent_of(stages.data.spatial[3]) != 1)  # of the lanes: a loop over a single block of channels, or a single sum, is gone
    sch.reorder(*inside[at + 1 :], *inside[:at], inside[at])
    for q in inside[:at]:
        sch.unroll(q)
    sch.vectorize(inside[at])
    sch.vectorize(sch.get_loops(margins)[-1])


def _cycles(stages: Stages, b: Blocking, target: Target) -> float:
    steps = product([extent_of(stages.products.info.block.iter_vars[k]) for k in stages.products.reduce], 64)
    tiles = b.rows * product([extent_of(stages.result.spatial[3])], 8)
    return stages.edge**2 * tiles * b.channels * steps / target.fma_ports
