# SPDX-License-Identifier: Apache-2.0
"""Simulators in C as libraries: models call them, and Python reads their counters."""

from __future__ import annotations

import ctypes
import hashlib
import re
import tempfile
from pathlib import Path

from roundel.backends import Library
from roundel.runtime.toolchain import compiler, run

STATUSES = {1: "an access outside of a memory", 2: "a race between engines", 3: "a value that was never written", 4: "engines that wait forever",
            5: "an address that is not aligned", 6: "signals that nobody waited for"}
"""What ``finish`` of a simulator returns: what it trapped (engines.h)."""


class Counters(ctypes.Structure):
    """What a simulator counts (``counters_t`` of engines.h)."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("cycles", "products", "bytes_in", "bytes_out", "instructions")] + [("busy", ctypes.c_uint64 * 4)]


def simulated(name: str, source: Path, functions: str) -> Library:
    """The simulator ``source`` as a library, compiled once. ``functions`` declares what models call of it, such as ``void sim_load(...)``; they call it
    ``name_load``."""
    text = source.read_bytes() + (source.parent.parent / "engines.h").read_bytes()
    made = Path(tempfile.gettempdir()) / f"roundel-{name}-{hashlib.sha256(text).hexdigest()[:16]}.so"
    if not made.exists():
        beside = made.with_suffix(f".{id(made)}")
        run([*compiler(), "-O2", "-shared", "-fPIC", "-pthread", str(source), "-o", str(beside)])
        beside.replace(made)
    bodies = []
    for declared in [d.strip() for d in functions.split(";") if d.strip()]:
        signature = re.fullmatch(r"(\w+) sim_(\w+)\((.*)\)", declared)
        if signature is None:
            raise ValueError(f"{declared} declares no function sim_...")
        result, own, parameters = signature.groups()
        given = [] if parameters == "void" else [re.findall(r"\w+", p)[-1] for p in parameters.split(",")]
        bodies.append(f"{result} {name}_{own}({parameters}) {{ {'' if result == 'void' else 'return '}sim_{own}({', '.join(given)}); }}")
    return Library(name, functions, "\n".join(bodies), str(made))


def counted(library: Library) -> Counters:
    """What was counted since the last ``reset``."""
    handle = ctypes.CDLL(library.places[0])
    handle.sim_counters.restype = ctypes.POINTER(Counters)
    return Counters.from_buffer_copy(handle.sim_counters().contents)


def reset(library: Library) -> None:
    """Count from 0."""
    ctypes.CDLL(library.places[0]).sim_reset()
