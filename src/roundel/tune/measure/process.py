# SPDX-License-Identifier: Apache-2.0
"""A process for what may crash, never end or take all memory: a request and its answer, with a time limit."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .job import Failure
from .worker import PLACE

_LENGTH = struct.Struct("<Q")
START_SECONDS = 300.0  # in which a process must be ready: a second of work, which a machine with much else to do may take long for


class Lost(Exception):
    """The process is gone: it died or was killed. ``failure`` says why, ``at`` what it was working at."""

    def __init__(self, failure: Failure, at: Any) -> None:
        super().__init__(str(failure))
        self.failure, self.at = failure, at


class Process:
    """A child process that answers requests (see ``worker``), started when it is first asked. Not to be used by several threads at once."""

    def __init__(self, memory: int = 0, cpus: tuple[int, ...] = ()) -> None:
        self.memory, self.cpus = memory, cpus
        self._child: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._paused_since: float | None = None
        self._paused = 0.0  # seconds altogether

    def ask(self, kind: str, *arguments: Any, seconds: Callable[[Any], float]) -> Any:
        """The answer to a request. While it works, the child tells what it is at; ``seconds`` says how long that may take (first for None).

        Raises Lost; the next request starts another child.
        """
        child, at, answered = self._started(), None, False
        try:
            _send(child.stdin, (kind, arguments))
            while True:
                news, value = self._receive(seconds(at))
                if news == "done":
                    answered = True
                    return value
                at = value
        except TimeoutError:
            raise Lost(Failure("time limit", f"it took more than {seconds(at):.1f} s"), self._noted(at)) from None
        except (EOFError, OSError, pickle.UnpicklingError):
            raise Lost(self._died(), self._noted(at)) from None
        finally:
            if not answered:
                self.close()

    def pause(self) -> None:
        """Let the child stand still, which may be called by another thread; the time until `resume` counts for no limit."""
        self._paused_since = time.monotonic()
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the child go on."""
        since, self._paused_since = self._paused_since, None
        self._paused += time.monotonic() - since if since is not None else 0.0
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        child = self._child
        if child is not None:
            child.send_signal(number)  # nothing where it is over

    def _stood_still(self) -> float:
        since = self._paused_since
        return self._paused + (time.monotonic() - since if since is not None else 0.0)

    def close(self) -> None:
        """End the child, whatever it does."""
        child, self._child, self._buffer = self._child, None, b""
        if child is not None:
            child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout, self._said, self._notes):
                with contextlib.suppress(OSError):
                    stream.close()  # type: ignore[union-attr]

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            self._said, notes = tempfile.TemporaryFile(), tempfile.TemporaryFile()
            notes.write(PLACE.pack(-1))
            notes.flush()
            self._notes = notes
            own = str(Path(__file__).resolve().parents[3])
            paths = os.pathsep.join(p for p in (*sys.path, own) if p)
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", "roundel.tune.measure.worker", str(self.memory), ",".join(map(str, self.cpus)), str(os.getpid()),
                 str(notes.fileno())], pass_fds=[notes.fileno()],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, env={**os.environ, "PYTHONPATH": paths})
            self._await_start()
        return self._child

    def _await_start(self) -> None:
        """Raises Lost where the child does not get ready."""
        try:
            self._receive(START_SECONDS)
        except TimeoutError:
            self.close()
            raise Lost(Failure("time limit", f"its process was not ready after {START_SECONDS:.0f} s"), None) from None
        except (EOFError, OSError, pickle.UnpicklingError):
            failure = self._died()
            self.close()
            raise Lost(failure, None) from None

    def _receive(self, seconds: float) -> Any:
        """The next message; raises TimeoutError, EOFError."""
        end = time.monotonic() + seconds - self._stood_still()
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size, end))
        return pickle.loads(self._read(length, end))

    def _read(self, count: int, end: float) -> bytes:
        """So many bytes; ``end`` is when the time is over if the child does not stand still."""
        assert self._child is not None and self._child.stdout is not None
        source = self._child.stdout.fileno()
        while len(self._buffer) < count:
            left = end + self._stood_still() - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if not select.select([source], [], [], left)[0]:
                continue  # if it stood still, there is time left
            more = os.read(source, 1 << 20)
            if not more:
                raise EOFError
            self._buffer += more
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def _noted(self, told: Any) -> Any:
        """What the child was at: what it noted last, or else told."""
        self._notes.seek(0)
        (number,) = PLACE.unpack(self._notes.read(PLACE.size))
        return told if number < 0 else number

    def _died(self) -> Failure:
        """Why the child is gone."""
        assert self._child is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(timeout=5)
        status = self._child.poll()
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        how = signal.Signals(-status).name if status is not None and status < 0 else f"exit status {status}"
        return Failure("crash", "; ".join([how, *lines[-1:]]))


def _send(stream: Any, message: Any) -> None:
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)
    stream.flush()
