# SPDX-License-Identifier: Apache-2.0
"""Programs without reductions that read along one axis what they write along another: square tiles, transposed in registers.

A tile is read in vectors along the axis that is contiguous in the operand, transposed by an instruction's network
(``intrinsics/transpose.py``) and written, with whatever else the program computes, in vectors along the axis that is contiguous in
the result. What fills no tile is cut into smaller ones, and single elements are what is left then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...ir import tir
from ...ir.dataclass import dataclass
from ...schedule.schedule import Schedule
from ...target import Target
from ...target.target import L2, L3
from ..candidates import Candidates, combinations
from ..cost import traffic, traffic_cycles
from ..match.accesses import Access, BlockInfo, blocks_of, conditional, extent_of, product
from ..parallelism import parallelize
from ..program import Program
from ..sketch import Applied, Sketch, rule
from ..statements import LANES as IN_VECTORS
from ..statements import UNROLLED, Loop, statement_of
from .elementwise import MOVES

TYPES = tuple(f"{kind}{bits}" for kind in ("float", "int", "uint") for bits in (8, 16, 32, 64) if (kind, bits) != ("float", 8)) + ("bfloat16",)
LANES = (16, 8, 4)
LEAST_BITS = 128  # of a tile's rows: the networks interleave within so many
ASSUMED = 512        # elements of an axis whose extent is not a number
TASKS = 4            # parallel iterations per core that keep all cores busy
CLEARLY = 1.25       # times as soon: the rows of what a tile gives may be short, and then they are copied in parts of vectors


@dataclass(frozen=True)
class Transposed:
    """``write`` and ``read`` are the axes (positions in the block) along which the result and the operand are contiguous."""

    info: BlockInfo
    operand: Access
    write: int
    read: int

    @property
    def result_bits(self) -> int:
        """Of an element of the result."""
        return self.info.stores[0].buffer.dtype.storage_bits

    def extent(self, axis: int) -> tir.Expr:
        """The extent of an axis of the block."""
        return self.info.block.iter_vars[axis].dom.extent

    @property
    def extents(self) -> tuple[int, int]:
        """Of the axes along which the operand and the result are contiguous, assumed where they are no numbers."""
        rows, columns = (n.value if isinstance(n, tir.IntImm) else ASSUMED for n in (self.extent(self.read), self.extent(self.write)))
        return rows, columns


@rule(model=MOVES)
def transposition(program: Program) -> Iterator[Sketch]:
    """Fits programs of one elementwise block (after inlining) with an operand contiguous along another axis than the result."""
    if program.reductions or not program.is_plain:
        return
    start, target = program.inlined(), program.target
    infos = blocks_of(start.func)
    found = find(infos[0]) if len(infos) == 1 else None
    lanes = choose_lanes(found, target) if found is not None else ()
    if found is None or not lanes:
        return

    orders = _orders(found)

    def scheduled(sch: Schedule, choice: dict[str, int]) -> Applied:
        _schedule(sch, found, lanes, orders[choice["order"]], bool(choice["staged"]), target)
        return Applied(sch, decisions=choice | {"lanes": lanes[0]})

    yield Sketch("transposition", start, scheduled, _candidates(found, lanes[0], orders, target))


def find(info: BlockInfo) -> Transposed | None:
    """The block as a transposition of one operand; its others do not move along the result's contiguous axis, or as the result does."""
    axes = info.block.iter_vars
    last = axes[-1].var if axes else None
    store = info.stores[0]
    if last is None or not store.steps(last, 1) or any(a.buffer.dtype not in TYPES for a in info.accesses):
        return None
    turned = [a for a in info.loads if not a.steps(last, 0) and not a.steps(last, 1)]
    if len(turned) != 1 or not all(type(i) in (tir.Var, tir.IntImm) for i in turned[0].indices):
        return None
    operand = turned[0]
    read = next((k for k, i in enumerate(axes[:-1]) if operand.indices[-1] is i.var and operand.steps(i.var, 1)), None)
    if read is None or operand.indices.count(last) != 1 or conditional(info) & {last, axes[read].var}:
        return None
    return Transposed(info, operand, len(axes) - 1, read)


