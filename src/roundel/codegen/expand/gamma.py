# SPDX-License-Identifier: Apache-2.0
"""The logarithm of the gamma function, in float64 with polynomials to 1e-10, so that its zeros at 1 and 2 keep their digits.

The cases are those of Abramowitz and Stegun, 6.1: near the zeros (x - 1)(x - 2) P(x - 2), one step of recurrence below 1 (6.1.15), Stirling's series from
3 on (6.1.40) with its tail fitted, and reflection (6.1.17) for negative numbers, which a branch leaves out where all lanes are positive. Coefficients are
minimax fits.
"""

from __future__ import annotations

import math

from ...ir import tir
from ...ir.dtype import DType
from .convert import bits_of
from .floats import Expr, fma, horner, magnitude, number, rarely, where

_SPLIT = 3.0
# lgamma(2 + u) / (u (1 + u)) for |u| <= 1
_NEAR = (-2.6292423420876737e-06, 4.8690167719383976e-06, 1.8489721057293434e-07, 2.2671940132767907e-06, -2.2080722326556965e-05, 4.3681513064663926e-05,
         -8.04256360100376e-05, 0.00017982302121609004, -0.00040661085301137487, 0.0009160980654834911, -0.002107969169427822, 0.004998548554058967,
         -0.012384205218942672, 0.03296500512274009, -0.10031730136593013, 0.42278433506272534)
# what Stirling's formula leaves, times x, in 1 / x^2 for x >= 3
_STIRLING = (0.0005073217778574793, -0.0005678049159087497, 0.0007926549313381057, -0.0027777647586445975, 0.08333333330589096)
# sin(pi r) / r in r^2 for |r| <= 1/2
_SINE = (-0.007028468962349918, 0.08205045341703789, -0.5992522091195566, 2.550163319956978, -5.167712764656202, 3.1415926535364487)
# log((1 + s) / (1 - s)) = 2 s + s^3 P(s^2) for |s| <= 0.172
_LOG = (0.19364236293634932, 0.22191307719459835, 0.28571756247485564, 0.39999998787272834, 0.6666666666738432)
_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2) in float64
_ONE = 0x3FF0000000000000
_MAGIC = 6755399441055744.0  # adding 1.5 * 2^52 rounds to an integer, which then stands in the low bits
_CLOSE = 3e-3  # to a zero between two poles, where reflection loses digits


def _log(x: Expr) -> Expr:
    """The natural logarithm in float64 of a normal number above 0."""
    shifted = bits_of(x, "uint64") + (_ONE - _ROOT_HALF)  # makes the exponent field count from sqrt(1/2)
    magic = bits_of(number(_MAGIC, x), "uint64")
    n = bits_of((shifted >> 52) + magic, "float64") - number(_MAGIC + 1023.0, x)
    m = bits_of((shifted & ((1 << 52) - 1)) + _ROOT_HALF, "float64")
    s = (m - number(1.0, x)) / (m + number(1.0, x))
    square = s * s
    return fma(n, number(math.log(2.0), x), fma(horner(square, _LOG) * square, s, s + s))


def _of_positive(a: Expr) -> Expr:
    """Of a > 0, in float64."""
    one, log = number(1.0, a), _log(a)
    below = a < one
    t = where(below, a + one, a)
    u = t - number(2.0, a)
    near = fma((t - one) * u, horner(u, _NEAR), where(below, number(0.0, a) - log, number(0.0, a)))
    inverse = one / a
    tail = fma(horner(inverse * inverse, _STIRLING), inverse, number(0.5 * math.log(2.0 * math.pi) - 0.5, a))
    return where(a < number(_SPLIT, a), near, fma(a - number(0.5, a), log - one, tail))


def _reflected(a: Expr, of_a: Expr) -> Expr:
    """Of -a, where ``of_a`` is that of a > 0: log(pi / |a sin(pi a)|) - lgamma(a); infinite at the poles."""
    whole = (a + number(_MAGIC, a)) - number(_MAGIC, a)
    r = where(a < number(2.0**51, a), a - whole, number(0.0, a))
    sine = magnitude(r * horner(r * r, _SINE))
    value = number(math.log(math.pi), a) - of_a - _log(a * sine)
    return where(tir.EQ(sine, number(0.0, a)), number(math.inf, a), value)


def lgamma(x: Expr, scales: bool = False) -> Expr:
    """log |gamma(x)|; infinity at 0, at negative integers and at both infinities."""
    wide = DType("float64").with_lanes(x.dtype.lanes)
    a = magnitude(tir.cast(x, wide))
    negative = x < number(0.0, x)
    value = _of_positive(a)
    value = tir.Call("rarely", (negative, _reflected(a, value), value), wide)
    infinite = tir.logical_or(tir.EQ(x, number(0.0, x)), tir.EQ(magnitude(x), number(math.inf, x)))
    narrow = where(infinite, number(math.inf, x), tir.cast(value, x.dtype))
    return rarely(tir.logical_and(negative, magnitude(narrow) < number(_CLOSE, x)), "lgammaf", (x,), narrow)
