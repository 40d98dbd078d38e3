# SPDX-License-Identifier: Apache-2.0
"""The strategy for programs without reductions: every block is inlined into the last one, whose loops are vectorized and run in parallel."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...ir import tir
from ...ir.visit import walk
from ...schedule.schedule import Schedule
from ...target import Target
from ...target.target import L2
from ..cost import cycles
from ..match.accesses import Access, BlockInfo, blocks_of, conditional, extent_of, lanes_of, product
from ..parallelism import parallelize
from ..program import Program
from ..sketch import Applied, Sketch, rule
from ..statements import LANES, UNROLLED, Loop, statement_of
from .inline import is_output
from .streams import stream

MOST_CHOICES = 8
SHORT = 512  # elements of a row; to find where one is takes a division for each loop that was fused
FEW = 16     # a table with this many times fewer elements than what is looked up with it is computed first
MANY = 16    # parallel iterations that are enough
ASSUMED = 256  # of symbolic extents of a row
MUCH = 4       # arithmetic (as BlockInfo.cost counts) for each element that is gathered
LONG = 20      # ... of a chain of functions that waits for itself, unless several vectors go through it side by side
BESIDE = (4, 2)
MOVES = "moves"
"""The model of costs by which ways to go through a program without reductions compete."""


@rule(model=MOVES)
def elementwise(program: Program) -> Iterator[Sketch]:
    """Fits programs whose blocks are all plain and spatial."""
    if not program.blocks or program.reductions or not program.is_plain:
        return

    def scheduled(sch: Schedule, choice: dict[str, int]) -> Applied:
        for info in blocks_of(sch.func):
            schedule_spatial(sch, info, program.target)
        return Applied(sch)

    start = program.inlined(keep=_tables(program))
    yield Sketch("elementwise", start, scheduled, beside=lambda: sum(spatial_cycles(i, program.target) for i in blocks_of(start.func)))


def _tables(program: Program) -> list[str]:
    """Blocks whose few elements serve many of another block each, which looks up with them where to read: places and weights along an axis."""
    infos = {i.stores[0].buffer: i for i in program.blocks}
    count = lambda i: product([extent_of(a) for a in i.spatial], ASSUMED)
    found = []
    for info in infos.values():
        looked_up = {infos[n.buffer].name: infos[n.buffer] for a in info.loads for e in a.indices for n in walk(e)
                     if type(n) is tir.BufferLoad and n.buffer in infos}
        if any(count(i) * FEW <= count(info) for i in looked_up.values()):
            made = [infos[a.buffer] for a in info.loads if a.buffer in infos]
            found += [i.name for i in [*looked_up.values(), *made] if count(i) * FEW <= count(info) and not is_output(program.schedule, i)]
    return list(dict.fromkeys(found))


def cycles_beside(start: Schedule, target: Target, moved: Sequence[str] = ()) -> float:
    """What the blocks before and after reductions are expected to take: those after them are computed from their registers, those named in ``moved`` are
    read where their operands lie."""
    infos = blocks_of(start.func)
    kept = {i.stores[0].buffer for i in infos if i.reduce}
    return sum(spatial_cycles(i, target, kept) for i in infos if not i.reduce and i.name not in moved)


def spatial_cycles(info: BlockInfo, target: Target, kept: Collection[tir.Buffer] = ()) -> float:
    """What a block without reduction is expected to take once `schedule_spatial` has scheduled it. ``kept``: buffers in registers."""
    axes, extents = info.spatial, [ASSUMED if extent_of(a) is None else extent_of(a) for a in info.spatial]
    lanes = _lanes(info, target)
    is_vector = bool(axes) and _in_vectors(info, lanes, lambda a: a.buffer in kept) and product(extents[-_flat_suffix(info):], ASSUMED) >= lanes // 2
    last = len(axes) - 1
    around = [Loop(k, n or 1) for k, n in enumerate(extents)]
    decided: list[int] = []  # the axes that choose what is computed, which are written out
    if is_vector:
        flat = _flat_suffix(info)
        whole = Loop(last, -(-product(extents[-flat:], ASSUMED) // lanes)) if flat > 1 else Loop(last, -(-(extents[last] or 1) // lanes))
        decided = [k for k in range(len(axes) - flat) if _chooses(info, axes[k])]
        outside = [x for x in around[: len(axes) - flat] if x.axis not in decided]
        around = [*outside, whole, *(replace(around[k], kind=UNROLLED) for k in decided), Loop(last, lanes, LANES)]
    has_guards = not conditional(info) <= {axes[k].var for k in decided}
    statement = statement_of(info.block, last if is_vector else -1, target, has_guards=has_guards)
    touches = tuple(replace(t, register=t.register or t.buffer in kept) for t in statement.touches)
    return float(np.max(cycles(target, replace(statement, loops=tuple(around), touches=touches))))


def schedule_spatial(sch: Any, info: BlockInfo, target: Target) -> None:
    """One loop nest over spatial axes: the innermost contiguous axes in vectors, the outer ones in parallel."""
    block = sch.get_block(info.name)
    loops = sch.get_loops(block)
    axes = list(info.spatial)
    if not loops or len(loops) != len(axes):
        return
    lanes = _lanes(info, target)
    flat = _flat_suffix(info)
    if flat > 1:
        fused = sch.fuse(*loops[-flat:])
        loops = [*loops[:-flat], fused]
    row = [extent_of(a) for a in axes[len(axes) - flat :]]
    inner_extent = product(row, ASSUMED)
    vectorizable = _in_vectors(info, lanes, partial(_is_looked_up, sch, info))
    choosing = [k for k in range(len(loops) - 1) if _chooses(info, axes[k])]
    outer = [x for k, x in enumerate(loops[:-1]) if k not in choosing]
    outer_extent = product([extent_of(a) for k, a in enumerate(axes[: len(axes) - flat]) if k not in choosing], 64)
    inner_extent *= product([extent_of(axes[k]) for k in choosing], 1)
    traffic = sum(a.buffer.dtype.storage_bits for a in info.accesses) / 8
    per_element = max(info.cost / (lanes if vectorizable else 1), traffic / (target.elementwise_share * target.bytes_per_cycle(L2)))
    if vectorizable and inner_extent >= lanes // 2:
        chunk, vector = sch.split(loops[-1], [None, lanes])
        sch.vectorize(vector)
        if choosing:
            sch.reorder(*outer, chunk, *(loops[k] for k in choosing), vector)
            for k in choosing:
                sch.unroll(loops[k])
        if not outer or outer_extent < (2 if conditional(info) else 8):
            whole = sch.fuse(*outer, chunk) if outer else chunk
            stream(sch, info, whole, target)
            parallelize(sch, whole, per_element * lanes, target)
            return
        stream(sch, info, chunk, target)
    elif choosing:
        outer = loops[:-1]
    if outer:
        extents = [sch.get(x).extent for x in outer]
        counts = [n.value if isinstance(n, tir.IntImm) else 64 for n in extents]
        within = len(outer) > 1 and None not in row and inner_extent < SHORT and math.prod(counts[:-1]) >= MANY  # their indices cost more than they do
        together = outer[:-1] if within else outer
        whole = sch.fuse(*together) if len(together) > 1 else together[0]
        parallelize(sch, whole, per_element * inner_extent * (counts[-1] if within else 1), target)
    elif not vectorizable:
        parallelize(sch, loops[-1], per_element, target)


def _lanes(info: BlockInfo, target: Target) -> int:
    """Of vectors along the last axis, or of several of them side by side. Rows too short for half a vector are in shorter ones where much is computed."""
    lanes = lanes_of([a for a in info.accesses if info.spatial and not a.steps(info.spatial[-1].var, 0)] or info.accesses, target)
    if info.spatial and info.cost >= LONG:
        extent = product([extent_of(a) for a in info.spatial[-_flat_suffix(info) :]], ASSUMED)
        while 1 < extent <= lanes // 2:
            lanes //= 2
    return lanes * _beside(info, lanes)


def _beside(info: BlockInfo, lanes: int) -> int:
    """How many vectors go through a block side by side: several where the window of instructions that a core looks ahead is too short to begin the next
    one before the last one is done, and where they compute hardly more elements than there are."""
    if lanes == 1 or not info.spatial or info.cost < LONG:
        return 1
    last, extent = info.spatial[-1].var, product([extent_of(a) for a in info.spatial[-_flat_suffix(info) :]], ASSUMED)
    if not all(a.steps(last, 0) or a.steps(last, 1) for a in info.accesses):
        return 1
    computed = lambda width: -(-extent // width) * width
    return next((k for k in BESIDE if 10 * computed(k * lanes) <= 11 * computed(lanes)), 1)


def _in_vectors(info: BlockInfo, lanes: int, is_looked_up: Callable[[Access], bool]) -> bool:
    """Whether neighbours along the last axis may be lanes: results lie side by side, and operands near each other or where a table says."""
    last = info.spatial[-1].var
    return lanes > 1 and info.stores[0].steps(last, 1) and all(a.in_vectors(last, lanes) or is_looked_up(a) for a in info.accesses)


def _is_looked_up(sch: Any, info: BlockInfo, access: Access) -> bool:
    """Whether tables say where each lane's element is: of this program, or given ones where vectors save much arithmetic beside."""
    if access.is_store:
        return False
    tables = {n.buffer for i in access.indices for n in walk(i) if type(n) is tir.BufferLoad}
    gathered = sum(any(type(n) is tir.BufferLoad for i in a.indices for n in walk(i)) for a in info.loads)
    return bool(tables) and (not tables <= set(sch.func.buffer_params) or info.cost >= MUCH * gathered)


