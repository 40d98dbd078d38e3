# SPDX-License-Identifier: Apache-2.0
"""The strategy for products of bytes in groups of a sum that have scales of their own, with constants that are unpacked to bytes before they are used.

    for i, n, g:  y[i, n] += f(p[i, 0, g, n], p[i, 1, g, n], ..., s[g, n])    where    p[i, s, g, n] = sum over k of d[i, s, g, k] * unpack(bytes[g, k, n])

As in ``packed_products`` both sums of a tile stay in registers, and bytes of a panel become numbers right before they are used; but an instruction that sums
products of bytes multiplies them. Which one, and that the innermost axis of the sum is what it sums over, is found by matching (``match/dot_product``).
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
from ..match.accesses import BlockInfo, extent_of, product
from ..match.dot_product import Product, matches
from ..parallelism import is_little, parallelize
from ..pointwise.elementwise import cycles_beside, schedule_spatial
from ..program import Program
from ..sketch import Applied, Sketch, rule
from .contraction import store_of
from .contraction_candidates import ASSUMED_ROWS
from .packed_products import MOST_ROWS
from .register_tile import in_vectors

MOST_VECTORS = 2   # more lie farther apart in a panel than hardware fetches ahead, and gain nothing: of 576 x 1536 in 4 bits, 2 read 21.5 GB/s, 4 read 17
MOST_FETCHED = 4   # lines that are fetched at once: 8 of them, 8 KiB ahead, are as fast on one thread, and 0.9 as fast as products of floats on two
FETCHED_PART = 2   # of as far ahead as other fetches are bytes of a panel that is passed over once
AROUND = 10.0      # instructions for a vector of a group's sums: conversions, scales, shifts


@dataclass(frozen=True)
class Sliced:
    """The blocks of such a program: what unpacks, the sums of groups as the instruction has them, and the sum of these; the constants that panels are made
    of, by buffer."""

    unpack: BlockInfo
    groups: Product
    total: BlockInfo
    constants: tuple[tir.Buffer, ...]

    @property
    def columns(self) -> int:
        """How many there are."""
        return extent_of(self.total.spatial[-1]) or 1

    @property
    def rows(self) -> int:
        """How many there are, or are assumed."""
        return product([extent_of(i) for i in self.total.spatial[:-1]], ASSUMED_ROWS)

    @property
    def slices(self) -> int:
        """Sums of a group for a row and a column."""
        return len([a for a in self.total.loads if a.buffer is self.groups.info.stores[0].buffer])

    @property
    def steps(self) -> tuple[int, ...]:
        """Extents of the axes of a group's sum around the instruction, the last one within a byte."""
        return tuple(self.groups.extent(k) or 1 for k in self.groups.reduce)


@rule
def sliced_products(program: Program) -> Iterator[Sketch]:
    """Fits programs with two sums one inside of the other, the inner one of bytes with what a block before it unpacks, by an instruction of the machine."""
    found = matched(program)
    if found is None or not any(found.columns % n == 0 for n in found.groups.intrins):
        return
    before = [i.name for i in program.blocks[: program.blocks.index(found.total)] if i.name not in (found.unpack.name, found.groups.info.name)]
    start = program.inlined(keep=[*before, found.unpack.name])
    yield Sketch("sliced_products", start, partial(_scheduled, found=found, prologue=tuple(before), target=program.target),
                 candidates(found, program.target), partial(cycles_beside, start, program.target, (found.unpack.name,)))


