# SPDX-License-Identifier: Apache-2.0
"""Dot products of 8-bit integers into 32-bit accumulators (AVX-512 VNNI, AVX-VNNI; others expand them)."""

from __future__ import annotations

from roundel.script import tir as T

from .registry import TensorIntrin


def dot_4(lanes: int, data: str, weight: str) -> TensorIntrin:
    """C[i] += sum over k < 4 of A[k] * B[i, k], for ``lanes`` values of i."""

    @T.prim_func
    def desc(A: T.Buffer((4,), data), B: T.Buffer((lanes, 4), weight), C: T.Buffer((lanes,), "int32")):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:4], B[0:lanes, 0:4])
            T.writes(C[0:lanes])
            for i in range(lanes):
                for k in range(4):
                    with T.block("dot"):
                        vi = T.axis.spatial(lanes, i)
                        vk = T.axis.reduce(4, k)
                        C[vi] = C[vi] + T.cast(A[vk], "int32") * T.cast(B[vi, vk], "int32")

    @T.prim_func
    def impl(A: T.Buffer((4,), data), B: T.Buffer((lanes, 4), weight), C: T.Buffer((lanes,), "int32")):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:4], B[0:lanes, 0:4])
            T.writes(C[0:lanes])
            C[T.Ramp(0, 1, lanes)] = T.dot_accumulate(
                C[T.Ramp(0, 1, lanes)],
                T.Shuffle([A[T.Ramp(0, 1, 4)]], [k % 4 for k in range(4 * lanes)]),
                T.Shuffle([B[i, T.Ramp(0, 1, 4)] for i in range(lanes)], list(range(4 * lanes))),
            )

    return TensorIntrin.register(f"dot_{lanes}x4_{data[0]}8{weight[0]}8i32", desc, impl)


for _lanes in (4, 8, 16):
    dot_4(_lanes, "uint8", "int8")
    dot_4(_lanes, "int8", "int8")
