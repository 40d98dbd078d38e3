# SPDX-License-Identifier: Apache-2.0
"""Tuning: tasks are chosen, candidates proposed, built, measured and remembered, until the time, the trials or the candidates are at an end.

While a batch is measured, the next one is scheduled and built, on other cores, and while what was measured is thought about too: builders always have
work. At the end the winners are measured against what the untuned compiler makes; only one that is surely faster takes its place.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import field, replace
from typing import Any

from ..ir.dataclass import dataclass
from ..ir.errors import RoundelError, ScheduleError, TuneError
from ..ir.record import Record
from .attempt import Attempt, Entry
from .database import Database
from .measure import FINAL, Artifact, Builder, Failure, Runner, Twin
from .scheduler import Share, choose_task
from .task import Task
from .verdict import faster_inside
from .whole import Whole

RESERVE = 0.12  # most share of the time that is kept for the last races with the default,
INSIDE = 0.08   # ... and for each of two comparisons inside of the model;
COMPILED = 0.2  # share of the time from which on compiling the model takes too long to compare in it
_log = logging.getLogger("roundel.tune")


@dataclass(frozen=True)
class Settings:
    """What is asked of a session. ``seconds``: for how long (None: no limit); ``trials``: candidates of all tasks together, those of earlier
    sessions counted (None: no limit); ``batch``: how many are measured by turns. ``overlaps``: whether building disturbs nobody who measures."""

    threads: int = 1
    seconds: float | None = None
    trials: int | None = None
    batch: int = 8
    space: Any = "all"
    search: Any = "evolutionary"
    seed: int = 0
    postprocessors: Sequence[Any] = ()
    mutators: Sequence[Any] = ()
    overlaps: bool = True


@dataclass
class _Batch:
    """Candidates of a task on their way."""

    attempt: Attempt
    entries: list[Entry]
    futures: list[Future[Artifact | Failure | Twin]] = field(default_factory=list)


class Session:
    """Tunes ``tasks``. ``watch`` is called whenever something is known that was not, with the session. ``whole`` is the model that they are of."""

    def __init__(self, tasks: Sequence[Task], builder: Builder, runner: Runner, database: Database, settings: Settings,
                 watch: Callable[[Session], None] = lambda session: None, whole: Whole | None = None, begun: float | None = None) -> None:
        beside = settings.postprocessors, settings.mutators
        self.attempts = [Attempt(task, settings.threads, settings.space, settings.search, settings.seed, beside) for task in tasks]
        self.shares = [Share(a.task.weight, a.expected_seconds) for a in self.attempts]
        self.builder, self.runner, self.database, self.settings, self.watch, self.whole = builder, runner, database, settings, watch, whole
        self.begun = time.monotonic() if begun is None else begun
        self.inside: Sequence[float] = ()  # what a run of the model takes with the winners, relative to the default, by round
        self._compiling = 0.0              # seconds that compiling the model takes,
        self._batch = 0.0                  # ... and a batch of candidates
        self.was_interrupted = False
        self._waiting = 0  # candidates that are being built, or measured
        self.phase = "measuring"

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.begun

    @property
    def trials(self) -> int:
        """Candidates that were tried, in earlier sessions too."""
        return sum(a.trials for a in self.attempts)

    def run(self) -> None:
        """Search, then compare the winners with the default. Ctrl-C ends the search; what it found is compared and kept."""
        try:
            self._compile_whole()
            self._search()
        except KeyboardInterrupt:
            self.was_interrupted = True
        self.phase = "comparing with the default"
        share = self._share_of_the_last_races()
        decided = [a for a in sorted(self.attempts, key=lambda a: -a.task.weight * a.gain_so_far) if a.is_open and self._decide(a, share)]
        self._confirm(decided)
        self.database.append(*(r for a in decided for r in self._records(a)))
        self.phase = "done"
        self.watch(self)

    # --- the search

    def _search(self) -> None:
        batches: deque[_Batch] = deque()
        while True:
            while len(batches) < 1 + self.settings.overlaps and (following := self._next()) is not None:
                batches.append(following)
            if not batches:
                return
            begun, batch = time.monotonic(), batches.popleft()
            built = batch.attempt.built(batch.entries, [f.result() for f in batch.futures], self.builder)
            if self._time_is_over():
                for future in (f for b in batches for f in b.futures):
                    future.cancel()
                return
            self._measure(batch.attempt, built)
            self._waiting -= len(batch.entries)
            self._batch = max(time.monotonic() - begun, self._batch / 2)

    def _is_over(self) -> bool:
        s = self.settings
        return self._time_is_over() or (s.trials is not None and self.trials + self._waiting >= s.trials)

    def _time_is_over(self) -> bool:
        """Whether what is left of the time is needed for another batch and the comparisons at the end."""
        seconds = self.settings.seconds
        return seconds is not None and self.elapsed + self._batch + min(self._last_races(), RESERVE * seconds) + self._seconds_inside() > seconds

    def _last_races(self) -> float:
        return sum(a.seconds_of(FINAL) for a in self.attempts)

    def _share_of_the_last_races(self) -> float | None:
        """How much of their rounds there is time for; None where time is no limit."""
        if self.settings.seconds is None or not (needed := self._last_races()):
            return None
        left = self.settings.seconds - self.elapsed - self._seconds_inside()
        return min(1.0, max(left, 0.0) / needed)

    def _next(self) -> _Batch | None:
        """The next batch, which is being built; None where the search is at its end."""
        while not self._is_over():
            at = choose_task(self.shares)
            if at is None:
                return None
            attempt, share = self.attempts[at], self.shares[at]
            if not attempt.is_open and not self._open(attempt, share):
                continue
            entries = attempt.propose(min(self.settings.batch, (self.settings.trials or 1 << 30) - self.trials - self._waiting))
            if not entries:
                share.is_done = True
                continue
            for entry in entries:
                if entry.failure is not None:
                    self._remember(attempt, entry)
            self._waiting += sum(e.source is not None for e in entries)
            sources = [e.source for e in entries if e.source is not None]
            return _Batch(attempt, [e for e in entries if e.source is not None], self.builder.build(sources, attempt.task.program.target))
        return None

    def _open(self, attempt: Attempt, share: Share) -> bool:
        """Measure what the untuned compiler makes, and read what earlier sessions found. Whether the task can be tuned."""
        try:
            attempt.open(self.builder, self.runner, self.database)
        except (TuneError, RuntimeError) as error:
            attempt.why_not, share.is_done = str(error), True
            _log.warning("%s is not tuned: %s", attempt.task.name, error)
            return False
        share.seconds = attempt.best.total
        self.watch(self)
        return True

    def _measure(self, attempt: Attempt, built: Sequence[Entry]) -> None:
        share = self.shares[self.attempts.index(attempt)]
        for entry in attempt.race(built, self.runner):
            self._remember(attempt, entry)
        share.tell(attempt.best.total)
        self.watch(self)

    def _remember(self, attempt: Attempt, entry: Entry) -> None:
        attempt.learn(entry)
        self.database.append(attempt.trial(entry))

    # --- the end

    def _decide(self, attempt: Attempt, share: float | None) -> bool:
        """Compare the fastest schedules with the default, in a share of the time that all rounds take. Whether that could be done."""
        try:
            attempt.decide(self.runner, FINAL if share is None else replace(FINAL, seconds=share * attempt.seconds_of(FINAL)))
        except RuntimeError as error:
            _log.warning("%s keeps its default: %s", attempt.task.name, error)
            return False
        self.watch(self)
        return True

    def _records(self, attempt: Attempt) -> list[Record]:
        """What is to be kept of a task that was decided."""
        try:
            return attempt.records()
        except ScheduleError as error:
            _log.warning("%s: the schedule cannot be kept: %s", attempt.task.name, error)
            return []

    def _confirm(self, decided: Sequence[Attempt]) -> None:
        """Run the winners inside of the model. Those that are not faster there give way to the default, and so do all by which a run of the model as a
        whole is not surely faster."""
        changed = {a: r[0] for a in decided if a.is_tuned and (r := self._records(a))}
        if (whole := self.whole) is None or not changed:
            return
        self.phase = "comparing whole models"
        self.watch(self)
        times = whole.ratios({r.key.program: r for r in changed.values()})
        left = [a for a in changed if not a.loses(times)]
        asked: list[int] = []

        def measured(some: Sequence[Attempt]) -> Sequence[float]:
            asked.append(len(some))
            if len(asked) > 1 and self.settings.seconds is not None and self.elapsed + self._seconds_inside() / 2 > self.settings.seconds:
                return [float("inf")]  # there is no time to find out
            return whole.total(whole.with_schedules({changed[a].key.program: changed[a] for a in some}), whole.with_schedules({}))

        if not times:
            return
        kept, self.inside = faster_inside(sorted(left, key=lambda a: -a.task.weight * (a.default.total - a.seconds)), measured)
        for attempt in left:
            if attempt not in kept:
                attempt.give_way()

    # --- the model

    def _compile_whole(self) -> None:
        """Compile the untuned model, which tells how long that takes."""
        seconds, begun = self.settings.seconds, time.monotonic()
        if self.whole is None:
            return
        try:
            self.whole.build()
        except (RoundelError, MemoryError) as error:
            self.whole = None
            _log.warning("winners are not compared inside of the model, which cannot be compiled: %s", error)
            return
        self._compiling = time.monotonic() - begun
        if seconds is not None and self._compiling > COMPILED * seconds:
            self.whole = None
            _log.warning("winners are not compared inside of the model: compiling it takes %.0f of %.0f s", self._compiling, seconds)

    def _seconds_inside(self) -> float:
        """About how long it takes to compile the tuned model, and again where not all winners stay, and to compare."""
        return 2 * (self._compiling + self.whole.seconds) if self.whole is not None else 0.0
