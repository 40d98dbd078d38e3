# SPDX-License-Identifier: Apache-2.0
"""Pairs of products of 16-bit integers summed in 32 bits (AVX2 and AVX512-BW; Intel SDM, VPMADDWD), and of bytes that are widened before.

The instruction that multiplies bytes themselves (VPMADDUBSW) is left out: its sums saturate at 16 bits, so 255 * 127 + 255 * 127 would be wrong.
"""

from __future__ import annotations

from roundel.interp.llvm_meanings import define_meaning

from .dots import dot, pairs_by_llvm, sums_of_pairs
from .registry import Cost

for _name, _lanes, _needs in (("llvm.x86.avx512.pmaddw.d.512", 16, "avx512bw"), ("llvm.x86.avx2.pmadd.wd", 8, "avx2"), ("llvm.x86.sse2.pmadd.wd", 4, "sse2")):
    define_meaning(_name, sums_of_pairs)
    for _data in ("uint8", "int8", "int16"):
        dot(f"{_needs}.", pairs_by_llvm(_name), _lanes, 2, (_data, "int16" if _data == "int16" else "int8", "int32"), (_needs,),
            Cost(latency=6.0, slots=2.0 if _data == "int16" else 3.0, shared=0.0 if _data == "int16" else 1.0, registers=1))