def choose_lanes(t: Transposed, target: Target) -> tuple[int, ...]:
    """The tiles with the fewest cycles over the whole program, the largest first; none where single elements are faster."""
    rows, columns = t.extents
    bits = t.operand.buffer.dtype.bits
    widest = target.vector_bytes if begin_at_lines(t, target) else min(target.vector_bytes, target.line_bytes // 2)
    known = all(isinstance(t.extent(k), tir.IntImm) for k in (t.read, t.write))
    fitting = [n for n in LANES if LEAST_BITS <= n * bits <= widest * 8 and n <= min(rows, columns)]
    choices = [(), *(tuple(fitting[k:] if known else fitting[k : k + 1]) for k in range(len(fitting)))]
    return min(choices, key=lambda lanes: _moving(rows, columns, lanes, target))


def _moving(rows: int, columns: int, lanes: tuple[int, ...], target: Target) -> float:
    """Cycles to move a matrix in tiles of so many lanes, what fills none in the smaller ones, and single elements."""
    if not lanes:
        return rows * columns * target.move_cycles
    n, smaller = lanes[0], lanes[1:]
    whole_rows, whole_columns = rows // n * n, columns // n * n
    tiles = whole_rows * whole_columns / n * (n.bit_length() + 1.0) / target.fma_ports
    rest = [(rows - whole_rows, columns), (whole_rows, columns - whole_columns)]
    return tiles + sum(_moving(*r, smaller, target) for r in rest if min(r) > 0)


def begin_at_lines(t: Transposed, target: Target) -> bool:
    """Whether rows of the operand and of the result begin where lines of the cache do. Otherwise vectors as long as a line lie in two lines, all of them,
    and stores of them wait for both: vectors of half a line took three quarters of the time."""
    steps = [(a.stride(axis.var), a.buffer.dtype) for a in (t.operand, t.info.stores[0]) for axis in t.info.block.iter_vars]
    return all(n * dtype.storage_bits // 8 % target.line_bytes == 0 for n, dtype in steps if isinstance(n, int) and n not in (0, 1))


def beside(t: Transposed, lanes: int, target: Target) -> int:
    """How many tiles side by side write whole lines, where that leaves no more than a twentieth for single elements."""
    extent, count = t.extent(t.write), max(1, target.line_bytes // (lanes * t.info.stores[0].buffer.dtype.storage_bits // 8))
    columns = extent.value if isinstance(extent, tir.IntImm) else 1 << 30
    while count > 1 and columns % (lanes * count) - columns % lanes > columns // 20:
        count //= 2
    return count


def sweeps_writes(t: Transposed, lanes: int, target: Target) -> bool:
    """Whether tiles follow each other along the result's contiguous axis, so that a few rows are written from end to end: unless what a
    tile reads of a line is so little that the line has to come too often."""
    return lanes * t.operand.buffer.dtype.bits // 8 * 2 >= target.line_bytes


def _orders(t: Transposed) -> list[tuple[int, ...]]:
    """In which order the axes outside of the tiles may be: as in the result, or, where that is another one, as in the operand."""
    axes = t.info.block.iter_vars
    written = tuple(k for k in range(len(axes)) if k not in (t.read, t.write))
    places = {k: p for p, i in enumerate(t.operand.indices) for k in written if i is axes[k].var}
    read = tuple(sorted(written, key=lambda k: places.get(k, -1)))  # the operand is the same along the others
    long = lambda order: [k for k in order if extent_of(axes[k]) != 1]
    return [written] if long(read) == long(written) else [written, read]


def _candidates(t: Transposed, lanes: int, orders: Sequence[Sequence[int]], target: Target) -> Candidates:
    """``order`` is one of the orders of the axes outside of the tiles; with ``staged`` what one iteration of these gives goes through memory that stays
    near, and is written row by row. The order that brings the least into the caches is the first."""
    ranked = sorted(range(len(orders)), key=lambda k: _moved(t, lanes, orders[k], target))
    table = combinations({"staged": (1, 0) if _waits_for_pages(t, target) else (0, 1), "order": ranked}, lambda c: (c["staged"] == 0) | _may_stage(t, target))
    return Candidates(table)


def _may_stage(t: Transposed, target: Target) -> bool:
    """Whether there are axes outside of the tiles, and what one iteration of these gives is little."""
    return len(t.info.block.iter_vars) > 2 and math.prod(t.extents) * t.result_bits <= 8 * target.scattered_room * target.l2_bytes


def _waits_for_pages(t: Transposed, target: Target) -> bool:
    """Whether the rows that a tile writes lie in different pages, of a result that is larger than the second-level cache, and writing them in turn is clearly
    sooner: lines of several pages that are written in turns come one by one. From a far cache that takes longer than to copy them (of 56x121x15x19 numbers
    turned round on a Xeon, rows in turn took half the time), from a near one it does not (on Zen 4 they took 1.5 times the time)."""
    step = t.info.stores[0].stride(t.info.block.iter_vars[t.read].var)
    size = product([extent_of(a) for a in t.info.block.iter_vars], ASSUMED) * t.result_bits
    if not isinstance(step, int) or step * t.result_bits < 8 * target.page_bytes or size <= 8 * target.l2_bytes:
        return False
    far, vectors = target.stored_per_cycle(L3), target.line_bytes / target.vector_bytes
    copied = 1.0 / target.stored_per_cycle(L2) + 1.0 / target.bytes_per_cycle(L2)
    in_turn = target.line_bytes * (1.0 / far + copied) + vectors * (1.0 / target.loads + 1.0 / target.stores)
    return target.line_bytes / (target.scattered_share * far) > CLEARLY * in_turn


def _moved(t: Transposed, lanes: int, order: Sequence[int], target: Target) -> float:
    """Cycles for what tiles of so many lanes bring into the caches in an order: tiles that follow each other finish the lines that they share, or come back
    to them when these are gone."""
    extent = lambda k: extent_of(t.info.block.iter_vars[k]) or ASSUMED
    tiles = (t.read, t.write) if sweeps_writes(t, lanes, target) else (t.write, t.read)
    loops = [*(Loop(k, extent(k)) for k in order), *(Loop(k, -(-extent(k) // lanes)) for k in tiles)]
    tile = replace(statement_of(t.info.block, t.write, target), loops=(*loops, Loop(t.read, lanes, UNROLLED), Loop(t.write, lanes, IN_VECTORS)))
    crossing = traffic(target, tile)
    return 0.0 if crossing is None else float(sum(map(np.max, traffic_cycles(target, crossing))))


def _schedule(sch: Schedule, t: Transposed, lanes: tuple[int, ...], order: Sequence[int], is_staged: bool, target: Target) -> None:
    block = sch.get_block(t.info.name)
    loops = sch.get_loops(block)
    outer = [loops[k] for k in order]
    count = beside(t, lanes[0], target)
    first, second = (t.read, t.write) if sweeps_writes(t, lanes[0], target) else (t.write, t.read)
    sch.reorder(*outer, loops[first], loops[second])
    if is_staged:
        _write_in_turn(sch, block, outer[-1], target)
    outermost, innermost = _in_tiles(sch, t, block, (loops[first], loops[second]), first == t.read, lanes, count)
    _parallel(sch, t, [*outer, outermost, innermost], lanes[0] ** 2 * count, target)


def _write_in_turn(sch: Schedule, block: Any, outside: Any, target: Target) -> None:
    """Make what one iteration of a loop gives in memory that stays near, and write it from there row by row."""
    copy = sch.cache_write(block, 0, "global")
    sch.reverse_compute_at(copy, outside)
    _, lanes = sch.split(sch.get_loops(copy)[-1], [None, target.vector_bytes * 8 // sch.get(copy).writes[0].buffer.dtype.storage_bits])
    sch.vectorize(lanes)


def _in_tiles(sch: Schedule, t: Transposed, block: Any, loops: tuple[Any, Any], reads_first: bool, lanes: tuple[int, ...], count: int = 1) -> list[Any]:
    """Cut two loops, the outer one first, into tiles of the first number of lanes, ``count`` of them side by side in the result, and what is left into
    smaller ones. ``reads_first``: the outer loop is along the operand's contiguous axis. Returns the loops over tiles."""
    n = lanes[0]
    for_read, for_write = (None, n), (None, count, n)
    cuts = (for_read, for_write) if reads_first else (for_write, for_read)
    whole, rest = _whole(sch, loops[0], math.prod(cuts[0][1:]))
    if rest is not None:
        _rest(sch, t, _around(sch, rest, 2), reads_first, lanes[1:])
    outermost, *within = sch.split(whole, cuts[0])
    inner = sch.get_loops(block)[-1]
    sch.reorder(outermost, inner, *within)
    whole, rest = _whole(sch, inner, math.prod(cuts[1][1:]))
    if rest is not None:
        last, *before = _around(sch, rest, len(within) + 1)
        _rest(sch, t, [*before, last], reads_first, lanes[1:])
    innermost, *others = sch.split(whole, cuts[1])
    (read_inner,), (tile_loop, write_inner) = (within, others) if reads_first else (others, within)
    sch.reorder(innermost, tile_loop, read_inner, write_inner)
    turned = sch.cache_read(block, _read_index(sch, block, t.operand.buffer), "local", [block])
    tile = sch.cache_read(turned, 0, "local", [turned])
    at = [t.operand.indices.index(t.info.block.iter_vars[k].var) for k in (t.read, t.write)]
    rank = t.operand.buffer.ndim
    order = [{at[0]: at[1], at[1]: at[0]}.get(k, k) for k in range(rank)]
    sch.transform_layout(turned, ("write", 0), tir.IndexMap.from_func(lambda *i: [i[k] for k in order], rank))
    sch.compute_at(turned, tile_loop)
    sch.compute_at(tile, tile_loop)
    depth = [sch.get(x).token for x in sch.get_loops(tile)].index(sch.get(tile_loop).token) + 1
    sch.tensorize(sch.get_loops(turned)[-2], f"transpose_{n}x{n}_{t.operand.buffer.dtype}")
    for loop in sch.get_loops(tile)[depth:-1]:
        sch.unroll(loop)
    sch.vectorize(sch.get_loops(tile)[-1])
    sch.unroll(read_inner)
    sch.vectorize(write_inner)
    sch.unroll(tile_loop)
    return [outermost, innermost]


def _around(sch: Schedule, loop: Any, count: int) -> list[Any]:
    """The loops around the block in a loop, the innermost ``count``."""
    return sch.get_loops(sch.get_child_blocks(loop)[0])[-count:]


def _rest(sch: Schedule, t: Transposed, loops: Sequence[Any], reads_first: bool, lanes: tuple[int, ...]) -> None:
    """What filled no tile, in smaller ones. ``loops``: along both axes, the outer one first, which may be several."""
    *outer, inner = loops
    outer = sch.fuse(*outer) if len(outer) > 1 else outer[0]
    fitting = tuple(n for n in lanes if all(sch.get(x).extent.value >= n for x in (outer, inner)))
    if fitting:
        sch.reorder(outer, inner)
        _in_tiles(sch, t, sch.get_child_blocks(inner)[0], (outer, inner), reads_first, fitting)


def _whole(sch: Schedule, loop: Any, lanes: int) -> tuple[Any, Any]:
    """The part of a loop that consists of whole tiles, and the remainder as a loop of its own (None where there is none)."""
    extent = sch.get(loop).extent
    whole = extent.value // lanes * lanes if isinstance(extent, tir.IntImm) else extent // lanes * lanes
    if isinstance(extent, tir.IntImm) and whole == extent.value:
        return loop, None
    return tuple(sch.loop_partition(loop, [whole, None]))


def _parallel(sch: Schedule, t: Transposed, loops: list[Any], elements: int, target: Target) -> None:
    """As many of the outermost loops as keep the cores busy."""
    extents = [n.value if isinstance(n, tir.IntImm) else ASSUMED // LANES[0] for n in (sch.get(x).extent for x in loops)]
    alone = [k for k in range(1, len(loops)) if sch.get(loops[k - 1]).body is not sch.get(loops[k])]  # others stand beside them
    most = min(alone, default=len(loops))
    count = next((k for k in range(1, most) if product(extents[:k], 1) >= TASKS * target.cores), most)
    if not count:
        return
    whole = sch.fuse(*loops[:count]) if count > 1 else loops[0]
    parallelize(sch, whole, elements * product(extents[count:], 1) * 0.5, target)


def _read_index(sch: Schedule, block: Any, buffer: tir.Buffer) -> int:
    return [r.buffer for r in sch.get(block).reads].index(buffer)