def matched(program: Program) -> Sliced | None:
    """The roles of a program's blocks."""
    if len(program.reductions) != 2 or not program.is_plain:
        return None
    inner, total = program.reductions
    if len(total.reduce) != 1 or len(total.spatial) > 2 or len(inner.reduce) != 3 or len(inner.spatial) != len(total.spatial) + 2:
        return None
    unpack = next((i for i in program.blocks if not i.reduce and i.stores[0].buffer in [a.buffer for a in inner.loads] and len(i.loads) == 1), None)
    if unpack is None or not program.is_constant(unpack.loads[0].buffer):
        return None
    groups = next((m for m in matches(inner, lambda b: b is unpack.stores[0].buffer, program.target) if isinstance(m, Product)), None)
    if groups is None or groups.column != len(inner.spatial) - 1 or groups.axis != len(inner.block.iter_vars) - 1 or groups.group != groups.extent(groups.axis):
        return None
    column, group = total.spatial[-1].var, total.reduce[0].var
    sums = [a for a in total.loads if a.buffer is inner.stores[0].buffer]
    if not sums or any(a.indices[-2:] != (group, column) for a in sums) or len(sums) != extent_of(inner.spatial[-3]):
        return None
    along = unpack.spatial[-1].var
    constants = [a for a, v in ((a, v) for i, v in ((unpack, along), (total, column)) for a in i.loads) if program.is_constant(a.buffer)]
    if any(a.buffer.ndim != 2 or a.indices[-1] not in (along, column) or {along, column} & free_vars(a.indices[0]) for a in constants):
        return None
    return Sliced(unpack, groups, total, tuple(dict.fromkeys(a.buffer for a in constants)))


def candidates(p: Sliced, target: Target) -> Candidates:
    """Tiles of rows and vectors whose sums fit the registers."""
    lanes = [n for n in p.groups.intrins if p.columns % n == 0]

    def legal(t: Columns) -> np.ndarray:
        sums = t["rows"] * t["vectors"]
        fits = (sums * (p.slices + 1) + 2 * t["vectors"] + 1 <= target.vector_registers) | (sums == 1)
        return fits & (p.columns % (t["vectors"] * t["lanes"]) == 0)

    table = combinations({"rows": range(1, min(MOST_ROWS, p.rows) + 1), "vectors": range(1, MOST_VECTORS + 1), "lanes": lanes}, legal)
    return Candidates(table, _cycles(p, target, table))


