# SPDX-License-Identifier: Apache-2.0
"""Measuring on another machine: a server for it, and the runner that asks one.

    board$ ROUNDEL_RUNNER_KEY=... roundel serve-runner --host 0.0.0.0
    here$  ROUNDEL_RUNNER_KEY=... roundel tune model.onnx --runner board:9190

Both have the same key and prove it to each other (the challenges of ``multiprocessing.connection``) before anything else is read. What
is sent then is code, which the server runs: whoever has the key can do there whatever its user can. Nothing is encrypted. Programs are built here, for
the target that the server tells; it runs one at a time, in a child process as `LocalRunner` does, and removes what they leave behind.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import reprlib
import shutil
import socket
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

from ...ir import options
from ...ir.errors import OptionError, TuneError
from ...target import Target
from .job import Artifact, Failure, Job, Timed
from .listening import GONE, Listening
from .race import QUICK, Effort
from .runner import LocalRunner, Runner

PORT = 9190
LEAST_KEY = 16   # characters, which whoever tries cannot guess
BEAT = 3.0       # seconds after which a server that works says so
SILENCE = 30.0   # seconds without a word after which a server is given up
PATIENCE = 60.0  # seconds for which a server that is gone is looked for
_log = logging.getLogger("roundel.tune")


class RemoteRunner:
    """Measures with a server. ``address``: ``board``, ``board:9190``; ``key``: what both know (default: the option ``runner_key``). A connection
    that is lost later on is made again, for ``patience`` seconds, and what was under way is measured again.

    Raises OptionError for an address or key that is none, TuneError where no server of this key is there.
    """

    def __init__(self, address: str, key: str | None = None, patience: float = PATIENCE) -> None:
        self.address, self.patience = address_of(address), patience
        self._key = key_of(key)
        self._connection: Connection | None = None
        self._was_there = False

    @property
    def target(self) -> Target:
        """The server's machine."""
        return Target.from_json(self._ask("target"))

    def race(self, job: Job, reference: Artifact, champion: Artifact, challengers: Sequence[Artifact],
             effort: Effort = QUICK, seconds: float = 0.0) -> tuple[Timed, list[Timed | Failure]]:
        """As `Runner` says. Raises TuneError where the server is gone for good."""
        return self._ask("race", job, reference, champion, list(challengers), effort, seconds)

    def close(self) -> None:
        """Leave the server to others."""
        self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, *request: Any) -> Any:
        end = time.monotonic() + self.patience
        while True:
            try:
                return self._answer(request)
            except GONE as error:
                self._disconnect()
                if not self._was_there:
                    where = f"{self.address[0]}:{self.address[1]}"
                    raise TuneError(f"there is no runner at {where}", why=str(error), hint="`roundel serve-runner` is one") from error
                if time.monotonic() > end:
                    self.patience = 0.0  # the next who asks need not wait for as long
                    raise TuneError(f"the runner at {self.address[0]}:{self.address[1]} is gone: {error or type(error).__name__}",
                                    hint="what was measured is in the database, and the same command goes on from there") from error
                _log.info("the runner at %s:%d is not there (%s)", *self.address, error)
                time.sleep(min(1.0, max(self.patience / 10, 0.05)))

    def _answer(self, request: tuple[Any, ...]) -> Any:
        """The answer to a request; raises EOFError, OSError where the connection is lost."""
        connection = self._connected()
        connection.send(request)
        while True:
            if not connection.poll(SILENCE):
                raise OSError(0, "it said nothing for too long")
            kind, answer = connection.recv()
            if kind == "done":
                return answer
            if kind == "error":
                raise RuntimeError(answer)

    def _connected(self) -> Connection:
        if self._connection is None:
            try:
                self._connection = Client(self.address, authkey=self._key)
                self._was_there = True
            except AuthenticationError:
                raise TuneError(f"the runner at {self.address[0]}:{self.address[1]} has another key",
                                hint="set ROUNDEL_RUNNER_KEY to what its server was started with") from None
        return self._connection


class Server(Listening):
    """Measures for those who know the ``key``, one program at a time. ``runner``: who does it (default: a `LocalRunner`). Port 0: any that is free;
    ``address`` tells which. Raises OptionError for a key that is none, OSError where the address is taken."""

    def __init__(self, host: str = "127.0.0.1", port: int = PORT, key: str | None = None, runner: Runner | None = None) -> None:
        super().__init__(host, port, key_of(key))
        self._own = LocalRunner() if runner is None else None
        self._runner: Runner = runner or self._own  # type: ignore[assignment]
        self._folder = _Folder()
        self._one = ThreadPoolExecutor(1, "roundel-runner")  # who measures; child processes die with the thread that began them
        self._open: set[Connection] = set()

    def close(self) -> None:
        """Stop, and end what is running."""
        super().close()
        self._one.shutdown(wait=False, cancel_futures=True)
        for connection in list(self._open):
            with contextlib.suppress(*GONE), socket.socket(fileno=os.dup(connection.fileno())) as stream:
                stream.shutdown(socket.SHUT_RDWR)  # who reads it closes it
        if self._own is not None:
            self._own.close()
        self._folder.close()

    def _visit(self, connection: Connection) -> None:
        self._open.add(connection)
        try:
            super()._visit(connection)
        finally:
            self._open.discard(connection)

    def _talk(self, connection: Connection) -> None:
        while True:
            self._reply(connection, connection.recv())

    def _reply(self, connection: Connection, request: tuple[Any, ...]) -> None:
        kind, *arguments = request
        if kind == "target":
            connection.send(("done", getattr(self._runner, "target", Target.host()).to_json()))
            return
        working = self._one.submit(self._race, *arguments)
        while True:
            try:
                connection.send(("done", working.result(BEAT)))
                return
            except NotYet:
                connection.send(("at", kind))
            except RuntimeError as error:
                connection.send(("error", str(error)))
                return

    def _race(self, *arguments: Any) -> Any:
        try:
            return self._runner.race(*arguments)
        finally:
            self._folder.empty()


class _Folder:
    """A folder of its own for the temporary files of this process's children."""

    def __init__(self) -> None:
        self.path, self._before = Path(tempfile.mkdtemp(prefix="roundel-runner-")), os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = str(self.path)

    def empty(self) -> None:
        """Remove what is in it, open or not."""
        for path in self.path.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()

    def close(self) -> None:
        """Remove it."""
        os.environ.pop("TMPDIR")
        if self._before is not None:
            os.environ["TMPDIR"] = self._before
        shutil.rmtree(self.path, ignore_errors=True)


def key_of(given: str | None) -> bytes:
    """The key that was given, or else that of the option ``runner_key``. Raises OptionError for none, and for one that could be guessed."""
    key = options.get("runner_key") if given is None else given
    if not isinstance(key, str) or len(key) < LEAST_KEY:
        raise OptionError("there is no key for the runner" if not key else "the runner's key is too short",
                          hint=f"set ROUNDEL_RUNNER_KEY on both sides to the same {LEAST_KEY} characters or more: openssl rand -hex 16")
    return key.encode()


def address_of(text: str, port: int = PORT) -> tuple[str, int]:
    """A host and a port, of ``HOST:PORT`` or ``HOST`` alone. Raises OptionError."""
    host, _, given = (text if ":" in text else f"{text}:{port}").rpartition(":")
    if not host or not re.fullmatch("[0-9]{1,5}", given) or not 0 < int(given) < 1 << 16:
        raise OptionError(f"a runner's address cannot be {reprlib.repr(text)}", hint="write HOST or HOST:PORT")
    return host, int(given)
