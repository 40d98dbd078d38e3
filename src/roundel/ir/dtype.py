# SPDX-License-Identifier: Apache-2.0
"""Data types: interned strings such as ``"float32"``, ``"int4"`` or ``"float32x8"`` that know their parts."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

import numpy as np

from . import escape

try:
    import ml_dtypes
except ModuleNotFoundError:  # the package that only runs models does without it; `DType.numpy` says so where such an array is asked for
    ml_dtypes = None  # type: ignore[assignment]

_ADDED = ("bfloat16", "int4", "uint4", "int2", "uint2", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
          "float4_e2m1fn")  # to NumPy's types, by ml_dtypes
_NUMPY: dict[str, Any] = {
    "bool": np.bool_, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
    "float16": np.float16, "float32": np.float32, "float64": np.float64,
    "complex64": np.complex64, "complex128": np.complex128,
    **{name: getattr(ml_dtypes, name) for name in _ADDED if ml_dtypes is not None},
}
_ALIASES = {"float": "float32", "double": "float64", "half": "float16", "int": "int64", "uint": "uint64",
            "e4m3_float8": "float8_e4m3fn", "e5m2_float8": "float8_e5m2", "float8_e4m3": "float8_e4m3fn", "boolean": "bool"}
_LARGEST: dict[str, float] = {}
_FROM_NUMPY = {np.dtype(v): k for k, v in _NUMPY.items()}
_PATTERN = re.compile(
    r"^(?P<element>(?P<kind>bool|bfloat|float|complex|uint|int|handle|void|str)(?P<bits>\d*)(?:_\w+?)?)(?:x(?P<scalable>vscalex)?(?P<lanes>\d+))?$"
)
_BIT = re.compile(r"^u?int1(?=x|$)")


class DType(str):
    """A data type. It *is* the string that names it, so ``x.dtype == "float32"`` holds; equal types are one object.

    Attributes: ``element`` (the scalar type), ``kind`` (``bool int uint float complex handle void str``; bfloat16 is
    a ``float``), ``bits`` (of one element), ``lanes`` (1 for a scalar; -4 for ``float32xvscalex4``, which has four times as many lanes as
    the machine's ``vscale`` is), ``is_float`` (of any width), ``is_int`` (signed or unsigned, bool excluded), ``is_bool``, ``is_handle`` (a
    pointer).
    """

    __slots__ = ("_vectors", "bits", "element", "is_bool", "is_float", "is_handle", "is_int", "kind", "lanes")
    element: DType
    kind: str
    bits: int
    lanes: int
    is_float: bool
    is_int: bool
    is_bool: bool
    is_handle: bool
    _table: dict[str, DType] = {}
    scalable_types = False  # whether the process has made any, or asked for vscale

    def __new__(cls, name: Any) -> DType:
        hit = cls._table.get(name) if isinstance(name, str) else None
        return hit if hit is not None else cls._make(name)

    @classmethod
    def _make(cls, name: Any) -> DType:
        try:
            text = name if isinstance(name, str) else _FROM_NUMPY.get(np.dtype(name), "")
        except (TypeError, ValueError):
            raise TypeError(f"a data type cannot be {escape.value(name)}; it is a text such as 'float32', or a type of NumPy's") from None
        text = _BIT.sub("bool", _ALIASES.get(text, text))
        if text in cls._table:
            return cls._table[text]
        found = _PATTERN.match(text)
        if found is None or (found["kind"] not in ("bool", "handle", "void", "str") and not found["bits"]):
            near = get_close_matches(text, _NUMPY, 1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise ValueError(f"unknown data type {escape.value(name)}; {meant}known are {', '.join(_NUMPY)}, handle, void, and vectors such as float32x8")
        self = super().__new__(cls, text)
        kind = found["kind"]
        self.kind = "float" if kind == "bfloat" else kind
        self.is_float, self.is_int = self.kind == "float", self.kind in ("int", "uint")
        self.is_bool, self.is_handle = self.kind == "bool", self.kind == "handle"
        self.bits = {"bool": 1, "handle": 64, "void": 0, "str": 0}.get(kind) or int(found["bits"] or 0)
        self.lanes = int(found["lanes"] or 1) * (-1 if found["scalable"] else 1)
        DType.scalable_types |= self.lanes < 0
        self._vectors: dict[int, DType] = {}
        self.element = self if self.lanes == 1 and found["lanes"] is None else cls(found["element"])
        return cls._table.setdefault(text, self)

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest integer that an element holds; of types that are no integers those of 64 bits (a pointer's address)."""
        if self.kind == "bool":
            return 0, 1
        bits = self.bits if self.is_int else 64
        return (0, (1 << bits) - 1) if self.kind in ("uint", "handle") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)

    @property
    def largest(self) -> float:
        """The largest number of a floating-point type, as it may be written (3.4028235e+38 of float32 is its shortest text)."""
        known = _LARGEST.get(self.element)
        if known is None:
            most = ml_dtypes.finfo(self.numpy).max if self.element in _NUMPY else float("inf")
            known = _LARGEST[self.element] = max(float(most), float(str(most)))
        return known

    @property
    def numpy(self) -> np.dtype:
        """The NumPy (or ml_dtypes) type of one element; raises TypeError for handle and void, and where ml_dtypes is needed and missing."""
        if self.element not in _NUMPY:
            if self.element in _ADDED:
                raise TypeError(f"arrays of {self.element} need the package ml_dtypes (pip install ml-dtypes)")
            raise TypeError(f"{self} has no NumPy equivalent")
        return np.dtype(_NUMPY[self.element])

    @property
    def storage_bits(self) -> int:
        """Bits that one element takes in memory: bool takes a byte, int4 half a byte."""
        return 8 if self.kind == "bool" else self.bits

    def with_lanes(self, lanes: int) -> DType:
        """The vector (or for 1 the scalar) type with this element."""
        known = self._vectors.get(lanes)
        if known is None:
            known = self.element if lanes == 1 else DType(f"{self.element}x{lanes}" if lanes > 0 else f"{self.element}xvscalex{-lanes}")
            self._vectors[lanes] = known
        return known

    def nbytes(self, count: int) -> int:
        """Bytes of ``count`` elements stored contiguously (two int4 per byte)."""
        return (count * self.storage_bits * self.lanes + 7) // 8

    def __reduce__(self) -> tuple:
        return DType, (str(self),)

    __str__ = str.__str__


BOOL, INT32, INT64, FLOAT32, FLOAT64, HANDLE, VOID = (
    DType(n) for n in ("bool", "int32", "int64", "float32", "float64", "handle", "void"))
