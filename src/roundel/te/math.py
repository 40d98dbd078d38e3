# SPDX-License-Identifier: Apache-2.0
"""Scalar functions for the bodies of tensor expressions: the intrinsics by name, plus choice, casts and constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roundel.ir import tir
from roundel.ir.dtype import FLOAT32, DType
from roundel.ir.tir import (
    call,
    cast,
    ceildiv,
    const,
    eq,
    floordiv,
    floormod,
    if_then_else,
    logical_and,
    logical_not,
    logical_or,
    max_,
    min_,
    ne,
    select,
    truncdiv,
    truncmod,
)

_INTRINSICS = """exp exp2 log log2 log10 log1p expm1 sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh
atanh erf erfc lgamma tgamma sigmoid floor ceil trunc nearbyint abs isnan isinf isfinite popcount neg sign""".split()


def _intrinsic(name: str) -> Callable[..., tir.Expr]:
    def apply(*args: Any) -> tir.Expr:
        return call(name, *args)

    apply.__name__ = name
    return apply


globals().update({name: _intrinsic(name) for name in _INTRINSICS})


def power(x: Any, y: Any) -> tir.Expr:
    """x ** y of floats."""
    return call("pow", const(x), const(y))


def widened(fn: Callable[..., tir.Expr]) -> Callable[..., tir.Expr]:
    """``fn`` evaluated in float32 for 16- and 8-bit floats and cast back."""

    def apply(*args: Any) -> tir.Expr:
        dtype = next(a.dtype for a in args if isinstance(a, tir.Expr))
        if not is_narrow(dtype):
            return fn(*args)
        wide = (cast(a, FLOAT32) if isinstance(a, tir.Expr) and a.dtype is dtype else a for a in args)
        return cast(fn(*wide), dtype)

    return apply


def is_narrow(dtype: DType) -> bool:
    """A float type narrower than 32 bits: arithmetic on it runs in float32."""
    return dtype.is_float and dtype.bits < 32


def accumulator(dtype: DType) -> DType:
    """The type in which sums of this type are kept: float32 for narrow floats, the type itself otherwise."""
    return FLOAT32 if is_narrow(dtype) else dtype


__all__ = [
    "accumulator",
    "cast",
    "ceildiv",
    "const",
    "eq",
    "floordiv",
    "floormod",
    "if_then_else",
    "is_narrow",
    "logical_and",
    "logical_not",
    "logical_or",
    "max_",
    "min_",
    "ne",
    "power",
    "select",
    "truncdiv",
    "truncmod",
    "widened",
    *_INTRINSICS,
]
