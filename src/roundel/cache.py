# SPDX-License-Identifier: Apache-2.0
"""Compiled models on disk: keyed by the model's content, the options and Roundel's own sources.

What is kept is the shipped form, a shared library with its weights in a mapped file beside it; loading it imports neither onnx nor
llvmlite.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from .ir import cache_entry, cache_folder, extensions, options
from .ir.errors import RoundelError
from .ir.sources import sources
from .model_files import ModelFiles

_MODELS = "models"


def model_key(files: ModelFiles | None, parts: Iterable[str]) -> str | None:
    """The key of a model's files under these options, or None when it cannot be cached: not a file, there is no cache, or the user's
    program has added operators to Roundel, of which the key would know nothing. Raises ModelError when the files change meanwhile."""
    if files is None or extensions.added() or cache_folder.folder(make=True) is None:
        return None
    digest = hashlib.sha256(files.content.encode())
    for part in (*parts, sources(), options.shaping_code(), _machine()):
        digest.update(b"\0" + str(part).encode())
    return digest.hexdigest()[:40]


def find(key: str) -> cache_entry.Entry | None:
    """What is kept under a key, with the library ``model.so`` in it."""
    found = cache_entry.find(_MODELS, key, verify=_verify)
    if found is not None:
        with suppress(OSError):
            os.utime(found.path)
    return found


def keep(key: str, folder: Path, write: Callable[[Path], None], check: Callable[[], None]) -> cache_entry.Entry | None:
    """Have a model written into a new folder, with ``model.so`` in it, which becomes the key's; None where it cannot be kept. ``check``
    raises when what was written is no good, and so does this."""
    try:
        write(folder)
    except OSError as error:
        cache_folder.tell(f"a model is not kept in the cache: {error.strerror}")
        return None
    except RoundelError:  # a model that cannot be shipped
        return None
    check()
    if not cache_entry.keep(folder, _MODELS, key, without_digest=("model.weights",)):  # the library has it
        return None
    _evict(key)
    return find(key)


def _verify(folder: Path) -> None:
    from .runtime.integrity import check_file

    check_file(folder / "model.so", contents=True)


def _evict(newest: str) -> None:
    """Remove the entries that were not used for the longest time, until the others fit."""
    place = cache_folder.folder(_MODELS)
    kept: list[tuple[bool, float, int, Path]] = []
    for path in place.iterdir() if place is not None else ():
        with suppress(OSError):  # another process may remove it meanwhile
            size = sum(f.stat().st_size for f in path.iterdir()) if path.is_dir() else 0
            kept.append((path.name == newest, path.stat().st_mtime, size, path))
    left = options.get("cache_size")
    for _, _, size, path in sorted(kept, reverse=True):
        left -= size
        if left < 0:
            with suppress(OSError):
                cache_folder.remove(path)


@cache
def _machine() -> str:
    """What tells this kind of CPU from another."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        import platform

        return platform.processor() + platform.machine()
    return "\n".join(sorted({line for line in text.splitlines() if line.startswith(("model name", "flags", "Features", "CPU part"))}))
