# SPDX-License-Identifier: Apache-2.0
"""The time of calls on a machine that others may use too: which turns were disturbed, and which core has the least to do."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

STOLEN = 0.03  # most share of a turn in which a single thread did not run
TRIES = 3      # turns in place of a disturbed one
_WHO = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)


def turn(run: Callable[[], float], threads: int) -> tuple[float, bool]:
    """The seconds that ``run`` gives, and whether nobody else disturbed it: that other processes took the core away shows in the switches of
    this process that it did not ask for, and, with one thread, in time in which it did not run. A disturbed turn is repeated a few times; if
    none is quiet, the shortest counts."""
    best = float("inf")
    for _ in range(TRIES):
        who = _WHO if threads == 1 else resource.RUSAGE_SELF
        switches, cpu, begun = resource.getrusage(who).ru_nivcsw, time.thread_time(), time.perf_counter()
        seconds = run()
        wall, spent = time.perf_counter() - begun, time.thread_time() - cpu
        if resource.getrusage(who).ru_nivcsw == switches and (threads > 1 or wall - spent <= STOLEN * wall + 20e-6):
            return seconds, True
        best = min(best, seconds)
    return best, False


class Cores:
    """Which of the cores that this process may use have the least to do for others."""

    def __init__(self) -> None:
        self.usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        self._before = _busy()

    def quietest(self, count: int) -> tuple[int, ...]:
        """So many cores, those that were least busy since this was asked the last time; none where the system does not tell."""
        now = _busy()
        used = {cpu: now.get(cpu, 0) - self._before.get(cpu, 0) for cpu in self.usable}
        self._before = now
        return tuple(sorted(sorted(self.usable, key=lambda cpu: (used[cpu], -cpu))[:count]))


def _busy() -> dict[int, int]:
    """Ticks in which each core did anything since the machine started."""
    if sys.platform != "linux":
        return {}
    found = {}
    for line in Path("/proc/stat").read_text().splitlines():
        name, *ticks = line.split()
        if name.startswith("cpu") and name[3:].isdigit():
            numbers = [int(t) for t in ticks[:8]]
            found[int(name[3:])] = sum(numbers) - numbers[3] - numbers[4]
    return found
