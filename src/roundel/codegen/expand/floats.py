# SPDX-License-Identifier: Apache-2.0
"""Of what elementary functions are made: expressions of float32 and of any number of lanes."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import tir
from ...ir.dtype import DType
from .convert import bits_of

Expr = tir.Expr
MAGIC = 12582912.0  # adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits
SMALLEST, LARGEST = 1.17549435e-38, 3.4028234663852886e38  # normal numbers


def number(value: float, like: Expr) -> Expr:
    """A constant of the type of ``like``."""
    return tir.const(float(value), like.dtype)


def fma(a: Expr, b: Expr, c: Expr) -> Expr:
    """a * b + c."""
    return tir.Call("fma", (a, b, c), a.dtype)


def horner(x: Expr, coefficients: Sequence[float]) -> Expr:
    """The polynomial with these coefficients, highest power first."""
    out = number(coefficients[0], x)
    for c in coefficients[1:]:
        out = fma(out, x, number(c, x))
    return out


def is_nan(x: Expr) -> Expr:
    """Whether x is NaN, a bool for each lane."""
    return tir.Call("isnan", (x,), DType("bool").with_lanes(x.dtype.lanes))


def where(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """``yes`` or ``no``, both computed."""
    return tir.Select(condition, yes, no)


def at_most(x: Expr, high: float) -> Expr:
    """One minimum instruction; NaN passes through."""
    return where(x > number(high, x), number(high, x), x)


def at_least(x: Expr, low: float) -> Expr:
    """One maximum instruction; NaN passes through."""
    return where(x < number(low, x), number(low, x), x)


def magnitude(x: Expr) -> Expr:
    """|x|, of NaN too."""
    return tir.Call("abs", (x,), x.dtype)


def root(x: Expr) -> Expr:
    """The square root, rounded correctly."""
    return tir.Call("sqrt", (x,), x.dtype)


def with_sign(x: Expr, of: Expr) -> Expr:
    """|x| with the sign of ``of``."""
    return tir.Call("copysign", (x, of), x.dtype)


def power_of_two(n: Expr) -> Expr:
    """2^n as float32 for n from -126 to 127; bits above the lowest nine do not count."""
    return bits_of((n + 127) << 23, "float32")


def rarely(condition: Expr, name: str, args: Sequence[Expr], usual: Expr) -> Expr:
    """``usual``, but what the C library's ``name`` says of lanes for which the condition holds, which hardly ever happens."""
    exact = tir.Call("call_pure_extern", (tir.StringImm(name), *args), usual.dtype)
    return tir.Call("rarely", (condition, exact, usual), usual.dtype)
