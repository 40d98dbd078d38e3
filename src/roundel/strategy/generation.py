# SPDX-License-Identifier: Apache-2.0
"""Sketches that generation rules make, block by block: how Ansor and MetaSchedule describe a space.

A generation rule is a function of a schedule and one of its blocks. It gives the schedule with more steps, several of them where there are several ways
to go on, or None where it has nothing to say. What it samples (``sample_perfect_tile``, ``sample_categorical``, ``knob``) stays open: it is a
decision of the sketch. All rules are applied one after another, each to all blocks, the last block first (Shao et al., 2022,
https://arxiv.org/abs/2205.13603, section 4); ``multi_level_tiling`` and its neighbours are rules to begin with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..ir.errors import ArithError, ScheduleError
from ..ir.tir import ForKind
from ..schedule.schedule import Schedule
from ..schedule.sketch import Rows
from ..schedule.sketch import Sketch as OpenSketch
from ..target import Target
from .program import Program
from .refine import Mutator, Postprocessor, refined
from .sketch import Rule, Sketch
from .template import from_open

Generation = Callable[[Schedule, Any], Schedule | Iterable[Schedule] | None]
MOST_SKETCHES = 32  # of one program
LOOP = 2.0          # cycles of an iteration of a loop that is not written out
SPILLED = 3.0       # times as long, where a register tile does not fit the registers


def generated(name: str, rules: Sequence[Generation], postprocessors: Sequence[Postprocessor] = (), mutators: Sequence[Mutator] = ()) -> Rule:
    """A rule that proposes what generation rules make of a program, in the order in which they stand: sketches ``name``, ``name_1`` and so on.
    ``postprocessors`` and ``mutators``: as for `refined`."""
    made = Rule(name, partial(_propose, name, tuple(rules)))
    return refined(made, postprocessors, mutators) if postprocessors or mutators else made


def _propose(name: str, rules: Sequence[Generation], program: Program) -> Iterator[Sketch]:
    states = [Schedule(program.schedule.func, seed=0, unresolved=True)]
    for rule in rules:
        states = [after for state in states for after in _applied(rule, state)][:MOST_SKETCHES]
    for k, state in enumerate(s for s in states if len(s.trace)):
        opened = OpenSketch(program.func, state)
        yield from_open(f"{name}_{k}" if k else name, program, opened, partial(expected_cycles_of, program.target))


def _applied(rule: Generation, start: Schedule) -> list[Schedule]:
    """What a rule makes of all blocks of a schedule. A way that is not legal is left out; where none is left, the block stays as it is."""
    states = [start]
    for name in reversed(start.block_names[1:]):
        following = []
        for state in states:
            found: list[Schedule] = []
            if name in state.block_names:
                sch = state.fork(seed=0)
                try:
                    made = rule(sch, sch.get_block(name))
                    found = [] if made is None else [made] if isinstance(made, Schedule) else list(made)
                except ScheduleError:
                    pass
            following += found or [state]
        states = following[:MOST_SKETCHES]
    return states


def expected_cycles_of(target: Target, opened: OpenSketch, rows: Rows) -> np.ndarray:
    """Cycles of one core for candidates of an open trace, from its closed forms: operations at the rate of the machine, bytes that cross into the
    first and the second cache, loops. Rough: it orders candidates, and what is measured corrects it."""
    try:
        stages = opened.evaluate(rows).stages
    except ArithError:
        return np.zeros(len(next(iter(rows.values()), ())))
    total: Any = 0.0
    for stage in stages:
        size = max((t.buffer.dtype.storage_bits // 8 for t in stage.touches), default=4)
        full = max(target.vector_bytes // max(size, 1), 1)
        lanes = np.asarray(stage.lanes)
        vectors = stage.issued / np.maximum(lanes, 1) * np.ceil(lanes / full)
        moving = sum(bool(t.moves and t.moves[-1]) for t in stage.touches)
        body = np.maximum(stage.over(ForKind.VECTORIZED, ForKind.UNROLLED), 1)
        spilled = np.asarray(stage.registers) > target.vector_registers * target.vector_bytes
        work = vectors * max(stage.flops / 2 / target.fma_ports, moving / 2, 0.5) * np.where(spilled, SPILLED, 1.0)
        far = sum(stage.traffic(capacity) / max(rate, 1e-3) for capacity, rate in _caches(target))
        total = total + work + far + LOOP * stage.issued / body
    return np.broadcast_to(np.asarray(total, dtype=float), (len(next(iter(rows.values()), [0])),)).copy()


def _caches(target: Target) -> list[tuple[int, float]]:
    """Bytes of the caches, with the bytes a cycle at which they are filled."""
    cycles = 1e9 * target.peak_gflops() / target.flops_per_cycle() / 1e9
    sizes = [target.l1_bytes, target.l2_bytes]
    return [(size, target.bandwidth_gbs(2 * size) / cycles) for size in sizes if size]
