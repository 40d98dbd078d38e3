# SPDX-License-Identifier: Apache-2.0
"""Timing of several callables against each other in one process, on a machine that others may use too.

Contenders take turns in shuffled order, a block of calls each, so that a slow minute of the machine hits all of them. With each
block goes the share of the machine's CPU time that *other* processes used meanwhile; what is reported is the median over blocks
where that was under ``QUIET``. Where too few blocks were quiet it is the median of the fastest quarter, and marked so.
"""

from __future__ import annotations

import os
import random
import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

QUIET = 0.04  # most CPU time of others, as a share of the machine, in a block that counts
ENOUGH = 8  # quiet calls that make a median worth reporting
PAUSE = 0.02  # seconds between blocks: idle workers of the last engine leave their spin loops
BLOCK = 0.12  # seconds that a block of calls should last
MOST_CALLS = 2000


@dataclass
class Timing:
    """Seconds of each timed call: in ``quiet`` blocks, and in all of them; and the CPU time of each, which waiting for a core does
    not lengthen (it compares engines on a busy machine, at one thread)."""

    everything: list[float] = field(default_factory=list)
    quiet: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @property
    def is_quiet(self) -> bool:
        """Whether the median rests on quiet blocks."""
        return len(self.quiet) >= 3

    @property
    def seconds(self) -> float:
        """The reported figure."""
        if self.is_quiet:
            return median(self.quiet)
        ordered = sorted(self.everything)
        return median(ordered[: max(1, len(ordered) // 4)])

    def summary(self) -> dict[str, Any]:
        """For JSON: milliseconds and counts."""
        figures = {"ms": self.seconds, "min_ms": min(self.everything), "median_all_ms": median(self.everything), "cpu_ms": median(self.cpu or [0.0])}
        counts = {"quiet": self.is_quiet, "calls": len(self.everything), "quiet_calls": len(self.quiet)}
        return {k: round(v * 1e3, 5) for k, v in figures.items()} | counts


def foreign_seconds() -> float:
    """CPU seconds that other processes have used since the machine started, steal included (0 where /proc is missing)."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0.0
    ticks = [int(x) for x in stat.read_text().split("\n", 1)[0].split()[1:9]]
    own = resource.getrusage(resource.RUSAGE_SELF)
    busy = sum(ticks) - ticks[3] - ticks[4]  # all but idle and waiting for disks
    return busy / os.sysconf("SC_CLK_TCK") - own.ru_utime - own.ru_stime


def interleave(contenders: Mapping[str, Callable[[], Any]], *, budget: float = 20.0, rounds: tuple[int, int] = (4, 25), block: float = BLOCK,
               seed: int = 0) -> dict[str, Timing]:
    """Time the contenders in turns for about ``budget`` seconds (up to 2.5 times that while quiet blocks are missing)."""
    calls = {name: _calls_per_block(call, block) for name, call in contenders.items()}
    timings = {name: Timing() for name in contenders}
    order, shuffle = list(contenders), random.Random(seed)
    start, done = time.perf_counter(), 0
    while done < rounds[0] or _go_on(timings, time.perf_counter() - start, budget, done, rounds[1]):
        shuffle.shuffle(order)
        for name in order:
            _block(contenders[name], calls[name], timings[name])
        done += 1
    return timings


def _go_on(timings: Mapping[str, Timing], elapsed: float, budget: float, done: int, most: int) -> bool:
    if elapsed < budget:
        return done < most
    return elapsed < 2.5 * budget and any(len(t.quiet) < ENOUGH for t in timings.values())


def _calls_per_block(call: Callable[[], Any], block: float) -> int:
    call()
    best = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return max(1, min(MOST_CALLS, int(block / best)))


def _block(call: Callable[[], Any], count: int, timing: Timing) -> None:
    """One call that is not timed (caches and pools warm up), then ``count`` that are."""
    time.sleep(PAUSE)
    foreign, began = foreign_seconds(), time.perf_counter()
    call()
    seconds = []
    used = time.process_time()
    for _ in range(count):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    timing.cpu.append((time.process_time() - used) / count)
    wall = time.perf_counter() - began
    share = (foreign_seconds() - foreign) / (wall * (os.cpu_count() or 1))
    timing.everything += seconds
    # /proc/stat counts in hundredths of a second: one tick in a short block is within the counter's error.
    if share < max(QUIET, 1.01 / os.sysconf("SC_CLK_TCK") / (wall * (os.cpu_count() or 1))):
        timing.quiet += seconds
