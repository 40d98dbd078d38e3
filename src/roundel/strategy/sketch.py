# SPDX-License-Identifier: Apache-2.0
"""What can become of a program: a sketch is a way to schedule it in which some decisions are still free.

A rule looks at the structure of a program and proposes sketches for it, which is cheap and changes nothing. A sketch becomes a scheduled
program by ``sketch.schedule(choice)``, where ``choice`` gives each of its decisions a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any, overload

from ..ir import tir
from ..ir.dataclass import dataclass
from ..schedule.schedule import Schedule
from .candidates import Candidates
from .parallelism import GRAIN, with_grain
from .program import Program
from .reduction.inits import separate_inits


@dataclass(frozen=True)
class Applied:
    """A sketch with its decisions made. ``layouts`` says how constant parameters are to be laid out: from the position among the buffer
    parameters to the index map. ``decisions`` are the choices by name, those included that followed from others.
    ``attrs``: attributes that the scheduled program gets."""

    schedule: Schedule
    layouts: Mapping[int, tir.IndexMap] = field(default_factory=dict)
    decisions: Mapping[str, Any] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def func(self) -> tir.PrimFunc:
        """The scheduled program."""
        made = self.schedule.func
        return made.replace(attrs=made.attrs | self.attrs) if self.attrs else made


@dataclass(frozen=True, eq=False)
class Sketch:
    """One way to schedule a program. ``start`` has the steps that do not depend on any decision; ``steps`` does the rest on a fork of it, with
    a value for each decision of ``candidates`` (None: there is nothing to decide). ``beside`` gives the cycles of one core for the blocks whose time
    ``candidates`` does not count, because no decision changes it (None: there are none, or nothing is expected of them). ``parts`` gives the tables that
    a search decides, independently of each other, where ``candidates`` has some of their combinations only. ``mutators``: see
    `roundel.strategy.refine`."""

    name: str
    start: Schedule
    steps: Callable[[Schedule, dict[str, Any]], Applied]
    candidates: Candidates | None = None
    beside: Callable[[], float] | None = None
    parts: Callable[[], tuple[Candidates, ...]] | None = None
    mutators: tuple[Callable[..., Any], ...] = ()

    @cached_property
    def tables(self) -> tuple[Candidates, ...]:
        """The tables of which every combination can be had."""
        return self.parts() if self.parts is not None else ((self.candidates,) if self.candidates is not None and self.candidates.columns else ())

    @property
    def space(self) -> dict[str, list[int]]:
        """The values of each decision that occur in some candidate, in ascending order."""
        return {} if self.candidates is None else {n: sorted(set(c.tolist())) for n, c in self.candidates.columns.items()}

    def best(self) -> dict[str, int]:
        """The decisions that are expected to be the fastest."""
        return {} if self.candidates is None else self.candidates.best()

    def expected(self, choice: Mapping[str, Any]) -> float | None:
        """The cycles that the whole program is expected to take on one core under a choice; None where that is known of its schedule only."""
        if self.candidates is None:
            return None if self.beside is None else self.unchanged
        found = self.candidates.expected(choice)
        return None if found is None else found + self.unchanged

    @cached_property
    def unchanged(self) -> float:
        """Cycles that no decision changes, beside those of the candidates."""
        return 0.0 if self.beside is None else self.beside()

    def schedule(self, choice: Mapping[str, Any] | None = None) -> Applied:
        """The program under a choice (default: the best); ``grain`` is a decision of every sketch. Raises ScheduleError where a step is not legal."""
        decisions = dict(self.best() if choice is None else choice)
        grain = decisions.pop(GRAIN, None) if self.candidates is None or GRAIN not in self.candidates.columns else None
        applied = self.steps(self.start.fork(seed=0), decisions)
        if grain is not None:
            applied = replace(applied, decisions={**applied.decisions, **with_grain(applied.schedule, grain)})
        separate_inits(applied.schedule)
        return applied


@dataclass(frozen=True)
class Refusal:
    """A way to schedule a program that a rule looked at and turned down: its name, and why."""

    name: str
    why: str


Propose = Callable[[Program], Iterable[Sketch | Refusal]]


@dataclass(frozen=True, eq=False)
class Rule:
    """Proposes sketches for the programs whose structure it knows, and none for others. Rules that name the same ``model`` compete: the cycles
    that their sketches expect come from one model of the machine, so the least decides. Otherwise the order of the rules does."""

    name: str
    propose: Propose
    model: str | None = None

    def __call__(self, program: Program) -> list[Sketch]:
        return [s for s in self.looked_at(program) if isinstance(s, Sketch)]

    def looked_at(self, program: Program) -> list[Sketch | Refusal]:
        """The sketches that it proposes for a program, and what it turns down; asked once for a program."""
        return program.once(self, lambda: list(self.propose(program)))


@overload
def rule(propose: Propose, *, model: str | None = None) -> Rule: ...
@overload
def rule(propose: None = None, *, model: str | None = None) -> Callable[[Propose], Rule]: ...
def rule(propose: Propose | None = None, *, model: str | None = None) -> Rule | Callable[[Propose], Rule]:
    """``@rule`` makes a Rule of a function, with the function's name."""
    if propose is None:
        return lambda fn: rule(fn, model=model)
    made = Rule(propose.__name__, propose, model)
    object.__setattr__(made, "__doc__", propose.__doc__)
    object.__setattr__(made, "__module__", propose.__module__)
    return made
