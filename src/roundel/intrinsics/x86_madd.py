# SPDX-License-Identifier: Apache-2.0
"""Pairs of products of 16-bit integers summed in 32 bits (AVX2 and AVX512-BW; Intel SDM, VPMADDWD), and of bytes that are widened before.

The instruction that multiplies bytes themselves (VPMADDUBSW) is left out: its sums saturate at 16 bits, so 255 * 127 + 255 * 127 would be wrong.
"""

from __future__ import annotations

import numpy as np

from roundel.interp.llvm_meanings import define_meaning
from roundel.ir import tir
from roundel.script import tir as T

from .dots import Combine, dot, sums_of_groups
from .registry import Cost


def _meaning(data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return sums_of_groups(np.zeros((*data.shape[:-1], data.shape[-1] // 2), np.int32), data, weight)


def _by(name: str) -> Combine:
    def combine(total: tir.Expr, data: tir.Expr, weight: tir.Expr) -> tir.Expr:
        words = (T.cast(x, f"int16x{x.dtype.lanes}") for x in (data, weight))
        return total + T.call_llvm_pure_intrin(total.dtype, name, *words)

    return combine


for _name, _lanes, _needs in (("llvm.x86.avx512.pmaddw.d.512", 16, "avx512bw"), ("llvm.x86.avx2.pmadd.wd", 8, "avx2"), ("llvm.x86.sse2.pmadd.wd", 4, "sse2")):
    define_meaning(_name, _meaning)
    for _data in ("uint8", "int8", "int16"):
        dot(f"{_needs}.", _by(_name), _lanes, 2, (_data, "int16" if _data == "int16" else "int8", "int32"), (_needs,),
            Cost(latency=6.0, slots=2.0 if _data == "int16" else 3.0))
