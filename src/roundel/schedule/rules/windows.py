# SPDX-License-Identifier: Apache-2.0
"""Reductions over windows: pooling, depthwise convolution, sums over leading or middle axes.

Every access runs contiguously along the innermost spatial axis, which becomes vectors; a few neighbours along the next
axis accumulate together in registers.
"""

from __future__ import annotations

from typing import Any

from ...ir import tir
from .applied import Applied
from .accesses import BlockInfo, blocks_of, extent_of, product
from .contraction import store_of
from .elementwise import inline_producers, schedule_spatial, vector_lanes
from .parallelism import parallelize

NEIGHBOURS = 8   # results that accumulate together
UNROLLED = 16    # steps of the reduction that become straight code


def windows(sch: Any, target: Any) -> Applied | None:
    """Fits programs with exactly one reduction, contiguous along its innermost spatial axis."""
    infos = blocks_of(sch.func)
    reductions = [i for i in infos if i.reduce]
    if len(reductions) != 1 or not all(i.is_plain for i in infos):
        return None
    info = reductions[0]
    lanes = vector_lanes(info, target)
    if not fits(info, lanes):
        return None
    prologue = [i.name for i in infos[: infos.index(info)]]
    inline_producers(sch, keep=prologue)
    _schedule(sch, info, lanes, store_of(sch, info))
    for other in blocks_of(sch.func):
        if other.name in prologue:
            schedule_spatial(sch, other, target)
    return Applied()


def fits(info: BlockInfo, lanes: int) -> bool:
    """Whether the innermost spatial axis is long enough and contiguous in every access."""
    if lanes < 2 or not info.spatial:
        return False
    axis = info.spatial[-1]
    extent = extent_of(axis)
    if extent is not None and extent < lanes // 2:
        return False
    return info.stores[0].steps(axis.var, 1) and all(a.steps(axis.var, 0) or a.steps(axis.var, 1) for a in info.accesses)


def _schedule(sch: Any, info: BlockInfo, lanes: int, store: Any) -> None:
    block = sch.get_block(info.name)
    loops = dict(zip((i.var for i in info.block.iter_vars), sch.get_loops(block), strict=True))
    spatial = [loops[i.var] for i in info.spatial]
    reduce = [loops[i.var] for i in info.reduce]
    outer, vector = spatial[:-1], spatial[-1]
    extent = extent_of(info.spatial[-1])
    if extent is None or extent > lanes:
        more, vector = sch.split(vector, [None, lanes])
        outer.append(more)
    row = None
    if len(info.spatial) > 1:
        count = _neighbours(extent_of(info.spatial[-2]))
        at = len(info.spatial) - 2
        if count > 1:
            outer[at], row = sch.split(outer[at], [None, count])
    sch.reorder(*outer, *reduce, *([row] if row is not None else []), vector)
    depth = len(outer)
    if outer:
        sch.reverse_compute_at(store, outer[-1])
    init = sch.decompose_reduction(block, reduce[0])
    if product([extent_of(i) for i in info.reduce], 1 << 20) <= UNROLLED:
        for loop in reduce:
            sch.unroll(loop)
    if row is not None:
        sch.unroll(row)
    sch.vectorize(vector)
    for b in (init, store):
        inside = sch.get_loops(b)[depth:]
        last = sch.get(inside[-1]).extent
        if isinstance(last, tir.IntImm) and last.value > lanes:
            inside = [*inside[:-1], *sch.split(inside[-1], [None, lanes])]
        sch.vectorize(inside[-1])
        for loop in inside[:-1]:
            sch.unroll(loop)
    if outer:
        whole = sch.fuse(*outer) if len(outer) > 1 else outer[0]
        steps = product([extent_of(i) for i in info.reduce], 64)
        parallelize(sch, whole, info.cost * steps * (_neighbours(extent_of(info.spatial[-2])) if len(info.spatial) > 1 else 1))


def _neighbours(extent: int | None) -> int:
    if extent is None:
        return 1
    return max(n for n in range(1, NEIGHBOURS + 1) if extent % n == 0)
