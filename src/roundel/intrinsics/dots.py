# SPDX-License-Identifier: Apache-2.0
"""Dot products in the lanes of a vector, the form of instruction that most processors have for narrow numbers.

Each lane of a vector of sums adds the products of a few pairs of neighbours. Of the two operands one is the same for all lanes: its few elements
are broadcast.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from roundel.ir import tir
from roundel.script import tir as T

from .registry import Cost, TensorIntrin

Combine = Callable[[tir.Expr, tir.Expr, tir.Expr], tir.Expr]
SHORT = {"uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "float16": "f16", "bfloat16": "bf16", "float32": "f32"}


def dot(prefix: str, combine: Combine, lanes: int, group: int, types: tuple[str, str, str], needs: tuple[str, ...] = (), cost: Cost | None = None,
        flushes_denormals: bool = False) -> TensorIntrin:
    """C[i] += sum over k < group of A[k] * B[i, k], for ``lanes`` values of i.

    ``combine`` gives the new vector of sums from that of the old ones (C), the elements of A repeated for each lane, and those of B. ``types`` are
    those of A, B and C. The name is ``prefix.dot_16x4_u8i8i32``: lanes, group, types.
    """
    data, weight, total = types

    @T.prim_func
    def desc(A: T.Buffer((group,), data), B: T.Buffer((lanes, group), weight), C: T.Buffer((lanes,), total)):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:group], B[0:lanes, 0:group])
            T.writes(C[0:lanes])
            for i in range(lanes):
                for k in range(group):
                    with T.block("dot"):
                        vi = T.axis.spatial(lanes, i)
                        vk = T.axis.reduce(group, k)
                        C[vi] = C[vi] + T.cast(A[vk], total) * T.cast(B[vi, vk], total)

    @T.prim_func
    def impl(A: T.Buffer((group,), data), B: T.Buffer((lanes, group), weight), C: T.Buffer((lanes,), total)):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:group], B[0:lanes, 0:group])
            T.writes(C[0:lanes])
            C[T.Ramp(0, 1, lanes)] = combine(
                C[T.Ramp(0, 1, lanes)],
                T.Shuffle([A[T.Ramp(0, 1, group)]], [k % group for k in range(group * lanes)]),
                T.Shuffle([B[i, T.Ramp(0, 1, group)] for i in range(lanes)], list(range(group * lanes))),
            )

    @T.prim_func
    def one_each(A: T.Buffer((1,), data), B: T.Buffer((lanes, 1), weight), C: T.Buffer((lanes,), total)):
        with T.block("root"):
            T.reads(C[0:lanes], A[0:1], B[0:lanes, 0:1])
            T.writes(C[0:lanes])
            C[T.Ramp(0, 1, lanes)] = combine(C[T.Ramp(0, 1, lanes)], T.Broadcast(A[0], lanes), B[T.Ramp(0, 1, lanes), 0])

    name = f"{prefix}dot_{lanes}x{group}_{''.join(SHORT[t] for t in types)}"
    return TensorIntrin.register(name, desc, impl if group > 1 else one_each, needs=needs, cost=cost, flushes_denormals=flushes_denormals)


def by_llvm(name: str) -> Combine:
    """The LLVM intrinsic of this name of sums, data and weights."""
    return lambda total, data, weight: T.call_llvm_pure_intrin(total.dtype, name, total, data, weight)


def pairs_by_llvm(name: str) -> Combine:
    """The LLVM intrinsic of this name for sums of pairs of 16-bit products, which are added to the sums before; bytes are widened for it."""

    def combine(total: tir.Expr, data: tir.Expr, weight: tir.Expr) -> tir.Expr:
        words = (T.cast(x, f"int16x{x.dtype.lanes}") for x in (data, weight))
        return total + T.call_llvm_pure_intrin(total.dtype, name, *words)

    return combine


def sums_of_pairs(data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """What such instructions compute, for the interpreter."""
    return sums_of_groups(np.zeros((*data.shape[:-1], data.shape[-1] // 2), np.int32), data, weight)


def sums_of_groups(total: np.ndarray, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """What such instructions compute of integers, for the interpreter; sums wrap around."""
    with np.errstate(over="ignore"):
        products = data.astype(total.dtype) * weight.astype(total.dtype)
        return total + products.reshape(*products.shape[:-1], total.shape[-1], -1).sum(-1, dtype=total.dtype)
