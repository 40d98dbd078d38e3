# SPDX-License-Identifier: Apache-2.0
"""Candidates against a champion, by turns in one process, so that a slow minute of the machine hits all of them: what counts is the least time of
each in the same rounds. Whoever else uses the machine makes a turn longer and never shorter; on a quiet one least times came back within a few
thousandths in other races, medians of ratios within one or two hundredths.

Each is first opened, called once and compared with the reference. A few runs tell which are hopeless. The others race: after some rounds the
slower half leaves (successive halving: Jamieson and Talwalkar, 2016, http://proceedings.mlr.press/v51/jamieson16.html), but none that is
within the noise of the champion.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import field, replace
from statistics import quantiles
from typing import Any

from ...ir.dataclass import dataclass
from ...ir.errors import RoundelError
from .arrays import LaidOut, difference, laid_out, outputs_of, random_arguments
from .build import opened
from .clock import TRIES, Cores, turn
from .job import Artifact, Failure, Job, Timed, layouts_key


@dataclass(frozen=True)
class Effort:
    """How much is measured. ``rounds``: after each of these numbers of rounds the slower half leaves; the last is the end. ``turn_seconds``:
    what a turn lasts at least. ``hopeless``: times slower than the champion from which on one run is enough. ``near``: shares of the
    champion's time within which nobody leaves. ``seconds``: after which no round begins but the first `LEAST`. ``processes``: that share the rounds; where its
    memory lies makes a program up to some hundredths slower in one process than in another."""

    rounds: tuple[int, ...] = (3, 6, 12)
    turn_seconds: float = 1.5e-3
    hopeless: float = 3.0
    near: float = 0.02
    seconds: float = float("inf")
    processes: int = 1


LEAST = 8  # rounds: fewer leave a paired test unsure
QUICK = Effort()
FINAL = Effort(rounds=(40,), turn_seconds=2e-3, processes=2)
LAYOUTS = 8  # of constants, whose copies a process keeps
_cores: list[Cores] = []


@dataclass(frozen=True)
class Place:
    """Where programs run. ``open`` makes a function of an artifact and a number of threads, ``turn`` has it timed (as `clock.turn`)."""

    open: Callable[[Artifact, int], Any]
    turn: Callable[[Callable[[], float], int], tuple[float, bool]]


HERE = Place(opened, turn)


@dataclass
class _Known:
    """Of a job: arguments and what they give, by case, and the arguments as artifacts take them, by their layouts of constants."""

    given: list[list[Any]]
    wanted: list[list[Any]]
    laid_out: dict[str, list[LaidOut]] = field(default_factory=dict)


_known: dict[str, _Known] = {}  # of the last job


@dataclass
class _Runner:
    """A program in the race. ``runs[case](calls)`` is the time of so many calls."""

    runs: list[Callable[[int], float]]
    first: list[float]
    calls: list[int] = field(default_factory=list)
    times: list[list[float]] = field(default_factory=list)  # by case and round
    counted: int = 0


def race(job: Job, reference: Artifact, champion: Artifact, challengers: Sequence[Artifact], effort: Effort, seed: int,
         tell: Callable[[Any], None], place: Place = HERE) -> tuple[Timed, list[Timed | Failure]]:
    """The champion's times and those of the challengers. ``reference`` is what results must be like. ``tell`` hears what is begun with: ``reference``,
    ``champion``, then the position of each challenger."""
    with _pinned(job.threads) if place is HERE else nullcontext():
        return _raced(job, reference, champion, challengers, effort, seed, tell, place)


def _raced(job: Job, reference: Artifact, champion: Artifact, challengers: Sequence[Artifact], effort: Effort, seed: int, tell: Callable[[Any], None],
           place: Place) -> tuple[Timed, list[Timed | Failure]]:
    tell("reference")
    known = _reference(job, reference, place)
    tell("champion")
    leader = _opened(job, champion, known, place)
    if isinstance(leader, Failure):
        raise RuntimeError(f"the champion cannot be run: {leader}")
    found: dict[int, Timed | Failure] = {}
    running: dict[int, _Runner] = {}
    for k, artifact in enumerate(challengers):
        tell(k)
        entered = _opened(job, artifact, known, place)
        if isinstance(entered, Failure):
            found[k] = entered
        elif _is_hopeless(entered, leader, effort):
            found[k] = Timed(tuple(a / b for a, b in zip(entered.first, leader.first)), tuple(entered.first), rounds=0)
        else:
            running[k] = entered
    everyone = dict(running)
    _rounds(job, leader, running, effort, random.Random(seed), tell, place)
    found |= {k: _result(runner, leader) for k, runner in everyone.items()}
    return _result(leader, leader), [found[k] for k in range(len(challengers))]


@contextmanager
def _pinned(threads: int) -> Iterator[None]:
    """Within, a single thread runs on a core of its own."""
    if not _cores:
        _cores.append(Cores())
    if threads > 1 or not hasattr(os, "sched_setaffinity"):
        yield
        return
    with _cores[0].one() as chosen:
        if chosen is not None:
            os.sched_setaffinity(0, [chosen])
        yield


def _reference(job: Job, reference: Artifact, place: Place) -> _Known:
    """The arguments of each case, and what the reference makes of them."""
    if job.key not in _known:
        _known.clear()
        function = place.open(reference, job.threads)
        given = [random_arguments(case, f"{job.name} {k}") for k, case in enumerate(job.cases)]
        _known[job.key] = _Known(given, [outputs_of(function, laid_out(arguments, reference)) for arguments in given])
    return _known[job.key]


def _laid_out(job: Job, artifact: Artifact, known: _Known) -> list[LaidOut]:
    """The arguments of each case as an artifact takes them, those of others that take them so."""
    key = layouts_key(artifact.layouts)
    found = known.laid_out.pop(key, None)
    if found is None:
        found = [LaidOut.of(arguments, case, artifact, job.flushed_bytes) for arguments, case in zip(known.given, job.cases, strict=True)]
    known.laid_out[key] = found
    while len(known.laid_out) > LAYOUTS:
        del known.laid_out[next(iter(known.laid_out))]
    return found


def _opened(job: Job, artifact: Artifact, known: _Known, place: Place) -> _Runner | Failure:
    """A program that computes what it should, with the time of one run of each case."""
    try:
        function = place.open(artifact, job.threads)
        runs, first = [], []
        for laid, results in zip(_laid_out(job, artifact, known), known.wanted, strict=True):
            wrong = difference(outputs_of(function, laid.arguments), results)
            if wrong is not None:
                return wrong
            runs.append(laid.timer(function, results))
            first.append(max(runs[-1](1), 1e-8))
        return _Runner(runs, first)
    except MemoryError as error:
        return Failure("memory", str(error))
    except (RoundelError, RuntimeError) as error:
        return Failure("error", f"{type(error).__name__}: {error}")


def _is_hopeless(entered: _Runner, leader: _Runner, effort: Effort) -> bool:
    """Whether a program takes too long to race, also when it runs again: the first time somebody else may have had the core."""
    for _ in range(TRIES):
        if _ratio(entered.first, leader.first) <= effort.hopeless:
            return False
        entered.first = [min(seconds, max(run(1), 1e-8)) for seconds, run in zip(entered.first, entered.runs)]
    return _ratio(entered.first, leader.first) > effort.hopeless


def _ratio(times: Sequence[float], others: Sequence[float]) -> float:
    return max(a / b for a, b in zip(times, others))


def _rounds(job: Job, leader: _Runner, running: dict[int, _Runner], effort: Effort, rng: random.Random, tell: Callable[[Any], None],
            place: Place) -> None:
    """Run them by turns; those that leave keep the times that they have."""
    for runner in (leader, *running.values()):
        runner.calls = [max(1, round(effort.turn_seconds / seconds)) for seconds in runner.first]
        runner.times = [[] for _ in job.cases]
    end, note = time.monotonic() + effort.seconds, getattr(tell, "note", tell)
    tell("rounds")
    for number in range(effort.rounds[-1]):
        if number >= LEAST and time.monotonic() > end:
            return
        turns = [(k, c) for k in (-1, *running) for c in range(len(job.cases))]
        rng.shuffle(turns)
        for k, c in turns:
            note(k)
            runner = leader if k < 0 else running[k]
            seconds, _ = place.turn(lambda runner=runner, c=c: runner.runs[c](runner.calls[c]), job.threads)
            runner.times[c].append(seconds / runner.calls[c])
            runner.counted += runner.calls[c]
        if number + 1 in effort.rounds[:-1]:
            order = sorted(running, key=lambda k: _result(running[k], leader).ratios)
            near = [k for k in order if max(_result(running[k], leader).ratios) < 1 + effort.near]
            for k in order[max(len(order) // 2, len(near), 1):]:
                del running[k]
            if not near and number + 1 >= effort.rounds[0]:
                return


def _result(runner: _Runner, leader: _Runner) -> Timed:
    history = [tuple(a / b for a, b in zip(own, others)) for own, others in zip(runner.times, leader.times)]
    parts = [quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3 for ratios in history]
    ratios = tuple(min(own) / min(others[: len(own)]) for own, others in zip(runner.times, leader.times))
    spread = max((high - low) / middle for low, middle, high in parts)
    return Timed(ratios, tuple(min(t) for t in runner.times), spread, runner.counted, len(history[0]), tuple(history))


def part_of(effort: Effort) -> Effort:
    """What is measured in each of its processes."""
    if effort.processes == 1:
        return effort
    rounds = tuple(max(1, n // effort.processes) for n in effort.rounds)
    return replace(effort, rounds=rounds, seconds=effort.seconds / effort.processes, processes=1)


def together(parts: Sequence[tuple[Timed, list[Timed | Failure]]]) -> tuple[Timed, list[Timed | Failure]]:
    """Races of the same programs in several processes as one; a program that failed in one of them has failed."""
    leaders = [leader for leader, _ in parts]
    least = tuple(map(min, *(t.seconds for t in leaders))) if len(parts) > 1 else leaders[0].seconds
    found: list[Timed | Failure] = []
    for outcomes in zip(*(own for _, own in parts)):
        failure = next((o for o in outcomes if isinstance(o, Failure)), None)
        found.append(failure if failure is not None else _joined([o for o in outcomes if isinstance(o, Timed)], least))
    return _joined(leaders, least), found


def _joined(parts: Sequence[Timed], least: Sequence[float]) -> Timed:
    seconds = tuple(min(t.seconds[k] for t in parts) for k in range(len(least)))
    history = tuple(tuple(r for t in parts for r in t.history[k]) for k in range(len(least))) if all(t.history for t in parts) else ()
    return Timed(tuple(a / b for a, b in zip(seconds, least)), seconds, max(t.spread for t in parts), sum(t.runs for t in parts),
                 sum(t.rounds for t in parts), history)
