# SPDX-License-Identifier: Apache-2.0
"""The long run of the fuzzers, which can be stopped and goes on where it was.

    python -m tests.fuzz graphs --count 5000 --log graphs.txt
    python -m tests.fuzz symbolic --count 2000 --log symbolic.txt
    python -m tests.fuzz files --count 20000 --log files.txt
    python -m tests.fuzz graphs --seed 4711 --count 1            # one case again, with its traceback

Every seed is one case. Cases run in a child process with bounds on memory and time, so that a crash or a hang is an outcome too.
The log has a line for each seed: its number and its outcome.
"""

from __future__ import annotations

import argparse
import collections
import os
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from .files import check_file
from .graphs import check_graph, check_symbolic

CHECKS: dict[str, Callable[[int], str]] = {"graphs": check_graph, "symbolic": check_symbolic, "files": check_file}
SECONDS = 120  # of CPU time, for one case
MEMORY = 6 << 30


class Timeout(BaseException):
    """A case took too long."""


def work(kind: str, first: int, last: int) -> None:
    """Run cases, a line of output for each."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def expired(*_: object) -> None:
        raise Timeout

    signal.signal(signal.SIGVTALRM, expired)
    for seed in range(first, last):
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        try:
            outcome = CHECKS[kind](seed)
        except (Exception, Timeout) as error:  # the report is the purpose
            if first + 1 == last:
                traceback.print_exc()
            lines = [s.strip() for s in str(error).strip().splitlines() if s.strip()]
            outcome = f"FAILED {type(error).__name__}: {' | '.join(lines[:6])[:500]}"
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        print(seed, outcome, flush=True)


def done(log: Path) -> dict[int, str]:
    """Outcomes by seed."""
    if not log.exists():
        return {}
    return {int(n): what for n, _, what in (line.partition(" ") for line in log.read_text().splitlines()) if n.isdigit()}


def run(kind: str, first: int, last: int, log: Path) -> None:
    """Cases that the log lacks; a child that dies is an outcome of the case it was at."""
    seen = done(log)
    todo = [k for k in range(first, last) if k not in seen]
    while todo:
        start = todo[0]
        end = next((k for k in range(start, min(start + 500, last)) if k in seen), min(start + 500, last))
        with log.open("a") as out:
            status = subprocess.run([sys.executable, "-m", "tests.fuzz", kind, "--seed", str(start), "--count", str(end - start), "--child"],
                                    stdout=out, check=False).returncode
        seen = done(log)
        left = [k for k in range(start, end) if k not in seen]
        if left:
            with log.open("a") as out:
                print(left[0], f"FAILED: the process ended with status {status}", file=out)
            seen[left[0]] = "FAILED"
        todo = [k for k in todo if k not in seen]
    summary = collections.Counter(what.split(" ")[0] for k, what in done(log).items() if first <= k < last)
    print(", ".join(f"{n} {what}" for what, n in summary.most_common()))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=CHECKS)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    if options.child or options.log is None:
        work(options.kind, options.seed, options.seed + options.count)
    else:
        run(options.kind, options.seed, options.seed + options.count, options.log)


if __name__ == "__main__":
    main()
