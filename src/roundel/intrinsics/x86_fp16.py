# SPDX-License-Identifier: Apache-2.0
"""Multiply-adds of float16 numbers (AVX512-FP16; Intel SDM, VFMADD231PH): a product and a sum are rounded together, to float16.

Sums of what models say are float32; these are for programs that ask for sums in float16.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from roundel.interp.llvm_meanings import define_meaning
from roundel.ir import tir
from roundel.script import tir as T

from .dots import dot
from .registry import Cost


def _multiply_add(total: tir.Expr, data: tir.Expr, weight: tir.Expr, name: str) -> tir.Expr:
    return T.call_llvm_pure_intrin(total.dtype, name, data, weight, total)


def _meaning(data: np.ndarray, weight: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Products of float16 numbers and sums with one are exact in float64, but for those so far apart that the smaller only decides a rounding."""
    with np.errstate(all="ignore"):
        return (data.astype(np.float64) * weight.astype(np.float64) + total.astype(np.float64)).astype(total.dtype)


for _bits in (512, 256, 128):
    _name = f"llvm.fma.v{_bits // 16}f16"
    define_meaning(_name, _meaning)
    dot("avx512fp16.", partial(_multiply_add, name=_name), _bits // 16, 1, ("float16", "float16", "float16"),
        ("avx512fp16",) if _bits == 512 else ("avx512fp16", "avx512vl"), Cost(latency=4.0))
