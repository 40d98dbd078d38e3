# SPDX-License-Identifier: Apache-2.0
"""The files that a model is made of, its own and those of its external data: whether they changed, and the hash of their content.

The hash is remembered in the cache with what the system tells of the files (size, times, inode), so that the second use of a model
reads nothing of it. A file that was written within two seconds before it was read is read again, because times are coarse: it
may have been written once more without looking different (as Git treats its index).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from functools import cached_property
from pathlib import Path
from typing import Any

from .ir import cache_folder
from .ir.errors import ModelError

_COARSE = 2 * 10**9  # nanoseconds
_Facts = list[int] | None  # of a file: inode, device, size, time of its content, time of its inode; None: there is no such file


class ModelFiles:
    """A model's file and the external data that it names, as they are now."""

    def __init__(self, path: Path) -> None:
        """Raises OSError when there is no such file."""
        self.path = Path(os.path.abspath(path))
        self.seen_at = time.time_ns()
        self._note = "files", hashlib.sha256(os.fsencode(self.path)).hexdigest()
        note = cache_folder.read(*self._note)
        noted: dict[str, Any] = json.loads(note) if note is not None else {}
        self.facts = self._look(noted.get("files", {""}))
        self.known = self.facts == noted.get("files") and noted["seen_at"] - _latest(self.facts) > _COARSE
        self._digests: dict[str, str] = noted["digests"] if self.known else {}
        if not self.known:
            from .frontend.onnx.external import files

            self.facts = self._look(("", *files(self.path)))

    @property
    def nbytes(self) -> int:
        """Bytes of all files."""
        return sum(facts[2] for facts in self.facts.values() if facts is not None)

    @cached_property
    def content(self) -> str:
        """The hash of all that the files hold. Raises ModelError when they change meanwhile, OSError."""
        present = [name for name, facts in self.facts.items() if facts is not None]
        digests = {name: self.digest(name) for name in present}
        if not self.known:
            self.check_unchanged("while it was read")
            note = {"files": self.facts, "digests": digests, "seen_at": self.seen_at}
            cache_folder.write(*self._note, content=json.dumps(note).encode())
        return hashlib.sha256(repr(sorted(digests.items())).encode(errors="replace")).hexdigest()

    def digest(self, name: str = "") -> str:
        """The SHA-256 of one file, of the model's own without a ``name``. Raises OSError."""
        if name not in self._digests:
            with self._place(name).open("rb") as file:
                self._digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._digests[name]

    def check_unchanged(self, when: str = "while it was compiled") -> None:
        """Raises ModelError when a file has been replaced or written to."""
        now = self._look(self.facts)
        for name, facts in self.facts.items():
            then, here = (f and f[:4] for f in (facts, now[name]))  # the last is a matter of names and rights too
            if then != here:
                raise ModelError(f"{self._place(name)} changed {when}", hint="compile again when it is complete")

    def _look(self, names: Any) -> dict[str, _Facts]:
        return {name: _facts(self._place(name)) for name in names}

    def _place(self, name: str) -> Path:
        return self.path.parent / name if name else self.path


def _facts(path: Path) -> _Facts:
    try:
        found = path.stat()
    except (OSError, ValueError):  # also a name that none can be
        return None
    return [found.st_ino, found.st_dev, found.st_size, found.st_mtime_ns, found.st_ctime_ns] if stat.S_ISREG(found.st_mode) else None


def _latest(facts: dict[str, _Facts]) -> int:
    """When any of the files was last written to, as far as the system tells."""
    return max(t for f in facts.values() if f is not None for t in f[3:])
