# SPDX-License-Identifier: Apache-2.0
"""Multiply-adds of float16 numbers on Arm (FEAT_FP16; Arm Architecture Reference Manual, FMLA (vector)): a product and a sum are rounded together, to
float16. As those of AVX512-FP16 (``x86_fp16``), they are for programs that ask for sums in float16."""

from __future__ import annotations

from .dots import dot
from .registry import Cost
from .x86_fp16 import multiply_add

for _lanes in (8, 4):
    dot("neon.fmla.", multiply_add(_lanes), _lanes, 1, ("float16", "float16", "float16"), ("neon", "fullfp16"), Cost(latency=4.0))
