# SPDX-License-Identifier: Apache-2.0
"""C's names of our data types, and constants as C text.

A bool is a byte that is 0 or 1. Integers of fewer bits than a byte are in a byte of their own once they are loaded. Floats of 16 bits and fewer are
integers with their bits: arithmetic is done in float32 (see ``expand.convert``).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ...ir import tir
from ...ir.dtype import DType
from ..storage import element_bytes


@cache
def storage_float(dtype: DType) -> bool:
    """Whether arithmetic on this type is done in float32: C99 has no type for it."""
    return dtype.is_float and dtype.bits <= 16


@cache
@cache
def c_type(dtype: DType) -> str:
    """The type of a value, of one lane of it where it is a vector."""
    if dtype.is_handle:
        return "void *"
    if dtype.kind in ("void", "str"):
        return "void" if dtype.kind == "void" else "const char *"
    if dtype.is_bool:
        return "uint8_t"
    bits = max(8, dtype.bits)
    if dtype.is_float:
        return {64: "double", 32: "float"}.get(dtype.bits) or f"uint{bits}_t"
    return f"{dtype.kind}{bits}_t"


def short(dtype: DType) -> str:
    """How names of helper functions spell a type: ``i32``, ``u8``, ``f32``, ``bfloat16``."""
    return str(dtype.element) if storage_float(dtype) else f"{dtype.kind[0]}{dtype.bits}"


def int_text(value: int, dtype: DType) -> str:
    """An integer or bool constant."""
    if dtype.kind == "uint" and dtype.bits >= 32:
        return f"{value}u" if dtype.bits == 32 else f"UINT64_C({value})"  # what is 32 bits wide is shifted and inverted in 32 bits
    if -(1 << 31) < value < 1 << 31:
        return f"({value})" if value < 0 else str(value)
    return "INT64_MIN" if value == -(1 << 63) else f"INT64_C({value})" if value > 0 else f"(-INT64_C({-value}))"


def float_text(value: float, dtype: DType) -> str:
    """A floating-point constant, rounded to its type: in decimal where that is exact and short, else in hexadecimal."""
    if storage_float(dtype):
        with np.errstate(over="ignore"):
            return f"{int(np.array(value, dtype.numpy).view(f'u{element_bytes(dtype.element)}'))}"
    with np.errstate(over="ignore"):
        value = float(np.float32(value)) if dtype.bits == 32 else value
    if math.isnan(value) or math.isinf(value):
        kind = "NAN" if math.isnan(value) else "INFINITY"
        sign = "-" if math.copysign(1.0, value) < 0 else ""
        return f"({sign}{kind})" if dtype.bits == 32 else f"({sign}(double){kind})"
    plain = repr(value)
    text = plain if len(plain) <= 8 and "e" not in plain else value.hex()
    return (f"({text}" if text.startswith("-") else text) + ("f" if dtype.bits == 32 else "") + (")" if text.startswith("-") else "")


def constant_text(e: tir.IntImm | tir.FloatImm) -> str:
    """A constant."""
    return int_text(int(e.value), e.dtype) if type(e) is tir.IntImm else float_text(e.value, e.dtype)
