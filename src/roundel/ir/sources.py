# SPDX-License-Identifier: Apache-2.0
"""Which Roundel this is: what is kept on disk says by which code it was made."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache


@cache
def sources() -> str:
    """The identity of Roundel's own code."""
    return hashlib.sha256("\n".join(sorted(_files(os.path.dirname(os.path.dirname(__file__)), ""))).encode()).hexdigest()


def _files(folder: str, inside: str) -> Iterator[str]:
    """The name, size and time of each file of Python in a folder. Every compile asks, so this makes no object for a path."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                facts = entry.stat()
                yield f"{inside}{entry.name}|{facts.st_size}|{facts.st_mtime_ns}"
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _files(entry.path, f"{inside}{entry.name}/")
