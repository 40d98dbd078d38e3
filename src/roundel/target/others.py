# SPDX-License-Identifier: Apache-2.0
"""How much of a machine's processors others take, meanwhile: what is measured of a machine that others use tells of them too.

Linux counts the time that its processors were busy, a virtual machine also the time that its neighbours took from it ("steal"). Elsewhere
the load average says what there is to know.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from ..ir.dataclass import dataclass

_STAT = Path("/proc/stat")
_TASKS = Path("/proc/self/task")
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class Moment:
    """Seconds: of the clock, for which all processors together were busy (None: nobody tells), for which they worked for this process and its
    children."""

    clock: float
    busy: float | None
    own: float


def now() -> Moment:
    """This moment, to look back to."""
    return Moment(time.perf_counter(), _busy(), time.process_time() + sum(map(_worked, _children())))


def since(begin: Moment) -> float:
    """The share of all processors that others took since a moment, from 0 to 1."""
    end, cpus = now(), os.cpu_count() or 1
    if begin.busy is None or end.busy is None or end.clock <= begin.clock:
        runnable = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        return min(max(runnable - 1.0, 0.0) / cpus, 1.0)
    taken = (end.busy - begin.busy) - (end.own - begin.own)
    return min(max(taken / ((end.clock - begin.clock) * cpus), 0.0), 1.0)


def _busy() -> float | None:
    try:
        fields = _STAT.read_text().split("\n", 1)[0].split()
    except OSError:
        return None
    user, nice, system, _, _, irq, softirq, steal = (int(n) for n in [*fields[1:9], *["0"] * 8][:8])
    return (user + nice + system + irq + softirq + steal) / _TICKS


def _children() -> list[str]:
    """Processes that this one started, such as those that compile, by number."""
    found: list[str] = []
    for path in _TASKS.glob("*/children"):
        try:
            found += path.read_text().split()
        except OSError:  # the thread has ended
            continue
    return found


def _worked(process: str) -> float:
    try:
        after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # the process has ended
        return 0.0
    return (int(after_name[11]) + int(after_name[12])) / _TICKS
