# SPDX-License-Identifier: Apache-2.0
"""LLVM's names of our data types, and constants as LLVM text.

In registers a bool is ``i1``; bfloat16 and the 8- and 4-bit floats are integers of their width (arithmetic is done in
float32, see ``expand.convert``), float16 is ``half``. In memory a bool is a byte and narrower types are packed.
"""

from __future__ import annotations

import struct
from functools import cache

import numpy as np

from ...ir.dtype import DType

_FLOATS = {"float16": "half", "float32": "float", "float64": "double"}
_SUFFIX = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}


def is_storage_float(dtype: DType) -> bool:
    """Whether arithmetic on this type is done in float32 (bfloat16, float8 kinds, float4)."""
    return dtype.is_float and dtype.element not in _FLOATS


def computes_in_float32(dtype: DType) -> bool:
    """float16 and the storage floats: operands are widened, results rounded back."""
    return dtype.is_float and dtype.bits <= 16


@cache
def llvm_type(dtype: DType) -> str:
    """The type of a value in registers."""
    if dtype.lanes > 1:
        return f"<{dtype.lanes} x {llvm_type(dtype.element)}>"
    if dtype.is_handle:
        return "ptr"
    if dtype.kind in ("void", "str"):
        return "void" if dtype.kind == "void" else "ptr"
    return _FLOATS.get(dtype) or f"i{dtype.bits}"


@cache
def memory_type(dtype: DType) -> str:
    """The type of loads and stores of whole elements: that in registers, but bytes for bool."""
    if dtype.is_bool:
        return "i8" if dtype.lanes == 1 else f"<{dtype.lanes} x i8>"
    return llvm_type(dtype)


@cache
@cache
def suffix(dtype: DType) -> str:
    """How intrinsic names spell the type: ``f32``, ``v8i64``."""
    return suffix_of(llvm_type(dtype))


@cache
def suffix_of(llvm: str) -> str:
    """``v8f32`` for ``<8 x float>``."""
    if llvm.startswith("<"):
        lanes, element = llvm[1:-1].split(" x ")
        return f"v{lanes}{suffix_of(element)}"
    return _SUFFIX.get(llvm, llvm)


def int_text(value: int, dtype: DType) -> str:
    """An integer or bool constant."""
    return ("true" if value else "false") if dtype.is_bool else str(value)


@cache
def _float_bits(bits: int, dtype: DType) -> str:
    value = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    if is_storage_float(dtype):
        raw = np.array(value, dtype.numpy).view(np.uint16 if dtype.bits == 16 else np.uint8)
        return str(int(raw))
    if dtype.bits == 16:
        with np.errstate(over="ignore"):
            return f"0xH{int(np.array(value, np.float16).view(np.uint16)):04X}"
    if dtype.bits == 32:
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    return f"0x{int.from_bytes(struct.pack('<d', value), 'little'):016X}"


def float_text(value: float, dtype: DType) -> str:
    """A floating-point constant, exact (hexadecimal); rounded to its type."""
    return _float_bits(int.from_bytes(struct.pack("<d", value), "little"), dtype)


def splat(text: str, dtype: DType) -> str:
    """A scalar constant's text as a constant of ``dtype`` (which may be a vector)."""
    if dtype.lanes == 1:
        return text
    return f"splat ({llvm_type(dtype.element)} {text})"


def zero(dtype: DType) -> str:
    """The constant 0 (false, null) of any type."""
    if dtype.lanes > 1:
        return "zeroinitializer"
    if dtype.is_handle:
        return "null"
    return float_text(0.0, dtype) if dtype.is_float else int_text(0, dtype)
