# SPDX-License-Identifier: Apache-2.0
"""Hand-written schedules as strategies: templates with knobs, and traces whose decisions are open.

A template is an ordinary function of a schedule. Where it calls ``sch.knob(name, values)`` there is a decision of that name, and the table of
candidates holds every combination of the knobs' values. The template runs once for a program; a candidate is its trace replayed with other
values, so a template may not look at the value of a knob to decide which step comes next (two ways to go are two templates).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, overload

import numpy as np

from ..ir import tir
from ..ir.errors import ScheduleError
from ..schedule.decisions import Decision
from ..schedule.schedule import Schedule
from ..schedule.sketch import Sketch as OpenSketch
from ..schedule.sketch import decided_trace
from ..schedule.trace import Instruction, Trace
from .candidates import Candidates, Columns, combinations
from .program import Program
from .sketch import Applied, Rule, Sketch

Steps = Callable[[Schedule, Any], Any]
Cycles = Callable[[Program, Columns], np.ndarray]
MOST_CANDIDATES = 100_000  # of an open trace; of more a sample is taken


@overload
def template(steps: Steps, *, cycles: Cycles | None = None, model: str | None = None) -> Rule: ...
@overload
def template(steps: None = None, *, cycles: Cycles | None = None, model: str | None = None) -> Callable[[Steps], Rule]: ...
def template(steps: Steps | None = None, *, cycles: Cycles | None = None, model: str | None = None) -> Rule | Callable[[Steps], Rule]:
    """``@template`` makes a rule of a function ``steps(sch, target)`` that schedules the programs it knows. It leaves a program to others by
    raising ScheduleError, as every primitive does that is not legal there, or by returning False.

    ``cycles(program, columns)`` may tell how long each candidate is expected to take; without it the first value of each knob is taken unless
    another is asked for. ``model`` as for `Rule`.
    """
    if steps is None:
        return lambda fn: template(fn, cycles=cycles, model=model)
    return Rule(steps.__name__, partial(_from_template, steps, cycles), model)


def _from_template(steps: Steps, cycles: Cycles | None, program: Program) -> Iterator[Sketch]:
    sch = program.fork()
    try:
        if steps(sch, program.target) is False:
            return
    except ScheduleError:
        return
    knobs = {i.attrs["name"]: [_number(v) for v in i.attrs["values"]] for i in sch.trace if i.kind == "knob"}
    columns = combinations(knobs) if knobs else {}
    table = Candidates(columns, None if cycles is None else cycles(program, columns)) if knobs else None
    yield Sketch(steps.__name__, program.schedule, partial(_replay, trace=sch.trace, knobs=knobs), table)


def _replay(sch: Schedule, choice: Mapping[str, Any], trace: Trace, knobs: Mapping[str, list[int]]) -> Applied:
    """The steps of a template with the values that are chosen for its knobs."""
    def decide(i: Instruction) -> int | None:
        return knobs[i.attrs["name"]].index(choice[i.attrs["name"]]) if i.kind == "knob" else None

    trace.apply_to(sch, decide=decide)
    return Applied(sch, decisions=dict(choice))


def _number(value: Any) -> int:
    return int(value.value if isinstance(value, tir.IntImm) else value)


def from_open(name: str, program: Program, opened: OpenSketch, cycles: Callable[[OpenSketch, Columns], np.ndarray] | None = None, seed: int = 0) -> Sketch:
    """A trace whose decisions are open (``roundel.schedule.sketches``) as a sketch. A decision of several numbers, such as the factors of a tile,
    is as many decisions here, named as its variables are: ``i_tile_0``, ``i_tile_1``.

    Of more than ``MOST_CANDIDATES`` candidates a random sample is the table. ``cycles(opened, rows)`` may tell how long candidates are expected
    to take, which are given as ``opened.evaluate`` takes them.
    """
    rows = opened.all() if opened.size <= MOST_CANDIDATES else opened.sample(MOST_CANDIDATES, seed)
    columns = {v.name: column for v, column in opened.columns(rows).items()}
    steps = partial(_decided, trace=opened.trace, space=opened.space)
    return Sketch(name, program.schedule, steps, Candidates(columns, None if cycles is None else cycles(opened, rows)))


def _decided(sch: Schedule, choice: Mapping[str, Any], trace: Trace, space: Mapping[str, Decision]) -> Applied:
    """The trace with the rows of its decisions' domains that hold the chosen values."""
    made = []
    for decision in space.values():
        wanted = [choice[v.name] for v in decision.variables]
        made.append(decision.choices[int(np.flatnonzero((decision.domain == wanted).all(axis=1))[0])])
    decided_trace(trace, made).apply_to(sch)
    return Applied(sch, decisions=dict(choice))
