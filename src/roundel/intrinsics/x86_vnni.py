# SPDX-License-Identifier: Apache-2.0
"""Products of narrow integers summed in 32 bits, without saturation (AVX512-VNNI, AVX-VNNI, AVX-VNNI-INT8; Intel SDM, VPDPBUSD, VPDPWSSD
and VPDPBSSD)."""

from __future__ import annotations

from roundel.interp.llvm_meanings import define_meaning

from .dots import Combine, by_llvm, dot, sums_of_groups
from .registry import Cost

BYTES = ("uint8", "int8", "int32")  # which of the two is unsigned is the instruction's choice
SWAPPED = ("int8", "uint8", "int32")  # the same with its operands exchanged, for constants that are unsigned
WORDS = ("int16", "int16", "int32")


def _swapped(combine: Combine) -> Combine:
    """The same with its operands exchanged, for data of which the constants are unsigned."""
    return lambda total, data, weight: combine(total, weight, data)


for _bits in (512, 256, 128):
    _lanes, _evex = _bits // 32, ("avx512vnni",) if _bits == 512 else ("avx512vnni", "avx512vl")
    _bytes, _words = (f"llvm.x86.avx512.{_name}.{_bits}" for _name in ("vpdpbusd", "vpdpwssd"))
    for _name in (_bytes, _words):
        define_meaning(_name, sums_of_groups)
    _forms = ((by_llvm(_bytes), 4, BYTES), (_swapped(by_llvm(_bytes)), 4, SWAPPED), (by_llvm(_words), 2, WORDS))
    for _combine, _group, _types in _forms:
        dot("avx512vnni.", _combine, _lanes, _group, _types, _evex, Cost(latency=5.0))
        if _bits < 512:
            dot("avxvnni.", _combine, _lanes, _group, _types, ("avxvnni",), Cost(latency=5.0))

for _bits in (256, 128):
    define_meaning(f"llvm.x86.avx2.vpdpbssd.{_bits}", sums_of_groups)
    dot("avxvnniint8.", by_llvm(f"llvm.x86.avx2.vpdpbssd.{_bits}"), _bits // 32, 4, ("int8", "int8", "int32"), ("avxvnniint8",), Cost(latency=5.0))
