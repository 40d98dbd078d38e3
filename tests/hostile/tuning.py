# SPDX-License-Identifier: Apache-2.0
"""Whole sessions of tuning in which something goes wrong: candidates that do harm, ``kill -9``, disks, servers that leave, damaged databases.

A session must end with a result, remember what it measured, and never keep a candidate that did harm.
"""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import roundel as rd
from roundel.ir.errors import RoundelError
from roundel.schedule import Schedule
from roundel.strategy import Applied, Candidates, Rule, Sketch, combinations
from roundel.target import Target
from roundel.tune.database import Database
from roundel.tune.measure import LocalBuilder, LocalRunner
from roundel.tune.measure.remote import RemoteRunner, Server

from ..tune.measure.contract import HARMFUL, SIZE
from ..tune.programs import FakeBuilder, FakeRunner, doubled, product

KEY = "hostile " * 3
TESTS = Path(__file__).parents[2]
SESSION = """
import sys
from tests.hostile.tuning import endless
endless(sys.argv[1])
"""


def endless(path: str) -> None:
    """Tune until somebody ends this process."""
    rd.tune(product(), threads=1, db=path, builder=FakeBuilder(), runner=FakeRunner(lambda func: 1e-3), search="random", trials=100_000)


def harmful(sch: Schedule, choice: dict[str, int]) -> Applied:
    """A schedule that became a program which does harm."""
    return Applied(Schedule(list(HARMFUL)[choice["which"]]))


def harm(rng: random.Random, folder: Path) -> Iterator[str]:
    """Programs that crash, never end, take all memory, break LLVM or compute something else are failed records."""
    which = sorted(rng.sample(range(len(HARMFUL)), 3))
    table = Candidates(combinations({"which": which}))
    rule = Rule("harmful", lambda program: [Sketch("harmful", program.schedule, harmful, table)])
    builder, runner = LocalBuilder(1), LocalRunner(seconds=1.5, memory=1 << 30)
    try:
        result = rd.tune(doubled(SIZE), space=[rule, "elementwise"], search="exhaustive", threads=1, trials=8, db=folder / "db", builder=builder, runner=runner)
    finally:
        builder.close()
        runner.close()
    kinds = list(HARMFUL.values())
    errors = {r.decisions["which"]: r.error for r in Database(folder / "db") if r.sketch == "harmful"}
    for k in which:
        if not re.match(kinds[k], errors.get(k, "")):
            yield f"a candidate with {kinds[k]!r} is remembered as {errors.get(k, 'nothing')!r}"
    if result.rows[0].sketch == "harmful" or result.rows[0].default_ms is None:
        yield f"the result is {result.rows[0]}"


def killed(rng: random.Random, folder: Path) -> Iterator[str]:
    """``kill -9`` at a random moment loses nothing that was committed, and the next session goes on."""
    path = folder / "db"
    yield from kill(path, rng)
    known = len(Database(path))
    result = rd.tune(product(), threads=1, db=path, builder=FakeBuilder(), runner=FakeRunner(lambda func: 1e-3), search="random", trials=known + 4)
    if result.rows[0].trials < known:
        yield f"the next session knows {result.rows[0].trials} of {known} trials"


def kill(path: Path, rng: random.Random) -> Iterator[str]:
    """One session on a database that may have been through others, ended at a random moment after it wrote something."""
    before = path.read_bytes() if path.exists() else b""
    seen = before
    paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    child = subprocess.Popen([sys.executable, "-c", SESSION, str(path)], env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 180
        while time.monotonic() < end and child.poll() is None and not (path.exists() and path.stat().st_size > len(before)):
            time.sleep(0.02)
        moment = time.monotonic() + rng.uniform(0, 0.8)
        while path.exists() and time.monotonic() < moment:
            seen = path.read_bytes()
            time.sleep(0.005)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    if seen == before:
        yield f"the session wrote nothing: exit status {child.returncode}"
    database, committed = Database(path), seen.count(b"\n")
    skipped = sum(database.skipped.values())
    if not path.read_bytes().startswith(seen) or len(database) + skipped < committed or skipped > _torn(before):
        yield f"of {committed} lines {len(database)} are left, and {dict(database.skipped)} were left out"


def _torn(content: bytes) -> int:
    """Lines that earlier kills have cut off."""
    return sum(not line.endswith(b"}") for line in content.splitlines())


def no_disk(rng: random.Random, folder: Path) -> Iterator[str]:
    """A disk that is full, or a place that cannot be written, costs the records and not the session."""
    (folder / "file").touch()
    path = rng.choice([folder / "db", folder / "file" / "db", folder, Path("/dev/full"), Path("/proc/self/db")])
    limit, before = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (rng.randrange(1, 4000), limit[1]))
    try:
        result = rd.tune(product(), threads=1, db=path, builder=FakeBuilder(), runner=FakeRunner(lambda func: 1e-3), trials=16)
    except OSError as error:
        yield f"database {path}: {type(error).__name__}: {error}"
        return
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    if result.rows[0].trials != 16:
        yield f"database {path}: {result.rows[0]}"
    if path.is_file() and any(Database(path).skipped.values()):
        yield f"database {path} is damaged: {Database(path).skipped}"


