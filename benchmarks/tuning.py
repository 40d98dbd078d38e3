# SPDX-License-Identifier: Apache-2.0
"""How fast tuning is: candidates that are measured in a second, with the CPU time that each costs in all processes, and when the first gain came.

The CPU time is what a busy machine lengthens least: two cores that have nothing else to do measure about 2 / (CPU seconds of a candidate) in a second.
"""

from __future__ import annotations

import contextlib
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import roundel as rd
from roundel.tune import Session, Task
from roundel.tune.api import tune
from roundel.tune.attempt import Attempt

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
