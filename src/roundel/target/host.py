# SPDX-License-Identifier: Apache-2.0
"""This machine, from what the operating system says and what was measured; LLVM is asked for the CPU's name once, the answer kept on disk."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import os
import platform
from pathlib import Path
from typing import Any

from ..ir import cache_folder, options
from ..ir.processors import this_family
from .machines import MACHINES
from .target import Target, TargetLike

_SYS = Path("/sys/devices/system/cpu")
_STEPS = ("avx2", "avx512f", "avx512vbmi2", "avx512bf16", "avx512fp16", "amx-tile")  # features by which generations of processors differ
_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18  # of the system call on x86-64, what it is to do, and the state that it is about


def host() -> Target:
    """The target that describes this machine and this process's share of it, with the rates that were measured, if they ever were."""
    if options.get("rates") == "table":
        return described()
    from .profile import known

    return known(described())


def target_for(given: TargetLike | None, nbytes: float) -> Target:
    """What a target that was given is, for a model with so many bytes of constants; None is this machine (`host_for`)."""
    if given is None:
        return host_for(nbytes)
    return given if isinstance(given, Target) else Target(given)


def host_for(nbytes: float) -> Target:
    """This machine, for a model with so many bytes of constants. Where they are more than the second-level cache holds, it matters how fast
    they are read from beyond it: that is measured now, if it never was (in two seconds at most)."""
    if options.get("rates") == "table":
        return described()
    from .profile import known, measured

    return measured(described()) if nbytes > described().l2_bytes else known(described())


@functools.cache
def described() -> Target:
    """This machine with the rates that the table tells."""
    known = _ask_llvm()
    cpu = _named(known["cpu"], set(known["features"])) if _is_x86() else known["cpu"]
    base = MACHINES.get(cpu) or (MACHINES[_nearest(set(known["features"]))] if _is_x86() else {})
    caches = _caches()
    if _is_virtual() and {"l3_bytes"} <= caches.keys() & base.keys():
        caches["l3_bytes"] = min(caches["l3_bytes"], base["l3_bytes"])
    found = {
        "triple": known["triple"],
        "features": tuple(f for f in known["features"] if not f.startswith("amx-") or _allows_tiles()),
        "cores": usable_cores(),
        **caches,
        **_frequency(),
    }
    vector = {} if not _is_x86() else _x86_vectors(set(known["features"]), base)
    return Target(
        {**{k: v for k, v in base.items() if k != "cpu"}, **found, **vector, "kind": "llvm", "cpu": cpu}
    )


def last_cache() -> int:
    """Bytes of the last cache that the system tells of, which others may use too (`roundel.target.profile` measures what is left); 0 where it tells none."""
    return _caches().get("l3_bytes", 0)


def _is_virtual() -> bool:
    """Whether this is a virtual machine: it is told of the whole last cache of a processor that it shares with strangers."""
    return "hypervisor" in _cpuinfo_head().split()


def _is_x86() -> bool:
    return this_family() in ("x86_64", "i686")


@functools.cache
def _allows_tiles() -> bool:
    """Whether Linux lets this process use the tile registers of AMX, for which it wants to be asked (arch_prctl, ARCH_REQ_XCOMP_PERM)."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0


def _named(cpu: str, features: set[str]) -> str:
    """The processor's name, by what it can do. LLVM goes by the numbers of family and model, which hypervisors make up: its name is believed where the
    table's machine of this name has each of the large steps that this one has, else it is that of the machine that is nearest and has them."""
    steps = features.intersection(_STEPS)
    if cpu in MACHINES and steps <= set(MACHINES[cpu]["features"]):
        return cpu
    near = _nearest(features)
    return near if steps and steps <= set(MACHINES[near]["features"]) else cpu


def _nearest(features: set[str]) -> str:
    """Of the machines whose features are all there the one that has the most; the generic ones are the first of those that have as many.
    SSE2 is part of the architecture."""
    fitting = [n for n, m in MACHINES.items() if m["triple"].startswith("x86_64") and set(m["features"]) <= {"sse2", *features}]
    return max(fitting, key=lambda n: len(MACHINES[n]["features"]))