def _chooses(info: BlockInfo, axis: tir.IterVar) -> bool:
    """Whether a short axis selects one of several expressions for an element: once its loop is unrolled, the selection is known at compile time."""
    extent = extent_of(axis)
    return extent is not None and 1 < extent <= MOST_CHOICES and any(
        type(n) is tir.IfThenElse and type(n.condition) is tir.EQ and n.condition.a is axis.var and type(n.condition.b) is tir.IntImm
        for n in walk(info.block.body)
    )


def _flat_suffix(info: BlockInfo) -> int:
    """How many of the last axes can be one loop: every access moves along them as along one contiguous axis, or not at all, and
    no condition depends on one of them."""
    axes = list(info.spatial)
    asked = conditional(info)
    count = 1
    while count < len(axes):
        tail = axes[len(axes) - count - 1 :]
        if tail[0].var in asked or not all(_is_flat(a, tail) for a in info.accesses):
            break
        count += 1
    return count


def _is_flat(access: Any, axes: list[tir.IterVar]) -> bool:
    strides = [access.stride(a.var) for a in axes]
    if all(isinstance(s, int) and s == 0 for s in strides):
        return True
    expected: Any = 1
    for axis, stride in zip(reversed(axes), reversed(strides), strict=True):
        if stride is None or not _same(stride, expected):
            return False
        expected = _times(expected, axis.dom.extent)
    return True


def _same(a: Any, b: Any) -> bool:
    from ...arith import Analyzer

    return (
        a == b
        if isinstance(a, int) and isinstance(b, int)
        else Analyzer().prove_equal(tir.as_index(a), tir.as_index(b))
    )


def _times(a: Any, extent: tir.Expr) -> Any:
    out = tir.as_index(a) * extent
    return out.value if isinstance(out, tir.IntImm) else out
