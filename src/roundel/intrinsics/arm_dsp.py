# SPDX-License-Identifier: Apache-2.0
"""Products of pairs of 16-bit numbers in registers of integers, on Arm processors without vectors (DSP extension of Armv7E-M and Armv8-M: SMLAD, SXTB16).

One instruction adds two products. Bytes are made of 16 bits two at a time, those with an even number first: so weights stay bytes, and data that is
multiplied with many of them is widened before, its even elements in one word and its odd ones in the next.
"""

from __future__ import annotations

import numpy as np

from roundel.interp.llvm_meanings import define_meaning
from roundel.ir import tir
from roundel.script import tir as T

from .registry import Cost, TensorIntrin

DSP = "dsp"
"""LLVM's name of the extension."""


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    words = x.astype(np.int32)
    return words.astype(np.int16).astype(np.int32), words >> 16


def _sum_of_pairs(a: np.ndarray, b: np.ndarray, total: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return (total + sum((x * y for x, y in zip(_halves(a), _halves(b), strict=True)), start=np.int32(0))).astype(np.int32)


def _widened(x: np.ndarray) -> np.ndarray:
    low, high = (half.astype(np.int8).astype(np.int32) for half in (x.astype(np.int32), x.astype(np.int32) >> 16))
    return (low & 0xFFFF) | (high << 16)


define_meaning("llvm.arm.smlad", _sum_of_pairs)
define_meaning("llvm.arm.sxtb16", _widened)


def _pairs() -> TensorIntrin:
    """C[0] += sum over x, y < 2 of A[y, x] * B[x, y]: of four neighbours (2 * x + y) of the weights, the even ones of the data come first."""

    @T.prim_func
    def desc(A: T.Buffer((2, 2), "int16"), B: T.Buffer((2, 2), "int8"), C: T.Buffer((1,), "int32")):
        with T.block("root"):
            T.reads(C[0:1], A[0:2, 0:2], B[0:2, 0:2])
            T.writes(C[0:1])
            for y, x in T.grid(2, 2):
                with T.block("dot"):
                    vy, vx = T.axis.remap("RR", [y, x])
                    C[0] = C[0] + T.cast(A[vy, vx], "int32") * T.cast(B[vx, vy], "int32")

    @T.prim_func
    def impl(A: T.Buffer((2, 2), "int16"), B: T.Buffer((2, 2), "int8"), C: T.Buffer((1,), "int32")):
        with T.block("root"):
            T.reads(C[0:1], A[0:2, 0:2], B[0:2, 0:2])
            T.writes(C[0:1])
            C[0] = _products(A, B, C[0])

    return TensorIntrin.register("dsp.pairs_4_i16i8i32", desc, impl, needs=(DSP,), cost=Cost(latency=2.0, slots=2.0))


def _products(a: tir.Buffer, b: tir.Buffer, total: tir.Expr) -> tir.Expr:
    word = lambda load: T.reinterpret("int32", load)
    weights = T.reinterpret("int32", T.Shuffle([b[x, T.Ramp(0, 1, 2)] for x in range(2)], list(range(4))))
    intrinsic = lambda name, *args: T.call_llvm_pure_intrin("int32", f"llvm.arm.{name}", *args)
    even = intrinsic("smlad", word(a[0, T.Ramp(0, 1, 2)]), intrinsic("sxtb16", weights), total)
    odd = intrinsic("sxtb16", T.reinterpret("int32", T.shift_right(T.reinterpret("uint32", weights), T.uint32(8))))
    return intrinsic("smlad", word(a[1, T.Ramp(0, 1, 2)]), odd, even)


_pairs()
