# SPDX-License-Identifier: Apache-2.0
"""The one place where it is decided how a tensor program is scheduled: its alternatives, the most promising first.

An alternative that cannot be had costs speed and never the compilation: it is dropped with the reason, and the next one is tried. A step
that a primitive refuses is a rule's ordinary way to find out that it does not fit, and is logged as information. Any other exception is a
mistake in the rule and is logged as a warning (logger ``roundel.schedule``), which the tests count as a failure. What somebody asked for by
name (see ``pins``) is different: where it cannot be had, that is an error.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np

from ..ir import tir
from ..ir.dataclass import dataclass
from ..ir.errors import ScheduleError
from ..ir.record import Record
from ..target import Target
from .contest import Champion, contenders, is_contested, is_faster, is_promising
from .cost import expected_cycles
from .pins import Pins
from .program import Program, is_unscheduled
from .records import Records, program_digest
from .replay import replay
from .rules import LAST, rules_in_order, rules_of_users
from .sketch import Applied, Refusal, Rule, Sketch

NO_MATCH = "the program does not have its structure"

_log = logging.getLogger("roundel.schedule")


@dataclass(frozen=True)
class Alternative:
    """One way to schedule a program, or why it is none. ``name`` is the sketch's, or that of the rule which proposed none. ``record``: the measurement
    that it comes from; then there is no ``sketch``, but the steps that were recorded."""

    name: str
    sketch: Sketch | None = None
    choice: Mapping[str, Any] = field(default_factory=dict)
    applied: Applied | None = None
    why_not: str = ""
    was_dropped: bool = False
    record: Record | None = None

    @property
    def fits(self) -> bool:
        """Whether the program can be scheduled this way."""
        return self.applied is not None

    @property
    def expected(self) -> float | None:
        """Cycles on one core, where the sketch expects some before it is scheduled."""
        return None if self.sketch is None else self.sketch.expected(self.choice)

    def cycles(self, target: Target) -> float:
        """Cycles on one core: what the sketch expects, or else what is expected of the scheduled program. For alternatives that fit."""
        assert self.applied is not None
        return expected_cycles(self.applied.func, target, cores=1) if self.expected is None else self.expected


def choose(func: tir.PrimFunc, target: Target, constants: tuple[int, ...] = (), pins: Mapping[str, Any] | None = None,
           rules: Sequence[Rule] | None = None, records: Records | None = None) -> Iterator[Alternative]:
    """The alternatives of a program, one after another as they are asked for: the first one that fits is the compiler's choice.

    A program that has a schedule already, made by hand, keeps it: nothing but the rules that a user registered, and the one that takes no step, is asked.

    ``constants`` are the positions of the buffer parameters that are constants, ``pins`` decisions that are made already (default: those of
    the program's attribute ``decisions``), ``rules`` who may propose (default: all). What was measured, according to ``records``, goes before
    what is expected, and behind what is pinned. Raises ScheduleError where pins cannot be had.
    """
    if pins is not None:
        func = func.with_attr("decisions", dict(pins))
    program, pinned = Program.of(func, target, constants), Pins.of(func)
    others, met = [], False  # what was left out, whether an alternative did fit
    if records is not None and not func.attrs.get("decisions") and (record := records.best(program_digest(program))) is not None:
        found = _replayed(program, record)
        met = found.fits
        yield found
    if is_made := rules is None and not is_unscheduled(func):
        rules_asked: Sequence[Rule] = rules_of_users() + LAST
    else:
        rules_asked = rules_in_order() if rules is None else rules
    for group in competing(rules_asked):
        left_out, ranked = _proposals(group, program, pinned, must_fit=not met)
        others += left_out
        yield from left_out
        for sketch, choice in ranked:
            found = _scheduled(program, sketch, choice)
            if not found.fits and pinned and not met:
                raise program.error(f"sketch {sketch.name} cannot be had with {pinned}", why=found.why_not)
            if found.fits and not (met or pinned or is_made) and rules is None:
                found, beaten = _contest(program, found)
                if beaten is not None:
                    yield beaten
            met = met or found.fits
            yield found
    if rules is None and not met:
        fitting = ", ".join(a.name for a in others if a.sketch is not None)
        why = next((a.why_not for a in others if a.name == pinned.sketch), "")
        raise program.error(f"there is no sketch {pinned.sketch!r} for this program", why=why, hint=f"those that fit it are {fitting}")


def attempt(rule: Rule, func: tir.PrimFunc, target: Target, constants: tuple[int, ...] = ()) -> Alternative:
    """The first alternative of one rule that fits, or the first reason why there is none."""
    first = None
    for found in choose(func, target, constants, rules=[rule]):
        if found.fits:
            return found
        first = first or found
    assert first is not None  # a rule that proposes nothing is an alternative too
    return first


def takes(rule: Rule, func: tir.PrimFunc, target: Target) -> bool:
    """Whether a rule fits a program that has no schedule yet, with all steps legal and all decisions that are pinned."""
    try:
        return is_unscheduled(func) and attempt(rule, func, target).fits
    except ScheduleError:
        return False


def proposals(func: tir.PrimFunc, target: Target, constants: tuple[int, ...] = ()) -> Iterator[tuple[Sketch, dict[str, Any]]]:
    """The sketches that would be tried, each with its best choice, in the order in which ``choose`` tries them; none of them is scheduled."""
    program, pinned = Program.of(func, target, constants), Pins.of(func)
    for group in competing(rules_in_order()):
        yield from _proposals(group, program, pinned, must_fit=False)[1]


def competing(rules: Sequence[Rule]) -> list[list[Rule]]:
    """Rules in groups: those of one model together, at the place of the first of them, every other one by itself."""
    groups: dict[Any, list[Rule]] = {}
    for r in rules:
        groups.setdefault(r if r.model is None else r.model, []).append(r)
    return list(groups.values())


def _proposals(rules: Sequence[Rule], program: Program, pins: Pins, must_fit: bool) -> tuple[list[Alternative], list[tuple[Sketch, dict[str, Any]]]]:
    """What is left out and why; the other sketches, each with the best choice that the pins leave, the fastest first. Raises ScheduleError
    for pins that a sketch cannot have where it ``must_fit``."""
    left_out: list[Alternative] = []
    ranked = []
    for r in rules:
        try:
            proposed = r.looked_at(program)
        except Exception as error:
            left_out.append(_dropped(program, r.name, error))
            continue
        if not proposed:
            left_out.append(Alternative(r.name, why_not=NO_MATCH))
        for sketch in proposed:
            if isinstance(sketch, Refusal):
                left_out.append(Alternative(sketch.name, why_not=sketch.why))
                continue
            if pins.leaves_out(sketch):
                left_out.append(Alternative(sketch.name, sketch, why_not=f"sketch {pins.sketch} is asked for"))
                continue
            try:
                ranked.append((sketch, pins.choice(program, sketch)))
            except ScheduleError as error:
                if must_fit:
                    raise
                left_out.append(Alternative(sketch.name, sketch, why_not=error.what))
    return left_out, _in_order(program, ranked)


def _in_order(program: Program, ranked: list[tuple[Sketch, dict[str, Any]]]) -> list[tuple[Sketch, dict[str, Any]]]:
    """The fastest first, by what the sketches expect; where one of them cannot tell before it is scheduled, by what is expected of their schedules."""
    if len(ranked) < 2:
        return ranked
    expected = [cycles for sketch, choice in ranked if (cycles := sketch.expected(choice)) is not None]
    if len(expected) < len(ranked):
        found = [_scheduled(program, sketch, choice) for sketch, choice in ranked]
        expected = [expected_cycles(a.applied.func, program.target, cores=1) if a.applied is not None else math.inf for a in found]
    return [ranked[k] for k in np.argsort(expected, kind="stable")]


def _replayed(program: Program, record: Record) -> Alternative:
    try:
        return Alternative(record.sketch, None, record.decisions, replay(program, record), record=record)
    except ScheduleError as error:
        return Alternative(record.sketch, None, record.decisions, None, f"its record cannot be replayed: {error.what}", was_dropped=True, record=record)


def _scheduled(program: Program, sketch: Sketch, choice: Mapping[str, Any]) -> Alternative:
    try:
        return Alternative(sketch.name, sketch, choice, program.once((sketch, *choice.items()), partial(sketch.schedule, choice)))
    except Exception as error:
        return _dropped(program, sketch.name, error, sketch, choice)


def _contest(program: Program, found: Alternative) -> tuple[Alternative, Alternative | None]:
    """What a program is scheduled by where a rule took it, and the alternative that this leaves out."""
    assert found.applied is not None
    first = Champion(found.name, found.applied.func)
    if not is_contested(first, program.func, program.target):
        return found, None
    best, least = found, first.cycles(program.target)
    for r in (r for name in contenders(program.func) for r in rules_in_order() if r.name == name != found.name):
        for sketch, choice in _proposals([r], program, Pins(), must_fit=False)[1]:
            if not is_promising(sketch, first, least, program.target):
                continue
            other = _scheduled(program, sketch, choice)
            if other.applied is not None and is_faster(other.applied.func, first, least, program.target):
                best, least = other, expected_cycles(other.applied.func, program.target, cores=1)
    return best, None if best is found else replace(found, applied=None, why_not=f"sketch {best.name} is expected to be faster")


def _dropped(program: Program, name: str, error: Exception, sketch: Sketch | None = None, choice: Mapping[str, Any] | None = None) -> Alternative:
    """An alternative that raised an error; raises nothing but what ends the process."""
    if isinstance(error, ScheduleError):
        _log.info("%s is not legal for program %r: %s", name, program.name, error.what)
        why = f"illegal here: {error.what}"
    else:  # a mistake in the rule: told, counted by the tests, and no reason to stop
        kind = type(error).__name__
        _log.warning("%s failed on program %r and was passed over: %s: %s", name, program.name, kind, error, exc_info=error)
        why = f"failed: {kind}: {error}"
    return Alternative(name, sketch, choice or {}, None, why, was_dropped=True)
