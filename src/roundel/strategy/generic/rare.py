# SPDX-License-Identifier: Apache-2.0
"""Reductions whose results are hardly ever used: a choice that is marked as likely takes another value in their place. They are computed where they are used.

    D[i] += X[i, k] * Y[k]                                              for tiles:
    for i: C[i] = select(likely(T[i // 2]), R[i], D[i])     ->              where not T: for k: D[two] += X[two, k] * Y[k]
                                                                            C[two] = select(likely(T), R[two], D[two])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ...ir import tir
from ...ir.annotations import EDGE
from ...ir.errors import ScheduleError
from ...ir.visit import walk
from ...schedule.schedule import Schedule
from ...target import Target
from ..match.accesses import BlockInfo, blocks_of, extent_of, product, vector_lanes
from ..parallelism import parallelize


def rare_where_used(start: Schedule, target: Target) -> Schedule:
    """The program with such reductions in the loops of the block that chooses, as a fork; itself where there are none."""
    infos = blocks_of(start.func)
    for reader in infos:
        found = _rare(reader, infos)
        if found is not None:
            sch = start.fork(seed=0)
            with suppress(ScheduleError):
                _move(sch, *found, reader, infos, target)
                return sch
    return start


def is_open(sch: Schedule, info: BlockInfo) -> bool:
    """Whether the loops of a block are still to be chosen."""
    return all(sch.get(x).kind is tir.ForKind.SERIAL for x in sch.get_loops(sch.get_block(info.name)))


def _rare(reader: BlockInfo, infos: Sequence[BlockInfo]) -> tuple[BlockInfo, Mapping[tir.Var, int]] | None:
    """The reduction that a block reads on the unlikely side of a choice alone, and by how many neighbours along each axis the choice is shared."""
    for choice in (n for n in walk(reader.block.body) if type(n) is tir.Select and type(n.condition) is tir.Call and n.condition.op == "likely"):
        read = [n.buffer for n in walk(choice.false_value) if type(n) is tir.BufferLoad]
        made = [i for i in infos if i.reduce and i.stores[0].buffer in read]
        used = [i for i in infos for a in i.loads if made and a.buffer is made[0].stores[0].buffer and i is not made[0]]
        if len(made) == 1 and len(read) == 1 and used == [reader]:
            return made[0], {n.a: n.b.value for n in walk(choice.condition) if type(n) is tir.FloorDiv and type(n.a) is tir.Var and type(n.b) is tir.IntImm}
    return None


def _move(sch: Schedule, rare: BlockInfo, shared: Mapping[tir.Var, int], reader: BlockInfo, infos: Sequence[BlockInfo], target: Target) -> None:
    loops = sch.get_loops(sch.get_block(reader.name))
    lanes = vector_lanes(reader, target)
    *others, last = reader.spatial
    if extent_of(last) is None or (extent_of(last) or 0) % lanes or last.var in shared:
        raise ScheduleError(f"block {reader.name} has no whole vectors along its last axis")
    outside: list[Any] = []
    inside: list[Any] = []
    for axis, loop in zip(others, loops, strict=False):
        count = shared.get(axis.var, 1)
        outer, inner = sch.split(loop, [None, count]) if count > 1 else (loop, None)
        outside.append(outer)
        inside += [inner] if inner is not None else []
    more, lane = sch.split(loops[-1], [None, lanes]) if extent_of(last) != lanes else (None, loops[-1])
    outside += [more] if more is not None else []
    sch.reorder(*outside, *inside, lane)
    for loop in inside:
        sch.unroll(loop)
    sch.vectorize(lane)
    _in_registers(sch, reader, infos, outside, lanes)
    sums = sch.get_block(rare.name)
    sch.set_scope(sums, 0, "local")
    sch.compute_at(sums, outside[-1])
    own = sch.get_loops(sums)[len(outside) :]
    spatial, reduce = own[: len(own) - len(rare.reduce)], own[len(own) - len(rare.reduce) :]
    sch.reorder(*reduce, *spatial)
    for loop in spatial[:-1]:
        sch.unroll(loop)
    sch.vectorize(spatial[-1])
    sch.only_where_chosen(sums)
    for info in infos:
        block = sch.get_block(info.name)
        if not info.reduce and [sch.get(b).name for b in sch.get_consumers(block)] == [rare.name]:
            _with_it(sch, block, outside)
    elements = product([extent_of(i) for i in reader.spatial], 64) / max(product([extent_of(i) for i in others], 64), 1) * product(list(shared.values()), 1)
    parallelize(sch, sch.fuse(*outside), reader.cost * elements / lanes, target)


def _with_it(sch: Schedule, block: Any, outside: Sequence[Any]) -> None:
    """Compute what is made for rare sums alone where they are; it stays a stage of its own where the choice cannot be asked for its elements."""
    before = sch.fork()
    try:
        sch.compute_at(block, outside[-1])
        own = sch.get_loops(block)[len(outside) :]
        for loop in own[:-1]:
            sch.annotate(loop, EDGE, True)  # the loops around stay whole for what is rare
        sch.vectorize(own[-1])
        sch.only_where_chosen(block)
    except ScheduleError:
        sch.__dict__.update(before.__dict__)


def _in_registers(sch: Schedule, reader: BlockInfo, infos: Sequence[BlockInfo], outside: Sequence[Any], lanes: int) -> None:
    """Compute what leads to the other side of the choice, without a reduction, in registers beside it, where nobody else reads it."""
    moved = {reader.name}
    for info in reversed(infos[: infos.index(reader)]):
        block = sch.get_block(info.name)
        users = {sch.get(b).name for b in sch.get_consumers(block)}
        if info.reduce or not users or not users <= moved or extent_of(info.spatial[-1]) != lanes:
            continue
        sch.set_scope(block, 0, "local")
        sch.compute_at(block, outside[-1])
        own = sch.get_loops(block)[len(outside) :]
        for loop in own[:-1]:
            sch.unroll(loop)
        sch.vectorize(own[-1])
        moved.add(info.name)
