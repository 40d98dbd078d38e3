# SPDX-License-Identifier: Apache-2.0
"""Sine, cosine, tangent and their inverses. Angles beyond 8192 are rare, and the C library's."""

from __future__ import annotations

import math

from ...ir import tir
from .convert import bits_of
from .floats import LARGEST, MAGIC, Expr, fma, horner, magnitude, number, rarely, root, where, with_sign

_MOST = 8192.0
_HALF_PI = (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12)  # a sum; n times each but the last is exact
_SIN = (-1.951495753397857e-4, 8.332158408757818e-3, -1.666665457311636e-1, 1.0)   # sin(r) / r in r^2
_COS = (2.443278495713034e-5, -1.388731306133149e-3, 4.166664561876528e-2, -0.5, 1.0)  # cos(r) in r^2
# (atan(t) - t) / t^3 in t^2 for |t| <= 1, (asin(t) - t) / t^3 for |t| <= 1/2
_ATAN = (-1.793620317332621e-3, 1.091459959034721e-2, -3.117783452399599e-2, 5.795758237143508e-2, -8.403449685739375e-2, 1.09521855595625e-1,
         -1.426424166398425e-1, 1.999854828056182e-1, -3.333329908900367e-1)
_ASIN = (4.216630672953479e-2, 2.41795156099696e-2, 4.547037580194711e-2, 7.495297643851917e-2, 1.666675248202135e-1)


def _reduce(x: Expr) -> tuple[Expr, Expr, Expr]:
    """The quadrant (in the low bits of an int32), and sine and cosine of what x is beyond its start."""
    shifted = fma(x, number(2.0 / math.pi, x), number(MAGIC, x))
    n = shifted - number(MAGIC, x)
    r = x
    for part in _HALF_PI:
        r = fma(n, number(-part, x), r)
    square = r * r
    return bits_of(shifted, "int32"), horner(square, _SIN) * r, horner(square, _COS)


def _odd(quadrant: Expr) -> Expr:
    return tir.NE(quadrant & 1, tir.const(0, quadrant.dtype))


def _wave(x: Expr, turned: int, name: str) -> Expr:
    quadrant, sine, cosine = _reduce(x)
    quadrant = quadrant + turned if turned else quadrant
    value = bits_of(where(_odd(quadrant), cosine, sine), "int32") ^ ((quadrant & 2) << 30)
    return rarely(tir.logical_not(magnitude(x) <= number(_MOST, x)), name, (x,), bits_of(value, "float32"))


def sin(x: Expr, scales: bool = False) -> Expr:
    """Sine."""
    return _wave(x, 0, "sinf")


def cos(x: Expr, scales: bool = False) -> Expr:
    """Cosine: the sine a quadrant later."""
    return _wave(x, 1, "cosf")


def tan(x: Expr, scales: bool = False) -> Expr:
    """Tangent."""
    quadrant, sine, cosine = _reduce(x)
    odd = _odd(quadrant)
    value = where(odd, number(0.0, x) - cosine, sine) / where(odd, sine, cosine)
    return rarely(tir.logical_not(magnitude(x) <= number(_MOST, x)), "tanf", (x,), value)


def _arc(t: Expr, coefficients: tuple[float, ...]) -> Expr:
    square = t * t
    return fma(horner(square, coefficients) * square, t, t)


def atan(x: Expr, scales: bool = False) -> Expr:
    """Arc tangent; of numbers beyond 1 by their reciprocals."""
    a = magnitude(x)
    steep = a > number(1.0, x)
    p = _arc(where(steep, number(1.0, x) / a, a), _ATAN)
    return with_sign(where(steep, number(math.pi / 2, x) - p, p), x)


def atan2(y: Expr, x: Expr, scales: bool = False) -> Expr:
    """The angle of the point (x, y); zeros and infinities are rare."""
    a, b = magnitude(x), magnitude(y)
    steep = b > a
    longer = where(steep, b, a)
    p = _arc(where(steep, a, b) / longer, _ATAN)
    p = where(steep, number(math.pi / 2, x) - p, p)
    p = with_sign(where(x < number(0.0, x), number(math.pi, x) - p, p), y)
    usual = tir.logical_and(tir.logical_and(longer > number(0.0, x), a <= number(LARGEST, x)), b <= number(LARGEST, x))
    return rarely(tir.logical_not(usual), "atan2f", (y, x), p)


def _half_arc(a: Expr) -> tuple[Expr, Expr]:
    """Whether a > 1/2; then half the arc cosine of a, else its arc sine."""
    near = a > number(0.5, a)
    return near, _arc(where(near, root(fma(number(-0.5, a), a, number(0.5, a))), a), _ASIN)


def asin(x: Expr, scales: bool = False) -> Expr:
    """Arc sine; NaN beyond 1."""
    near, p = _half_arc(magnitude(x))
    return with_sign(where(near, fma(number(-2.0, x), p, number(math.pi / 2, x)), p), x)


def acos(x: Expr, scales: bool = False) -> Expr:
    """Arc cosine; NaN beyond 1."""
    near, p = _half_arc(magnitude(x))
    negative = x < number(0.0, x)
    beyond = where(negative, number(math.pi, x) - (p + p), p + p)
    return where(near, beyond, number(math.pi / 2, x) - with_sign(p, x))
