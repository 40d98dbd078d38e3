# SPDX-License-Identifier: Apache-2.0
"""The child of `Process`: ``python -m roundel.tune.measure.worker MEMORY CPUS PARENT NOTES`` builds programs and runs them.

Messages are those of ``build.worker``. A request is ``(kind, arguments)``; answers are ``("at", what)`` for what is begun with, then
``("done", answer)``. ``MEMORY``: bytes beyond what the process has when it begins (0: no limit). ``CPUS``: those that it may run on. ``NOTES``: a file
descriptor of `PLACE` bytes, in which the process notes what it is at where a message would wake who asks, who would take the core from what is measured.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import resource
import signal
import struct
import sys
from typing import Any, BinaryIO

from ...build.worker import receive, send
from ...ir.garbage import RARE

PLACE = struct.Struct("<q")  # the number of a candidate; -1 for none


class Teller:
    """Tells who asks what this process is at, by a message, or by a note that is read where the process dies."""

    def __init__(self, out: BinaryIO, notes: int) -> None:
        self._out, self._place = out, mmap.mmap(notes, PLACE.size)

    def __call__(self, what: Any) -> None:
        self.note(-1)
        send(self._out, ("at", what))

    def note(self, number: int) -> None:
        """A candidate, by its number."""
        PLACE.pack_into(self._place, 0, number)


def main(memory: int, cpus: list[int], parent: int, notes: int) -> None:
    """Serve requests until stdin ends, or the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    die_with(parent)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a program prints does not get between messages
    if cpus and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus)
    from . import build, race

    answers = {"build": build.build_all, "race": race.race, "ping": lambda tell: None}
    if memory:
        limit_memory(memory)
    gc.freeze()
    gc.set_threshold(*RARE)
    tell = Teller(out, notes)
    tell("ready")
    while True:
        try:
            kind, arguments = receive(sys.stdin.buffer)
        except EOFError:
            return
        answer = answers[kind](*arguments, tell=tell)
        tell.note(-1)  # no candidate is to blame for the end of a process that waits
        send(out, ("done", answer))


def die_with(parent: int) -> None:
    """Have the system kill this process when its parent ends, even in the middle of a program that never returns (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        sys.exit()  # it was faster


def limit_memory(extra: int) -> None:
    """No more than so many bytes of addresses beyond those that are in use."""
    try:
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (used + extra, resource.RLIM_INFINITY))


def _numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",") if n]


if __name__ == "__main__":
    main(int(sys.argv[1]), _numbers(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
