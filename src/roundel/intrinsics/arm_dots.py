# SPDX-License-Identifier: Apache-2.0
"""Dot products of bytes and of bfloat16 numbers in 128-bit vectors (Arm A64: SDOT, UDOT of FEAT_DotProd, USDOT of FEAT_I8MM, BFDOT of FEAT_BF16)."""

from __future__ import annotations

import numpy as np

from roundel.interp.llvm_meanings import define_meaning

from .dots import by_llvm, dot, sums_of_groups
from .registry import Cost


def _sums_of_pairs(total: np.ndarray, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Of each pair the products are added to each other first. (The processor may round these to odd, and flush denormals.)"""
    with np.errstate(all="ignore"):
        products = data.astype(total.dtype) * weight.astype(total.dtype)
        return total + products.reshape(*products.shape[:-1], -1, 2).sum(-1, dtype=total.dtype)


for _name, _types, _feature in (("sdot", ("int8", "int8"), "dotprod"), ("udot", ("uint8", "uint8"), "dotprod"), ("usdot", ("uint8", "int8"), "i8mm")):
    define_meaning(f"llvm.aarch64.neon.{_name}.v4i32.v16i8", sums_of_groups)
    dot(f"neon.{_name}.", by_llvm(f"llvm.aarch64.neon.{_name}.v4i32.v16i8"), 4, 4, (*_types, "int32"), ("neon", _feature), Cost(latency=4.0))

define_meaning("llvm.aarch64.neon.bfdot.v4f32.v8bf16", _sums_of_pairs)
dot("neon.bfdot.", by_llvm("llvm.aarch64.neon.bfdot.v4f32.v8bf16"), 4, 2, ("bfloat16", "bfloat16", "float32"), ("neon", "bf16"), Cost(latency=5.0),
    flushes_denormals=True)
