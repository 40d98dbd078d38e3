# SPDX-License-Identifier: Apache-2.0
"""The database of measurements: a file to which records are appended, a line each.

    {"sum": "5f0c8a1e", "kind": "schedule", "program": "...", "target": "...", "v": 1, ...}

A line holds a checksum of what follows it and is written at once, so several processes may write to one file, and files are merged by ``cat``.
A line that is cut off or damaged costs one record: it is left out and counted. What opens a database never fails for what is in it or for what
the disk says; both are told.
"""

from __future__ import annotations

import errno
import fcntl
import getpass
import hashlib
import json
import logging
import os
import platform
import stat
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from ..ir import escape
from ..ir.dataclass import dataclass
from ..ir.errors import OptionError
from ..ir.record import ChoiceRecord, Guarded, Key, Record, Rival, Timing
from ..ir.sources import sources
from .place import default_path

FORMAT = 1
SCHEDULE, TRIAL, CHOICE = "schedule", "trial", "choice"  # kinds of lines: a record with its steps, one without, the best way to compute nodes
_SUM = 8  # hexadecimal digits
_HEAD, _KIND = b'{"sum": "', b'", "kind": "'
_log = logging.getLogger("roundel.tune")


@dataclass(frozen=True)
class _Line:
    """A line whose checksum is right: its kind, which ``program`` and ``target`` it is about, and its text, which is read when it is needed."""

    kind: str
    program: str
    target: str
    text: bytes


