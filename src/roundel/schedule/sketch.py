# SPDX-License-Identifier: Apache-2.0
"""Sketches: a program scheduled once with its decisions open, its features as closed forms, candidates as rows of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import Any

import numpy as np

from roundel.ir import IRModule, Var
from roundel.ir.errors import ScheduleError
from roundel.ir.tir import PrimFunc

from .decisions import OPEN, Decision
from .features import Features
from .schedule import Schedule
from .trace import Trace

Rows = Mapping[str, np.ndarray]  # name of a decision -> column of positions in its domain


class Sketch:
    """A trace whose decisions are open. A candidate chooses a row of each decision's domain.

    ``space`` are the decisions by name, ``features`` the closed forms, ``schedule(candidate)`` the concrete program.
    """

    def __init__(self, source: IRModule | PrimFunc, sch: Schedule) -> None:
        self.source = source
        self.mod = sch.mod
        self.trace: Trace = sch.trace
        self.space: dict[str, Decision] = {d.name: d for d in sch.decisions}
        self._features = sch.features

    @cached_property
    def features(self) -> Features:
        """The closed forms, in the decisions' variables."""
        return self._features()

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return math.prod(map(len, self.space.values()))

    def sample(self, count: int, seed: int | None = None) -> Rows:
        """Random candidates, each decision uniform over its domain."""
        rng = np.random.default_rng(seed)
        return {name: rng.integers(len(d), size=count) for name, d in self.space.items()}

    def all(self) -> Rows:
        """Every candidate."""
        places = np.unravel_index(np.arange(self.size), [len(d) for d in self.space.values()]) if self.space else ()
        return dict(zip(self.space, places))

    def columns(self, rows: Rows) -> dict[Var, np.ndarray]:
        """The values of the decisions' variables for each candidate."""
        return {v: d.domain[rows[name], k] for name, d in self.space.items() for k, v in enumerate(d.variables)}

    def evaluate(self, rows: Rows) -> Features:
        """The features of candidates, as arrays."""
        return self.features.evaluate(self.columns(rows))

    def choices(self, rows: Rows, k: int) -> dict[str, Any]:
        """The decisions of the k-th candidate as a trace records them."""
        return {name: d.choices[int(rows[name][k])] for name, d in self.space.items()}

    def decided(self, choices: Mapping[str, Any] | Sequence[Any]) -> Trace:
        """The trace with its open decisions made, by name or in order."""
        return decided_trace(self.trace, [choices[n] for n in self.space] if isinstance(choices, Mapping) else choices)

    def schedule(self, choices: Mapping[str, Any] | Sequence[Any]) -> Schedule:
        """A concrete schedule of the original program with these choices."""
        sch = Schedule(self.source)
        self.decided(choices).apply_to(sch)
        return sch


def decided_trace(trace: Trace, choices: Sequence[Any]) -> Trace:
    """A trace with its open decisions made, in their order."""
    chosen = iter(choices)
    return trace.with_decisions([next(chosen) if d == OPEN else d for d in trace.decisions.values()])


class _Enumerating(Random):
    """Stands in for a generator of random numbers: takes given choices first, then the first option; remembers all of them."""

    def __init__(self, prefix: Sequence[int]) -> None:
        super().__init__(0)
        self.prefix = prefix
        self.taken: list[int] = []
        self.options: list[int] = []

    def choice(self, seq: Sequence[Any]) -> Any:
        at = self.prefix[len(self.taken)] if len(self.taken) < len(self.prefix) else 0
        self.taken.append(at)
        self.options.append(len(seq))
        return seq[at]


def sketches(mod: IRModule | PrimFunc, rule: Callable[[Schedule], Any]) -> Iterator[Sketch]:
    """A sketch for each way that ``rule`` can go at ``sample_compute_location``; ways that turn out illegal are left out."""
    pending: list[list[int]] = [[]]
    while pending:
        prefix = pending.pop()
        choices = _Enumerating(prefix)
        sch = Schedule(mod, seed=choices, unresolved=True)
        try:
            rule(sch)
        except ScheduleError:
            made = None
        else:
            made = Sketch(mod, sch)
        for k in range(len(prefix), len(choices.taken)):
            pending += [[*choices.taken[:k], other] for other in range(1, choices.options[k])]
        if made is not None:
            yield made
