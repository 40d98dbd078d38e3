# SPDX-License-Identifier: Apache-2.0
"""Widening multiply-adds of RISC-V's vectors (V extension 1.0, VWMACC): products of 16-bit integers added to sums of 32 bits.

The code generator chooses the instruction for a product of widened vectors, with the scalar of the data in a register (VWMACC.VX).
"""

from __future__ import annotations

from roundel.ir import tir

from .dots import dot
from .registry import Cost


def _widened(total: tir.Expr, data: tir.Expr, weight: tir.Expr) -> tir.Expr:
    return total + tir.cast(data, total.dtype) * tir.cast(weight, total.dtype)


for _lanes in (8, 4):
    dot("rvv.", _widened, _lanes, 1, ("int16", "int16", "int32"), ("v",), Cost(latency=5.0, slots=1.0))