def damaged(rng: random.Random, folder: Path) -> Iterator[str]:
    """Lines of other versions, cut off, or of anything: the session goes on from those that are good."""
    path = folder / "db"
    rd.tune(product(), threads=1, db=path, builder=FakeBuilder(), runner=FakeRunner(lambda func: 1e-3), trials=12)
    lines = path.read_bytes().splitlines(keepends=True)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(lines))
        line = lines[at]
        lines[at] = rng.choice([line[: rng.randrange(len(line))], line.replace(b'"v": 1', b'"v": 9'), rng.randbytes(50) + b"\n", line + line, b""])
    path.write_bytes(b"".join(lines))
    known = len(Database(path))
    result = rd.tune(product(), threads=1, db=path, builder=FakeBuilder(), runner=FakeRunner(lambda func: 1e-3), trials=24)
    if result.rows[0].default_ms is None or result.rows[0].trials < min(known, 24) - 4:
        yield f"with {known} good lines left: {result.rows[0]}"


class _Counting(FakeRunner):
    def race(self, *arguments, **named):  # type: ignore[no-untyped-def]
        time.sleep(0.05)
        return super().race(*arguments, **named)


def cut_off(rng: random.Random, folder: Path) -> Iterator[str]:
    """A server that leaves midway: another one at its address goes on, or the session ends with an error that says how to."""
    comes_back = rng.random() < 0.5
    server = Server(port=0, key=KEY, runner=_Counting(lambda func: 1e-3))
    threading.Thread(target=server.serve, daemon=True).start()
    address = server.address
    found: list[object] = []

    def session() -> None:
        try:
            runner = RemoteRunner(f"localhost:{address[1]}", KEY, patience=20.0 if comes_back else 0.5)
            found.append(rd.tune(product(), threads=1, db=folder / "db", builder=FakeBuilder(), runner=runner, trials=64))
        except RoundelError as error:
            found.append(error)

    tuning = threading.Thread(target=session)
    tuning.start()
    time.sleep(rng.uniform(0.1, 0.6))
    server.close()
    other = Server(address[0], address[1], KEY, _Counting(lambda func: 1e-3)) if comes_back else None
    if other is not None:
        threading.Thread(target=other.serve, daemon=True).start()
    tuning.join(60)
    if other is not None:
        other.close()
    ended = found[0] if found else None
    if comes_back and (isinstance(ended, RoundelError) or ended is None or ended.rows[0].trials != 64):  # type: ignore[attr-defined]
        yield f"with a server that came back: {ended}"
    if not comes_back and not (isinstance(ended, RoundelError) or (ended is not None and ended.rows)):  # type: ignore[attr-defined]
        yield f"with a server that left: {ended}"


FAULTS: tuple[Callable[[random.Random, Path], Iterator[str]], ...] = (killed, no_disk, damaged, cut_off, harm)


def attack(count: int, seed: int, faults: tuple[Callable[[random.Random, Path], Iterator[str]], ...] = FAULTS) -> Iterator[str]:
    """Inject ``count`` faults, each kind in its turn."""
    Target.host()
    for k in range(count):
        fault, rng = faults[k % len(faults)], random.Random(f"{seed} {k}")
        with tempfile.TemporaryDirectory() as folder:
            yield from map(partial("attempt {} ({}): {}".format, k, fault.__name__), fault(rng, Path(folder)))