def _x86_vectors(features: set[str], base: dict[str, Any]) -> dict[str, int]:
    """A hypervisor may hide features that the CPU's name implies."""
    if "avx512f" in features and "avx512vl" in features:
        return {}
    width = min(base.get("vector_bytes", 16), 32 if "avx2" in features else 16)
    return {"vector_bytes": width, "vector_registers": 16}


def _ask_llvm() -> dict[str, Any]:
    """Name, features and triple of the CPU, remembered for as long as the CPU describes itself alike."""
    key = hashlib.sha256(f"4{platform.machine()}{platform.system()}{_cpuinfo_head()}".encode()).hexdigest()[:16]
    name = f"host-{key}.json"
    if (remembered := cache_folder.read(name)) is not None:
        return json.loads(remembered)
    answer = _ask_llvm_now()
    cache_folder.write(name, content=json.dumps(answer).encode())
    return answer


def _ask_llvm_now() -> dict[str, Any]:
    import llvmlite.binding as llvm

    present = {name for name, there in llvm.get_host_cpu_features().items() if there}
    if this_family() == "aarch64":
        present.add("neon")  # all have it that Linux runs on; LLVM reads /proc/cpuinfo, which containers may hide
    return {"cpu": llvm.get_host_cpu_name(), "triple": llvm.get_process_triple(), "features": sorted(present)}


def _cpuinfo_head() -> str:
    """Model and flags of the first CPU; the lines that do not change while the machine runs."""
    stable = (
        "vendor_id",
        "cpu family",
        "model",
        "stepping",
        "flags",
        "Features",
        "CPU part",
        "CPU implementer",
        "isa",
        "uarch",
    )
    lines = []
    for line in _read(Path("/proc/cpuinfo")).split("\n\n")[0].splitlines():
        if line.split("\t")[0].split(":")[0].strip() in stable:
            lines.append(line)
    return "\n".join(lines) or platform.processor()


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _caches() -> dict[str, int]:
    """Sizes, ways and lines of the data caches, as far as the system tells plausible ones."""
    found = {}
    for folder in sorted(_SYS.glob("cpu0/cache/index*")):
        level, kind, size, ways, line = (_read(folder / n).strip() for n in ("level", "type", "size", "ways_of_associativity", "coherency_line_size"))
        if kind in ("Data", "Unified") and level in ("1", "2", "3") and size[:-1].isdigit():
            found[f"l{level}_bytes"] = int(size[:-1]) * {"K": 1 << 10, "M": 1 << 20}.get(size[-1], 1)
            if level != "3" and ways.isdigit() and int(ways) > 1:
                found[f"l{level}_ways"] = int(ways)
            if line.isdigit() and int(line) >= 16:
                found["line_bytes"] = int(line)
    return found


def _frequency() -> dict[str, float]:
    """The highest frequency, where the system tells one; what /proc/cpuinfo shows at a moment is no such figure."""
    text = _read(_SYS / "cpu0/cpufreq/cpuinfo_max_freq").strip()
    return {"frequency_ghz": int(text) / 1e6} if text.isdigit() else {}


def usable_cores() -> int:
    """Physical cores that this process may use: affinity, hyperthreads and the control group's quota considered."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    cores = {min(_siblings(cpu) & allowed or {cpu}) for cpu in allowed}
    quota = _quota()
    return max(1, min(len(cores), round(quota)) if quota else len(cores))


def _siblings(cpu: int) -> set[int]:
    found: set[int] = set()
    for part in _read(_SYS / f"cpu{cpu}/topology/thread_siblings_list").strip().split(","):
        low, _, high = part.partition("-")
        if low.isdigit():
            found.update(range(int(low), int(high or low) + 1))
    return found or {cpu}


def _quota() -> float | None:
    """The tightest limit, in cores, of this process's control group and those around it (version 2)."""
    tightest = None
    for line in _read(Path("/proc/self/cgroup")).splitlines():
        if not line.startswith("0::"):
            continue
        group = Path("/sys/fs/cgroup") / line[3:].lstrip("/")
        for folder in (group, *group.parents):
            words = _read(folder / "cpu.max").split()
            if len(words) == 2 and words[0].isdigit() and int(words[1]):
                limit = int(words[0]) / int(words[1])
                tightest = limit if tightest is None else min(tightest, limit)
    return tightest
