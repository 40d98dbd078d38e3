# SPDX-License-Identifier: Apache-2.0
"""Results as JSON under ``benchmarks/results``: one file a kind of benchmark, entries found by machine and key, the newest kept."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"
_PACKAGES = ("torch", "onnxruntime", "openvino", "apache-tvm", "numpy", "llvmlite")


def read(kind: str) -> list[dict[str, Any]]:
    """The entries of a kind (``models``, ``kernels``, ``random``); none where nothing was run."""
    path = FOLDER / f"{kind}.json"
    return json.loads(path.read_text()) if path.exists() else []


def read_here(kind: str) -> list[dict[str, Any]]:
    """Those of this machine, and those that do not say of which they are."""
    return [e for e in read(kind) if machine_name(e) in ("", here())]


def merge(kind: str, entries: Sequence[dict[str, Any]], key: Sequence[str]) -> None:
    """Put entries into the file; those of the same machine with the same values under ``key`` are replaced."""
    FOLDER.mkdir(exist_ok=True)
    identity = lambda e: (machine_name(e), *(str(e.get(k)) for k in key))
    kept = {identity(e): e for e in [*read(kind), *({"machine": this_machine(), **e} for e in entries)]}
    path = FOLDER / f"{kind}.json"
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text("[\n" + ",\n".join(json.dumps(e) for e in kept.values()) + "\n]\n")
    temporary.replace(path)


def by_machine(entries: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The entries of each machine, in the order in which machines came."""
    out: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        out.setdefault(machine_name(entry), []).append(entry)
    return out


def machine_name(entry: dict[str, Any]) -> str:
    """The machine of an entry as people call it: ``AMD Zen 5, 512-bit vectors, 2 cores``; empty where the entry does not say."""
    told = entry.get("machine")
    return f"{re.sub('^znver', 'AMD Zen ', told['cpu'])}, {told['cores']} cores" if told else ""


def chart_name(kind: str, name: str) -> str:
    """The name of a machine's chart: that of the machine that was first measured is the kind alone."""
    first = next(iter(by_machine(read(kind))), name)
    return kind if name == first else "-".join([kind, *re.findall(r"[a-z0-9]+", name.partition(",")[0].lower())])


def here() -> str:
    """The name of the machine that runs this."""
    return machine_name({"machine": this_machine()})


def ceilings(name: str) -> dict[str, float]:
    """GFLOP/s of a core and GB/s of each memory, as they were measured with the roofline's kernels of a machine; empty where they were not."""
    return next((x["ceilings"] for x in reversed(read("roofline")) if machine_name(x) == name and "ceilings" in x), {})


def machine() -> dict[str, Any]:
    """What the figures were measured on and with."""
    return {**this_machine(), "python": platform.python_version(), "commit": _commit(), **versions()}


def this_machine() -> dict[str, Any]:
    """What tells the machine that runs this from others."""
    return {"cpu": _cpu(), "cores": os.cpu_count()}


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
    name = "Intel Xeon with AMX" if host.has("amx-tile") else host.cpu  # LLVM may take one for a desktop processor of its time
    return f"{name}, {host.vector_bytes * 8}-bit vectors"


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=FOLDER.parent, check=False)
    return done.stdout.strip()
