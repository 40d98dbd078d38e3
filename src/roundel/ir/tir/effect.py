# SPDX-License-Identifier: Apache-2.0
"""What evaluating a call may do, and which of it LLVM's intrinsics do (LLVM Language Reference Manual, "Intrinsic Functions")."""

from __future__ import annotations

from enum import Enum


class Effect(Enum):
    """What evaluating a call may do."""

    PURE = "pure"      # same operands, same value; may be dropped, moved, duplicated
    READ = "read"      # reads memory
    OPAQUE = "opaque"  # anything: never dropped, moved or duplicated


_PURE = frozenset(
    "fabs sqrt sin cos tan asin acos atan atan2 sinh cosh tanh exp exp2 exp10 log log2 log10 pow powi ldexp fma fmuladd floor ceil trunc rint nearbyint "
    "round roundeven lround llround lrint llrint minnum maxnum minimum maximum copysign canonicalize abs smin smax umin umax ctpop ctlz cttz "
    "bitreverse bswap fshl fshr sadd uadd ssub usub smul umul sshl ushl fptosi fptoui vector".split()
)
"""First parts of the names of families that compute a value of their operands and nothing else: ``sadd`` of ``llvm.sadd.sat.i32``."""

_BY_START = {
    Effect.READ: ("masked.load.", "masked.gather.", "masked.expandload.", "vp.load.", "vp.gather."),
    Effect.OPAQUE: ("mem", "masked.store.", "masked.scatter.", "masked.compressstore.", "vp.store.", "vp.scatter.", "prefetch", "x86.tile",
                    "x86.tdp", "x86.ldtilecfg"),
}

_ONLY_READS = ("x86.tileload", "x86.ldtilecfg", "prefetch")
"""Starts of the names of those that have effects, but none on the memory that they are given pointers to."""


def llvm_effect(name: str) -> Effect | None:
    """The effect of an LLVM intrinsic by its full name (``llvm.masked.store.v4f32.p0``); None for those that are not listed."""
    rest = name.removeprefix("llvm.")
    for effect, starts in _BY_START.items():
        if rest.startswith(starts):
            return effect
    return Effect.PURE if rest.split(".")[0] in _PURE else None


def llvm_writes(name: str) -> bool:
    """Whether an LLVM intrinsic may write to memory that its operands point to."""
    return not name.removeprefix("llvm.").startswith(_ONLY_READS)
