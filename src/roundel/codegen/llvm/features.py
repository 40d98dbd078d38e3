# SPDX-License-Identifier: Apache-2.0
"""Features of processors that a library checks for when it is opened."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from ...target.spec import MachineSpec

# LLVM's names of the features that code needs which was generated with them, so that the runtime checks for them (csrc/cpu.c); the rest come with
# these or are not used by choice
CHECKED = (
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512vnni",
    "avx512bf16",
    "avx512fp16",
    "avx512vbmi",
    "avxvnni",
    "avx2",
    "fma",
    "f16c",
    "bmi2",
    "avx",
    "sse4.2",
    "amx-int8",
    "amx-bf16",
    "neon",
    "dotprod",
    "i8mm",
    "sve",
    "sve128",
    "sve256",
    "sve512",
    "bf16",
    "fullfp16",
    "avx512bitalg",
    "avx512cd",
    "avx512ifma",
    "avx512vbmi2",
    "avx512vpopcntdq",
    "avxifma",
    "avxneconvert",
    "avxvnniint8",
    "bmi",
    "fma4",
    "gfni",
    "lse",
    "lzcnt",
    "movbe",
    "popcnt",
    "rdm",
    "sse2",
    "sse3",
    "sse4.1",
    "ssse3",
    "sve2",
    "v",
    "vfp3",
    "vfp4",
    "xop",
)

_SVE_LENGTH = re.compile(r"sve(128|256|512)")  # bits of SVE's vectors, which LLVM is told by an attribute of functions


def of_llvm(features: str) -> str:
    """Signed features with commas between them, without the names that only Roundel has: ``sve256``."""
    return ",".join(f for f in features.split(",") if not _SVE_LENGTH.fullmatch(f[1:]))


def vector_length(features: Collection[str]) -> str:
    """The attribute of functions for machines whose scalable vectors all have one length: empty, or `` vscale_range(2,2)`` for vectors of 256 bits."""
    found = next(filter(None, map(_SVE_LENGTH.fullmatch, features)), None)
    return f" vscale_range({int(found[1]) // 128},{int(found[1]) // 128})" if found else ""


_BY_NAME = {"amx-int8": ("llvm.x86.tdpbss", "llvm.x86.tdpbsu", "llvm.x86.tdpbus", "llvm.x86.tdpbuu"), "amx-bf16": ("llvm.x86.tdpbf16",)}
"""Those of which only instructions have a use that programs call by name, as starts of LLVM's names of these."""


def checked_features(spec: MachineSpec, called: Callable[[], Collection[str]] | None = None) -> list[str]:
    """The features of a CPU without which a library for that machine is not opened. ``called`` tells the instructions that are called by name in it, by
    default any."""
    found = [name for name in CHECKED if f"+{name}" in spec.features.split(",")]
    if called is None or not _BY_NAME.keys() & set(found):
        return found
    names = called()
    return [f for f in found if f not in _BY_NAME or any(n.startswith(_BY_NAME[f]) for n in names)]
