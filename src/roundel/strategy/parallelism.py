# SPDX-License-Identifier: Apache-2.0
"""How much work makes a parallel region, and how much a thread takes at once.

A region costs its threads a few microseconds to start; a chunk should last some twenty (measured: waking a thread takes
longer than most small operators run). ``Target.region_cycles`` is how long. A region pays where a second core, which saves half of it, saves twice what
starting it takes: kernels of 6 to 7 microseconds took 4 on two cores of Zen 4, with threads that wait for work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..ir import tir
from ..ir.annotations import GRAIN
from ..ir.errors import ScheduleError
from ..schedule import Schedule
from ..target import Target

STARTS = 4  # times what starting a region takes, of work that pays for one


def parallelize(sch: Schedule, loop: Any, cycles_per_iteration: float, target: Target, most_chunks: int | None = None) -> dict[str, int]:
    """Make a loop parallel unless it is known to have too little work, in chunks that are long enough for the target. There are at most ``most_chunks``:
    where an iteration prefetches what the next one reads, both should run on the same core.

    Returns the decision ``grain``, the number of iterations in a chunk; where a choice has another, it is replaced (`with_grain`).
    """
    extent = sch.get(loop).extent
    if is_little(sch, [loop], cycles_per_iteration, target):
        return {}
    grain = worth_a_thread(cycles_per_iteration, target)
    if isinstance(extent, tir.IntImm):
        grain = max(1, min(grain, extent.value // 4), extent.value // most_chunks if most_chunks else 1)
    sch.parallel(loop)
    sch.annotate(loop, GRAIN, grain)
    return {GRAIN: grain}


def together(sch: Schedule, loops: Sequence[Any]) -> int:
    """How many of these loops, the outermost first, are one parallel loop when they are fused, as far as that can be shown; 1 where it is none of them."""
    for count in range(len(loops), 1, -1):
        trial = sch.fork(seed=0)
        try:
            trial.parallel(trial.fuse(*loops[:count]))
        except ScheduleError:
            continue
        return count
    return 1


def as_few(sch: Schedule, loops: Sequence[Any], cycles_per_iteration: float, target: Target) -> int:
    """How many of these loops, the outermost first, to fuse and run in parallel: as many as keep all cores busy, with iterations no longer than what a thread
    should take at once. An iteration of more of them would begin with finding out which one of each loop it is."""
    extents = [loop_extent(sch, loop) for loop in loops]
    for count in range(1, len(loops)):
        outside, inside = extents[:count], extents[count:]
        if None in (*outside, *inside):
            break
        if math.prod(outside) >= 4 * target.cores and cycles_per_iteration * math.prod(inside) <= target.region_cycles:
            return count
    return len(loops)


def worth_a_thread(cycles_per_iteration: float, target: Target) -> int:
    """So many iterations a thread should take at once."""
    return max(1, round(target.region_cycles / max(cycles_per_iteration, 1e-3)))


def with_grain(sch: Schedule, grain: int) -> dict[str, int]:
    """Give the parallel loops of a schedule another number of iterations in a chunk, at most all of them. Returns the decision; none without such loops."""
    made: dict[str, int] = {}
    loops = {sch.get(loop).loop_var: loop for block in sch.get_child_blocks(sch.get_block("root")) for loop in sch.get_loops(block)}
    for loop in loops.values():
        node = sch.get(loop)
        if GRAIN in (node.annotations or {}):
            made[GRAIN] = min(int(grain), node.extent.value) if isinstance(node.extent, tir.IntImm) else int(grain)
            sch.annotate(loop, GRAIN, made[GRAIN])
    return made


def busiest_part(iterations: int, threads: int, grain: int = 1) -> float:
    """The part of a loop's iterations that the busiest of so many threads has (`csrc/thread_pool.c`); 1 where one thread runs it."""
    sharers = min(threads, -(-iterations // grain))
    return 1.0 if sharers < 2 else -(-iterations // sharers) / iterations


def is_little(sch: Schedule, loops: Sequence[Any], cycles_per_iteration: float, target: Target) -> bool:
    """Whether loops together have so little work that one thread does it."""
    extents = [sch.get(loop).extent for loop in loops]
    if not all(isinstance(n, tir.IntImm) for n in extents):
        return False
    total = math.prod(n.value for n in extents)
    return total < 2 or total * cycles_per_iteration < min(STARTS * target.start_cycles, target.region_cycles)


def loop_extent(sch: Schedule, loop: Any) -> int | None:
    """The extent of a loop where it is a number."""
    extent = sch.get(loop).extent
    return extent.value if isinstance(extent, tir.IntImm) else None
