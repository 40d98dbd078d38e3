# SPDX-License-Identifier: Apache-2.0
"""What a tensor program is expected to take under the best of its sketches, before it is scheduled: how graph passes compare algorithms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from ..ir import tir
from ..ir.dataclass import dataclass
from ..target import Target
from ..target.target import MEMORY
from .choose import choose, proposals
from .cost import beside_cold
from .statements import number

HOLDS = 4  # times its data that a cache has in which a kernel finds all of it


@dataclass(frozen=True)
class Setting:
    """Where programs are to run: the machine, and the bytes of all constants that a run of the model reads, which push each other out of the
    caches. They decide where those of a program come from when its turn is there again."""

    target: Target
    constant_bytes: float = math.inf


def expected(func: tir.PrimFunc, setting: Setting, constants: Sequence[int] = (), packed: bool = True) -> float:
    """Cycles of one core of a program in block form whose buffer parameters at the positions ``constants`` are constants, which may be laid out as its
    schedule wants them (``packed``). The sketches of rules that expect something are asked, others are scheduled. Raises ScheduleError where decisions
    are pinned that cannot be had."""
    target, fixed = setting.target, tuple(constants)
    best = lambda machine: _best(func, machine, fixed if packed else ())
    sizes = [math.prod(number(n, {}) for n in b.shape) * b.dtype.storage_bits / 8 for b in func.buffer_params]
    level, own = target.level_of(setting.constant_bytes), target.level_of(sum(sizes))
    if not fixed or level < own or level == own < MEMORY:
        return best(target)
    if own == MEMORY:  # what comes from there passes through the last cache meanwhile
        target = target.with_(l3_bytes=HOLDS * int(sum(sizes)), l3_rate=target.l2_rate)
    warm = best(target)
    waiting = sum(sizes[k] for k in fixed) / (target.cold_share * target.bytes_per_cycle(level))
    return float(beside_cold(target, warm, waiting))


def _best(func: tir.PrimFunc, target: Target, constants: tuple[int, ...]) -> float:
    for sketch, choice in proposals(func, target, constants):
        cycles = sketch.expected(choice)
        if cycles is not None:
            return cycles
        break
    return next(a for a in choose(func, target, constants) if a.fits).cycles(target)


def expected_of_all(programs: Sequence[tuple[tir.PrimFunc, Sequence[int]]], setting: Setting) -> float | None:
    """The sum for several programs, each with the positions of its constants; None where one of them is no program in block form."""
    if any(func.root_block is None for func, _ in programs):
        return None
    return sum(_of_one(func, setting, tuple(constants)) for func, constants in programs)


_of_one = lru_cache(maxsize=256)(expected)  # a program of a model is part of several sums
