# SPDX-License-Identifier: Apache-2.0
"""The structures of ``roundel.h`` for ctypes, and reading a built module's description of itself."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

import numpy as np

from ..ir.dtype import DType

ABI = 5
COMPUTED = -(2**63)
SCALAR = -1


class DLTensor(ctypes.Structure):
    """A tensor as C sees it. ``shape`` and ``strides`` are addresses of int64 arrays, which the maker keeps alive."""

    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("byte_offset", c_uint64),
    )


class RdParam(ctypes.Structure):
    """One input or output of a function, as ``roundel.h`` has it."""

    _fields_ = (
        ("name", c_char_p),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("ndim", c_int32),
        ("dims", POINTER(c_int64)),
        ("flags", c_uint32),
    )


class RdConstant(ctypes.Structure):
    """Where a constant lies in the weights."""

    _fields_ = (("offset", c_uint64), ("nbytes", c_uint64), ("hash", c_char_p))


class RdCache(ctypes.Structure):
    """An output that appends to an input along an axis; a symbol is the room behind its rows."""

    _fields_ = (("input", c_int32), ("output", c_int32), ("axis", c_int32), ("symbol", c_int32))


class RdFunction(ctypes.Structure):
    """One exported function."""

    _fields_ = (
        ("abi", c_uint32),
        ("name", c_char_p),
        ("cpu_features", c_char_p),
        ("num_inputs", c_int32),
        ("num_outputs", c_int32),
        ("num_symbols", c_int32),
        ("num_constants", c_int32),
        ("symbols", POINTER(c_char_p)),
        ("params", POINTER(RdParam)),
        ("shapes", c_void_p),
        ("arena_size", c_void_p),
        ("run", c_void_p),
        ("constants", POINTER(RdConstant)),
        ("num_kernels", c_int32),
        ("kernels", POINTER(c_char_p)),
        ("num_caches", c_int32),
        ("caches", POINTER(RdCache)),
    )


class RdLibrary(ctypes.Structure):
    """What a compiled library holds."""

    _fields_ = (
        ("abi", c_uint32),
        ("num_functions", c_int32),
        ("functions", POINTER(RdFunction)),
        ("weights_nbytes", c_uint64),
        ("metadata", c_char_p),
    )


class RdOptions(ctypes.Structure):
    """How a library is opened."""

    _fields_ = (
        ("num_threads", c_int32),
        ("profile", c_int32),
        ("weights", c_void_p),
        ("weights_file", c_char_p),
        ("weights_offset", c_uint64),
        ("constants", POINTER(c_void_p)),
        ("allocate", c_void_p),
        ("release", c_void_p),
        ("user", c_void_p),
    )


class RdLevel(ctypes.Structure):
    """A library for one of several machines, and the machine's name."""

    _fields_ = (("name", c_char_p), ("library", POINTER(RdLibrary)))


class RdPackage(ctypes.Structure):
    """A library with its weights, as they are passed from Python."""

    _fields_ = (
        ("library", POINTER(RdLibrary)),
        ("weights", c_void_p),
        ("weights_file", c_char_p),
        ("digest", c_char_p),
        ("model", c_void_p),
        ("lock", c_uint32),
        ("num_levels", c_int32),
        ("levels", POINTER(RdLevel)),
        ("weights_nbytes", c_uint64),
    )


# DLPack's numbers of the types that have one of their own; the rest follow from kind and bits.
_SPECIAL = {
    "bfloat16": 4,
    "bool": 6,
    "float8_e4m3": 8,
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
    "float4_e2m1fn": 17,
}
_KINDS = {"int": 0, "uint": 1, "float": 2, "handle": 3, "complex": 5}
_NAMES = {code: name for name, code in _SPECIAL.items()}
_KIND_NAMES = {code: name for name, code in _KINDS.items()}


def dlpack_code(dtype: DType | str) -> tuple[int, int, int]:
    """(code, bits, lanes) of a data type, as DLPack counts them."""
    dtype = DType(dtype)
    return _SPECIAL.get(dtype.element, _KINDS.get(dtype.kind, 3)), dtype.storage_bits, dtype.lanes


def dtype_of(code: int, bits: int, lanes: int = 1) -> DType:
    """The data type that DLPack writes as (code, bits, lanes)."""
    return DType(_NAMES.get(code) or f"{_KIND_NAMES[code]}{bits}").with_lanes(lanes)


def strings(array: Any, count: int) -> tuple[str, ...]:
    """A C array of strings."""
    return tuple((array[i] or b"").decode() for i in range(count))


def view(address: int, nbytes: int) -> np.ndarray:
    """Bytes in memory as an array that does not own them."""
    return np.frombuffer((ctypes.c_char * nbytes).from_address(address), np.uint8) if nbytes else np.empty(0, np.uint8)
