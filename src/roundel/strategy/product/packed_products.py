# SPDX-License-Identifier: Apache-2.0
"""The strategy for products with constant numbers that are unpacked before they are used, in groups of the sum that have scales of their own.

    for i, n, g:  y[i, n] += f(p[i, g, n], s[g, n])    where    p[i, g, n] = sum over k of x[i, g, k] * unpack(words[g, k, n])

Vectors run along the columns n, and words are packed in panels of some vectors, so that a panel streams from memory. With a few rows, words become
numbers in registers, right before their multiply-adds, and both sums of a tile stay in registers: then the memory that holds the words is what takes the
time. With many rows, one group of a panel becomes numbers in the first cache, and all rows pass over it, while their results wait in the second one.
What unpacking is, is not asked: any block that computes a number of words that lie side by side along the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...ir import tir
from ...ir.annotations import PREFETCH, Prefetch
from ...ir.dataclass import dataclass
from ...ir.visit import free_vars
from ...schedule.schedule import Schedule
from ...target import Target
from ...target.target import MEMORY
from ..candidates import Candidates, Columns, combinations
from ..cost import together
from ..match.accesses import BlockInfo, product
from ..match.contraction import Contraction, match, sums_products
from ..parallelism import is_little, loop_extent, parallelize
from ..pointwise.elementwise import cycles_beside, schedule_spatial
from ..program import Program
from ..sketch import Applied, Sketch, rule
from .contraction import store_of
from .contraction_candidates import ASSUMED_ROWS
from .register_tile import in_vectors

UNPACKED = 3.0        # instructions that make a vector of numbers of words: shift, mask, convert
MOST_WRITTEN = 64     # multiply-adds of a word that are written out
MOST_ROWS, MOST_VECTORS = 8, 4
FETCHED_TIMES = 2     # as far ahead as other fetches are words that are unpacked: 16 lines ahead read 16 GB/s where 64 read 19.1 and 128 read 19.4


@dataclass(frozen=True)
class Packed:
    """The blocks of such a program: what unpacks, the sums of groups (a contraction), and the sum of these; which axis of the latter the columns are, and
    the constants that panels are made of, by buffer."""

    unpack: BlockInfo
    groups: Contraction
    total: BlockInfo
    constants: tuple[tir.Buffer, ...]

    @property
    def columns(self) -> int | None:
        """How many there are."""
        return self.groups.extent(self.groups.vector_axis)

    @property
    def rows(self) -> int:
        """How many there are, or are assumed."""
        return product([self.groups.extent(k) for k in self.groups.rows], ASSUMED_ROWS)


@rule
def packed_products(program: Program) -> Iterator[Sketch]:
    """Fits programs with two sums one inside of the other, the inner one of products with what a block before it unpacks."""
    found = matched(program)
    if found is None:
        return
    before = [i.name for i in program.blocks[: program.blocks.index(found.total)] if i.name not in (found.unpack.name, found.groups.info.name)]
    start = program.inlined(keep=[*before, found.unpack.name])
    yield Sketch("packed_products", start, partial(_scheduled, found=found, prologue=tuple(before), target=program.target),
                 candidates(found, program.target), partial(cycles_beside, start, program.target, (found.unpack.name,)))


def matched(program: Program) -> Packed | None:
    """The roles of a program's blocks."""
    if len(program.reductions) != 2 or not program.is_plain:
        return None
    inner, total = program.reductions
    groups = match(inner)
    if groups is None or not sums_products(inner) or len(total.reduce) != 1 or len(groups.rows) > 1 or groups.columns or len(groups.batch) != 1:
        return None
    unpack = next((i for i in program.blocks if i.stores[0].buffer is groups.vector.buffer and not i.reduce), None)
    made = [a for a in total.loads if a.buffer is inner.stores[0].buffer]
    if unpack is None or len(made) != 1 or len([i for i in program.blocks if any(a.buffer is inner.stores[0].buffer for a in i.loads)]) != 1:
        return None
    column, group = total.spatial[-1].var, total.reduce[0].var
    at = dict(zip((i.var for i in inner.spatial), made[0].indices, strict=False)) if len(made[0].indices) == len(inner.spatial) else {}
    axes = inner.block.iter_vars
    if at.get(axes[groups.vector_axis].var) is not column or at.get(axes[groups.batch[0]].var) is not group:
        return None
    along = unpack.spatial[-1].var
    constants = [a for a, v in ((a, v) for i, v in ((unpack, along), (total, column)) for a in i.loads) if program.is_constant(a.buffer)]
    in_panels = [a for a in constants if a.buffer.ndim == 2 and a.indices[-1] in (along, column) and not {along, column} & free_vars(a.indices[0])]
    if len(in_panels) != len(constants) or not any(a in unpack.loads for a in in_panels) or len(unpack.loads) != 1:
        return None
    return Packed(unpack, groups, total, tuple(dict.fromkeys(a.buffer for a in in_panels)))


