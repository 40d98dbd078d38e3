# SPDX-License-Identifier: Apache-2.0
"""Compiled models on disk: keyed by the model's content, the options and Roundel's own sources.

A model's content hash is remembered by the file's identity (path, size, time), so that the second use of a file reads
nothing of it. What is kept is the shipped form, a shared library with its weights in a mapped file beside it; loading it
imports neither onnx nor llvmlite.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from .ir import extensions, options
from .ir.errors import RoundelError

options.define("cache_size", int, 8 << 30, "bytes that compiled models may take on disk; the least recently used go first", least=0)


def model_key(source: Any, parts: Iterable[str]) -> str | None:
    """The key of a model file under these options, or None when it cannot be cached: not a file, caching is off, or the user's
    program has added operators to Roundel, of which the key would know nothing."""
    if not options.get("cache") or extensions.added() or not isinstance(source, str | os.PathLike) or not Path(source).is_file():
        return None
    digest = hashlib.sha256(content(Path(source)).encode())
    for part in (*parts, _sources(), options.shaping_code(), _machine()):
        digest.update(b"\0" + str(part).encode())
    return digest.hexdigest()[:40]


def find(key: str) -> Path | None:
    """The library kept under a key."""
    path = _home(key) / "model.so"
    if not path.is_file():
        return None
    os.utime(_home(key))
    return path


@contextmanager
def new_folder(key: str | None) -> Iterator[Path | None]:
    """A folder in which a model can be put together, for ``keep``; None without a key, or where the disk refuses."""
    folder = None
    if key is not None:
        with suppress(OSError):
            _home(key).parent.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(dir=_home(key).parent))
    try:
        yield folder
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def keep(key: str, folder: Path, write: Callable[[Path], None]) -> None:
    """Have a model written into a new folder, with ``model.so`` in it, which becomes the key's; a full or read-only disk is no reason to fail."""
    with suppress(OSError, RoundelError):
        write(folder)
        folder.rename(_home(key))
        _evict(_home(key).parent)


def _home(key: str) -> Path:
    return options.cache_dir() / "models" / key


def _evict(folder: Path) -> None:
    kept = sorted((p for p in folder.iterdir() if p.is_dir()), key=lambda p: p.stat().st_mtime, reverse=True)
    total = 0
    for p in kept:
        total += sum(f.stat().st_size for f in p.iterdir())
        if total > options.get("cache_size"):
            shutil.rmtree(p, ignore_errors=True)


def _note(path: Path) -> Path:
    """Where the hash of a file's content is remembered."""
    facts = path.stat()
    identity = hashlib.sha256(f"{path.resolve()}|{facts.st_size}|{facts.st_mtime_ns}|{facts.st_ino}|{_beside(path)}".encode()).hexdigest()
    return options.cache_dir() / "files" / identity


def is_new(path: Path) -> bool:
    """Whether a file's content was never asked for."""
    return not _note(path).is_file()


def content(path: Path) -> str:
    """The hash of a file's content (and of the external data beside it), remembered by its identity."""
    note = _note(path)
    if note.is_file():
        return json.loads(note.read_text())["sha256"]
    digest = hashlib.sha256(_beside(path).encode())
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    note.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=note.parent)
    with os.fdopen(handle, "w") as out:
        json.dump({"sha256": digest.hexdigest(), "path": str(path)}, out)
    os.replace(temporary, note)
    return digest.hexdigest()


def _beside(path: Path) -> str:
    """Identities of files that may hold the model's external data: those named after it or with the usual endings."""
    found = []
    for p in sorted(path.parent.iterdir()) if path.suffix == ".onnx" else ():
        if p != path and (p.name.startswith(path.name) or p.suffix in (".data", ".bin", ".weight")) and p.is_file():
            found.append(f"{p.name}:{p.stat().st_size}:{p.stat().st_mtime_ns}")
    return "|".join(found)


@cache
def _sources() -> str:
    """The identity of Roundel's own code."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for p in sorted(root.rglob("*.py")):
        facts = p.stat()
        digest.update(f"{p.relative_to(root)}|{facts.st_size}|{facts.st_mtime_ns}".encode())
    return digest.hexdigest()


@cache
def _machine() -> str:
    """What tells this kind of CPU from another."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        import platform

        return platform.processor() + platform.machine()
    return "\n".join(sorted({line for line in text.splitlines() if line.startswith(("model name", "flags", "Features", "CPU part"))}))
