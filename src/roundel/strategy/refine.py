# SPDX-License-Identifier: Apache-2.0
"""Sketches of any rule with steps behind them, and with ways of one's own to change their decisions.

A *postprocessor* is a function of a schedule whose decisions are made, in which everything is a number: it takes further steps, and may refuse
the candidate by returning False or raising ScheduleError. A *mutator* proposes decisions that are worth a look beside those of a fast candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..ir.errors import ScheduleError
from ..schedule.schedule import Schedule
from .program import Program
from .sketch import Applied, Rule, Sketch

Postprocessor = Callable[[Schedule], Any]
Mutator = Callable[[Mapping[str, int], Mapping[str, Sequence[int]], np.random.Generator], Mapping[str, int] | None]
"""``mutator(decisions, values, rng)``: other decisions than those of a fast candidate, of which ``values`` has all that occur; None for none. What is
no candidate is passed over."""


def refined(rule: Rule, postprocessors: Sequence[Postprocessor] = (), mutators: Sequence[Mutator] = (), name: str | None = None) -> Rule:
    """A rule like another whose sketches have ``postprocessors`` behind their steps, and ``mutators``. With postprocessors they are called ``name``, or
    else by what they were called and the postprocessors: other sketches with the same decisions."""
    return Rule(name or rule.name, partial(_refined, rule, tuple(postprocessors), tuple(mutators), name), rule.model)


def _refined(rule: Rule, postprocessors: Sequence[Postprocessor], mutators: Sequence[Mutator], name: str | None, program: Program) -> Iterator[Sketch]:
    for sketch in rule(program):
        made = refined_sketch(sketch, postprocessors, mutators)
        yield made if name is None else replace(made, name=name)


def refined_sketch(sketch: Sketch, postprocessors: Sequence[Postprocessor], mutators: Sequence[Mutator]) -> Sketch:
    """The same for one sketch."""
    found = replace(sketch, mutators=(*sketch.mutators, *mutators)) if mutators else sketch
    if not postprocessors:
        return found
    name = "+".join([sketch.name, *(getattr(p, "__name__", "postprocessor") for p in postprocessors)])
    return replace(found, name=name, steps=partial(_processed, steps=sketch.steps, postprocessors=tuple(postprocessors)))


def _processed(sch: Schedule, choice: dict[str, int], steps: Callable[..., Applied], postprocessors: Sequence[Postprocessor]) -> Applied:
    applied = steps(sch, choice)
    applied.schedule.enter_postproc()
    for process in postprocessors:
        if process(applied.schedule) is False:
            raise ScheduleError(f"postprocessor {getattr(process, '__name__', process)} refuses the candidate")
    return applied
