# SPDX-License-Identifier: Apache-2.0
"""Results as JSON under ``benchmarks/results``: one file a kind of benchmark, entries found by key, the newest kept."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"
_PACKAGES = ("torch", "onnxruntime", "openvino", "apache-tvm", "numpy", "llvmlite")


def read(kind: str) -> list[dict[str, Any]]:
    """The entries of a kind (``models``, ``kernels``, ``random``); none where nothing was run."""
    path = FOLDER / f"{kind}.json"
    return json.loads(path.read_text()) if path.exists() else []


def merge(kind: str, entries: Sequence[dict[str, Any]], key: Sequence[str]) -> None:
    """Put entries into the file; those with the same values under ``key`` are replaced."""
    FOLDER.mkdir(exist_ok=True)
    identity = lambda e: tuple(str(e.get(k)) for k in key)
    kept = {identity(e): e for e in [*read(kind), *entries]}
    path = FOLDER / f"{kind}.json"
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text("[\n" + ",\n".join(json.dumps(e) for e in kept.values()) + "\n]\n")
    temporary.replace(path)


def machine() -> dict[str, Any]:
    """What the figures were measured on and with."""
    return {"cpu": _cpu(), "cores": os.cpu_count(), "python": platform.python_version(), "commit": _commit(), **versions()}


def versions() -> dict[str, str]:
    """Of the engines that are installed."""
    out = {}
    for name in _PACKAGES:
        try:
            out[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return out


def _cpu() -> str:
    from roundel.target import Target

    host = Target.host()
    return f"{host.cpu}, {host.vector_bytes * 8}-bit vectors"


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=FOLDER.parent, check=False)
    return done.stdout.strip()
