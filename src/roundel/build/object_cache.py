# SPDX-License-Identifier: Apache-2.0
"""Objects on disk, by the hash of everything that determines them."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from ..codegen.llvm import MachineSpec, llvm_version
from ..ir import options


def object_key(text: str, spec: MachineSpec, pipeline: str) -> str:
    """The key of an object: text, triple, CPU, features, effort, pipeline, LLVM's version."""
    parts = (text, spec.triple, spec.cpu, spec.features, str(spec.level), pipeline, llvm_version())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _path(key: str) -> Path:
    return options.cache_dir() / "objects" / key[:2] / f"{key[2:]}.o"


def load(key: str) -> bytes | None:
    """The object, or None when it is not kept."""
    if not options.get("cache"):
        return None
    try:
        return _path(key).read_bytes() or None
    except OSError:
        return None


def store(key: str, content: bytes) -> None:
    """Keep an object. A disk that is full or read-only is no reason to fail."""
    if not options.get("cache"):
        return
    path = _path(key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        return
