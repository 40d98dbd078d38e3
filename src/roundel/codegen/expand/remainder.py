# SPDX-License-Identifier: Apache-2.0
"""Floor division of floats and its remainder, as Python has them."""

from __future__ import annotations

from ...ir import tir
from .convert import narrow, widen
from .floats import Expr, number, where, with_sign


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
