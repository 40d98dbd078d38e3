# SPDX-License-Identifier: Apache-2.0
"""One task while it is tuned: its space, what was measured of it, and its champion.

All times are kept in one unit: what the default took when it was first measured, in this session or in an earlier one of the database. A candidate's
time is its ratio to the champion in the same race, times the champion's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from statistics import median
from typing import Any

from ..ir.dataclass import dataclass
from ..ir.errors import ScheduleError, TuneError
from ..ir.record import Guarded, Record, Rival, Timing
from ..strategy.cost import least_cycles
from ..strategy.records import sizes_of
from ..strategy.replay import record_of, replay
from ..strategy.sketch import Applied
from .database import Database
from .measure import Artifact, Builder, Effort, Failure, Plan, Runner, Source, Timed, Twin
from .measure.plan import identity_of, source_of
from .search import Search, search_named
from .space import Candidate, Space
from .task import Task
from .variants import Finalist, shared, varying_size
from .verdict import GAIN, combined, is_faster

PATIENCE = 200   # candidates in a row that all become equal to others, or fail, after which a search is at its end
KEPT = 4         # fastest candidates whose code is kept, for the last comparison
SHOWN = 3        # that came behind the winner, in its record
START = 0.5      # seconds in which a process that measures is ready


@dataclass(eq=False)
class Entry:
    """A candidate, and what became of it. ``candidate``: None for a record whose decisions no sketch proposes any more. ``seconds``: by case."""

    candidate: Candidate | None
    sketch: str
    decisions: dict[str, Any]
    source: Source | Plan | None = None
    artifact: Artifact | None = None
    failure: Failure | None = None
    seconds: tuple[float, ...] = ()
    weights: tuple[float, ...] = (1.0,)
    spread: float = 0.0
    runs: int = 0
    applied: Applied | None = None
    twin: Entry | None = None  # another candidate that led to the same program, or code
    rounds: tuple[tuple[float, ...], ...] = ()  # its times relative to the default's, by race and case, where it was the champion

    @property
    def total(self) -> float:
        """Seconds of all cases as they count; infinite where it failed."""
        return sum(w * s for w, s in zip(self.weights, self.seconds)) if self.seconds else float("inf")


@dataclass(eq=False)
class Attempt:
    """A task with ``threads`` threads, the ``space`` and ``search`` that are asked for."""

    task: Task
    threads: int
    which: Any = "all"
    how: Any = "evolutionary"
    seed: int = 0
    refined: tuple[Sequence[Any], Sequence[Any]] = ((), ())  # postprocessors and mutators
    trials: int = 0
    failures: int = 0
    why_not: str = ""
    winner: Entry | None = None
    variants: Sequence[tuple[int, Entry]] = ()  # schedules that take the winner's place where the varying size is no more than that
    history: list[tuple[int, float]] = field(default_factory=list)  # after so many trials the best took so many seconds
    _fastest: list[Entry] = field(default_factory=list)
    _known: dict[str, Entry] = field(default_factory=dict)  # by what they became (`identity_of`), and by code
    _twins: list[Entry] = field(default_factory=list)       # of which the search was not told
    _sent: set[int] = field(default_factory=set)            # ways that other processes can go
    _fruitless: int = 0                                     # candidates in a row that gave nothing to measure
    _recorded: list[Entry] = field(default_factory=list)    # that an earlier session decided for

    space: Space = field(init=False)
    search: Search = field(init=False)
    default: Entry = field(init=False)
    best: Entry = field(init=False)

    @property
    def is_open(self) -> bool:
        """Whether the default was measured."""
        return "best" in self.__dict__

    @property
    def expected_seconds(self) -> float:
        """About what a call takes at least, before anything was measured."""
        target = self.task.program.target
        rate = 1e9 * target.peak_gflops() / target.flops_per_cycle()
        return sum(c.weight * least_cycles(self.task.program.func, target, c.sizes or None) for c in self.task.cases) / rate

    @property
    def gain_so_far(self) -> float:
        """Seconds that a call of the best takes less than the default's."""
        return self.default.total - self.best.total if self.is_open else 0.0

    # --- beginning

    def open(self, builder: Builder, runner: Runner, database: Database) -> None:
        """Make the space, measure the default, and learn what earlier sessions measured. Raises TuneError, RuntimeError."""
        try:
            self.space = Space.of(self.task.program, self.which, self.threads, *self.refined)
        except ScheduleError as error:
            raise TuneError(str(error)) from error
        self.search = search_named(self.how)(self.space, self.seed)
        self.job = self.task.job(self.threads)
        default = self._entry(self.space.default)
        earlier = database.trials(self.task.key(self.threads))
        kept = [r for r in earlier if r.trace is not None]
        behind = [replace(r, sketch=v.sketch, decisions=v.decisions, trace=v.trace, variants=()) for r in kept for v in r.variants]
        self._recorded = self._again([*kept, *behind], default)
        entries = [default, *self._recorded, *self._again([min(earlier, key=lambda r: r.seconds)] if earlier else [], default)]
        artifacts = [f.result() for f in builder.build([e.source for e in entries if e.source is not None], self.task.program.target)]
        for entry, artifact in zip(entries, artifacts, strict=True):
            if isinstance(artifact, Artifact):
                entry.artifact = artifact
                self._known.setdefault(identity_of(entry.source), entry)  # type: ignore[arg-type]
            else:
                entry.failure = artifact if isinstance(artifact, Failure) else None
        if default.artifact is None:
            raise TuneError(f"the default cannot be built: {default.failure}")
        others = [e for e in entries[1:] if e.artifact is not None]
        times, outcomes = runner.race(self.job, default.artifact, default.artifact, [e.artifact for e in others if e.artifact is not None])
        base = next((r.default for r in earlier if r.default), None)
        default.seconds = times.seconds
        default.seconds = tuple(s * (base / default.total if base else 1.0) for s in times.seconds)
        default.runs = times.runs
        self.default = self.best = default
        self.search.learn(self.space.default, default.total)
        self._keep(default)
        for entry, outcome in zip(others, outcomes, strict=True):
            self._settle(entry, outcome, default)
        self._learn_from(earlier)
        self.history.append((self.trials, self.best.total))

    def _again(self, records: Sequence[Record], default: Entry) -> list[Entry]:
        """The candidates of records, each once, but for the default's."""
        found: dict[Any, Entry] = {}
        for record in records:
            candidate = self.space.find(record.sketch, record.decisions)
            if record.error or candidate == default.candidate or (candidate is not None and any(e.candidate == candidate for e in self._recorded)):
                continue
            if candidate is not None:
                entry = self._entry(candidate)
            else:  # no sketch proposes it any more
                try:
                    entry = self._of(None, record.sketch, dict(record.decisions), replay(self.task.program, record))
                except ScheduleError:
                    continue
            if entry.source is not None:
                found[candidate or (record.sketch, repr(record.decisions))] = entry
        return list(found.values())

    def _learn_from(self, earlier: Sequence[Record]) -> None:
        """What the search can learn of records; each counts as a trial."""
        for record in earlier:
            if record.trace is not None:
                continue  # it was a trial too
            self.trials += 1
            self.failures += bool(record.error)
            candidate = self.space.find(record.sketch, record.decisions)
            if candidate is not None and candidate != self.space.default and len(record.timings) in (0, len(self.task.cases)):
                self.search.learn(candidate, None if record.error else self._total(record))

    def _total(self, record: Record) -> float:
        return sum(c.weight * t.seconds for c, t in zip(self.task.cases, record.timings, strict=True))

    # --- candidates

    def propose(self, count: int) -> list[Entry]:
        """The next candidates, to be scheduled and built where that is done; those that can be scheduled only here are, and have a failure where they
        cannot be. Empty where the search is at its end, or has found nothing for long that is not equal to what was measured."""
        found: list[Entry] = []
        known = frozenset(self._known)
        while len(found) < count and self._fruitless <= PATIENCE:
            proposed = self.search.propose(count - len(found))
            if not proposed:
                break
            for candidate in proposed:
                plan = self.space.plan(candidate, known)
                if plan is not None:
                    found.append(self._new(candidate, plan))
                    continue
                entry = self._entry(candidate)
                if entry.source is not None and self._is_twin(entry, identity_of(entry.source)):
                    self._learn_from_twin(entry)
                else:
                    found.append(entry)
        return found

    def _new(self, candidate: Candidate, plan: Plan) -> Entry:
        return Entry(candidate, self.space.sketch(candidate).name, self.space.choice(candidate), plan, weights=tuple(c.weight for c in self.task.cases))

    def _entry(self, candidate: Candidate) -> Entry:
        sketch, choice = self.space.sketch(candidate), self.space.choice(candidate)
        try:
            return self._of(candidate, sketch.name, choice, self.space.schedule(candidate))
        except ScheduleError as error:
            return Entry(candidate, sketch.name, choice, failure=Failure("schedule", error.what))

    def _of(self, candidate: Candidate | None, sketch: str, decisions: dict[str, Any], applied: Applied) -> Entry:
        return Entry(candidate, sketch, decisions, source_of(sketch, applied), applied=applied, weights=tuple(c.weight for c in self.task.cases))

    def built(self, entries: Sequence[Entry], artifacts: Sequence[Artifact | Failure | Twin], builder: Builder) -> list[Entry]:
        """Those of candidates that are to be measured, or have failed. What became equal to another one is no candidate: the search is told of its time."""
        for entry, found in zip(entries, artifacts, strict=True):
            if isinstance(found, Failure) and found.kind == "schedule" and self._is_known_here_alone(entry):
                found = builder.build([entry.source], self.task.program.target)[0].result() if entry.source is not None else found
            if isinstance(found, Failure):
                entry.failure, self._fruitless = found, self._fruitless + 1
                continue
            if entry.candidate is not None and isinstance(entry.source, Plan):
                self._sent.add(entry.candidate.way)
            keys = [found.identity] if isinstance(found, Twin) else [found.identity, found.key]
            if not any(self._is_twin(entry, key) for key in keys if key) and isinstance(found, Artifact):
                entry.artifact, self._fruitless = found, 0
        return [e for e in entries if e.twin is None]

    def _is_known_here_alone(self, entry: Entry) -> bool:
        """Whether a candidate that another process could not schedule can be scheduled here, where intrinsics and functions are known that the program
        has registered. It has a schedule then, and others of its sketch are scheduled here from now on."""
        if entry.candidate is None or entry.applied is not None or entry.candidate.way in self._sent:
            return False
        again = self._entry(entry.candidate)
        if again.source is not None:
            entry.source, entry.applied = again.source, again.applied
            self.space.keep_here(entry.candidate)
        return again.source is not None

    def _is_twin(self, entry: Entry, key: str) -> bool:
        """Whether another candidate led to what has this key."""
        twin = self._known.setdefault(key, entry)
        if twin is entry or entry.twin is not None:
            return entry.twin is not None
        entry.twin, self._fruitless = twin, self._fruitless + 1
        self._twins.append(entry)
        return True

    def _learn_from_twin(self, entry: Entry) -> None:
        twin = entry.twin
        if twin is not None and entry.candidate is not None and (twin.seconds or twin.failure is not None):
            self.search.learn(entry.candidate, None if twin.failure is not None else twin.total)

    def race(self, entries: Sequence[Entry], runner: Runner) -> list[Entry]:
        """Measure candidates that were built against the champion. Raises nothing for what a candidate does."""
        running = [e for e in entries if e.artifact is not None]
        champion = self.best
        assert champion.artifact is not None and self.default.artifact is not None  # they are kept
        if running:
            rated = [*running, self.default] if champion is not self.default else running
            _, outcomes = runner.race(self.job, self.default.artifact, champion.artifact, [e.artifact for e in rated if e.artifact is not None],
                                      seconds=champion.total)
            if champion is not self.default:
                self._correct(champion, outcomes[-1])
                if champion.candidate is not None:
                    self.search.learn(champion.candidate, champion.total)
            for entry, outcome in zip(running, outcomes, strict=False):
                self._settle(entry, outcome, champion)
        for entry in self._twins:
            self._learn_from_twin(entry)
        self._twins.clear()
        return list(entries)

    def _correct(self, champion: Entry, default: Timed | Failure) -> None:
        """Say again what the champion takes: it was the luckiest of many when it became champion, and its luck would be handed on to all that are
        compared with it. ``default`` is how the default did against it in a new race."""
        if isinstance(default, Timed) and default.history:
            champion.rounds = (*champion.rounds, tuple(1 / r for r in default.ratios))
            champion.seconds = tuple(median(row[k] for row in champion.rounds) * s for k, s in enumerate(self.default.seconds))
            self._fastest.sort(key=lambda e: e.total)

    def _settle(self, entry: Entry, outcome: Timed | Failure, champion: Entry) -> None:
        """What a race tells of a candidate."""
        if isinstance(outcome, Failure):
            entry.failure, entry.artifact = outcome, None
            return
        entry.seconds = tuple(r * s for r, s in zip(outcome.ratios, champion.seconds, strict=True))
        entry.spread, entry.runs = outcome.spread, outcome.runs
        self._keep(entry)

    def _keep(self, entry: Entry) -> None:
        """Hold on to the code of the fastest few, and to the champion."""
        if entry.artifact is not None:
            self._known.setdefault(entry.artifact.key, entry)
        self._fastest = sorted([*self._fastest, entry], key=lambda e: e.total)
        somewhere = [min(self._fastest, key=lambda e: e.seconds[k]) for k in range(len(self.task.cases))] if varying_size(self.task.cases) else []
        for e in self._fastest[KEPT:]:
            if e is not self.default and e not in self._recorded and e not in somewhere:
                e.artifact = e.source = e.applied = None
        self._fastest = [e for k, e in enumerate(self._fastest) if k < KEPT or e in somewhere]
        self.best = self._fastest[0]

    def learn(self, entry: Entry) -> None:
        """A trial is over."""
        self.trials += 1
        self.failures += entry.failure is not None
        if entry.candidate is not None:
            self.search.learn(entry.candidate, None if entry.failure is not None else entry.total)
        self.history.append((self.trials, self.best.total))

    # --- records and the end

    def trial(self, entry: Entry) -> Record:
        """What is remembered of a candidate."""
        return Record(self.task.key(self.threads), entry.sketch, entry.decisions, timings=self.timings(entry), error=str(entry.failure or ""),
                      default=self.default.total, name=self.task.name)

    def records(self) -> list[Record]:
        """What is compiled from from now on, the winner's schedule, and what this session found of those that earlier ones had decided for. Raises
        ScheduleError where the winner cannot be kept."""
        assert self.winner is not None  # decided
        second = [Rival(e.sketch, e.decisions, e.total) for e in self.rivals()]
        return [self._with_variants(self._record(self.winner, second)), *(self._record(e) for e in self._recorded if e.candidate != self.winner.candidate)]

    def _record(self, entry: Entry, second: Sequence[Rival] = ()) -> Record:
        return record_of(self.task.program, entry.sketch, self._schedule_of(entry), threads=self.threads, timings=self.timings(entry),
                         decisions=entry.decisions, default=self.default.total, second=second)

    def _with_variants(self, record: Record) -> Record:
        """The winner's record with the schedules that take its place at some sizes, and the times that all have together."""
        if not self.variants:
            return record
        size = [v.name for v in sizes_of(self.task.program.func)].index(varying_size(self.task.cases) or "")
        others = [(most, e, self._record(e)) for most, e in self.variants]
        timings = tuple(replace(t, seconds=s) for t, s in zip(record.timings, self._seconds_together(), strict=True))
        guards = tuple(Guarded(most, e.sketch, dict(e.decisions), r.trace or (), size) for most, e, r in others)
        return replace(record, timings=timings, variants=guards)

    def _seconds_together(self) -> tuple[float, ...]:
        """What the winner and its variants take, by case."""
        assert self.winner is not None  # decided
        name = varying_size(self.task.cases)
        who = [next((e for most, e in self.variants if case.sizes[name or ""] <= most), self.winner) for case in self.task.cases]
        return tuple(e.seconds[k] for k, e in enumerate(who))

    @property
    def seconds(self) -> float:
        """What a call takes from now on, or with the best so far."""
        if self.winner is None or not self.variants:
            return (self.winner or self.best).total
        return sum(c.weight * s for c, s in zip(self.task.cases, self._seconds_together(), strict=True))

    @property
    def is_tuned(self) -> bool:
        """Whether something else than the default was decided for."""
        return bool(self.variants) or (self.winner or self.best).candidate != self.default.candidate

    def loses(self, times: Mapping[str, Sequence[tuple[float, float]]]) -> bool:
        """Give the default its place back where the winner is not faster inside of a model: ``times`` are those of kernels by round, with the winner
        and with the default. Whether it was given back."""
        rounds = [times[name] for name in self.task.names if name in times]
        if not rounds:
            return False
        ratios = [sum(t for t, _ in row) / max(sum(d for _, d in row), 1e-12) for row in zip(*rounds, strict=True)]
        if median(ratios) <= 1 - GAIN / 2:
            return False
        self.give_way(median(ratios))
        return True

    def give_way(self, ratio: float = 1.0) -> None:
        """Leave its place to the default: inside of the model the winner takes ``ratio`` times as long, or no less."""
        assert self.winner is not None  # decided
        slower = tuple(max(ratio, 1.0) * s for s in self.default.seconds)
        for entry in self._recorded:  # they were no faster than the winner
            entry.seconds = tuple(map(max, entry.seconds, slower))
        self.winner, self.variants = self.default, ()

    def timings(self, entry: Entry) -> tuple[Timing, ...]:
        """Its times by size."""
        names = [v.name for v in sizes_of(self.task.program.func)]
        return tuple(Timing(tuple(case.sizes.get(n, 1) for n in names), s, entry.spread, entry.runs)
                     for case, s in zip(self.task.cases, entry.seconds, strict=False))

    @property
    def finalists(self) -> list[Entry]:
        """Those that race against the default at the end."""
        return [e for e in dict.fromkeys([*self._fastest, *self._recorded]) if e is not self.default and e.artifact is not None]

    def seconds_of(self, effort: Effort) -> float:
        """About how long the last race takes."""
        count = len(self.finalists) if self.is_open else 0
        return START * effort.processes + (1 + count) * effort.rounds[-1] * sum(max(effort.turn_seconds, s) for s in self.default.seconds) if count else 0.0

    def decide(self, runner: Runner, effort: Effort) -> None:
        """Let the fastest candidates race against the default; ``winner`` is the fastest that is surely faster, or else the default. Raises RuntimeError."""
        finalists = self.finalists
        self.winner, self.variants = self.default, ()
        if not finalists:
            return
        assert self.default.artifact is not None  # it is kept
        _, outcomes = runner.race(self.job, self.default.artifact, self.default.artifact, [e.artifact for e in finalists if e.artifact is not None], effort,
                                  seconds=self.default.total)
        weights = [c.weight for c in self.task.cases]
        sure: list[tuple[float, Entry]] = []
        raced: list[Finalist] = []
        for entry, outcome in zip(finalists, outcomes, strict=True):
            if isinstance(outcome, Failure) or not outcome.history:
                entry.seconds = self.default.seconds if isinstance(outcome, Failure) else tuple(r * s for r, s in zip(outcome.ratios, self.default.seconds))
            else:
                ratios = combined(outcome.history, weights, self.default.seconds)
                seconds = tuple(r * s for r, s in zip(outcome.ratios, self.default.seconds, strict=True))
                entry.seconds, entry.spread, entry.runs = seconds, outcome.spread, outcome.runs
                raced.append(Finalist(entry, outcome.history))
                if is_faster(ratios):
                    sure.append((median(ratios), entry))
        for _, entry in sorted(sure, key=lambda pair: pair[0]):
            guarded, last = self._shared(raced, entry)
            if not self._loses_somewhere(raced, guarded, last):
                self.variants, self.winner = guarded, last
                return
        if not sure:  # the default may still share the sizes with others
            self.variants, self.winner = self._shared(raced, self.default)

    def _shared(self, raced: Sequence[Finalist], winner: Entry) -> tuple[list[tuple[int, Entry]], Entry]:
        """Share the sizes between a winner and those that read constants as it does: the schedules for sizes up to a bound each, and that for the rest."""
        name = varying_size(self.task.cases)
        rounds = min((len(h) for f in raced for h in f.history), default=0)
        if name is None or not rounds or name not in (v.name for v in sizes_of(self.task.program.func)):
            return [], winner
        everyone = [*raced, Finalist(self.default, ((1.0,) * rounds,) * len(self.task.cases))]
        layouts = {f: self._layouts(f.entry) for f in everyone}
        first = next(f for f in everyone if f.entry is winner)
        alike = [f for f in everyone if f is not first and layouts[f] == layouts[first]]
        *guarded, (_, last) = shared(self.task.cases, self.default.seconds, first, alike, name)
        return [(most, f.entry) for most, f in guarded if most is not None], last.entry

    def _loses_somewhere(self, raced: Sequence[Finalist], guarded: Sequence[tuple[int, Entry]], last: Entry) -> bool:
        """Whether a size takes longer under these schedules than with the default."""
        name = varying_size(self.task.cases)
        history = {id(f.entry): f.history for f in raced}
        for k, case in enumerate(self.task.cases):
            taken = next((e for most, e in guarded if case.sizes[name or ""] <= most), last)
            if taken is not self.default and median(history[id(taken)][k]) > 1 + GAIN:
                return True
        return False

    def _layouts(self, entry: Entry) -> list[tuple[int, str]] | None:
        """How a candidate wants constants to be laid out; None where it cannot be scheduled any more."""
        try:
            return sorted((k, repr(m.final_indices)) for k, m in self._schedule_of(entry).layouts.items())
        except ScheduleError:
            return None

    def rivals(self) -> list[Entry]:
        """The fastest others that were measured."""
        return [e for e in self._fastest if self.winner is None or e.candidate != self.winner.candidate][:SHOWN]

    def schedule(self) -> Applied:
        """The program as the winner schedules it, or the best so far. Raises TuneError where nothing could be measured."""
        entry = self.winner or (self.best if self.is_open else None)
        if entry is None:
            raise TuneError(f"{self.task.name} was not tuned", why=self.why_not)
        return self._schedule_of(entry)

    def func(self) -> Any:
        """The program as it is compiled from now on: as `schedule`, or under several schedules behind guards. Raises TuneError, ScheduleError."""
        return replay(self.task.program, self._with_variants(self._record(self.winner))).func if self.variants and self.winner else self.schedule().func

    def _schedule_of(self, entry: Entry) -> Applied:
        if entry.applied is None:
            entry.applied = self.space.schedule(entry.candidate or self.space.default)
        return entry.applied
