# SPDX-License-Identifier: Apache-2.0
"""A few matrix products whose results are sums of them: Strassen's algorithm.

The program is a contraction with a leading batch axis and a block that adds the products of all its steps; elementwise blocks
follow. A panel of columns of all products stays in the second-level cache until it is summed up:

    for panel (in parallel), for block of rows:
        for x, for tile of rows:  products[x, tile, panel] = data[x, tile, :] weight[x, :, panel]
        for row, vector:          result[...] = sums of products[:, row, vector]

The block that stores the results may choose plain sums instead for some rows, which are computed there where it does.
Where rows come in whole tiles, [tiles, tile], these may be as many as they like: panels go over a part of them that the last
cache holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...ir import tir
from ...ir.annotations import EDGE, PREFETCH, PREFETCH_PASS, Prefetch
from ...ir.dataclass import dataclass
from ...ir.visit import free_vars
from ...schedule.schedule import Schedule
from ...target import Target
from ...target.target import L2
from ..candidates import Candidates, Columns, combinations
from ..cost import capacities, cycles, rows_in_cache, traffic_cycles
from ..match.accesses import BlockInfo, blocks_of, extent_of, product
from ..match.contraction import Contraction, match
from ..parallelism import parallelize
from ..parallelism import together as fused_in_parallel
from ..pointwise.elementwise import spatial_cycles
from ..product.panels import shared_panels
from ..product.register_tile import Tile, in_vectors, multiply_in_registers, product_cycles
from ..program import Program
from ..sketch import Applied, Sketch, rule
from ..statements import ASSUMED, LANES, UNROLLED, Loop, in_registers, statement_of

UNROLLED_FMAS = 224  # multiply-adds in the body of the inner loop
SUMMED_REGISTERS = 4 # that sums of quarters need beside the products
FEW_ROWS = 32        # of a block
LEAST_ROWS = 4       # of a tile
FEW_TILES = 8        # that run over a panel of weights while the next one comes from memory


@dataclass(frozen=True)
class Stages:
    """The blocks by role. ``direct``: the plain sums of some rows; ``factors``: what makes the right operands of the products, where they are
    no constant."""

    products: Contraction
    result: BlockInfo
    store: BlockInfo
    direct: BlockInfo | None = None
    factors: BlockInfo | None = None


def find(infos: list[BlockInfo]) -> Stages | None:
    """The stages of the program, or None where it is not such a chain (a batch of one product has nothing to sum up)."""
    if len(infos) > 3 and infos[0].is_plain:
        rest, made = find(infos[1:]), infos[0].stores[0].buffer
        if rest is None:
            return None
        if infos[0].reduce:
            return replace(rest, direct=infos[0]) if made in {a.buffer for a in rest.store.loads} else None
        return replace(rest, factors=infos[0]) if made is rest.products.vector.buffer else None
    if len(infos) != 3 or [bool(i.reduce) for i in infos] != [True, False, False] or not all(i.is_plain for i in infos):
        return None
    products = match(infos[0])
    if products is None or len(products.reduce) != 1 or not products.batch or products.batch[0] != 0 or len(products.rows) != 1 + _batches(infos[0]):
        return None
    made = infos[0].stores[0].buffer
    firsts = {a.indices[0] for a in infos[1].loads if a.buffer is made}
    if len(firsts) < 2 or len(firsts) != extent_of(infos[0].spatial[0]) or not all(isinstance(i, tir.IntImm) for i in firsts):
        return None
    if infos[1].stores[0].buffer not in {a.buffer for a in infos[2].loads}:
        return None
    return Stages(products, infos[1], infos[2])


def _batches(info: BlockInfo) -> int:
    """Axes between the first and the rows."""
    return len(info.spatial) - 3


@rule
def bilinear(program: Program) -> Iterator[Sketch]:
    """Fits products with a batch axis that a block without reduction sums up (elementwise blocks go into the store)."""
    infos, target = program.blocks, program.target
    first = next((k for k, i in enumerate(infos) if i.reduce and k + 1 < len(infos) and _may_sum_up(i, infos[k + 1])), None)
    if first is None or first > 2 or not program.is_plain or len(program.reductions) > 1 + bool(infos[0].reduce):
        return
    start = program.inlined(keep=[i.name for i in infos[: first + 2]])
    stages = find(blocks_of(start.func))
    if stages is None:
        return
    products = stages.products
    pairs, half = (extent_of(a) for a in products.info.spatial[-2:])
    lanes = target.lanes("float32")
    if pairs is None or half is None or half % lanes or products.info.stores[0].buffer.dtype != "float32":
        return
    vectors = [v for v in (1, 2, 3, 4) if half // lanes % v == 0]
    machine = target if stages.factors is None else replace(target, vector_registers=target.vector_registers - SUMMED_REGISTERS)
    tiles = _tiles(pairs, vectors, products, lanes, machine)
    yield Sketch("bilinear", start, partial(_scheduled, stages=stages, target=target), Candidates(tiles, _cycles(stages, tiles, pairs, lanes, machine)))


def _scheduled(sch: Schedule, choice: dict[str, int], stages: Stages, target: Target) -> Applied:
    tile = Tile(choice["rows"], choice["vectors"], target.lanes("float32"))
    layouts = _pack(sch, stages, tile)
    outer, rows = _tiled(sch, stages, tile, target) if _is_tiled(stages) else (_blocked(sch, stages, tile, choice["block_rows"]), choice["block_rows"])
    _schedule(sch, stages, tile, outer, rows, next(iter(layouts), None), target)
    return Applied(sch, layouts, choice | {"lanes": tile.lanes})


def _may_sum_up(products: BlockInfo, result: BlockInfo) -> bool:
    """Whether a block adds several steps of the first axis of the block before it, before anything is inlined."""
    made = products.stores[0].buffer
    firsts = {a.indices[0] for a in result.loads if a.buffer is made and a.indices}
    return len(firsts) > 1 and all(isinstance(i, tir.IntImm) for i in firsts)


def _tiles(pairs: int, vectors: list[int], c: Contraction, lanes: int, target: Target) -> dict[str, np.ndarray]:
    """Register tiles, with the rows of a block for each: all where the cache has room for their products, or else blocks of equal size. Where
    it can be, blocks are of whole tiles."""
    room = target.l2_bytes * target.waiting_room / ((extent_of(c.info.spatial[0]) or 1) * lanes * 4)
    blocks = [pairs, *(r for r in range(FEW_ROWS, pairs) if pairs % r == 0)]
    heights = range(1, min(rows_in_cache(target, c.row_bytes), pairs, target.vector_registers) + 1)

    def legal(t: Columns) -> np.ndarray:
        fits = target.holds_tile(t["rows"], t["vectors"])
        return fits & ((t["block_rows"] * t["vectors"] <= room) | (t["block_rows"] == min(blocks)))

    table = combinations({"rows": heights, "vectors": vectors, "block_rows": blocks}, legal)
    whole = (table["block_rows"] % table["rows"] == 0) & (table["rows"] >= min(LEAST_ROWS, pairs))
    return {name: column[whole] for name, column in table.items()} if whole.any() else table


def _cycles(stages: Stages, t: Columns, pairs: int, lanes: int, target: Target) -> Any:
    """Of all products in these tiles, and of the sums of them."""
    c = stages.products
    matrices = extent_of(c.info.spatial[0]) or 1
    steps, batch = (product([extent_of(a) for a in axes], ASSUMED) for axes in (c.info.reduce, c.info.spatial[1:-2]))
    columns = (extent_of(c.info.spatial[-1]) or lanes) // lanes
    rows, parts = t["block_rows"], 1.0
    if _is_tiled(stages):
        in_block, in_part = _tiles_together(c, t["vectors"] * lanes, target)
        rows, parts = rows * np.minimum(in_block, batch), np.maximum(batch / (in_block * in_part), 1.0)
    blocks = np.maximum(batch * pairs / (rows * parts), 1.0)
    products = product_cycles(target, rows, t["rows"], t["vectors"], lanes, c.row_bytes, steps, (columns // t["vectors"], blocks, matrices))
    products = products * blocks * parts
    if stages.factors is not None:  # once for the rows of a block
        products = products + spatial_cycles(stages.factors, target) * pairs / t["block_rows"] / (matrices * steps * columns)
    sums = _summing(stages.result, lanes, target) + spatial_cycles(stages.store, target, {stages.result.stores[0].buffer})
    sums = sums + _handed_over(c, t, matrices * batch * pairs * columns * lanes, lanes, target)
    return products * (matrices * steps * columns) + sums


def _handed_over(c: Contraction, t: Columns, products: float, lanes: int, target: Target) -> Any:
    """Cycles for so many products, written by one stage of a block and read by the next, where those of a block are more than the first-level cache holds."""
    size = c.info.stores[0].buffer.dtype.storage_bits / 8
    block = t["block_rows"] * t["vectors"] * lanes * (extent_of(c.info.spatial[0]) or 1) * size
    read, *_ = traffic_cycles(target, [products * size, 0, 0])
    return np.where(block > capacities(target)[0], products * size / target.stored_per_cycle(L2) + read, 0.0)


def _summing(result: BlockInfo, lanes: int, target: Target) -> float:
    """Cycles of the block that adds the products: a vector of each of them at a time, for all that is made of these in registers."""
    *outside, q, i, j = ((k, extent_of(a)) for k, a in enumerate(result.spatial))
    around = [*(Loop(k, n or ASSUMED) for k, n in outside), Loop(q[0], -(-(q[1] or ASSUMED) // lanes))]
    body = (Loop(i[0], i[1] or 1, UNROLLED), Loop(j[0], j[1] or 1, UNROLLED), Loop(q[0], lanes, LANES))
    return float(np.max(cycles(target, replace(in_registers(statement_of(result.block, q[0], target, has_guards=False)), loops=(*around, *body), result=None))))


def _pack(sch: Schedule, stages: Stages, tile: Tile) -> dict[int, tir.IndexMap]:
    """Constant weights go into panels: for each the steps of the batch (the quarters that these are made of), for each of these the reduction."""
    c, reader = stages.products, stages.factors or stages.products.info
    buffer = c.vector.buffer if stages.factors is None else stages.factors.loads[0].buffer
    params, width = sch.func.buffer_params, tile.vectors * tile.lanes
    position = params.index(buffer) if buffer in params else -1
    if position not in sch.func.attrs.get("constant_params", ()) or buffer.ndim not in (2, 3):
        return {}
    if buffer.ndim == 2:
        mapping = shared_panels(c.extent(c.vector_axis) or 1, width)
    else:
        mapping = tir.IndexMap.from_func(lambda x, k, n: (n // width, x, k, n % width), 3)
    block = sch.get_block(reader.name)
    reads = [r.buffer for r in sch.get(block).reads]
    sch.transform_layout(block, ("read", reads.index(buffer)), mapping, pad_value=0)
    return {position: mapping}


def _is_tiled(stages: Stages) -> bool:
    """Whether there is an axis more for tiles of rows than the result has (whose axes of extent 1 do not count)."""
    axes, made = len(stages.products.info.spatial), stages.result.stores[0].buffer
    if axes == 3 or len(stages.store.spatial) == axes - 2:
        return axes > 3
    tiles, tile = next(a.indices for a in stages.store.loads if a.buffer is made)[-5:-3]
    return not free_vars(tiles).isdisjoint(free_vars(tile))


def _result_loops(sch: Schedule, stages: Stages) -> list[Any]:
    """Loops of the result: batch, rows, columns; those of extent 1 that a shape adds are joined with the next."""
    loops = sch.get_loops(sch.get_block(stages.store.name))
    wanted = len(stages.products.info.spatial) - 1 - _is_tiled(stages)
    while len(loops) > wanted:
        k = next((k for k in range(1, len(loops)) if 1 in (_extent(sch, loops[k - 1]), _extent(sch, loops[k]))), 1)
        loops[k - 1: k + 1] = [sch.fuse(loops[k - 1], loops[k])]
    return loops


def _blocked(sch: Schedule, stages: Stages, tile: Tile, block_rows: int) -> list[Any]:
    """Split the result's loops, bring them in order; the outer ones are returned: panel, batch, block of rows."""
    *batch, m, n = _result_loops(sch, stages)
    rows, i = sch.split(m, [None, 2])
    block, row = sch.split(rows, [None, block_rows])
    panel, v, j, lane = _columns(sch, stages, tile, n)
    outer = [panel, *batch, block]
    sch.reorder(*outer, row, v, i, j, lane)
    _straight(sch, stages, (i, j), lane, v, len(outer) + 2)
    return outer


