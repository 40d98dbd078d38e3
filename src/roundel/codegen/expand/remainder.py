# SPDX-License-Identifier: Apache-2.0
"""Remainders of float32, and floor division of floats as Python has it."""

from __future__ import annotations

from ...ir import tir
from ...ir.dtype import DType
from .convert import narrow, widen
from .floats import LARGEST, Expr, magnitude, number, rarely, where, with_sign

_MOST = 2.0**28  # of a quotient whose product with a divisor is exact in float64
_MAGIC = 6755399441055744.0  # adding 1.5 * 2^52 rounds to an integer


def fmod(a: Expr, b: Expr, scales: bool = False) -> Expr:
    """The remainder of truncated division, exact: in float64, from the nearest quotient. Infinities, zero divisors and huge quotients are rare."""
    wide = DType("float64").with_lanes(a.dtype.lanes)
    x, y = magnitude(tir.cast(a, wide)), magnitude(tir.cast(b, wide))
    quotient = x / y
    r = x - ((quotient + number(_MAGIC, x)) - number(_MAGIC, x)) * y
    value = with_sign(tir.cast(where(r < number(0.0, x), r + y, r), a.dtype), a)
    usual = tir.logical_and(quotient <= number(_MOST, x), y <= number(LARGEST, x))
    return rarely(tir.logical_not(usual), "fmodf", (a, b), value)


def float_floormod(a: Expr, b: Expr) -> Expr:
    """The remainder of floor division with the sign of ``b``, as Python's ``%`` of floats."""
    if a.dtype.bits <= 16:
        return narrow(float_floormod(widen(a), widen(b)), a.dtype)
    zero, r = number(0.0, a), tir.Mod(a, b)
    differ = tir.NE(r < zero, b < zero)
    fixed = where(differ, r + b, r)
    return where(tir.EQ(r, zero), with_sign(zero, b), fixed)


def float_floordiv(a: Expr, b: Expr) -> Expr:
    """Floor division as Python's ``//`` of floats: exact, from the remainder; a / b when b is 0."""
    if a.dtype.bits <= 16:
        return narrow(float_floordiv(widen(a), widen(b)), a.dtype)
    zero, one = number(0.0, a), number(1.0, a)
    r = tir.Mod(a, b)
    differ = tir.And(tir.NE(r, zero), tir.NE(r < zero, b < zero))
    quotient = (a - r) / b
    quotient = where(differ, quotient - one, quotient)
    floor = tir.Call("floor", (quotient,), a.dtype)
    floor = where(quotient - floor > number(0.5, a), floor + one, floor)
    floor = where(tir.EQ(quotient, zero), with_sign(zero, a / b), floor)
    return where(tir.EQ(b, zero), a / b, floor)
