# SPDX-License-Identifier: Apache-2.0
"""Products of bfloat16 numbers summed in float32 (AVX512-BF16; Intel SDM, VDPBF16PS).

Numbers too small to be normal are zeros, operands and sums alike, whatever the processor's mode is; sums are rounded to the nearest.
"""

from __future__ import annotations

import numpy as np

from roundel.interp.llvm_meanings import define_meaning

from .dots import by_llvm, dot
from .registry import Cost

COST = Cost(latency=6.0, slots_with=(("amx-bf16", 3.7),))  # measured on Emerald Rapids: half as fast as multiply-adds of float32
LEAST_NORMAL = float(np.finfo(np.float32).tiny)


def meaning(total: np.ndarray, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Of each pair the odd product is added first, then the even one."""
    with np.errstate(all="ignore"):
        a, b = (flushed(x.astype(total.dtype)).reshape(*x.shape[:-1], -1, 2) for x in (data, weight))
        total = flushed(total)
        for k in (1, 0):
            total = flushed(total + a[..., k] * b[..., k])
    return total


def flushed(x: np.ndarray) -> np.ndarray:
    """Numbers too small to be normal as zeros."""
    return np.where(np.abs(x) < LEAST_NORMAL, x.dtype.type(0), x)


for _bits in (512, 256, 128):
    _name = f"llvm.x86.avx512bf16.dpbf16ps.{_bits}"
    define_meaning(_name, meaning)
    dot("avx512bf16.", by_llvm(_name), _bits // 32, 2, ("bfloat16", "bfloat16", "float32"),
        ("avx512bf16",) if _bits == 512 else ("avx512bf16", "avx512vl"), COST, flushes_denormals=True)
