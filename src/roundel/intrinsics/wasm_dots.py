# SPDX-License-Identifier: Apache-2.0
"""Pairs of products of 16-bit integers summed in 32 bits (WebAssembly's 128-bit vectors: i32x4.dot_i16x8_s), and of bytes that are widened before.

The relaxed instruction for bytes (i32x4.relaxed_dot_i8x16_i7x16_add_s) is left out. What it gives is the same in all engines where its second operand is from
0 to 127, and differs between them elsewhere. Data of 8 bits would have to be split, x = 2 (x >> 1) + (x & 1), into two such operands, and engines without dot
products of bytes make three instructions of each (pmaddubsw, pmaddwd, paddd): six for 16 products, where two of those here and their additions are four.
Weights of 8 bits do not fit. Those that a quantiser limited to 7 bits (-64 to 63) would, with 64 added, a sum of the data for each row taken away again, and
the values of constants as a condition of an instruction, which no other one has; then it is three for four.
"""

from __future__ import annotations

from roundel.interp.llvm_meanings import define_meaning

from .dots import dot, pairs_by_llvm, sums_of_pairs
from .registry import Cost

define_meaning("llvm.wasm.dot", sums_of_pairs)
for _data in ("uint8", "int8", "int16"):
    # two instructions of the processor, and one that widens weights: a multiply-add is two as well, but one where it is relaxed
    _slots = 1.0 if _data == "int16" else 1.5
    dot("simd128.", pairs_by_llvm("llvm.wasm.dot"), 4, 2, (_data, "int16" if _data == "int16" else "int8", "int32"), ("simd128",),
        Cost(latency=6.0, slots=_slots, slots_with=(("relaxed-simd", 2 * _slots),)))
