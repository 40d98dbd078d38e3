# SPDX-License-Identifier: Apache-2.0
"""Products of small matrices in one 128-bit vector each (Arm A64: SMMLA, UMMLA, USMMLA of FEAT_I8MM, BFMMLA of FEAT_BF16)."""

from __future__ import annotations

import numpy as np

from roundel.interp.llvm_meanings import define_meaning
from roundel.script import tir as T

from .dots import SHORT
from .registry import Cost, TensorIntrin

SIDE = 2  # rows of each of the three matrices


def matrix_product(prefix: str, name: str, depth: int, types: tuple[str, str, str], needs: tuple[str, ...], cost: Cost,
                   flushes_denormals: bool = False) -> TensorIntrin:
    """C[i, j] += sum over k < depth of A[i, k] * B[j, k] of two rows each, by the LLVM intrinsic of this name."""
    left, right, total = types

    @T.prim_func
    def desc(A: T.Buffer((SIDE, depth), left), B: T.Buffer((SIDE, depth), right), C: T.Buffer((SIDE, SIDE), total)):
        with T.block("root"):
            T.reads(C[0:SIDE, 0:SIDE], A[0:SIDE, 0:depth], B[0:SIDE, 0:depth])
            T.writes(C[0:SIDE, 0:SIDE])
            for i, j, k in T.grid(SIDE, SIDE, depth):
                with T.block("product"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], total) * T.cast(B[vj, vk], total)

    @T.prim_func
    def impl(A: T.Buffer((SIDE, depth), left), B: T.Buffer((SIDE, depth), right), C: T.Buffer((SIDE, SIDE), total)):
        with T.block("root"):
            T.reads(C[0:SIDE, 0:SIDE], A[0:SIDE, 0:depth], B[0:SIDE, 0:depth])
            T.writes(C[0:SIDE, 0:SIDE])
            S = T.alloc_buffer((SIDE * SIDE,), total, scope="local")
            S[T.Ramp(0, 1, 4)] = T.call_llvm_pure_intrin(
                f"{total}x4", name,
                T.Shuffle([C[i, T.Ramp(0, 1, SIDE)] for i in range(SIDE)], list(range(SIDE * SIDE))),
                T.Shuffle([A[i, T.Ramp(0, 1, depth)] for i in range(SIDE)], list(range(SIDE * depth))),
                T.Shuffle([B[i, T.Ramp(0, 1, depth)] for i in range(SIDE)], list(range(SIDE * depth))),
            )
            C[0, T.Ramp(0, 1, SIDE)] = S[T.Ramp(0, 1, SIDE)]
            C[1, T.Ramp(0, 1, SIDE)] = S[T.Ramp(SIDE, 1, SIDE)]

    full = f"{prefix}product_{SIDE}x{SIDE}x{depth}_{''.join(SHORT[t] for t in types)}"
    return TensorIntrin.register(full, desc, impl, needs=needs, cost=cost, flushes_denormals=flushes_denormals)


def _meaning(total: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    rows = [x.astype(total.dtype).reshape(*x.shape[:-1], SIDE, -1) for x in (left, right)]
    with np.errstate(all="ignore"):
        return total + (rows[0][..., :, None, :] * rows[1][..., None, :, :]).sum(-1, dtype=total.dtype).reshape(total.shape)


for _name, _types in (("smmla", ("int8", "int8")), ("ummla", ("uint8", "uint8")), ("usmmla", ("uint8", "int8"))):
    define_meaning(f"llvm.aarch64.neon.{_name}.v4i32.v16i8", _meaning)
    matrix_product(f"neon.{_name}.", f"llvm.aarch64.neon.{_name}.v4i32.v16i8", 8, (*_types, "int32"), ("neon", "i8mm"), Cost(latency=4.0))

define_meaning("llvm.aarch64.neon.bfmmla", _meaning)
matrix_product("neon.bfmmla.", "llvm.aarch64.neon.bfmmla", 4, ("bfloat16", "bfloat16", "float32"), ("neon", "bf16"), Cost(latency=6.0), flushes_denormals=True)