def _cycles(p: Sliced, target: Target, t: Columns) -> Any:
    """Cycles of one core: products and what they wait for, unpacking, what is done with sums of groups, and reading the bytes."""
    words, parts = p.steps
    groups, wide = extent_of(p.total.reduce[0]) or 1, target.lanes("int32") / t["lanes"]
    vectors = -(-p.columns // (t["vectors"] * t["lanes"])) * t["vectors"] / wide
    tiles = -(-p.rows // t["rows"])
    intrin = next(iter(p.groups.intrins.values()))
    slots = intrin.cost.slots_on(target.features) if intrin.cost is not None else 1.0
    latency = (intrin.cost.latency if intrin.cost is not None else 4.0) / (t["rows"] * t["vectors"] * p.slices)
    loads = (1.0 + 1.0 / t["vectors"]) / target.loads
    multiplied = t["rows"] * p.slices * wide * together(target, slots / target.fma_ports, loads, latency)
    unpacked = (2.0 - 1.0 / parts) * wide / target.fma_ports * (parts > 1)
    around = AROUND * t["rows"] * wide / target.fma_ports
    spent = groups * vectors * tiles * (words * parts * (multiplied + unpacked) + around)
    moved = sum(product([n.value if isinstance(n, tir.IntImm) else None for n in b.shape], 256) * b.dtype.storage_bits / 8 for b in p.constants)
    return together(target, spent, moved / target.bytes_per_cycle(MEMORY))


def _scheduled(sch: Schedule, choice: dict[str, int], found: Sliced, prologue: tuple[str, ...], target: Target) -> Applied:
    """The steps for one choice."""
    lanes, rows, width, group = choice["lanes"], choice["rows"], choice["lanes"] * choice["vectors"], found.groups.group
    unpack, groups, total = (sch.get_block(i.name) for i in (found.unpack, found.groups.info, found.total))
    layouts = {}
    for buffer in found.constants:
        is_packed = buffer is found.unpack.loads[0].buffer
        by_groups, by_rows = (lambda k, n: (n // width, k // group, n % width, k % group)), (lambda k, n: (n // width, k, n % width))
        panels = tir.IndexMap.from_func(by_groups if is_packed else by_rows, 2)
        layouts[sch.func.buffer_params.index(buffer)] = panels
        reader = unpack if is_packed else total
        sch.transform_layout(reader, ("read", [r.buffer for r in sch.get(reader).reads].index(buffer)), panels, pad_value=0)
    result = store_of(sch, found.total)
    sch.transform_layout(unpack, ("write", 0), tir.IndexMap.from_func(lambda g, w, h, b, n: (g, w, h, n, b), 5))
    *row, column, outer = sch.get_loops(total)
    panel, vectors, inside = sch.split(column, [None, choice["vectors"], lanes])
    tiles, of_tile = sch.split(row[-1], [None, rows]) if row else (None, None)
    outside = [panel, *([] if tiles is None else [tiles])]
    sch.reorder(*outside, outer, *([] if of_tile is None else [of_tile]), vectors, inside)
    sch.reverse_compute_at(result, outside[-1])
    sch.compute_at(groups, outer, preserve_unit_loops=True)
    sch.set_scope(groups, 0, "local")
    turns = _in_groups(sch, found, groups, unpack, len(outside) + 1, choice) or outer
    step = width * group * _written_out(found, choice)
    sch.annotate(turns, PREFETCH, Prefetch(found.unpack.loads[0].buffer.name, target.ahead_bytes // FETCHED_PART, step, passes=1))
    for block in (sch.decompose_reduction(total, outer), result):
        in_vectors(sch, block, len(outside), lanes)
    for loop in (of_tile, vectors):
        if loop is not None:
            sch.unroll(loop)
    sch.vectorize(inside)
    grain = _in_parallel(sch, found, outside[0], choice, target)
    for name in prologue:
        schedule_spatial(sch, BlockInfo(sch.get(sch.get_block(name))), target)
    return Applied(sch, layouts, choice | grain)


def _written_out(p: Sliced, choice: dict[str, int]) -> int:
    """Words of a group that are written out: their lines are fetched together."""
    return max(n for n in range(1, p.steps[0] + 1) if p.steps[0] % n == 0 and (n == 1 or n * choice["vectors"] <= MOST_FETCHED))


def _in_groups(sch: Schedule, p: Sliced, groups: Any, unpack: Any, depth: int, choice: dict[str, int]) -> Any:
    """The sums of one group in registers: bytes of a vector are loaded once for all parts of them, and each part is unpacked once for all rows and slices.
    Returns the loop over what is not written out; None where all of a group is."""
    lanes, written = choice["lanes"], _written_out(p, choice)
    *spatial, slices, unit, column, word, part, byte = sch.get_loops(groups)[depth:]
    vectors, lane = sch.split(column, [None, lanes])
    turns = None
    if written < p.steps[0]:
        turns, word = sch.split(word, [None, written])
    around = [word] if turns is None else [turns, word]
    sch.reorder(unit, *around, part, *spatial, vectors, slices, lane, byte)
    sch.compute_at(unpack, part, preserve_unit_loops=True)
    sch.set_scope(unpack, 0, "local")
    held = sch.cache_read(unpack, 0, "local")
    sch.compute_at(held, word)
    for block, at in ((held, depth + 1 + len(around)), (unpack, depth + 2 + len(around))):
        _in_vectors_of_bytes(sch, sch.get_loops(block)[at:], lanes, is_turned=block is unpack)
    in_vectors(sch, sch.decompose_reduction(groups, around[0]), depth + 1, lanes)
    sch.tensorize(lane, p.groups.intrins[lanes].name)
    for loop in (*spatial, vectors, slices, part, word):
        sch.unroll(loop)
    return turns


def _in_vectors_of_bytes(sch: Schedule, inside: list[Any], lanes: int, is_turned: bool) -> None:
    """Vectors of a block that moves bytes of so many columns, the bytes of each of which lie side by side."""
    *units, column, byte = inside if not is_turned else (*inside[:-2], inside[-1], inside[-2])
    vectors, lane = sch.split(column, [None, lanes])
    sch.reorder(*units, vectors, lane, byte)
    sch.vectorize(sch.fuse(lane, byte))
    for loop in (*units, vectors):
        sch.unroll(loop)


def _in_parallel(sch: Schedule, p: Sliced, panel: Any, choice: dict[str, int], target: Target) -> dict[str, int]:
    panels = -(-p.columns // (choice["vectors"] * choice["lanes"]))
    work = float(_cycles(p, target, {n: np.array([x]) for n, x in choice.items()})[0]) / max(panels, 1)
    return {} if is_little(sch, [panel], work, target) else parallelize(sch, panel, work, target)
