# SPDX-License-Identifier: Apache-2.0
"""What the stages of a reduction are expected to take before they are scheduled: each is one statement, under loops that all of them share.

What a stage makes for another is memory of one iteration of the shared loops, or registers where it is short.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...ir import tir
from ...ir.dataclass import dataclass
from ...target import Target
from ..cost import cycles
from ..match.accesses import BlockInfo, extent_of
from ..statements import ASSUMED, LANES, PARTS, UNROLLED, Column, Loop, Statement, in_parts, in_registers, statement_of


@dataclass(frozen=True)
class Stages:
    """The blocks in order. ``shared``: for each the positions of its axes that all have in common; ``kept``: buffers in registers."""

    infos: Sequence[BlockInfo]
    shared: Mapping[str, Collection[int]]
    kept: Collection[tir.Buffer]

    def statement(self, info: BlockInfo, lane_axis: int, target: Target) -> Statement:
        """A stage without its loops."""
        found = statement_of(info.block, lane_axis, target, has_guards=False)
        made = {i.stores[0].buffer for i in self.infos[:-1]}
        outside = set(self.shared[info.name])
        touches = []
        for t in found.touches:
            if t.buffer in made:
                sides = tuple((n, {a: s for a, s in (steps or {}).items() if a not in outside}) for n, steps in t.operand.sides)
                inside = {a: s for a, s in t.steps.items() if a not in outside}
                t = replace(t, operand=replace(t.operand, sides=sides), steps=inside, register=t.buffer in self.kept)
            touches.append(t)
        return replace(found, touches=tuple(touches))

    def around(self, info: BlockInfo) -> list[Loop]:
        """The loops that all stages share."""
        return [Loop(k, extent(info, k)) for k in self.shared[info.name] if extent(info, k) != 1]


def extent(info: BlockInfo, axis: int) -> int:
    """Of an axis of a stage by its position, assumed where it is no number."""
    found = extent_of(info.block.iter_vars[axis])
    return ASSUMED if found is None else found


def along(stages: Stages, info: BlockInfo, lanes: int, chains: Column, target: Target) -> Column:
    """A stage in vectors along its last axis; a reduction along it in ``chains`` vectors of partial sums, which are added in the end."""
    last = len(info.block.iter_vars) - 1
    inside = [k for k in range(last) if k not in stages.shared[info.name]]
    loops = [*stages.around(info), *(Loop(k, extent(info, k)) for k in inside)]
    found = stages.statement(info, last, target)
    if not info.reduce:
        loops += [Loop(last, -(-extent(info, last) // lanes)), Loop(last, lanes, LANES)]
        return cycles(target, replace(found, loops=tuple(loops)))
    whole = -(-extent(info, last) // lanes)  # of the last ones side by side, those are left out in which there is nothing
    loops += [Loop(last, np.maximum(whole / chains, 1)), Loop(PARTS, np.minimum(chains, whole), UNROLLED), Loop(PARTS, lanes, LANES)]
    return cycles(target, replace(in_parts(in_registers(found), last, chains * lanes), loops=tuple(loops)))


def one_by_one(stages: Stages, info: BlockInfo, target: Target) -> Column:
    """A stage without vectors."""
    inside = [k for k in range(len(info.block.iter_vars)) if k not in stages.shared[info.name]]
    found = stages.statement(info, -1, target)
    return cycles(target, replace(found, loops=(*stages.around(info), *(Loop(k, extent(info, k)) for k in inside))))


def across(stages: Stages, info: BlockInfo, axis: int, lanes: int, vectors: Column, target: Target) -> Column:
    """A stage in tiles of ``vectors`` along an axis, which reduces along others."""
    spatial = [k for k, a in enumerate(info.block.iter_vars) if a in info.spatial and k != axis and k not in stages.shared[info.name]]
    reduce = [k for k, a in enumerate(info.block.iter_vars) if a in info.reduce]
    found = stages.statement(info, axis, target)
    if info.reduce and not [k for k in spatial if extent(info, k) != 1]:
        found = in_registers(found)
    tiles = Loop(axis, -(-extent(info, axis) // (vectors * lanes)))
    loops = [*stages.around(info), tiles, *(Loop(k, extent(info, k)) for k in (*reduce, *spatial))]
    body = (Loop(axis, vectors, UNROLLED), Loop(axis, lanes, LANES))
    return cycles(target, replace(found, loops=(*(x for x in loops if np.any(x.extent != 1)), *body)))