class Database:
    """Records in a file, those of ``path`` or (None) the user's own in the cache's folder, which may not be there yet.

    ``len(database)`` is the number of lines that can be read; ``skipped`` counts the others by the reason why they cannot.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        if path is not None and not isinstance(path, str | os.PathLike):
            raise OptionError(f"a database cannot be {escape.value(path)}", hint="give the path of a file")
        self.path = Path(path) if path is not None else default_path(make=True)
        self.skipped: Counter[str] = Counter()
        self._lines: dict[tuple[str, str], list[_Line]] = {}
        self._count = 0
        self._read = 0  # bytes of the file that were looked at
        self._file: tuple[int, int] | None = None  # device and number of the file
        self._told: set[str] = set()
        self.refresh()

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"Database({str(self.path)!r})"

    def refresh(self) -> None:
        """Read what was appended since, by whoever it was."""
        if self.path is None:
            return
        try:
            with open(os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # a FIFO must not make us wait
                _must_be_plain(file.fileno())
                facts = os.fstat(file.fileno())
                if (facts.st_dev, facts.st_ino) != self._file or facts.st_size < self._read:  # another file, or it was cut: read it from the start
                    self._lines, self._count, self._read, self._file = {}, 0, 0, (facts.st_dev, facts.st_ino)
                    self.skipped.clear()
                file.seek(self._read)
                content = file.read()
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            self.tell(f"the database {self.path} cannot be read: {getattr(error, 'strerror', None) or error}")
            return
        whole = content.rfind(b"\n") + 1  # what follows the last end of a line is being written, or was cut off
        before = sum(self.skipped.values())
        for line in content[:whole].splitlines():
            self._take(line)
        self._read += whole
        if (skipped := sum(self.skipped.values()) - before) > 0:
            self.tell(f"{skipped} of the lines of the database {self.path} are left out: {', '.join(f'{n} {why}' for why, n in self.skipped.items())}")

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        found = _checked(line)
        if isinstance(found, str):
            self.skipped[found] += 1
            return
        self._lines.setdefault((found.program, found.target), []).append(found)
        self._count += 1

    # --- asking

    def trials(self, key: Key) -> list[Record]:
        """Everything that was measured for a key, failed candidates included, in the order of the file."""
        return [r for r in self._records(key, (SCHEDULE, TRIAL)) if r.key == key]

    def best(self, key: Key) -> Record | None:
        """The fastest schedule for a key that can be replayed; None where there is none. What was said last of the same decisions counts."""
        newest = {(r.sketch, json.dumps(r.decisions, sort_keys=True, default=str)): r
                  for r in sorted(self._records(key, (SCHEDULE,)), key=lambda r: r.at) if r.key == key}
        return min((r for r in newest.values() if not r.error), key=lambda r: r.seconds, default=None)

    def choice(self, key: Key) -> ChoiceRecord | None:
        """What was measured last to be the best at nodes of a kind; None where nothing was."""
        return next((c for c in self.choices_at(key.program, key.target) if c.key == key), None)

    def choices_at(self, program: str, target: str) -> list[ChoiceRecord]:
        """What was measured last at nodes of a kind (a signature's digest) on a machine (its digest), for each number of threads and options."""
        found = [c for line in self._lines.get((program, target), ()) if line.kind == CHOICE and (c := self._parsed(line))]
        return list({c.key: c for c in sorted(found, key=lambda c: c.at)}.values())

    def choices(self, target: str) -> Iterator[ChoiceRecord]:
        """All that was measured of choices on a machine (its digest)."""
        for (_, of), lines in self._lines.items():
            for line in lines if of == target else ():
                if line.kind == CHOICE and (found := self._parsed(line)) is not None:
                    yield found

    def __iter__(self) -> Iterator[Record]:
        for lines in self._lines.values():
            for line in lines:
                if line.kind in (SCHEDULE, TRIAL) and (found := self._parsed(line)) is not None:
                    yield found

    def digest(self, target: str) -> str:
        """That of all lines that compiling for a target (its digest) may depend on; "" where there are none."""
        found = sorted({line.text for (_, of), lines in self._lines.items() if of == target for line in lines if line.kind != TRIAL})
        return hashlib.sha256(b"\n".join(found)).hexdigest()[:32] if found else ""

    def _records(self, key: Key, kinds: Iterable[str]) -> Iterator[Record]:
        for line in self._lines.get((key.program, key.target), ()):
            if line.kind in kinds and (found := self._parsed(line)) is not None:
                yield found

    def _parsed(self, line: _Line) -> Any:
        """The record in a line; None where it cannot be read."""
        try:
            return _READ[line.kind](json.loads(line.text))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            self.tell(f"a record of the database {self.path} cannot be read: {type(error).__name__}: {error}")
            return None

    # --- adding

    def append(self, *records: Record | ChoiceRecord) -> bool:
        """Add records to the file, signed with who adds them, when and with what, unless they are already. False where the disk does not take
        them, which is told once; then the file is as it was."""
        return self._write(b"".join(_line(_kind(r), r.key.program, r.key.target, _as_json(_signed(r))) for r in records))

    def _write(self, content: bytes) -> bool:
        if self.path is None:
            self.tell("nothing is kept of what was measured: there is no folder for the user's database")
            return False
        try:
            _append(self.path, content)
        except (OSError, ValueError) as error:
            self.tell(f"nothing is kept in the database {self.path}: {getattr(error, 'strerror', None) or error}")
            return False
        self.refresh()
        return True

    def tell(self, message: str) -> None:
        """Log a warning, once."""
        if message not in self._told:
            self._told.add(message)
            _log.warning("%s", escape.message(message))


def _append(path: Path, content: bytes) -> None:
    """Write lines behind what a file holds, whoever else writes to it, or nothing at all. Raises OSError, and ValueError for a name that is none."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    try:
        _must_be_plain(descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":  # somebody was killed while writing a line
            content = b"\n" + content
        try:
            if os.write(descriptor, content) != len(content):
                raise OSError(0, "the disk is full")
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def _must_be_plain(descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.EINVAL, "it is no plain file")


# --- lines


def _line(kind: str, program: str, target: str, content: Mapping[str, Any]) -> bytes:
    text = json.dumps({"kind": kind, "program": program, "target": target, "v": FORMAT, **content}, default=_plain).encode()[1:]
    return b'%s%08x", %s\n' % (_HEAD, zlib.crc32(text), text)


def _checked(line: bytes) -> _Line | str:
    """A line with its checksum right, or why it is left out."""
    start = len(_HEAD) + _SUM
    if not line.startswith(_HEAD) or line[start : start + 3] != b'", ' or not line.endswith(b"}"):
        return "cut off" if line.startswith(_HEAD) else "of another kind"
    text = line[start + 3 :]
    if b"%08x" % zlib.crc32(text) != line[len(_HEAD) : start]:
        return "damaged"
    words = text.split(b'"', 14)  # "kind": "...", "program": "...", "target": "...", "v": 1
    if words[1::4][:3] != [b"kind", b"program", b"target"] or words[13:14] != [b"v"]:
        return "of another version"
    if not words[14].startswith(b": %d," % FORMAT) or words[3].decode("ascii", "replace") not in _READ:
        return "of another version"
    return _Line(words[3].decode(), words[7].decode(), words[11].decode(), b"{" + text)


def _signed(record: Record | ChoiceRecord) -> Record | ChoiceRecord:
    return replace(record, by=record.by or _who(), at=record.at or time.time(), versions=record.versions or _versions())


@cache
def _who() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # who has no name
        user = str(os.geteuid())
    return f"{user}@{platform.node()}"


@cache
def _versions() -> dict[str, str]:
    from .. import __version__

    return {"roundel": __version__, "sources": sources()[:16]}


def _kind(record: Record | ChoiceRecord) -> str:
    return CHOICE if isinstance(record, ChoiceRecord) else TRIAL if record.trace is None else SCHEDULE


def _as_json(record: Record | ChoiceRecord) -> dict[str, Any]:
    out = {k: v for k, v in asdict(record).items() if k != "key" and v not in (None, "", (), {})}
    return {"threads": record.key.threads, "options": record.key.options, **out}


def _key(found: Mapping[str, Any]) -> Key:
    return Key(found["program"], found["target"], int(found["threads"]), found["options"])


def _choice(found: Mapping[str, Any]) -> ChoiceRecord:
    given = {n: found[n] for n in ("seconds", "subject", "by", "at", "versions", "libraries", "wrong", "crashed", "sizes") if n in found}
    return ChoiceRecord(_key(found), found["taken"], **given)


def _record(found: Mapping[str, Any]) -> Record:
    timings = tuple(Timing(tuple(t["sizes"]), t["seconds"], t["spread"], t["runs"]) for t in found.get("timings", ()))
    second = tuple(Rival(r["sketch"], r["decisions"], r["seconds"]) for r in found.get("second", ()))
    variants = tuple(Guarded(v["most"], v["sketch"], v["decisions"], v["trace"], v["size"]) for v in found.get("variants", ()))
    given = {n: found[n] for n in ("decisions", "trace", "layouts", "error", "default", "by", "at", "versions", "name") if n in found}
    return Record(_key(found), found["sketch"], timings=timings, second=second, variants=variants, **given)


_READ: dict[str, Callable[[Mapping[str, Any]], Record | ChoiceRecord]] = {SCHEDULE: _record, TRIAL: _record, CHOICE: _choice}


def _plain(value: Any) -> Any:
    """A NumPy number as Python's."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} ({type(value).__name__}) cannot be kept in a database")
