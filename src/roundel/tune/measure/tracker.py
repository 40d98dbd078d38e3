# SPDX-License-Identifier: Apache-2.0
"""Devices by name: a tracker that knows which machines measure, and lends them to who asks, one to each at a time.

    tracker$ ROUNDEL_RUNNER_KEY=... roundel serve-tracker --host 0.0.0.0
    board$   ROUNDEL_RUNNER_KEY=... roundel serve-runner --host 0.0.0.0 --tracker office --device pi5
    here$    ROUNDEL_RUNNER_KEY=... roundel tune model.onnx --tracker office --device pi5

A device is there as long as its connection to the tracker is, and says so now and then. Those who ask get devices in the order in which they asked, wait for
no longer than they say, and give a device back by saying so, by leaving, or when the time is over for which it was lent. All prove that they know the
key, as for `Server`; what is measured goes from who asks to the device, and not through the tracker.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import Counter
from dataclasses import field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection
from typing import Any

from ...ir.dataclass import dataclass
from ...ir.errors import OptionError, TuneError
from .listening import GONE, Listening
from .remote import BEAT, SILENCE, RemoteRunner, address_of, key_of

PORT = 9191
WAITING = 60.0   # seconds for which a device is waited for
LENT = 3600.0    # seconds for which a device is lent
LOOK = 0.2       # seconds after which who waits is looked after
ANYWHERE = ("", "0.0.0.0", "::")  # where a device listens that is found where it comes from


@dataclass(eq=False)
class _Device:
    name: str
    address: tuple[str, int]
    is_lent: bool = False


@dataclass(eq=False)
class _Known:
    """Who is there: devices, and those who wait, in their order."""

    devices: list[_Device] = field(default_factory=list)
    waiting: list[tuple[str, object]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def free(self, name: str, ticket: object) -> _Device | None:
        """A device for who has this ticket, if it is its turn."""
        first = next((t for n, t in self.waiting if n == name), None)
        return next((d for d in self.devices if d.name == name and not d.is_lent), None) if first is ticket else None


class Tracker(Listening):
    """Lends devices to those who know the ``key``. Port 0: any that is free; ``address`` tells which. Raises OptionError for a key that is none, OSError
    where the address is taken."""

    def __init__(self, host: str = "127.0.0.1", port: int = PORT, key: str | None = None) -> None:
        super().__init__(host, port, key_of(key))
        self._known = _Known()

    def summary(self) -> dict[str, tuple[int, int, int]]:
        """By the names of devices how many there are, how many of them are lent, and how many wait for one."""
        with self._known.changed:
            there, lent = Counter(d.name for d in self._known.devices), Counter(d.name for d in self._known.devices if d.is_lent)
            waiting = Counter(name for name, _ in self._known.waiting)
        return {name: (there[name], lent[name], waiting[name]) for name in sorted({*there, *waiting})}

    def _talk(self, connection: Connection) -> None:
        with contextlib.suppress(KeyError, TypeError, ValueError):  # it speaks something else
            kind, *arguments = connection.recv()
            {"register": self._register, "request": self._request}[kind](connection, *arguments)

    def _register(self, connection: Connection, name: str, host: str, port: int) -> None:
        """A device, until it leaves."""
        with socket.socket(fileno=socket.dup(connection.fileno())) as stream:
            device = _Device(name, (stream.getpeername()[0] if host in ANYWHERE else host, port))
        with self._known.changed:
            self._known.devices.append(device)
            self._known.changed.notify_all()
        try:
            while not self._is_closed and connection.poll(SILENCE):
                connection.recv()
        finally:
            with self._known.changed:
                self._known.devices.remove(device)

    def _request(self, connection: Connection, name: str, waits: float, lent: float) -> None:
        """Somebody who asks for a device, until it is given back."""
        device = self._granted(connection, name, time.monotonic() + waits)
        if device is None:
            there = sum(d.name == name for d in self._known.devices)
            connection.send(("error", f"{there} of them {'is' if there == 1 else 'are'} there, lent to others" if there else "none of that name is there"))
            return
        try:
            connection.send(("done", device.address))
            connection.poll(lent)  # until it says anything, leaves, or has had it for long enough
        finally:
            with self._known.changed:
                device.is_lent = False
                self._known.changed.notify_all()

    def _granted(self, connection: Connection, name: str, end: float) -> _Device | None:
        """A device when one is free and nobody asked for it before; None where time ends first. Raises EOFError where who asked has left."""
        ticket = object()
        with self._known.changed:
            self._known.waiting.append((name, ticket))
            try:
                while (found := self._known.free(name, ticket)) is None and time.monotonic() < end:
                    self._known.changed.wait(min(LOOK, max(end - time.monotonic(), 0.0)))
                    if connection.poll():
                        raise EOFError
                if found is not None:
                    found.is_lent = True
                return found
            finally:
                self._known.waiting.remove((name, ticket))
                self._known.changed.notify_all()


class Registration:
    """A device that a tracker knows, as long as this is open: it says so now and then, and again when the connection was lost."""

    def __init__(self, tracker: str, name: str, address: tuple[str, int], key: str | None = None) -> None:
        self.tracker, self.name, self.address, self._key = address_of(tracker, PORT), name, address, key_of(key)
        self._end = threading.Event()
        self._connection = self._connected()
        threading.Thread(target=self._stay, daemon=True).start()

    def _connected(self) -> Connection:
        connection = _connected(self.tracker, self._key)
        connection.send(("register", self.name, *self.address))
        return connection

    def _stay(self) -> None:
        while not self._end.wait(BEAT):
            try:
                self._connection.send("here")
            except GONE:
                with contextlib.suppress(TuneError, *GONE):
                    self._connection = self._connected()

    def close(self) -> None:
        """Leave the tracker."""
        self._end.set()
        self._connection.close()


class LentRunner(RemoteRunner):
    """Measures on a device that a tracker lends; ``close`` gives it back. ``waits``: seconds for which one is waited for, ``lent``: for which it is asked.

    Raises OptionError for an address or key that is none, TuneError where there is no tracker, or no device in time."""

    def __init__(self, tracker: str, device: str, key: str | None = None, *, waits: float = WAITING, lent: float = LENT) -> None:
        self._lease = _connected(address_of(tracker, PORT), key_of(key))
        try:
            self._lease.send(("request", device, waits, lent))
            if not self._lease.poll(waits + SILENCE):
                raise EOFError
            kind, answer = self._lease.recv()
        except GONE as error:
            raise TuneError(f"the tracker at {tracker} is gone") from error
        if kind != "done":
            raise TuneError(f"no device {device!r} was free for {waits:.0f} s", why=answer, hint="`roundel serve-runner --tracker` registers one")
        super().__init__(f"{answer[0]}:{answer[1]}", key)

    def close(self) -> None:
        """Leave the device to others."""
        super().close()
        with contextlib.suppress(*GONE):
            self._lease.send("back")
        self._lease.close()


def _connected(address: tuple[str, int], key: bytes) -> Any:
    try:
        return Client(address, authkey=key)
    except AuthenticationError:
        raise TuneError(f"the tracker at {address[0]}:{address[1]} has another key", hint="set ROUNDEL_RUNNER_KEY to what it was started with") from None
    except GONE as error:
        raise TuneError(f"there is no tracker at {address[0]}:{address[1]}", why=str(error), hint="`roundel serve-tracker` is one") from error


def lent_name(tracker: str | None, device: str | None) -> str | None:
    """The name of a device where there is a tracker, else None. Raises OptionError where only one of them is given."""
    if tracker is None and device is not None:
        raise OptionError("only a tracker knows devices by name", hint="give --tracker with --device")
    if tracker is not None and not device:
        raise OptionError("the tracker is not told which device", hint="give --device with --tracker")
    return device
