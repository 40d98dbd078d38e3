# SPDX-License-Identifier: Apache-2.0
"""Hours of a service: eight threads run, load, replace and close five models; memory stays flat and results are those of the first run.

    python -m tests.hostile soak --seconds 3600

The models are made in one process and used in another, so that memory is that of a service and not the compiler's. It is measured while all
threads rest between two runs, so that what a run holds for its own time does not count, and after the C library gave back what is free: of
that it keeps now more, now less (some megabytes for each thread), which is told as well.
"""

from __future__ import annotations

import ctypes
import gc
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

THREADS = 8
WARM_UP = 0.1, 300.0  # of the time, and seconds at most: until then memory may grow
FLAT = 0.02  # by how much the memory may grow: the line through all measurements
PAGE = os.sysconf("SC_PAGE_SIZE")


def attack(count: int, seed: int, seconds: float | None = None) -> Iterator[str]:
    """For so many seconds (default: a hundredth of ``count``). Yields what a thread found, a death by a signal, memory that grew."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", f"{__package__}.soak", folder]
        made = subprocess.run([*command, "make"], check=False).returncode
        if made:
            yield f"the models were not made (status {made})"
            return
        with subprocess.Popen([*command, "use", str(seconds or count / 100), str(seed)], stdout=subprocess.PIPE, text=True) as using:
            assert using.stdout is not None
            yield from (line.rstrip("\n") for line in using.stdout)
        if using.returncode:
            yield f"the process ended with status {using.returncode}"


class Soak:
    """What the threads share: the models that are open, and the first result of each input."""

    def __init__(self, folder: Path) -> None:
        from . import soak_models

        self.folder, self.cases = folder, soak_models.CASES
        self.lock, self.open, self.first = threading.Lock(), {}, {}
        self.counts: Counter[str] = Counter()
        self.over, self.asked, self.meeting = threading.Event(), threading.Event(), threading.Barrier(THREADS + 1)
        for case in self.cases:
            self.replace(case, "a")
            self.load(case, 1)
        self.learn()

    def path(self, case: str, variant: str = "") -> Path:
        return self.folder / f"{case}{variant and '-'}{variant}.so"

    def replace(self, case: str, variant: str) -> None:
        """Put another model under the name, as a deployment does: written beside it and renamed."""
        beside = self.folder / f".{case}.{threading.get_ident()}"
        shutil.copyfile(self.path(case, variant), beside)
        beside.replace(self.path(case))

    def load(self, case: str, threads: int) -> None:
        """Whatever is under the name now; the model that was open is closed when nobody runs it any more."""
        import roundel as rd

        self.open[case] = [rd.load(self.path(case), threads=threads), set(self.variants)]

    variants = ("a", "b")

    def learn(self) -> None:
        """The first run of each input by each variant."""
        import roundel as rd

        for name, case in self.cases.items():
            for variant in self.variants:
                model = rd.load(self.path(name, variant), threads=1)
                for size, number in case.inputs():
                    self.first[name, size, number, variant] = fingerprint(model(*case.make(size, number)))

    def step(self, source: random.Random) -> Iterator[str]:
        """One thing that a thread does; yields what is wrong."""
        name = source.choice(list(self.cases))
        case, dice = self.cases[name], source.random()
        if dice < 0.02:
            self.replace(name, source.choice(self.variants))
            self.counts["replacements"] += 1
        elif dice < 0.05:
            self.load(name, source.choice((1, 2)))
            self.counts["loads"] += 1
        elif dice < 0.15 and case.wrong is not None:
            yield from self.refuse(name, case, source)
        else:
            model, possible = self.open[name]
            size, number = source.choice(case.inputs())
            result = fingerprint(model(*case.make(size, number)))
            with self.lock:
                possible &= {v for v in self.variants if self.first[name, size, number, v] == result}
                if not possible:
                    yield f"{name} with size {size} gives another result than in the first run"
                    possible.update(self.variants)
            self.counts["runs"] += 1

    def refuse(self, name: str, case: Any, source: random.Random) -> Iterator[str]:
        """A call that must raise, and raise what it should."""
        try:
            self.open[name][0](*case.wrong(source))
            yield f"{name} takes arguments that are wrong"
        except (ValueError, RuntimeError, IndexError):
            self.counts["errors"] += 1

    def at_rest(self) -> tuple[float, float]:
        """MB of memory while no thread does anything, and those of them that are in use."""
        self.asked.set()
        self.meeting.wait()
        gc.collect()
        kept = resident()
        getattr(ctypes.CDLL(None), "malloc_trim", lambda rest: 0)(0)  # glibc's
        used = resident()
        self.asked.clear()
        self.meeting.wait()
        return kept, used

    def work(self, seed: int) -> None:
        """What each thread does until the time is over."""
        source = random.Random(seed)
        while not self.over.is_set():
            if self.asked.is_set():
                self.meeting.wait()
                self.meeting.wait()
            try:
                for finding in self.step(source):
                    print(finding, flush=True)
            except Exception as error:  # a finding, and the other threads go on
                print(f"{type(error).__name__}: {error}".replace("\n", " | "), flush=True)


def fingerprint(result: Any) -> int:
    """Equal for results that are equal bit for bit."""
    results = result if isinstance(result, tuple) else (result,)
    return hash(tuple((np.asarray(r).shape, np.asarray(r).tobytes()) for r in results))


def resident() -> float:
    """MB of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


def use(folder: Path, seconds: float, seed: int) -> None:
    """Run the threads and watch the memory; findings are lines of standard output."""
    soak = Soak(folder)
    begun = time.monotonic()
    threads = [threading.Thread(target=soak.work, args=(seed * THREADS + k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    memory, most, last = [], 0.0, begun
    while time.monotonic() < begun + seconds:
        time.sleep(min(5.0, seconds / 50))
        kept, used = soak.at_rest()
        memory.append((time.monotonic() - begun, used))
        most = max(most, kept)
        if time.monotonic() - last > 60:
            last = time.monotonic()
            print(f"soak: {memory[-1][0]:.0f} s, {dict(soak.counts)}, {used:.1f} MB of {kept:.1f} MB in use", file=sys.stderr, flush=True)
    soak.over.set()
    for thread in threads:
        thread.join()
    warm = [m for t, m in memory if t >= min(WARM_UP[0] * seconds, WARM_UP[1])]
    warm = warm or [used for _, used in memory]
    slope = statistics.linear_regression(range(len(warm)), warm).slope if len(warm) > 1 else 0.0  # on a busy machine few are seen
    mean, growth = statistics.fmean(warm), slope * len(warm)
    soak.open.clear()
    gc.collect()
    told = f"{mean:.1f} MB on average after warming up, growing by {growth:+.2f} MB ({growth / mean:+.2%}), {most:.1f} MB at most with what is free"
    print(f"soak: {seconds:.0f} s, {THREADS} threads, {dict(soak.counts)}; {told}, {resident():.1f} MB after closing", file=sys.stderr, flush=True)
    if seconds >= 60 and growth > mean * (FLAT if seconds >= 600 else 5 * FLAT):  # less time cannot tell
        print(f"memory grows: {growth:.1f} MB of {mean:.1f} MB in {seconds:.0f} s")


if __name__ == "__main__":
    if sys.argv[2] == "make":
        from . import soak_models

        soak_models.save_all(Path(sys.argv[1]))
    else:
        use(Path(sys.argv[1]), float(sys.argv[3]), int(sys.argv[4]))
