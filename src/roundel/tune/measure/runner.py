# SPDX-License-Identifier: Apache-2.0
"""Who builds candidates and who runs them: two protocols, as both may happen on other machines, and what does both on this one."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Protocol

from ...ir import options
from ...target import Target
from ...target.host import usable_cores
from .job import Artifact, Failure, Job, Source, Timed, Twin
from .plan import Plan
from .process import Lost, Process
from .race import QUICK, Effort, part_of, together

BUILD_SECONDS = 30.0  # for one candidate
WORTH = 16            # candidates that are worth starting a process
RUN_SECONDS = 5.0     # for one candidate, beside some runs at the champion's speed
RUNS = 20             # ... so many
OPEN_SECONDS = 60.0   # to make arguments and run the reference
MEMORY = 4 << 30      # bytes for one candidate, beside its arguments


class Builder(Protocol):
    """Makes code of programs."""

    def build(self, sources: Sequence[Source | Plan], target: Target) -> list[Future[Artifact | Failure | Twin]]:
        """Code for each program, or why there is none; a `Plan` is scheduled first (its ``func``, ``layouts``). Whatever a program does to the
        compiler, this does not raise."""

    def close(self) -> None:
        """End what is running."""


class Runner(Protocol):
    """Measures candidates of a program."""

    def race(self, job: Job, reference: Artifact, champion: Artifact, challengers: Sequence[Artifact],
             effort: Effort = QUICK, seconds: float = 0.0) -> tuple[Timed, list[Timed | Failure]]:
        """The champion's times, and of each challenger those, or why there are none: programs that crash, never end, take all memory or compute
        something else than the reference are failures and no errors. ``seconds``: what a call of the champion is known to take.
        Raises RuntimeError where the champion itself cannot be run."""

    def close(self) -> None:
        """End what is running."""


class LocalBuilder:
    """Builds in child processes of this machine. ``count``: how many (default: as many as there are cores)."""

    def __init__(self, count: int = 0, seconds: float = BUILD_SECONDS, memory: int = MEMORY) -> None:
        self.count = count or usable_cores()
        self.seconds = seconds
        self._processes = [Process(memory) for _ in range(self.count)]
        self._idle: queue.PriorityQueue[int] = queue.PriorityQueue()  # those that stand still least first
        self._idle.put(0)
        self._used, self._asked = 1, 0  # processes that are in use, candidates that were asked for
        self._threads = ThreadPoolExecutor(self.count, thread_name_prefix="roundel-tune-build")

    def build(self, sources: Sequence[Source | Plan], target: Target) -> list[Future[Artifact | Failure | Twin]]:
        """As the protocol says."""
        settings = dict(options.shaping_code())
        self._asked += len(sources)
        while self._used < self.count and self._asked > WORTH * self._used:
            self._idle.put(self._used)
            self._used += 1
        return [self._threads.submit(self._one, source, target, settings) for source in sources]

    def _one(self, source: Source | Plan, target: Target, settings: dict[str, Any]) -> Artifact | Failure | Twin:
        at = self._idle.get()
        try:
            return self._processes[at].ask("build", [source], target, settings, seconds=lambda _: self.seconds)[0]
        except Lost as lost:
            return Failure("build", str(lost.failure))
        finally:
            self._idle.put(at)

    @contextmanager
    def room(self, threads: int) -> Iterator[None]:
        """Within, as many cores as ``threads`` asks for are left to whoever measures: processes that would need them stand still."""
        still = self._processes[max(usable_cores() - threads, 0):]
        for process in still:
            process.pause()
        try:
            yield
        finally:
            for process in still:
                process.resume()

    def close(self) -> None:
        """End the child processes."""
        self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            process.close()


class Asked(Protocol):
    """Who answers a request for `LocalRunner`: a `Process`, or what stands for one."""

    def ask(self, kind: str, *arguments: Any, seconds: Callable[[Any], float]) -> Any:
        """As `Process`."""


class LocalRunner:
    """Measures in a child process of this machine, on the cores that have the least to do. ``seconds``: the time limit of a candidate, ``memory``
    what it may take, in bytes. ``beside``: who builds on this machine, and makes room meanwhile."""

    is_here = True  # on this machine, as whole models run

    def __init__(self, seconds: float = RUN_SECONDS, memory: int = MEMORY, beside: LocalBuilder | None = None) -> None:
        self.seconds, self.memory, self.beside = seconds, memory, beside
        self._process: Process | None = None
        self._room = 0
        self._number = 0

    def race(self, job: Job, reference: Artifact, champion: Artifact, challengers: Sequence[Artifact],
             effort: Effort = QUICK, seconds: float = 0.0) -> tuple[Timed, list[Timed | Failure]]:
        """As the protocol says."""
        with self.beside.room(job.threads) if self.beside is not None else nullcontext():
            parts = []
            for _ in range(effort.processes):
                if effort.processes > 1:
                    self.close()  # another process, whose memory lies elsewhere
                parts.append(self._race(job, reference, champion, challengers, part_of(effort), seconds))
            return together(parts) if len(parts) > 1 else parts[0]

    def _race(self, job: Job, reference: Artifact, champion: Artifact, challengers: Sequence[Artifact],
              effort: Effort, seconds: float) -> tuple[Timed, list[Timed | Failure]]:
        found: dict[int, Timed | Failure] = {}
        while True:
            left = [k for k in range(len(challengers)) if k not in found]
            self._number += 1
            limit = partial(_limit, self.seconds + RUNS * seconds)
            try:
                times, outcomes = self._for(job).ask("race", job, reference, champion, [challengers[k] for k in left], effort, self._number, seconds=limit)
            except Lost as lost:
                if not isinstance(lost.at, int):
                    raise RuntimeError(f"{job.name}: the program that others are compared with cannot be run: {lost.failure}") from lost
                found[left[lost.at]] = lost.failure
                continue
            found |= dict(zip(left, outcomes, strict=True))
            return times, [found[k] for k in range(len(challengers))]

    def _for(self, job: Job) -> Asked:
        """The child process, with enough memory for a job."""
        room = self.memory + 8 * job.nbytes + 4 * job.flushed_bytes
        if self._process is None or room > self._room:
            self.close()
            self._process, self._room = Process(room), room
        return self._process

    def close(self) -> None:
        """End the child process."""
        if self._process is not None:
            self._process.close()
            self._process = None


def _limit(seconds: float, at: Any) -> float:
    """The time limit of what a runner is at: a candidate, by its number, or what comes before."""
    return seconds if isinstance(at, int) else seconds + OPEN_SECONDS
