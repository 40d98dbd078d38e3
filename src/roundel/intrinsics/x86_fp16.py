# SPDX-License-Identifier: Apache-2.0
"""Multiply-adds of float16 numbers (AVX512-FP16; Intel SDM, VFMADD231PH): a product and a sum are rounded together, to float16.

Sums of what models say are float32; these are for programs that ask for sums in float16.
"""

from __future__ import annotations

import numpy as np

from roundel.interp.llvm_meanings import define_meaning
from roundel.script import tir as T

from .dots import Combine, dot
from .registry import Cost


def _meaning(data: np.ndarray, weight: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Products of float16 numbers and sums with one are exact in float64, but for those so far apart that the smaller only decides a rounding."""
    with np.errstate(all="ignore"):
        return (data.astype(np.float64) * weight.astype(np.float64) + total.astype(np.float64)).astype(total.dtype)


def multiply_add(lanes: int) -> Combine:
    """The LLVM intrinsic for vectors of so many numbers."""
    name = f"llvm.fma.v{lanes}f16"
    define_meaning(name, _meaning)
    return lambda total, data, weight: T.call_llvm_pure_intrin(total.dtype, name, data, weight, total)


for _lanes in (32, 16, 8):
    dot("avx512fp16.", multiply_add(_lanes), _lanes, 1, ("float16", "float16", "float16"),
        ("avx512fp16",) if _lanes == 32 else ("avx512fp16", "avx512vl"), Cost(latency=4.0))
