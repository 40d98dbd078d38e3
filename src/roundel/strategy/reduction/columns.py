# SPDX-License-Identifier: Apache-2.0
"""The strategy for reductions along other axes than the contiguous one, such as sums over a batch or a softmax over channels.

    for k, j: y[j] += x[k, j]          ->          for j0:
                                                       for k:
                                                           for j1 in T.unroll(16), j2 in T.vectorized(16): acc[j1, j2] += x[k, j0, j1, j2]

Vectors run along the contiguous axis, over several columns that are reduced side by side. All stages of a program (maximum, exponentials, sum)
are computed for one group of columns before the next group begins, as ``reduction/rows`` does it for rows. A stage that only feeds the next
reduction shares its loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...ir import tir
from ...ir.errors import ScheduleError
from ...schedule.schedule import Schedule
from ...target import Target
from ..candidates import Candidates, combinations
from ..match.accesses import BlockInfo, blocks_of, extent_of, vector_lanes
from ..parallelism import loop_extent, parallelize
from ..pointwise.streams import stream
from ..program import Program
from ..sketch import Applied, Sketch, rule
from ..statements import statement_of
from .partial_sums import is_long_sum, sum_in_parts
from .rows import long_axes, shared_axes
from .stage_cycles import Stages, across

PER_SUM = 2         # one in so many registers holds sums, where there is only one reduction
SHORT = 16         # iterations of a reduction that is written out
MOST_CODE = 512    # instructions of a reduction that is written out: more does not stay where cores keep instructions (138 KB of exponentials, 1,024 of
                   # them, took 1.5 times as long as soon as another core ran the same)
ASSUMED = 64      # vectors along a symbolic axis


@rule
def columns(program: Program) -> Iterator[Sketch]:
    """Fits programs of plain blocks that share a last axis, contiguous in every access, and reduce along others."""
    if not program.reductions or not program.is_plain or not all(map(long_axes, program.blocks)):
        return
    if not all(_may_run_along(i) for i in program.reductions):
        return
    sch, target = program.with_cheap_inlined.fork(seed=0), program.target
    infos = blocks_of(sch.func)
    if sum(any(a.buffer in sch.func.buffer_params for a in i.stores) for i in infos) != 1 or not all(_runs_along(i, infos) for i in infos):
        return
    lanes = min(vector_lanes(i, target) for i in infos)
    extent = extent_of(long_axes(infos[-1])[-1])
    if lanes < 2 or (extent is not None and extent < lanes // 2):
        return
    if infos[-1].reduce:  # sums are made in registers
        sch.cache_write(sch.get_block(infos[-1].name), 0, "local")
        infos = blocks_of(sch.func)
    shared = min(shared_axes(infos), min(len(long_axes(i)) for i in infos) - 1)
    table = _candidates(infos, shared, lanes, extent, target)
    steps = partial(_scheduled, infos=infos, shared=shared, lanes=lanes, table=table, target=target)
    yield Sketch("columns", sch, steps, table)


def _scheduled(sch: Schedule, choice: dict[str, int], infos: list[BlockInfo], shared: int, lanes: int, table: Candidates, target: Target) -> Applied:
    """The steps for one choice; ``shared`` of the leading axes are common to all stages. ``table``: what is expected of each choice."""
    vectors = choice["vectors"]
    in_parts = [i for i in infos if is_long_sum(i) and len(long_axes(i)) == shared + 1 and not _sums_up_stage(i, infos)]
    parts = {info.name: sum_in_parts(sch, info) for info in in_parts}
    row = _tile(sch, infos[-1], shared, lanes * vectors)
    for info in reversed(infos[:-1]):
        block = sch.get_block(info.name)
        sch.set_scope(block, 0, "local" if len(long_axes(info)) == shared + 1 else "global")
        sch.compute_at(block, row)
        _align_rows(sch, block, lanes)
    pending = None
    for info in infos:
        if info.name in parts:
            _in_parts(sch, BlockInfo(sch.get(sch.get_block(info.name))), parts[info.name], row, lanes, target)
            pending = None
        else:
            pending = _inside(sch, info, row, lanes, pending, target)
    stream(sch, infos[-1], row, target)
    grain = parallelize(sch, row, (table.expected(choice) or 0.0) / (loop_extent(sch, row) or ASSUMED // vectors), target)
    return Applied(sch, decisions=choice | grain)


def _align_rows(sch: Schedule, block: Any, lanes: int) -> None:
    """Rows of what a stage keeps in memory begin at whole vectors: the last vector of a row, which is stored with a mask, else reaches into the next row,
    and whoever loads that waits until the store is in the cache, since none of it can be forwarded."""
    buffer = sch.get(block).writes[0].buffer
    width = buffer.shape[-1]
    if buffer not in sch.func.buffer_params and buffer.scope == "global" and buffer.ndim > 1 and type(width) is tir.IntImm and width.value % lanes:
        sch.storage_align(block, 0, -2, lanes, 0)


def _sums_up_stage(info: BlockInfo, infos: list[BlockInfo]) -> bool:
    """Whether a reduction takes in what an elementwise stage makes, whose loop it shares: it stays one."""
    return any(not i.reduce and i.stores[0].buffer in {a.buffer for a in info.loads} and len(long_axes(i)) > 1 for i in infos)


def _in_parts(sch: Schedule, info: BlockInfo, part: Any, row: Any, lanes: int, target: Target) -> None:
    """The loops of a sum of sums inside of a tile: each of these is made in registers where it is added."""
    sch.set_scope(part, 0, "local")
    block, own = sch.get_block(info.name), BlockInfo(sch.get(part))
    each = _code(own, target) * math.prod(extent_of(a) or SHORT for a in own.reduce)
    _inside(sch, info, row, lanes, None, target, each)
    count = _loops_inside(sch, block, row)[0]
    sch.compute_at(part, count)
    _inside(sch, BlockInfo(sch.get(part)), count, lanes, None, target)


def _code(info: BlockInfo, target: Target) -> float:
    """Instructions that compute one vector of a block."""
    found = statement_of(info.block, info.block.iter_vars.index(long_axes(info)[-1]), target, has_guards=False)
    return sum(o.instructions for o in found.operations)


def _candidates(infos: list[BlockInfo], shared: int, lanes: int, extent: int | None, target: Target) -> Candidates:
    """``vectors``: how many run side by side, and the cycles of all stages with each number."""
    most, columns = max(1, target.vector_registers // PER_SUM), ASSUMED * lanes if extent is None else extent
    table = combinations({"vectors": range(1, min(most, -(-columns // lanes)) + 1)})
    axes = {i.name: [i.block.iter_vars.index(a) for a in long_axes(i)] for i in infos}
    stages = Stages(infos, {name: tuple(own[:shared]) for name, own in axes.items()}, {i.stores[0].buffer for i in infos if len(axes[i.name]) == shared + 1})
    times = [across(stages, i, axes[i.name][-1], lanes, table["vectors"], target) for i in infos]
    return Candidates(table, np.maximum(sum(times), 1.0))  # nothing at all where an extent is 0


def _may_run_along(info: BlockInfo) -> bool:
    """Whether a reduction may be one of the stages, before anything is inlined: it stores neighbours along its last axis side by side."""
    return bool(_long_reductions(info)) and info.stores[0].steps(long_axes(info)[-1].var, 1)


def _runs_along(info: BlockInfo, infos: list[BlockInfo]) -> bool:
    """Whether a block goes along the columns' axis by single elements, and by nothing but its own axes along others."""
    if bool(info.reduce) != bool(_long_reductions(info)):
        return False
    axis = long_axes(info)[-1]
    own = {i.var for i in info.block.iter_vars}
    made = {a.buffer for i in infos for a in i.stores}
    return (
        axis.dom.extent is long_axes(infos[-1])[-1].dom.extent
        and info.stores[0].steps(axis.var, 1)
        and all(a.steps(axis.var, 0) or a.steps(axis.var, 1) for a in info.accesses)
        and all(_is_last(a.indices, axis.var) for a in info.accesses if a.buffer in made)
        and all(i in own or isinstance(i, tir.IntImm) for a in info.accesses for i in a.indices)
    )


