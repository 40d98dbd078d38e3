# SPDX-License-Identifier: Apache-2.0
"""The time of calls on a machine that others may use too: which turns were disturbed, and which core has the least to do."""

from __future__ import annotations

import os
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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

    @contextmanager
    def one(self) -> Iterator[int | None]:
        """The core that was least busy since this was asked the last time, of those on which no other process measures meanwhile; any where all are
        taken, None where the system does not tell."""
        now = _busy()
        used = {cpu: now.get(cpu, 0) - self._before.get(cpu, 0) for cpu in self.usable}
        self._before = now
        order = sorted(self.usable, key=lambda cpu: (used[cpu], -cpu))
        with ExitStack() as stack:
            free = (cpu for cpu in order if _is_free(cpu, stack))
            yield next(free, order[0] if order else None)


def _is_free(cpu: int, stack: ExitStack) -> bool:
    """Whether no other process of this user measures on a core; then it is this one's until the end of ``stack``, or of the process. A name of Linux's that is
    no file stands for the core."""
    if sys.platform != "linux":
        return True
    name = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    try:
        name.bind(f"\0roundel-measures-on-{os.getuid()}-{cpu}")
    except OSError:
        name.close()
        return False
    return True


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
