# SPDX-License-Identifier: Apache-2.0
"""How fast tuning is: candidates that are measured in a second, with the CPU time that each costs in all processes, and when the first gain came.

The CPU time is what a busy machine lengthens least: two cores that have nothing else to do measure about 2 / (CPU seconds of a candidate) in a second.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import roundel as rd
from roundel import te
from roundel.tune import Session, Task
from roundel.tune.api import tune
from roundel.tune.attempt import Attempt
from roundel.tune.measure import Artifact, LocalBuilder
from roundel.tune.measure.executors import ExecutorRunner, RunnerPool
from roundel.tune.space import Candidate, Space

from .models import Case, onnx_file

MOST_MS = 2.0  # of a kernel: those that take longer are bounded by their own time


def run_rate(models: Sequence[str], count: int, trials: int, threads: int) -> list[dict[str, Any]]:
    """The ``count`` tasks of each model that take the most time and no more than `MOST_MS`, with so many trials each."""
    found = []
    for model in models:
        tasks = rd.tune.tasks(onnx_file(Case(model)), sizes={"batch": 1, "seq": 128})
        for task in sorted(tasks, key=_expected, reverse=True):
            if sum(e["model"] == model for e in found) < count and _expected(task) <= MOST_MS * 1e-3:
                found.append({"model": model, **rate(task, trials, threads)})
                print(describe(found[-1]), flush=True)
    if found:
        together = sum(e["trials"] for e in found)
        seconds, spent = sum(e["seconds"] for e in found), sum(e["cpu_ms"] * e["trials"] for e in found)
        print(f"together {together / seconds:.1f} a second; {spent / together:.0f} ms of CPU each")
    return found


def describe(e: dict[str, Any]) -> str:
    """One line."""
    first = f"{e['first_gain']:.1f} s" if e["first_gain"] is not None else "none"
    return (f"{e['model']:12s} {e['task'][:44]:44s} {e['default_ms']:8.3f} ms  {e['trials']:4d} trials, {e['twins']:3d} equal to others  "
            f"{e['rate']:5.1f} a second  {e['cpu_ms']:5.0f} ms of CPU each  first gain after {first}  gain {e['gain']:.2f}")


def rate(task: Task, trials: int, threads: int) -> dict[str, Any]:
    """One task by itself. Seconds count from where its default was measured."""
    begun: list[tuple[float, float]] = []
    ended: list[tuple[float, float, int]] = []
    gains: list[float] = []

    def watch(session: Session) -> None:
        attempt = session.attempts[0]
        if not begun and attempt.is_open:
            begun.append((time.monotonic(), _cpu()))
        if attempt.is_open and not gains and attempt.best.total < 0.99 * attempt.default.total:
            gains.append(session.elapsed)
        if attempt.trials and session.phase == "measuring":
            ended[:] = [(time.monotonic(), _cpu(), attempt.trials)]

    with tempfile.TemporaryDirectory() as folder:
        result = tune([task], threads=threads, trials=trials, db=Path(folder) / "db", watch=watch)
    row, attempt = result.rows[0], result.attempts[0]
    seconds, spent, made = ended[0][0] - begun[0][0], ended[0][1] - begun[0][1], ended[0][2]
    return {"task": task.name, "default_ms": row.default_ms, "trials": made, "twins": len(attempt.search.seen) - made, "seconds": seconds,
            "rate": made / seconds, "cpu_ms": spent / made * 1e3, "first_gain": gains[0] if gains else None, "gain": row.gain}


def run_workers(size: int, candidates: int, rounds: int) -> float:
    """What two workers take for measuring candidates of a matrix product, relative to one, in turns; the median."""
    a, b, r = te.placeholder((size, size), "float32", "A"), te.placeholder((size, size), "float32", "B"), te.reduce_axis((0, size), "r")
    task = rd.tune.tasks(te.compute((size, size), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), "C"))[0]
    space = Space.of(task.program)
    way = space.default.way
    ranked = space.ways[way].ranked(8 * candidates)[::8]
    builder = LocalBuilder()
    built = builder.build([p for r in ranked if (p := space.plan(Candidate(way, tuple(r.tolist())))) is not None], task.program.target)
    artifacts = [found for f in built if isinstance(found := f.result(), Artifact)]
    builder.close()
    with ExitStack() as stack:
        pools = [stack.enter_context(ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))) for _ in range(2)]
        pair, ratios = RunnerPool([ExecutorRunner(p) for p in pools]), []
        pair.race(task.job(1), artifacts[0], artifacts[0], artifacts[:4])
        for _ in range(rounds):
            seconds = []
            for runner in (pair, pair.runners[0]):
                begun = time.monotonic()
                runner.race(task.job(1), artifacts[0], artifacts[0], artifacts)
                seconds.append(time.monotonic() - begun)
            ratios.append(seconds[0] / seconds[1])
            print(f"{len(artifacts)} candidates: one worker {seconds[1]:.2f} s, two {seconds[0]:.2f} s: {ratios[-1]:.2f}", flush=True)
    print(f"median {median(ratios):.2f}")
    return median(ratios)


def _expected(task: Task) -> float:
    return Attempt(task, 1).expected_seconds


def _cpu() -> float:
    """Seconds of this process and of its children."""
    own = sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
    ticks = 0
    for pid in (pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))  # utime, stime
    return own + ticks / os.sysconf("SC_CLK_TCK")
