# SPDX-License-Identifier: Apache-2.0
"""What every target can do with plain vectors: multiply-add of a row by a scalar, and sums of products of four bytes in each lane."""

from __future__ import annotations

from roundel.script import tir as T

from .dots import dot
from .registry import TensorIntrin


def fma_row(lanes: int) -> TensorIntrin:
    """C[0:lanes] += a * B[0:lanes] as one vector multiply-add."""

    @T.prim_func
    def desc(A: T.Buffer((1,), "float32"), B: T.Buffer((lanes,), "float32"), C: T.Buffer((lanes,), "float32")):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:1], B[0:lanes])
            T.writes(C[0:lanes])
            for i in range(lanes):
                with T.block("fma"):
                    vi = T.axis.spatial(lanes, i)
                    C[vi] = C[vi] + A[0] * B[vi]

    @T.prim_func
    def impl(A: T.Buffer((1,), "float32"), B: T.Buffer((lanes,), "float32"), C: T.Buffer((lanes,), "float32")):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:1], B[0:lanes])
            T.writes(C[0:lanes])
            for i in T.vectorized(lanes):
                with T.block("fma"):
                    vi = T.axis.spatial(lanes, i)
                    C[vi] = T.fma(A[0], B[vi], C[vi])

    return TensorIntrin.register(f"fma_row_{lanes}", desc, impl)


for _lanes in (4, 8, 16):
    fma_row(_lanes)
    for _data in ("uint8", "int8"):
        dot("", T.dot_accumulate, _lanes, 4, (_data, "int8", "int32"))
