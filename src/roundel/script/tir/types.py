# SPDX-License-Identifier: Apache-2.0
"""Data types and variables of tensor programs: ``T.int32``, ``n = T.int64()``, ``T.SizeVar``."""

from __future__ import annotations

from typing import Any

from ...ir import tir
from ...ir.dtype import BOOL, HANDLE, DType
from ..literals import float_of
from ..marks import NewVar
from ..regions import operand


def pair(a: Any, b: Any) -> tuple[tir.Expr, tir.Expr]:
    """Both operands as expressions of one dtype."""
    a, b = operand(a), operand(b)
    return tir.ops._pair(a if isinstance(a, tir.Expr) or isinstance(b, tir.Expr) else tir.const(a), b)


class ScalarType:
    """A data type in a script: ``T.int32`` annotates, ``T.int32(5)`` a constant, ``n = T.int64()`` a variable."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = DType(dtype)

    def __call__(self, value: Any = None, *args: Any, is_size_var: bool = True, **kw: Any) -> Any:
        if self.dtype.is_handle and isinstance(value, int):
            return tir.IntImm(value, self.dtype)
        if value is None or self.dtype.is_handle:
            return NewVar(self.dtype, is_size_var and self.dtype.is_int)
        if isinstance(value, str):
            return tir.FloatImm(float_of(value), self.dtype)
        return tir.ops.exact_const(operand(value), self.dtype)

    def __repr__(self) -> str:
        return f"T.{self.dtype}"


def var(dtype: Any = "int64", name: str | None = None) -> NewVar:
    """A shape variable that takes its name from what it is assigned to."""
    dtype = DType(getattr(dtype, "dtype", dtype))
    return NewVar(dtype, dtype.is_int, name)


def Var(name: str, dtype: Any = "int64") -> NewVar:
    """A variable with a name."""
    return NewVar(DType(getattr(dtype, "dtype", dtype)), False, name)


def SizeVar(name: str = "", dtype: Any = "int64") -> NewVar:
    """A shape variable with a name (``T.SizeVar`` alone annotates an int64 parameter)."""
    return NewVar(DType(getattr(dtype, "dtype", dtype)), True, name or None)


class _PointerType:
    """``T.Ptr("float32")`` or ``T.Ptr[T.float32]``: a pointer; the same as ``T.handle``."""

    def __call__(self, dtype: Any = None, storage_scope: str = "global", is_size_var: bool = False) -> NewVar:
        return NewVar(HANDLE, False)

    def __getitem__(self, dtype: Any) -> NewVar:
        return self(dtype)


Ptr = ptr = buffer_var = _PointerType()
boolean = ScalarType(BOOL)
handle = ScalarType(HANDLE)