def candidates(p: Packed, target: Target) -> Candidates:
    """Tiles of rows and vectors whose sums fit the registers, and whether a group becomes numbers for all rows at once."""
    lanes, columns = target.lanes("float32"), p.columns
    most = MOST_VECTORS if columns is None else min(MOST_VECTORS, -(-columns // lanes))

    def legal(t: Columns) -> np.ndarray:
        sums = t["rows"] * t["vectors"] * np.where(t["cached"], 1, 2)
        return (sums + 2 * t["vectors"] + 1 <= target.vector_registers) | (t["rows"] * t["vectors"] == 1)

    table = combinations({"rows": range(1, min(MOST_ROWS, p.rows) + 1), "vectors": range(1, most + 1), "lanes": [lanes], "cached": (0, 1)}, legal)
    return Candidates(table, _cycles(p, target, table))


def _cycles(p: Packed, target: Target, t: Columns) -> Any:
    """Cycles of one core: multiply-adds and what they wait for, unpacking for each tile or once, and reading the words."""
    steps, groups = product([p.groups.extent(k) for k in p.groups.reduce], 32), p.groups.extent(p.groups.batch[0]) or 1
    vectors = -(-(p.columns or 256) // (t["vectors"] * t["lanes"])) * t["vectors"]
    tiles = -(-p.rows // t["rows"])
    each = t["rows"] * tiles  # multiply-adds of a vector in a step, those of rows that a tile has too many included
    loads = (np.where(t["cached"], 1.0 / t["rows"], 0.0) + 1.0 / t["vectors"]) / target.loads
    multiplied = each * together(target, 1.0 / target.fma_ports, loads, target.fma_latency / (t["rows"] * t["vectors"]))
    unpacked = np.where(t["cached"], UNPACKED / target.fma_ports + 1.0 / target.stores, tiles * UNPACKED / target.fma_ports)
    scaled = p.rows * np.where(t["cached"], 1.0 / target.stores + 1.0, 1.0)
    spent = groups * vectors * (steps * (multiplied + unpacked) + scaled)
    moved = sum(product([n.value if isinstance(n, tir.IntImm) else None for n in b.shape], 256) * b.dtype.storage_bits / 8 for b in p.constants)
    return together(target, spent, moved / target.bytes_per_cycle(MEMORY))


def _scheduled(sch: Schedule, choice: dict[str, int], found: Packed, prologue: tuple[str, ...], target: Target) -> Applied:
    """The steps for one choice."""
    lanes, vectors = choice["lanes"], choice["vectors"]
    width = lanes * vectors
    unpack, groups, total = (sch.get_block(i.name) for i in (found.unpack, found.groups.info, found.total))
    panels = tir.IndexMap.from_func(lambda k, n: (n // width, k, n % width), 2)
    layouts = {}
    for buffer in found.constants:
        layouts[sch.func.buffer_params.index(buffer)] = panels
        reader = next(b for b in (unpack, total) if buffer in [r.buffer for r in sch.get(b).reads])
        sch.transform_layout(reader, ("read", [r.buffer for r in sch.get(reader).reads].index(buffer)), panels, pad_value=0)
    result = store_of(sch, found.total)
    grain = (_many_rows if choice["cached"] else _few_rows)(sch, found, unpack, groups, total, result, choice, target)
    for name in prologue:
        schedule_spatial(sch, next(i for i in [BlockInfo(sch.get(sch.get_block(name)))]), target)
    return Applied(sch, layouts, choice | grain)


def _few_rows(sch: Schedule, p: Packed, unpack: Any, groups: Any, total: Any, result: Any, choice: dict[str, int], target: Target) -> dict[str, int]:
    """Both sums in registers; words become numbers for one step of one tile."""
    lanes, rows = choice["lanes"], choice["rows"]
    *row, column, group = sch.get_loops(total)
    panel, vectors, inside = sch.split(column, [None, choice["vectors"], lanes])
    tiles, of_tile = sch.split(row[-1], [None, rows]) if row else (None, None)
    outside = [panel, *([] if tiles is None else [tiles])]
    sch.reorder(*outside, group, *([] if of_tile is None else [of_tile]), vectors, inside)
    sch.reverse_compute_at(result, outside[-1])
    sch.compute_at(groups, group, preserve_unit_loops=True)
    sch.set_scope(groups, 0, "local")
    depth = len(outside) + 1
    _in_groups(sch, p, groups, unpack, depth, choice, in_registers=True, ahead=FETCHED_TIMES * target.ahead_bytes)
    for block in (sch.decompose_reduction(total, group), result):
        in_vectors(sch, block, len(outside), lanes)
    for loop in (of_tile, vectors):
        if loop is not None:
            sch.unroll(loop)
    sch.vectorize(inside)
    return _in_parallel(sch, p, outside[:1], choice, target)


def _many_rows(sch: Schedule, p: Packed, unpack: Any, groups: Any, total: Any, result: Any, choice: dict[str, int], target: Target) -> dict[str, int]:
    """A group of a panel becomes numbers, then all rows pass over it."""
    lanes, rows = choice["lanes"], choice["rows"]
    *row, column, group = sch.get_loops(total)
    panel, vectors, inside = sch.split(column, [None, choice["vectors"], lanes])
    tiles, of_tile = sch.split(row[-1], [None, rows])
    sch.reorder(panel, group, tiles, of_tile, vectors, inside)
    sch.set_scope(total, 0, "global")
    sch.reverse_compute_at(result, panel)
    sch.compute_at(groups, tiles, preserve_unit_loops=True)
    sch.set_scope(groups, 0, "local")
    sch.compute_at(unpack, group, preserve_unit_loops=True)
    sch.set_scope(unpack, 0, "global")
    in_panel = sch.get_loops(unpack)[2:]
    split = sch.split(in_panel[-1], [None, lanes])
    sch.vectorize(split[1])
    for loop in (split[0], in_panel[-2]):
        sch.unroll(loop)
    _in_groups(sch, p, groups, unpack, 3, choice, in_registers=False)
    for block in (sch.decompose_reduction(total, group), result):
        last = sch.split(sch.get_loops(block)[-1], [None, lanes])
        sch.unroll(last[0])
        sch.vectorize(last[1])
    for loop in (of_tile, vectors):
        sch.unroll(loop)
    sch.vectorize(inside)
    return _in_parallel(sch, p, [panel], choice, target)


def _in_groups(sch: Schedule, p: Packed, groups: Any, unpack: Any, depth: int, choice: dict[str, int], in_registers: bool, ahead: int = 0) -> None:
    """The sum of one group in registers: a step loads or makes its vectors once for all rows of the tile. Words come from memory so many bytes ``ahead``."""
    lanes = choice["lanes"]
    inside = sch.get_loops(groups)[depth:]
    count = len(p.groups.reduce)
    *spatial, column = inside[: len(inside) - count]
    reduce = inside[len(inside) - count:]
    vectors, lane = sch.split(column, [None, lanes])
    tile = spatial[0] if p.groups.rows else None
    units = [x for x in spatial if x is not tile]
    sch.reorder(*units, *reduce, *([] if tile is None else [tile]), vectors, lane)
    at = depth + len(units) + count
    if in_registers:
        sch.compute_at(unpack, reduce[-1], preserve_unit_loops=True)
        sch.set_scope(unpack, 0, "local")
        packed = sch.get(unpack).reads[0].buffer
        words = sch.cache_read(unpack, 0, "local")
        sch.compute_at(words, reduce[-2] if count > 1 else reduce[-1])
        in_vectors(sch, words, at - (count > 1), lanes)
        in_vectors(sch, unpack, at, lanes)
        if count > 1 and ahead:
            sch.annotate(reduce[-2], PREFETCH, Prefetch(packed.name, ahead * 8 // packed.dtype.storage_bits, step=choice["vectors"] * lanes, passes=1))
    else:
        operand = [r.buffer for r in sch.get(groups).reads].index(sch.get(unpack).writes[0].buffer)
        panel = sch.cache_read(groups, operand, "local")
        sch.compute_at(panel, reduce[-1])
        in_vectors(sch, panel, at, lanes)
    in_vectors(sch, sch.decompose_reduction(groups, reduce[0]), depth + len(units), lanes)
    for loop in (tile, vectors):
        if loop is not None:
            sch.unroll(loop)
    last = loop_extent(sch, reduce[-1])
    if last is not None and last * choice["rows"] * choice["vectors"] <= MOST_WRITTEN:
        sch.unroll(reduce[-1])
    elif last is not None:
        sch.unroll(sch.split(reduce[-1], [None, next(n for n in (4, 2, 1) if last % n == 0)])[1])
    sch.vectorize(lane)


def _in_parallel(sch: Schedule, p: Packed, loops: list[Any], choice: dict[str, int], target: Target) -> dict[str, int]:
    panels = -(-(p.columns or 256) // (choice["vectors"] * choice["lanes"]))
    work = float(_cycles(p, target, {n: np.array([x]) for n, x in choice.items()})[0]) / max(panels, 1)
    return {} if is_little(sch, loops, work, target) else parallelize(sch, loops[0], work, target)
