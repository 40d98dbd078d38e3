# SPDX-License-Identifier: Apache-2.0
"""The strategy for programs that no other rule fits: plain blocks get parallel spatial loops, all others stay as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...schedule.schedule import Schedule
from ...target import Target
from ..match.accesses import blocks_of, extent_of, product
from ..parallelism import parallelize
from ..program import Program
from ..sketch import Applied, Sketch, rule


@rule
def fallback(program: Program) -> Iterator[Sketch]:
    """Fits every program."""
    yield Sketch("fallback", program.schedule, partial(_scheduled, target=program.target))


def _scheduled(sch: Schedule, choice: dict[str, int], target: Target) -> Applied:
    for info in blocks_of(sch.func):
        block = sch.get_block(info.name)
        loops = sch.get_loops(block)
        if not info.is_plain or not info.spatial or len(loops) != len(info.block.iter_vars):
            continue
        spatial = loops[: len(info.spatial)]
        if [i.var for i in info.block.iter_vars[: len(spatial)]] != [i.var for i in info.spatial]:
            continue
        whole = sch.fuse(*spatial) if len(spatial) > 1 else spatial[0]
        parallelize(sch, whole, info.cost * product([extent_of(i) for i in info.reduce], 64), target)
    return Applied(sch)
