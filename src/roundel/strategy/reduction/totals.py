# SPDX-License-Identifier: Apache-2.0
"""The strategy for reductions of whole tensors to single numbers, such as the sum or the largest of all elements.

A long reduction is cut into parts of a fixed length, which are computed in parallel and combined in their order. The result is therefore the
same for every number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...schedule.schedule import Schedule
from ...target import Target
from ...target.target import L2
from ..match.accesses import BlockInfo, blocks_of, extent_of, product, vector_lanes
from ..parallelism import parallelize
from ..partial import partial_results
from ..program import Program
from ..sketch import Applied, Sketch, rule
from .rows import chains_of, in_vectors, long_axes

ASSUMED = 1 << 16   # elements of an axis whose extent is not a number
PARTS = 2           # times what pays for a parallel region, of a part: what parts give has to be put together


@rule
def totals(program: Program) -> Iterator[Sketch]:
    """Fits programs of plain blocks that make single numbers, some of them reductions."""
    if not program.reductions or not program.is_plain or any(map(long_axes, program.reductions)):
        return
    infos = blocks_of(program.with_cheap_inlined.func)
    if any(long_axes(i) for i in infos):
        return

    def scheduled(sch: Schedule, choice: dict[str, int]) -> Applied:
        for info in infos:
            if info.reduce:
                _reduce(sch, info, program.target)
        return Applied(sch)

    yield Sketch("totals", program.with_cheap_inlined, scheduled)


def _reduce(sch: Schedule, info: BlockInfo, target: Target) -> None:
    """Schedule one reduction: its outermost long loop is cut into parts, where that gives several parts with enough work each."""
    loop, cycles = _outermost(sch, info, target)
    extent = extent_of(next((i for i in info.reduce if extent_of(i) != 1), info.reduce[0]))
    length = max(1, round(PARTS * target.region_cycles / cycles))
    if loop is None or (extent is not None and extent < 2 * length):
        in_vectors(sch, info, target, 0, None, None)
        return
    chains = chains_of(info, target)
    tokens = [sch.get(x).token for x in sch.get_loops(sch.get_block(info.name))]
    before = sch.get_loops(sch.get_block(info.name))[: tokens.index(sch.get(loop).token)]  # of one iteration
    part, within = sch.split(loop, [None, length])
    sch.reorder(part, *before, within)
    block = partial_results(sch, sch.get_block(info.name), part)
    sch.cache_write(block, 0, "local")
    name = sch.get(block).name
    sch.reverse_compute_at(sch.get_consumers(block)[0], part)
    outside = 1 + [sch.get(x).token for x in sch.get_loops(block)].index(sch.get(part).token)
    in_vectors(sch, _named(sch, name), target, outside, None, None, chains)
    first, *others = sch.get_loops(sch.get_block(info.name))
    if others:  # the parts, innermost again
        sch.reorder(*others, first)
    in_vectors(sch, _named(sch, info.name), target, 0, None, None)
    parallelize(sch, part, cycles * length, target)


def _named(sch: Schedule, name: str) -> BlockInfo:
    return BlockInfo(sch.get(sch.get_block(name)))


def _outermost(sch: Schedule, info: BlockInfo, target: Target) -> tuple[Any, float]:
    """The outermost loop that is long and the cycles of one of its iterations (None where it contains loops of other blocks)."""
    lanes = vector_lanes(info, target)
    traffic = sum(a.buffer.dtype.storage_bits for a in info.loads) / 8
    each = max(info.cost / lanes, traffic / (target.elementwise_share * target.bytes_per_cycle(L2)))
    loops = dict(zip((i.var for i in info.block.iter_vars), sch.get_loops(sch.get_block(info.name)), strict=True))
    long = [i for i in info.reduce if extent_of(i) != 1]
    if not long:
        return None, each
    return loops[long[0].var], each * product([extent_of(i) for i in long[1:]], ASSUMED)
