# SPDX-License-Identifier: Apache-2.0
"""Units to objects: from the cache, in this process, or by a pool of worker processes when there is much to do.

LLVM's Python binding takes one lock for everything, so only processes run in parallel; they are started once and kept.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import pickle
import queue
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..codegen import backend_of
from ..ir import options
from ..ir.errors import BuildError
from ..passes.progress import report
from ..target.spec import MachineSpec
from . import object_cache
from .units import Unit
from .worker import receive, write

_SECONDS_PER_CHARACTER = {"light": 0.25e-6, "full": 5e-6, "loops": 5e-6, "none": 0.2e-6, "c": 20e-6}  # of text, on a 4 GHz core
_POOL_FROM, _WARM_POOL_FROM = 1.0, 0.1  # seconds of work that are worth starting, or using, other processes


class _Worker:
    """One worker process; used by one thread at a time."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "roundel.build.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
        )

    def ask(self, message: bytes, name: str, spec: MachineSpec) -> Any:
        """The answer to a pickled request about ``name``; raises BuildError, also when the process ends meanwhile."""
        try:
            write(self.process.stdin, message)  # type: ignore[arg-type]
            ok, answer = receive(self.process.stdout)  # type: ignore[arg-type]
        except (EOFError, BrokenPipeError, OSError):
            self.close()
            said = self.process.stderr.read() if self.process.stderr else b""
            tail = said.decode(errors="replace").strip().splitlines()[-3:]
            if self.process.returncode == -9:  # SIGKILL
                raise Died(f"the process that compiled {name} was killed", why="systems do so where memory runs out",
                           hint="let fewer processes compile at once (ROUNDEL_WORKERS=1)") from None
            raise Died(
                f"LLVM gave up on {name} for {spec.triple}",
                why="\n".join(tail) or f"exit code {self.process.returncode}",
                hint="try another target CPU or features",
            ) from None
        if not ok:
            raise BuildError(answer[0], where=name, why=answer[1])
        return answer

    def close(self) -> None:
        if self.process.stdin:
            with contextlib.suppress(OSError):  # what is left to write, to a process that is no more
                self.process.stdin.close()
        try:
            self.process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Died(BuildError):
    """The worker is gone."""


def _environment() -> dict[str, str]:
    own = str(Path(__file__).resolve().parents[2])  # where this package is, should it have been imported from the current folder
    path = os.pathsep.join(p for p in (*sys.path, own) if p)
    return {**os.environ, "PYTHONPATH": path}


class Pool:
    """Worker processes, started as they are needed, at most ``size``."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.started = 0
        self.lock = threading.Lock()
        self.idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self.threads = ThreadPoolExecutor(size, thread_name_prefix="roundel-build")

    def submit(self, unit: Unit, spec: MachineSpec) -> Future[bytes]:
        """LLVM text to an object."""
        message = pickle.dumps(("object", (unit.text, spec, unit.pipeline), {}), protocol=pickle.HIGHEST_PROTOCOL)
        return self.ask(message, unit.name, spec)

    def ask(self, message: bytes, name: str, spec: MachineSpec) -> Future[Any]:
        """The answer of some worker to a pickled request about ``name``."""
        return self.threads.submit(self._run, message, name, spec)

    def start(self) -> None:
        """Start all processes, so that they are ready when there is work."""
        with self.lock:
            for _ in range(self.size - self.started):
                self.idle.put(_Worker())
                self.started += 1

    def _run(self, message: bytes, name: str, spec: MachineSpec) -> Any:
        worker = self._waiting()
        try:
            out = worker.ask(message, name, spec)
        except Died:
            with self.lock:
                self.started -= 1
            raise
        except BuildError:
            self.idle.put(worker)
            raise
        self.idle.put(worker)
        return out

    def _waiting(self) -> _Worker:
        """A worker with nothing to do: one that there is, or a new one. Those that something has ended while they waited are left out."""
        while True:
            try:
                worker = self.idle.get_nowait()
            except queue.Empty:
                with self.lock:
                    self.started += 1
                return _Worker()
            if worker.process.poll() is None:
                return worker
            with self.lock:
                self.started -= 1

    def close(self) -> None:
        """End the worker processes; what they have not begun is dropped."""
        self.threads.shutdown(cancel_futures=True)
        while not self.idle.empty():
            self.idle.get().close()


_pool: Pool | None = None
_lock = threading.Lock()


def pool() -> Pool:
    """The process's pool."""
    global _pool
    with _lock:
        if _pool is None:
            _pool = Pool(max(size() - 1, 1))  # this process takes its share, and keeps a core busy itself
            atexit.register(_pool.close)
        return _pool


def start() -> bool:
    """Start worker processes where there may be any, and say whether: they get ready meanwhile."""
    if size() == 1:
        return False
    pool().start()
    return True


def size() -> int:
    """How many worker processes there may be."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return options.get("workers") or cores


def estimated_seconds(unit: Unit) -> float:
    """About how long LLVM takes."""
    return len(unit.text) * _SECONDS_PER_CHARACTER[unit.pipeline]


def compile_units(units: list[Unit], spec: MachineSpec, *, isolated: bool = False) -> list[bytes]:
    """The objects, in order. ``isolated``: never in this process (other targets than the host may end it)."""
    keys = [object_cache.object_key(u.text, spec, u.pipeline) for u in units]
    objects: list[Any] = [object_cache.load(k) for k in keys]
    missing = [i for i, o in enumerate(objects) if o is None]
    work = sum(estimated_seconds(units[i]) for i in missing)
    several = len(missing) > 1 and options.get("workers") != 1
    many = several and work > (_POOL_FROM if _pool is None else _WARM_POOL_FROM)
    away = [i for i in missing if isolated or many or units[i].risky]
    away.sort(key=lambda i: -estimated_seconds(units[i]))  # the longest first
    futures = {i: pool().submit(units[i], spec) for i in away}
    for done, i in enumerate(missing):
        report("machine code", done, len(missing))
        objects[i] = futures[i].result() if i in futures else _here(units[i], spec)
    for i in missing:
        object_cache.store(keys[i], objects[i])
    return objects


@functools.lru_cache(maxsize=256)
def compile_again(unit: Unit, spec: MachineSpec) -> bytes:
    """The object of a unit that one module after another may have, made in this process once."""
    return _here(unit, spec)


def _here(unit: Unit, spec: MachineSpec) -> bytes:
    try:
        return backend_of(spec.backend).object(unit.text, spec, unit.pipeline)
    except BuildError as error:
        raise BuildError(error.what, where=unit.name, why=error.why, hint=error.hint) from error
