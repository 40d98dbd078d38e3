# SPDX-License-Identifier: Apache-2.0
"""Schedules for the threads of a GPU by the kind of a program: which block is what, and a plain mapping of its axes to blocks of threads and threads.

Programs with bound threads run in the interpreter; there is no code for GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir import tir
from ..ir.dataclass import dataclass
from ..ir.errors import ScheduleError
from ..schedule.schedule import Schedule

MOST_THREADS = 1024
"""Of a block of threads where the target does not say it."""


@dataclass(frozen=True)
class BlockInfo:
    """A block of a schedule: its name, its handle, and its axes in order."""

    name: str
    block_rv: Any
    iters: tuple[tir.IterVar, ...]
    reads: int

    def dom_kind(self) -> str:
        """A letter for each axis: S spatial, R reduction, O other."""
        return "".join({tir.IterKind.SPATIAL: "S", tir.IterKind.REDUCE: "R"}.get(i.kind, "O") for i in self.iters)

    def is_injective(self) -> bool:
        """Whether all axes are spatial."""
        return set(self.dom_kind()) <= {"S"}

    def is_reduction(self) -> bool:
        """Whether some axis is reduced, and none is of another kind."""
        return set(self.dom_kind()) == {"S", "R"} or set(self.dom_kind()) == {"R"}

    def spatial(self) -> list[int]:
        """The extents of spatial axes that are numbers, -1 for others."""
        return [getattr(i.dom.extent, "value", -1) for i in self.iters if i.kind is tir.IterKind.SPATIAL]


def block_infos(sch: Schedule) -> list[BlockInfo]:
    """The blocks of a program that have loops of their own, in order."""
    out = []
    for rv in sch.get_child_blocks(sch.get_block("root")) if _has_root(sch) else []:
        block = sch.get(rv)
        out.append(BlockInfo(block.name, rv, tuple(block.iter_vars), len(block.reads)))
    return out


def _has_root(sch: Schedule) -> bool:
    try:
        sch.get_block("root")
    except ScheduleError:
        return False
    return True


def inlined(sch: Schedule, infos: Sequence[BlockInfo]) -> list[BlockInfo]:
    """The blocks that are left when those that can be are computed where they are read."""
    left = []
    for info in infos:
        try:
            if not info.is_injective():
                raise ScheduleError("a reduction stays")
            sch.compute_inline(info.block_rv)
        except ScheduleError:
            left.append(info)
    return left


def bind_threads(func: tir.PrimFunc, threads: int = MOST_THREADS) -> Schedule | None:
    """A schedule that inlines what it can and gives each element of every other block a thread of its own, ``threads`` a block of threads; None for
    programs whose blocks are not plain or that have threads already."""
    sch = Schedule(func)
    infos = block_infos(sch)
    if not infos:
        return None
    for info in inlined(sch, infos):
        loops = sch.get_loops(info.block_rv)
        if any(sch.get(loop).thread is not None for loop in loops):
            continue
        if len(loops) != len(info.iters) or "O" in info.dom_kind():
            return None
        spatial = [loop for loop, kind in zip(loops, info.dom_kind(), strict=True) if kind == "S"]
        reduced = [loop for loop, kind in zip(loops, info.dom_kind(), strict=True) if kind == "R"]
        if not spatial:
            spatial = [sch.add_unit_loop(info.block_rv if not loops else loops[0])]
        if spatial + reduced != loops and len(loops) > 1 and len(spatial) + len(reduced) == len(loops):
            sch.reorder(*spatial, *reduced)
        whole = sch.fuse(*spatial) if len(spatial) > 1 else spatial[0]
        outer, inner = sch.split(whole, factors=[None, threads])
        sch.bind(outer, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")
    return sch


def _reductions(func: tir.PrimFunc) -> list[BlockInfo]:
    return [i for i in block_infos(Schedule(func)) if i.is_reduction()]


def is_matmul(func: tir.PrimFunc) -> bool:
    """Whether a sum of products of two operands with rows and columns is all that is reduced."""
    found = _reductions(func)
    return len(found) == 1 and found[0].reads >= 2 and sum(n != 1 for n in found[0].spatial()) >= 2


def is_gemv(func: tir.PrimFunc) -> bool:
    """Whether it is a product of a matrix and a vector."""
    found = _reductions(func)
    return len(found) == 1 and found[0].reads >= 2 and sum(n != 1 for n in found[0].spatial()) <= 1


def is_reduction(func: tir.PrimFunc) -> bool:
    """Whether one operand is reduced, once."""
    found = _reductions(func)
    return len(found) == 1 and found[0].reads == 1


def is_general_reduction(func: tir.PrimFunc) -> bool:
    """Whether several reductions follow one another, as in softmax and normalisations."""
    return len(_reductions(func)) > 1


def is_transpose(func: tir.PrimFunc) -> bool:
    """Whether elements are moved to permuted axes and nothing else."""
    infos = block_infos(sch := Schedule(func))
    if len(infos) != 1 or not infos[0].is_injective():
        return False
    body = sch.get(infos[0].block_rv).body
    if not isinstance(body, tir.BufferStore) or not isinstance(body.value, tir.BufferLoad):
        return False
    return tuple(body.indices) != tuple(body.value.indices) and sorted(map(str, body.indices)) == sorted(map(str, body.value.indices))


def is_rms_norm(func: tir.PrimFunc) -> bool:
    """Whether a sum of squares scales what it was made of."""
    found = _reductions(func)
    return len(found) == 1 and "rms" in str(func.attrs.get("global_symbol", "")).lower()
