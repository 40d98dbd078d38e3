# SPDX-License-Identifier: Apache-2.0
"""The sum of four products of bytes on processors without vectors, one multiply-add after the other.

No instruction of its own stands behind it: it lets models of 8-bit integers stay what they are where memory is short, with the tiles and the layouts of
those that have one.
"""

from __future__ import annotations

from roundel.script import tir as T

from .dots import SHORT
from .registry import SCALAR, Cost, TensorIntrin

GROUP = 4


def _scalar_dot(data: str) -> TensorIntrin:
    """C[0] += sum over k < 4 of A[k] * B[0, k]; weights are signed bytes."""

    @T.prim_func
    def desc(A: T.Buffer((GROUP,), data), B: T.Buffer((1, GROUP), "int8"), C: T.Buffer((1,), "int32")):
        with T.block("root"):
            T.reads(C[0:1], A[0:GROUP], B[0:1, 0:GROUP])
            T.writes(C[0:1])
            for i in range(1):
                for k in range(GROUP):
                    with T.block("dot"):
                        vi = T.axis.spatial(1, i)
                        vk = T.axis.reduce(GROUP, k)
                        C[vi] = C[vi] + T.cast(A[vk], "int32") * T.cast(B[vi, vk], "int32")

    @T.prim_func
    def impl(A: T.Buffer((GROUP,), data), B: T.Buffer((1, GROUP), "int8"), C: T.Buffer((1,), "int32")):
        with T.block("root"):
            T.reads(C[0:1], A[0:GROUP], B[0:1, 0:GROUP])
            T.writes(C[0:1])
            C[0] = (
                C[0]
                + T.cast(A[0], "int32") * T.cast(B[0, 0], "int32")
                + T.cast(A[1], "int32") * T.cast(B[0, 1], "int32")
                + T.cast(A[2], "int32") * T.cast(B[0, 2], "int32")
                + T.cast(A[3], "int32") * T.cast(B[0, 3], "int32")
            )

    name = f"{SCALAR}.dot_1x{GROUP}_{SHORT[data]}i8i32"
    return TensorIntrin.register(name, desc, impl, needs=(SCALAR,), cost=Cost(latency=4.0, slots=4.0))


for _data in ("uint8", "int8"):
    _scalar_dot(_data)
