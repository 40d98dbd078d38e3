# SPDX-License-Identifier: Apache-2.0
"""The strategy for reductions over sliding windows: pooling and depthwise convolution, and for other reductions along leading or middle axes.

All accesses are contiguous along the innermost spatial axis, whose elements fill vectors. Several neighbouring results along the next axis are
accumulated together in registers, so that they share what they load of overlapping windows. Padding is never stored: it becomes a condition
on the loops over the window, and code generation cuts these loops where the condition changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ...ir import tir
from ...schedule.schedule import Schedule
from ...target import Target
from ..match.accesses import BlockInfo, blocks_of, conditional, extent_of, product, vector_lanes
from ..parallelism import as_few, is_little, loop_extent, parallelize
from ..pointwise.elementwise import cycles_beside, schedule_spatial
from ..product.contraction import store_of
from ..program import Program
from ..sketch import Applied, Sketch, rule
from .borders import pads, skip_border
from .windows_candidates import candidates

ASSUMED_GROUPS = 16  # of results, where sizes are symbolic


@rule
def windows(program: Program) -> Iterator[Sketch]:
    """Fits programs with exactly one reduction, contiguous along its innermost spatial axis."""
    if len(program.reductions) != 1 or not program.is_plain:
        return
    target, info = program.target, program.reductions[0]
    lanes = vector_lanes(info, target)
    if not fits(info, lanes):
        return
    prologue = [i.name for i in program.blocks[: program.blocks.index(info)] if not pads(i)]
    start = program.inlined(keep=prologue)
    info = next(i for i in blocks_of(start.func) if i.reduce)
    steps = partial(_scheduled, info=info, lanes=lanes, prologue=prologue, target=target)
    yield Sketch("windows", start, steps, candidates(info, lanes, target), partial(cycles_beside, start, target))


def _scheduled(sch: Schedule, choice: dict[str, int], info: BlockInfo, lanes: int, prologue: Sequence[str], target: Target) -> Applied:
    grain = _schedule(sch, info, lanes, choice, store_of(sch, info), target)
    for other in blocks_of(sch.func):
        if other.name in prologue:
            schedule_spatial(sch, other, target)
    return Applied(sch, decisions=choice | grain)


def fits(info: BlockInfo, lanes: int) -> bool:
    """Whether the innermost spatial axis is long enough and contiguous in every access."""
    if lanes < 2 or not info.spatial:
        return False
    axis = info.spatial[-1]
    extent = extent_of(axis)
    if extent is not None and extent < lanes // 2:
        return False
    return info.stores[0].steps(axis.var, 1) and all(a.in_vectors(axis.var, lanes) for a in info.accesses)


def _schedule(sch: Schedule, info: BlockInfo, lanes: int, choice: Mapping[str, int], store: Any, target: Target) -> dict[str, int]:
    """Order the loops. Returns the decision of how many iterations a thread takes at once."""
    block = sch.get_block(info.name)
    loops = dict(zip((i.var for i in info.block.iter_vars), sch.get_loops(block), strict=True))
    spatial = [loops[i.var] for i in info.spatial]
    reduce = [loops[i.var] for i in info.reduce]
    outer, vector = spatial[:-1], spatial[-1]
    extent = extent_of(info.spatial[-1])
    narrow = extent is not None and lanes % extent == 0
    more = vectors = None
    if not narrow:
        more, vectors, vector = sch.split(vector, [None, choice["vectors"], lanes])
        outer.append(more)
    row = None
    count = choice["neighbours"]
    if len(info.spatial) > 1:
        at = len(info.spatial) - 2
        if count > 1:
            outer[at], row = sch.split(outer[at], [None, count])
    first = 1 if more is not None and choice["order"] else 0
    if first:
        outer.insert(0, outer.pop())
    sch.reorder(*outer, *reduce, *(x for x in (row, vectors) if x is not None), vector)
    depth = len(outer)
    if outer:
        sch.reverse_compute_at(store, outer[-1])
    init = sch.decompose_reduction(block, reduce[0])
    looping = reduce[: len(reduce) - choice["straight"]]
    if any(extent_of(i) != 1 for i in info.reduce[: len(looping)]):
        skip_border(sch, block, info, dict(zip(info.reduce, looping)))
    for loop in [*reduce[len(looping) :], *(x for x in (row, vectors) if x is not None)]:
        sch.unroll(loop)
    sch.vectorize(vector)
    for b in (init, store):
        _straight(sch, b, depth, lanes)
    work = info.cost * product([extent_of(i) for i in info.reduce], 64) * count * choice["vectors"]
    if not outer or is_little(sch, outer, work, target):
        return {}
    at = _before_tails(sch, info, outer, count, choice["vectors"] * lanes, first, target)
    if conditional(info) and len(info.spatial) > 2:  # neighbours at the border are cut off their loop
        at = min(at, first + len(info.spatial) - 2)
    at = as_few(sch, outer[:at], work * product([loop_extent(sch, x) for x in outer[at:]], ASSUMED_GROUPS), target)
    whole = sch.fuse(*outer[:at]) if at > 1 else outer[0]
    return parallelize(sch, whole, work * product([loop_extent(sch, x) for x in outer[at:]], ASSUMED_GROUPS), target)


def _before_tails(sch: Schedule, info: BlockInfo, outer: list[Any], count: int, width: int, first: int, target: Target) -> int:
    """How many of the outer loops become one: those with groups at an edge stay loops of their own, from which these are cut off, where
    the others keep the cores busy. ``first``: how many loops over groups of vectors are the outermost."""
    last, beside = extent_of(info.spatial[-1]) or 0, (extent_of(info.spatial[-2]) or 0) if len(info.spatial) > 1 else 0
    places = [first + len(info.spatial) - 2] if count > 1 and beside % count else []
    places += [len(info.spatial) - 1] if not first and len(outer) == len(info.spatial) and last % width else []
    return next((k for k in places if k and product([loop_extent(sch, x) for x in outer[:k]], ASSUMED_GROUPS) >= 4 * target.cores), len(outer))


def _straight(sch: Schedule, block: Any, depth: int, lanes: int) -> None:
    """Unroll and vectorize a block's loops inside of the outer ones."""
    inside = sch.get_loops(block)[depth:]
    if not inside:  # one element
        return
    last = sch.get(inside[-1]).extent
    if isinstance(last, tir.IntImm) and last.value > lanes:
        inside = [*inside[:-1], *sch.split(inside[-1], [None, lanes])]
    sch.vectorize(inside[-1])
    for loop in inside[:-1]:
        sch.unroll(loop)
