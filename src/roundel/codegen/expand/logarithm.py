# SPDX-License-Identifier: Apache-2.0
"""Logarithms, inverse hyperbolic functions, powers."""

from __future__ import annotations

import math

from ...ir import tir
from ...ir.dtype import DType
from .convert import bits_of
from .exponential import EXP2, LN2_HIGH, LN2_LOW, scaled
from .floats import LARGEST, MAGIC, SMALLEST, Expr, at_least, at_most, fma, horner, is_nan, magnitude, number, power_of_two, rarely, root, where, with_sign

# log(1 + f) for sqrt(1/2) <= 1 + f < sqrt(2): f - f^2/2 + f^3 P(f)
_LOG = (6.746601313352585e-2, -1.1675640940666199e-1, 1.1888174712657928e-1, -1.2405591458082199e-1, 1.4219550788402557e-1, -1.666799634695053e-1,
        2.000211924314499e-1, -2.5000008940696716e-1, 3.333331346511841e-1)
# log2(1 + f) = f / log(2) + f^2 P(f), in float64 to 1.1e-10
_LOG2 = (-0.08647724749810028, 0.1547581730477553, -0.1568282748618391, 0.1590007319598119, -0.1790765784702644, 0.2060990572066807,
         -0.2405019912639786, 0.2885403997963216, -0.3606728673981713, 0.4808983274772866, -0.7213475245443142, 1.4426950408889634)
_ROOT_HALF = 0x3F3504F3  # the bits of sqrt(1/2)


def _parts(x: Expr) -> tuple[Expr, Expr]:
    """n (int32) and f for a normal number x = 2^n (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2)."""
    shifted = bits_of(x, "int32") - _ROOT_HALF  # makes the exponent field count from there
    return shifted >> 23, bits_of((shifted & 0x7FFFFF) + _ROOT_HALF, "float32") - number(1.0, x)


def _normal_parts(x: Expr) -> tuple[Expr, Expr]:
    """The same, with n as a float, of subnormal numbers too."""
    tiny = x < number(SMALLEST, x)
    n, f = _parts(where(tiny, x * number(8388608.0, x), x))
    return tir.cast(n, "float32") - where(tiny, number(23.0, x), number(0.0, x)), f


def _log1p_of(f: Expr) -> Expr:
    """log(1 + f) - f."""
    f2 = f * f
    return fma(number(-0.5, f), f2, horner(f, _LOG) * (f2 * f))


def _at_ends(x: Expr, value: Expr) -> Expr:
    """A logarithm's value at 0, at infinity, of NaN and of negative numbers."""
    infinity = number(math.inf, x)
    value = where(tir.logical_or(tir.EQ(x, infinity), is_nan(x)), x, value)
    value = where(tir.EQ(x, number(0.0, x)), number(-math.inf, x), value)
    return where(x < number(0.0, x), number(math.nan, x), value)


def log(x: Expr, scales: bool = False) -> Expr:
    """Natural logarithm; NaN below 0, -infinity at 0."""
    n, f = _normal_parts(x)
    tail = fma(n, number(LN2_LOW, x), _log1p_of(f))
    return _at_ends(x, fma(n, number(LN2_HIGH, x), f + tail))


def log2(x: Expr, scales: bool = False) -> Expr:
    """Logarithm to the base 2; exact for powers of 2."""
    n, f = _normal_parts(x)
    return _at_ends(x, fma(f + _log1p_of(f), number(1.4426950408889634, x), n))


def log10(x: Expr, scales: bool = False) -> Expr:
    """Logarithm to the base 10."""
    n, f = _normal_parts(x)
    low = fma(n, number(2.48745663981195213739e-4, x), (f + _log1p_of(f)) * number(0.4342944819032518, x))
    return _at_ends(x, fma(n, number(0.30078125, x), low))


def log1p(x: Expr, scales: bool = False) -> Expr:
    """log(1 + x) without loss near 0: what rounding 1 + x takes away goes into the reduced argument."""
    u = x + number(1.0, x)
    lost = x - (u - number(1.0, x))
    n, f = _parts(u)
    f = fma(lost, power_of_two(tir.Max(tir.const(0, n.dtype) - n, tir.const(-126, n.dtype))), f)
    n = tir.cast(n, "float32")
    value = fma(n, number(LN2_HIGH, x), f + fma(n, number(LN2_LOW, x), _log1p_of(f)))
    value = _at_ends(u, value)
    return where(magnitude(x) < number(1e-10, x), x, value)


def asinh(x: Expr, scales: bool = False) -> Expr:
    """log1p(a + a^2 / (1 + sqrt(1 + a^2))) for a = |x|."""
    a, one = magnitude(x), number(1.0, x)
    large = a > number(1e9, x)
    square = a * a
    t = log1p(where(large, a, a + square / (one + root(one + square))))
    return with_sign(t + where(large, number(math.log(2), x), number(0.0, x)), x)


def acosh(x: Expr, scales: bool = False) -> Expr:
    """log1p(t + sqrt(t (t + 2))) for t = x - 1; NaN below 1."""
    t = x - number(1.0, x)
    large = x > number(1e9, x)
    value = log1p(where(large, x, t + root(t * (t + number(2.0, x))))) + where(large, number(math.log(2), x), number(0.0, x))
    return where(x < number(1.0, x), number(math.nan, x), value)


def atanh(x: Expr, scales: bool = False) -> Expr:
    """log1p(2 a / (1 - a)) / 2 for a = |x|."""
    a = magnitude(x)
    return with_sign(number(0.5, x) * log1p((a + a) / (number(1.0, x) - a)), x)


def power(x: Expr, y: Expr, scales: bool = False) -> Expr:
    """x^y as 2^(y log2(x)), the logarithm in float64; other than positive normal x are rare."""
    usual = tir.logical_and(tir.logical_and(x >= number(SMALLEST, x), x <= number(LARGEST, x)), magnitude(y) <= number(LARGEST, x))
    n, f = _parts(x)
    wide = tir.cast(f, DType("float64").with_lanes(x.dtype.lanes))
    t = tir.cast(y, wide.dtype) * fma(wide, horner(wide, _LOG2), tir.cast(n, wide.dtype))
    t = at_most(at_least(t, -160.0), 140.0)
    rounded = number(6755399441055744.0, t)  # 1.5 * 2^52
    whole = (t + rounded) - rounded
    part = tir.cast(t - whole, x.dtype)
    value = scaled(horner(part, EXP2), tir.cast(whole, x.dtype) + number(MAGIC, x), scales)
    return rarely(tir.logical_not(usual), "powf", (x, y), value)
