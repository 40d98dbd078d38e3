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

_INTRINSICS = {
    "exp": "e ** x", "exp_flushed": "e ** x, and 0 where that is below the normal numbers",
    "exp2": "2 ** x", "log": "natural logarithm", "log2": "logarithm to base 2", "log10": "logarithm to base 10",
    "log1p": "log(1 + x), accurate near 0", "expm1": "e ** x - 1, accurate near 0", "sqrt": "square root", "rsqrt": "1 / square root",
    "sin": "sine", "cos": "cosine", "tan": "tangent", "asin": "arcsine", "acos": "arccosine", "atan": "arctangent",
    "sinh": "hyperbolic sine", "cosh": "hyperbolic cosine", "tanh": "hyperbolic tangent",
    "asinh": "inverse hyperbolic sine", "acosh": "inverse hyperbolic cosine", "atanh": "inverse hyperbolic tangent",
    "erf": "error function", "erfc": "1 - erf(x), accurate for large x", "lgamma": "logarithm of the absolute value of the gamma function",
    "tgamma": "gamma function", "sigmoid": "1 / (1 + e ** -x)", "floor": "largest integer not above x", "ceil": "smallest integer not below x",
    "trunc": "x rounded towards 0", "nearbyint": "x rounded to the nearest integer, ties to even", "abs": "absolute value",
    "isnan": "whether x is NaN", "isinf": "whether x is an infinity", "isfinite": "whether x is neither NaN nor an infinity",
    "popcount": "number of bits that are set", "neg": "-x", "sign": "-1, 0 or 1 by the sign of x",
}


def _intrinsic(name: str, meaning: str) -> Callable[..., tir.Expr]:
    def apply(*args: Any) -> tir.Expr:
        return call(name, *args)

    apply.__name__, apply.__doc__ = name, f"Of each element x: {meaning}."
    return apply


globals().update({name: _intrinsic(name, meaning) for name, meaning in _INTRINSICS.items()})


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
