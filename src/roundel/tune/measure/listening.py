# SPDX-License-Identifier: Apache-2.0
"""What servers of tuning have in common: they listen, each visitor proves that it knows the key, and has a thread of its own."""

from __future__ import annotations

import contextlib
import logging
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge

GONE = (EOFError, OSError)
_log = logging.getLogger("roundel.tune")


class Listening:
    """A server at ``host`` and ``port`` (0: any that is free; ``address`` tells which) for those who know the ``key``. Raises OSError where the address
    is taken."""

    def __init__(self, host: str, port: int, key: bytes) -> None:
        self._key = key
        self._listener = Listener((host, port), backlog=32)
        self._is_closed = False

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return self._listener.address  # type: ignore[return-value]

    def serve(self) -> None:
        """Until `close`, which another thread may call."""
        while not self._is_closed:
            try:
                connection = self._listener.accept()
            except OSError:
                continue  # closed, or somebody left at once
            if self._is_closed:
                break
            threading.Thread(target=self._visit, args=(connection,), daemon=True).start()

    def close(self) -> None:
        """Stop."""
        self._is_closed = True
        with contextlib.suppress(*GONE):
            Client(self.address).close()  # which wakes the one who listens
        self._listener.close()

    def _visit(self, connection: Connection) -> None:
        try:
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            self._talk(connection)
        except AuthenticationError:
            _log.warning("somebody without the key was refused")
        except GONE:
            pass  # it left
        finally:
            connection.close()

    def _talk(self, connection: Connection) -> None:
        """Serve a visitor that knows the key, until it leaves."""
        raise NotImplementedError
