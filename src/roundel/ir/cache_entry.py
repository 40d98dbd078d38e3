# SPDX-License-Identifier: Apache-2.0
"""Files of the cache that belong together, such as a library and its weights: a folder that is made, found and verified as a whole.

``contents`` in the folder lists the files with their sizes and digests. Whoever finds the entry holds its files open, so that they
can be read when the folder has been removed or replaced since. All contents are verified when the entry is used for the first time
since the machine was started; ``verified`` says of which files that is true, by what the system tells of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import weakref
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from . import cache_folder
from .errors import BuildError, RoundelError

_CONTENTS, _VERIFIED = "contents", "verified"
_BLOCK = 4 << 20


class Entry:
    """An entry of the cache with its files open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[str, int] = {}
        self.facts: dict[str, os.stat_result] = {}
        self.close = weakref.finalize(self, _close, self.files)

    def open(self, name: str) -> bool:
        """Open one of its files; False where that cannot be."""
        descriptor = cache_folder.open_file(self.path / name)
        if descriptor is None:
            return False
        self.files[name], self.facts[name] = descriptor, os.fstat(descriptor)
        return True

    def size(self, name: str) -> int:
        """Bytes of a file."""
        return self.facts[name].st_size

    def blocks(self, name: str, begin: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The content of a file as it was when the entry was found. Raises BuildError when it has been written to since, OSError."""
        end = self.size(name) if end is None else end
        while begin < end:
            block = os.pread(self.files[name], min(_BLOCK, end - begin), begin)
            begin += len(block)
            if not block or self._written(name):
                raise BuildError(f"{self.path / name} was changed", why="a program has written to this file of the cache",
                                 hint="compile the model again")
            yield block

    def _written(self, name: str) -> bool:
        then, now = self.facts[name], os.fstat(self.files[name])
        return (then.st_size, then.st_mtime_ns) != (now.st_size, now.st_mtime_ns)

    def digest(self, name: str) -> str:
        """The SHA-256 of a file's content. Raises as ``blocks`` does."""
        found = hashlib.sha256()
        for block in self.blocks(name):
            found.update(block)
        return found.hexdigest()

    def identities(self) -> dict[str, Any]:
        """What changes when a file changes, by name; with what tells this run of the machine from others."""
        files = {name: [f.st_ino, f.st_size, f.st_mtime_ns, f.st_ctime_ns] for name, f in self.facts.items()}
        return {"boot": _boot(), "files": files}


def find(*names: str, verify: Callable[[Path], object] = Path.stat) -> Entry | None:
    """The entry kept under these names, whole and verified; None where there is none, or it is damaged. ``verify`` is called with the
    folder when all contents are to be verified, and raises RoundelError where it finds more than digests tell."""
    path, listed = cache_folder.folder(*names), cache_folder.read(*names, _CONTENTS)
    if path is None or listed is None:
        return None
    entry, contents = Entry(path), json.loads(listed)
    if not all(entry.open(name) and entry.size(name) == size for name, (size, _) in contents.items()):
        cache_folder.tell(f"a file in {path} is damaged, it is made again")
        return None
    stamp = cache_folder.read(*names, _VERIFIED)
    if stamp is None or not _boot() or json.loads(stamp) != entry.identities():
        with suppress(OSError, RoundelError):
            if all(digest is None or entry.digest(name) == digest for name, (_, digest) in contents.items()):
                verify(path)
                cache_folder.write(*names, _VERIFIED, content=json.dumps(entry.identities()).encode())
                return entry
        cache_folder.tell(f"a file in {path} is damaged, it is made again")
        return None
    return entry


def keep(folder: Path, *names: str, without_digest: Collection[str] = ()) -> bool:
    """Make a folder of ``cache_folder.new_folder`` an entry under these names, in place of what has them; whether the disk took it.
    Files ``without_digest`` are left to ``verify`` of those who find the entry."""
    place = cache_folder.folder(*names[:-1], make=True)
    if place is None:
        return False
    try:
        entry = Entry(folder)
        for path in folder.iterdir():
            path.chmod(0o600)
            if not entry.open(path.name):
                return False
        contents = {name: (entry.size(name), None if name in without_digest else entry.digest(name)) for name in sorted(entry.files)}
        cache_folder.put(folder, place / names[-1])
    except (OSError, BuildError) as error:
        cache_folder.tell(f"{'/'.join(names)} is not kept in the cache: {error}")
        return False
    cache_folder.write(*names, _VERIFIED, content=json.dumps(entry.identities()).encode())
    cache_folder.write(*names, _CONTENTS, content=json.dumps(contents).encode())  # the last: from now on it is an entry
    return True


def _close(files: dict[str, int]) -> None:
    for descriptor in files.values():
        os.close(descriptor)


@cache
def _boot() -> str:
    """What tells this run of the machine from others; empty where the system does not say, and everything is verified in every process."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
