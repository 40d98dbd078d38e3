# SPDX-License-Identifier: Apache-2.0
"""Objects on disk, by the hash of everything that determines them."""

from __future__ import annotations

import hashlib

from ..codegen import backend_of
from ..ir import cache_folder
from ..target.spec import MachineSpec


def object_key(text: str, spec: MachineSpec, pipeline: str) -> str:
    """The key of an object: text, triple, CPU, features, effort, pipeline, the compiler's version."""
    parts = (text, spec.triple, spec.cpu, spec.features, str(spec.level), pipeline, backend_of(spec.backend).version)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def load(key: str) -> bytes | None:
    """The object, or None when it is not kept, or damaged."""
    return cache_folder.read(*_names(key))


def store(key: str, content: bytes) -> None:
    """Keep an object. A disk that is full or read-only is no reason to fail."""
    cache_folder.write(*_names(key), content=content)


def _names(key: str) -> tuple[str, ...]:
    return "objects", key[:2], f"{key[2:]}.o"
