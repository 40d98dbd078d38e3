# SPDX-License-Identifier: Apache-2.0
"""Kernels where they run: a whole model with schedules that were measured to be faster by themselves, by turns with the untuned model.

What a kernel finds in the caches, and leaves there, is different inside of a model. The time of each kernel is taken by the model's own profile.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .. import driver
from ..ir.errors import RoundelError
from ..ir.module import IRModule
from ..ir.record import ChoiceRecord, Record
from ..strategy.records import Records
from ..target import Target
from .measure import Argument
from .measure.arrays import outputs_of, random_arguments, to_write
from .measure.clock import turn

_log = logging.getLogger("roundel.tune")
ROUNDS = 40
SECONDS = 10.0  # for all rounds, but no fewer than
LEAST = 8       # rounds
CALLS = 2       # in a row, of a whole model


@dataclass(frozen=True)
class Proposed:
    """Records that are not in any database yet: schedules by the digests of programs, choices by their signatures. ``kept``: those that are;
    ``decided``: those whose choices alone count."""

    schedules: Mapping[str, Record] = field(default_factory=dict)
    choices: Mapping[str, ChoiceRecord] = field(default_factory=dict)
    kept: Records | None = None
    decided: Records | None = None

    @property
    def backends(self) -> Sequence[str]:
        """As `Records`."""
        return sorted({c.taken for c in self.choices.values()} & {n for c in self.choices.values() for n in c.libraries})

    def best(self, program: str) -> Record | None:
        """As `Records`."""
        return self.schedules.get(program) or (self.kept.best(program) if self.kept is not None else None)

    def choice(self, signature: str) -> ChoiceRecord | None:
        """As `Records`: algorithms stay as they are, and libraries take part where they are proposed."""
        records = self.kept or self.decided
        found = records.choice(signature) if records is not None else None
        return self.choices.get(signature) or (found if found is not None and not found.libraries else None)

    def choices_at(self, signature: str) -> Sequence[ChoiceRecord]:
        """As `Records`: none, so that what was wrong once is measured again."""
        return ()

    def taken(self, kernel: str, record: Record) -> None:
        """As `Records`."""

    def tell(self, message: str) -> None:
        """As `Records`; what cannot be replayed is as it was."""


@dataclass(frozen=True)
class Whole:
    """A model to compare in: its module, the machine, the threads of a run, and values of symbolic sizes. ``seconds``: for all rounds of a comparison;
    ``decided``: the records whose choices the untuned model has too."""

    mod: IRModule
    target: Target
    threads: int
    sizes: Mapping[str, int]
    seconds: float = SECONDS
    decided: Records | None = None
    _made: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)  # what was compiled, with what it was compiled from

    def ratios(self, records: Mapping[str, Record]) -> dict[str, list[tuple[float, float]]]:
        """Seconds of each kernel in a run, with the records and without them, by round. Empty where the model cannot be run with random inputs."""
        try:
            tuned, untuned = (self._compiled(self.with_schedules(r)) for r in (records, {}))
            inputs = self._inputs(untuned)
            return self._by_turns(tuned, untuned, inputs)
        except (RoundelError, MemoryError, KeyError) as error:  # inputs that are no indices, say
            _log.warning("winners are not compared inside of the model, which does not run with random inputs: %s", error)
            return {}

    def total(self, proposed: Proposed, other: Proposed) -> list[float]:
        """What a run takes with the first records, relative to one with the others, by round. Empty where the model cannot be run with random inputs."""
        try:
            functions = [self._compiled(r, profile=False) for r in (proposed, other)]
            sets = [to_write(f, given := self._inputs(f), outputs_of(f, given)) for f in functions]
        except (RoundelError, MemoryError, KeyError) as error:
            _log.warning("paths are not compared inside of the model, which does not run with random inputs: %s", error)
            return []
        ratios: list[float] = []
        end = time.monotonic() + self.seconds
        while len(ratios) < ROUNDS and (len(ratios) < LEAST or time.monotonic() < end):
            seconds = [0.0, 0.0]
            for k in (0, 1) if len(ratios) % 2 else (1, 0):
                seconds[k], _ = turn(partial(functions[k].seconds, [sets[k]], CALLS), self.threads)
            ratios.append(seconds[0] / seconds[1])
        return ratios

    def _compiled(self, records: Proposed, profile: bool = True) -> Any:
        executable = self.build(records).load(threads=self.threads, profile=profile)
        return executable["main" if "main" in executable else next(iter(executable))]

    def with_schedules(self, schedules: Mapping[str, Record]) -> Proposed:
        """The model with some records of its kernels, and none of others."""
        return Proposed(schedules, decided=self.decided)

    def build(self, records: Proposed | None = None) -> Any:
        """The model compiled with some records (None: with those of no kernel), once. Raises RoundelError."""
        records = records if records is not None else self.with_schedules({})
        key = tuple(map(id, (*records.schedules.values(), *records.choices.values(), records.kept)))  # which are kept as long as this
        if key not in self._made:
            self._made[key] = driver.compile_module(self.mod, target=self.target, records=records), records
        return self._made[key][0]

    def _inputs(self, function: Any) -> list[Any]:
        """Random ones. Raises KeyError for a size that has no value."""
        case = [Argument(tuple(d if isinstance(d, int) else self.sizes[d] for d in i.shape), i.dtype) for i in function.info.inputs]
        return random_arguments(case, "model")

    def _by_turns(self, tuned: Any, untuned: Any, inputs: Sequence[Any]) -> dict[str, list[tuple[float, float]]]:
        found: dict[str, list[tuple[float, float]]] = {}
        end = time.monotonic() + self.seconds
        for number in range(-1, ROUNDS):
            if number >= LEAST and time.monotonic() > end:
                break
            order = (tuned, untuned) if number % 2 else (untuned, tuned)
            times = {function: profile_of(function, inputs) for function in order}
            for kernel in times[tuned].keys() & times[untuned].keys() if number >= 0 else ():  # the first round warms up
                found.setdefault(kernel, []).append((times[tuned][kernel], times[untuned][kernel]))
        return found


def profile_of(function: Any, inputs: Sequence[Any]) -> dict[str, float]:
    """Seconds of each kernel in a run, the first of two of which brings the model's own data into the caches."""
    function(*inputs)
    function.profile()
    function(*inputs)
    return {name: seconds for name, (calls, seconds) in function.profile().items() if calls}