def _long_reductions(info: BlockInfo) -> list[tir.IterVar]:
    return [i for i in info.reduce if extent_of(i) != 1]


def _is_last(indices: tuple[tir.Expr, ...], var: tir.Var) -> bool:
    long = [i for i in indices if not isinstance(i, tir.IntImm)]
    return bool(long) and long[-1] is var and indices.count(var) == 1


def _tile(sch: Schedule, info: BlockInfo, shared: int, width: int) -> Any:
    """The last stage's loop over tiles of columns (of all shared axes), with those along other axes inside."""
    loops = dict(zip((i.var for i in info.block.iter_vars), sch.get_loops(sch.get_block(info.name)), strict=True))
    long = [loops.pop(i.var) for i in long_axes(info)]
    tile, within = sch.split(long[-1], [None, width])
    outer, middle = [*loops.values(), *long[:shared]], long[shared:-1]  # those of extent 1 may be anywhere
    sch.reorder(*outer, tile, *middle, within)
    return sch.fuse(*outer, tile) if outer else tile


def _inside(sch: Schedule, info: BlockInfo, row: Any, lanes: int, pending: Any, target: Target, besides: float = 0.0) -> Any:
    """The loops of a stage inside of a tile: reductions outside, vectors inside, several of them written out. A spatial stage's outermost
    loop comes back and is ``pending`` for a reduction that takes in what it makes. ``besides``: instructions for each vector of one iteration that will
    stand in a reduction's loop too."""
    block = sch.get_block(info.name)
    loops = _loops_inside(sch, block, row)
    reduce = loops[len(loops) - len(_long_reductions(info)) :] if info.reduce else []
    spatial = loops[: len(loops) - len(reduce)]
    if reduce:
        sch.reorder(*reduce, *spatial)
    more, vector = sch.split(spatial[-1], [None, lanes])
    if reduce:
        first = reduce[0]
        if pending is not None and len(reduce) == 1 and pending[1] in {a.buffer for a in info.loads}:
            try:
                first = sch.merge(pending[0], first)
            except ScheduleError:
                pass  # each in its own loop, which is right, only slower
        init = sch.decompose_reduction(block, first)
        for part in (init, block):
            inner = sch.get_loops(part)
            sch.unroll(inner[-2])
            sch.vectorize(inner[-1])
        steps = extent_of(_long_reductions(info)[0]) or SHORT + 1
        if len(reduce) == 1 and first is reduce[0] and steps <= SHORT:
            if steps * (loop_extent(sch, more) or SHORT) * (_code(info, target) + besides) <= MOST_CODE:
                sch.unroll(first)  # a loop of few iterations ends with a branch that is guessed wrong
        return None
    sch.unroll(more)
    sch.vectorize(vector)
    return (spatial[0], info.stores[0].buffer) if len(spatial) > 1 else None


def _loops_inside(sch: Schedule, block: Any, row: Any) -> list[Any]:
    """The loops around a block that are inside of a tile."""
    loops, token = sch.get_loops(block), sch.get(row).token
    return loops[next(k for k, x in enumerate(loops) if sch.get(x).token is token) + 1 :]