def _tiled(sch: Schedule, stages: Stages, tile: Tile, target: Target) -> tuple[list[Any], int]:
    """The same for whole tiles: batch, part, panel, block of tiles; and how many pairs of rows are in a block."""
    *batch, m, n = _result_loops(sch, stages)
    height = extent_of(stages.products.info.spatial[-2]) or 1
    in_block, in_part = (int(n) for n in _tiles_together(stages.products, tile.vectors * tile.lanes, target))
    part, block, t, row, i = sch.split(m, [None, in_part, in_block, height, 2])
    panel, v, j, lane = _columns(sch, stages, tile, n)
    outer = [*batch, part, panel, block]
    sch.reorder(*outer, t, row, v, i, j, lane)
    sch.annotate(t, EDGE, True)
    _straight(sch, stages, (i, j), lane, v, len(outer) + 3)
    return outer, in_block * height


def _tiles_together(c: Contraction, width: Any, target: Target) -> tuple[Any, Any]:
    """How many tiles of rows are a block, whose products in a panel of so many columns wait in the second-level cache, and how many blocks are a part, whose
    data stays in the last one."""
    height, matrices = extent_of(c.info.spatial[-2]) or 1, extent_of(c.info.spatial[0]) or 1
    fit = np.maximum(target.l2_bytes * target.waiting_room // (matrices * width * 4 * height), 1)
    in_block = 2 ** np.floor(np.log2(fit))
    data = matrices * product([extent_of(a) for a in c.info.reduce], ASSUMED) * 4 * height * in_block
    return in_block, np.maximum(target.l3_bytes * target.l3_room // data, 1)


def _columns(sch: Schedule, stages: Stages, tile: Tile, n: Any) -> tuple[Any, Any, Any, Any]:
    """Columns of the result by half: panel, vector, half, lane."""
    j, q = sch.split(n, [None, extent_of(stages.products.info.spatial[-1])])
    panel, v, lane = sch.split(q, [None, tile.vectors, tile.lanes])
    return panel, v, j, lane


def _straight(sch: Schedule, stages: Stages, halves: tuple[Any, Any], lane: Any, v: Any, outside: int) -> None:
    """The sums of a vector of products are straight code."""
    for loop in halves:
        sch.unroll(loop)
    sch.vectorize(lane)
    if stages.direct is not None:
        direct = sch.get_block(stages.direct.name)
        sch.set_scope(direct, 0, "local")
        sch.compute_at(direct, halves[1])
        *_, vector, k = sch.get_loops(direct)
        sch.reorder(k, vector)
        sch.vectorize(vector)
        sch.only_where_chosen(direct)
    _in_registers(sch, sch.get_block(stages.result.name), v, outside)


def _schedule(sch: Schedule, stages: Stages, tile: Tile, outer: list[Any], block_rows: int, packed: int | None, target: Target) -> None:
    """The products under the innermost of the outer loops, and these in parallel."""
    c = stages.products
    products = sch.get_block(c.info.name)
    accumulated = sch.cache_write(products, 0, "local")
    sch.compute_at(accumulated, outer[-1], preserve_unit_loops=True)
    sch.compute_at(products, outer[-1], preserve_unit_loops=True)
    _products(sch, products, accumulated, stages, tile, packed, len(outer), target)
    if _is_tiled(stages):
        outer = outer[-2:]  # parts of the data one after another
    extents = [_extent(sch, x) for x in outer]
    count = next((k + 1 for k in range(len(outer)) if product(extents[: k + 1], 1) >= 4 * target.cores), len(outer))
    count = fused_in_parallel(sch, outer[:count])
    whole = sch.fuse(*outer[:count]) if count > 1 else outer[0]
    inside = product(extents[count:], 16) * block_rows * tile.vectors / target.fma_ports
    parallelize(sch, whole, inside * product([extent_of(a) for a in (c.info.spatial[0], *c.info.reduce)], 256), target)


def _extent(sch: Schedule, loop: Any) -> int | None:
    extent = sch.get(loop).extent
    return extent.value if isinstance(extent, tir.IntImm) else None


def _in_registers(sch: Schedule, block: Any, loop: Any, outside: int) -> None:
    """Compute a block under a loop in registers: straight code in vectors."""
    sch.set_scope(block, 0, "local")
    sch.compute_at(block, loop)
    *_, lane, i, j = sch.get_loops(block)[outside:]
    sch.reorder(i, j, lane)
    for inner in (i, j):
        sch.unroll(inner)
    sch.vectorize(lane)


def _products(sch: Schedule, block: Any, accumulated: Any, stages: Stages, tile: Tile, packed: int | None, outside: int,
              target: Target) -> None:
    """A matrix product for each step of the batch: the register tile over the whole reduction."""
    c = stages.products
    x, *batch, p, q, k = sch.get_loops(block)[outside:]
    po, pi = sch.split(p, [None, tile.rows])
    qo, qv, lane = sch.split(q, [None, tile.vectors, tile.lanes])
    most = min(max(1, (UNROLLED_FMAS if stages.factors is None else UNROLLED_FMAS // 2) // (tile.rows * tile.vectors)), 8, target.unrolled_steps)
    extent, height = c.extent(c.reduce[0]) or 1, extent_of(c.info.spatial[-2])
    unroll = max(u for u in range(1, most + 1) if extent % u == 0)
    ko, ki = sch.split(k, [None, unroll])
    sch.reorder(x, *batch, qo, po, ko, ki, pi, qv, lane)
    sch.reverse_compute_at(accumulated, po)
    weight = c.vector.buffer if packed is None else sch.func.buffer_params[packed]
    in_vectors(sch, accumulated, outside + len(batch) + 3, tile.lanes)
    multiply_in_registers(sch, block, c.vector.buffer if stages.factors else weight, tile, ko, ki, (ki, pi, qv), lane)
    tiled = height == tile.rows and len(batch) > 0
    if tiled:
        sch.annotate(batch[-1], EDGE, True)
    if stages.factors is not None:
        _make_once(sch, stages.factors, tile, x, [*batch, po], ki)
    if packed is None:
        return
    width = tile.vectors * tile.lanes
    if stages.factors is not None:  # four quarters while seven products pass
        sch.annotate(x, PREFETCH, Prefetch(weight.name, 4 * extent * width, step=4 * unroll * width))
        sch.annotate(po, PREFETCH_PASS, True)
    else:
        ahead = Prefetch(weight.name, extent * width, step=unroll * width, passes=FEW_TILES if tiled else 0)
        sch.annotate(batch[-1] if tiled else po, PREFETCH, ahead)


def _make_once(sch: Schedule, factors: BlockInfo, tile: Tile, x: Any, rows: list[Any], step: Any) -> None:
    """Factors of a panel are made beside the products of its first rows; the loop over them is written out, so that each has code of
    its own."""
    block = sch.get_block(factors.name)
    sch.compute_at(block, step)
    in_vectors(sch, block, len(sch.get_loops(block)) - 2, tile.lanes)
    for loop in rows:
        sch.run_once(block, loop)
    sch.unroll(x)
