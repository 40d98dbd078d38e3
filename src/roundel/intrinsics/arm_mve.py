# SPDX-License-Identifier: Apache-2.0
"""Sums of sixteen or eight products of bytes, in a register of integers, on Arm processors with vectors of 128 bits for microcontrollers (MVE: VMLADAVA).

Eight bytes become numbers of 16 bits where they are loaded, which takes no instruction of its own. C source for boards has functions for these sums
(``codegen/c/vectors.h``), which RISC-V's vectors compute as well, by a product and a reduction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel.interp.llvm_meanings import define_meaning
from roundel.ir import tir
from roundel.script import tir as T

from .registry import SCALAR, Cost, TensorIntrin

MVE = "mve.fp"
"""LLVM's name of the extension, with floats."""


def _sum(unsigned: Any, subtract: Any, exchange: Any, total: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of signed numbers; ``unsigned``, ``subtract`` and ``exchange`` are 0."""
    return (total + (a.astype(np.int32) * b.astype(np.int32)).sum(-1, keepdims=True, dtype=np.int32)).astype(np.int32)


def _dot(group: int, dtype: str) -> TensorIntrin:
    """C[0] += sum over k < group of A[k] * B[k], which are multiplied as numbers of type ``dtype``."""
    name = f"llvm.arm.mve.vmldava.v{group}i{128 // group}"
    define_meaning(name, _sum)

    @T.prim_func
    def desc(A: T.Buffer((group,), "int8"), B: T.Buffer((group,), "int8"), C: T.Buffer((1,), "int32")):
        with T.block("root"):
            T.reads(C[0:1], A[0:group], B[0:group])
            T.writes(C[0:1])
            for k in range(group):
                with T.block("dot"):
                    vk = T.axis.reduce(group, k)
                    C[0] = C[0] + T.cast(A[vk], "int32") * T.cast(B[vk], "int32")

    @T.prim_func
    def impl(A: T.Buffer((group,), "int8"), B: T.Buffer((group,), "int8"), C: T.Buffer((1,), "int32")):
        with T.block("root"):
            T.reads(C[0:1], A[0:group], B[0:group])
            T.writes(C[0:1])
            C[0] = T.call_llvm_pure_intrin("int32", name, *[T.int32(0)] * 3, C[0], *(tir.cast(x[T.Ramp(0, 1, group)], f"{dtype}x{group}") for x in (A, B)))

    TensorIntrin.register(f"rvv.dot_{group}_i8i8i32", desc, impl, needs=("v", SCALAR), cost=Cost(latency=8.0, slots=3.0))
    return TensorIntrin.register(f"mve.dot_{group}_i8i8i32", desc, impl, needs=(MVE,), cost=Cost(latency=2.0))


_dot(16, "int8")
_dot(8, "int16")
