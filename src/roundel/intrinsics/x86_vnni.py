# SPDX-License-Identifier: Apache-2.0
"""Products of narrow integers summed in 32 bits, without saturation (AVX512-VNNI, AVX-VNNI, AVX-VNNI-INT8; Intel SDM, VPDPBUSD, VPDPWSSD
and VPDPBSSD)."""

from __future__ import annotations

from roundel.interp.llvm_meanings import define_meaning

from .dots import by_llvm, dot, sums_of_groups
from .registry import Cost

BYTES = ("uint8", "int8", "int32")  # which of the two is unsigned is the instruction's choice
WORDS = ("int16", "int16", "int32")

for _bits in (512, 256, 128):
    _lanes = _bits // 32
    for _name, _group, _types in ((f"llvm.x86.avx512.vpdpbusd.{_bits}", 4, BYTES), (f"llvm.x86.avx512.vpdpwssd.{_bits}", 2, WORDS)):
        define_meaning(_name, sums_of_groups)
        dot("avx512vnni.", by_llvm(_name), _lanes, _group, _types, ("avx512vnni",) if _bits == 512 else ("avx512vnni", "avx512vl"), Cost(latency=5.0))
        if _bits < 512:
            dot("avxvnni.", by_llvm(_name), _lanes, _group, _types, ("avxvnni",), Cost(latency=5.0))

for _bits in (256, 128):
    define_meaning(f"llvm.x86.avx2.vpdpbssd.{_bits}", sums_of_groups)
    dot("avxvnniint8.", by_llvm(f"llvm.x86.avx2.vpdpbssd.{_bits}"), _bits // 32, 4, ("int8", "int8", "int32"), ("avxvnniint8",), Cost(latency=5.0))
