# SPDX-License-Identifier: Apache-2.0
"""Elementary functions of float32 as polynomials, within 4 units in the last place (tests/codegen/test_math.py).

Each function takes and returns a float32 expression of any number of lanes. Polynomials are minimax fits on the reduced
range; argument reduction splits its constants so that the reduced argument is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...ir import tir
from ...ir.dtype import DType
from .convert import bits_of, narrow, widen

Expr = tir.Expr


def _f(value: float, like: Expr) -> Expr:
    return tir.const(float(value), like.dtype)


def _fma(a: Expr, b: Expr, c: Expr) -> Expr:
    return tir.Call("fma", (a, b, c), a.dtype)


def _horner(x: Expr, coefficients: Sequence[float]) -> Expr:
    """The polynomial with these coefficients, highest power first."""
    out = _f(coefficients[0], x)
    for c in coefficients[1:]:
        out = _fma(out, x, _f(c, x))
    return out


def _isnan(x: Expr) -> Expr:
    return tir.Call("isnan", (x,), DType("bool").with_lanes(x.dtype.lanes))


def _where(condition: Expr, yes: Expr, no: Expr) -> Expr:
    return tir.Select(condition, yes, no)


def _at_most(x: Expr, high: float) -> Expr:
    """One minimum instruction; NaN passes through."""
    return _where(x > _f(high, x), _f(high, x), x)


def _at_least(x: Expr, low: float) -> Expr:
    """One maximum instruction; NaN passes through."""
    return _where(x < _f(low, x), _f(low, x), x)


# adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits
_MAGIC = 12582912.0


# e^r = 1 + r + r^2 P(r) for |r| <= log(2)
_EXP = (
    1.9601566600613296e-4,
    1.4112606877461076e-3,
    8.336330763995647e-3,
    4.16608601808548e-2,
    1.6666607558727264e-1,
    5.000003576278687e-1,
)
# e^r = 1 + r + r^2 P(r) for |r| <= log(2)/2, to 1.05e-7
_EXP_SHORT = (8.312520326678771e-3, 4.1890157094222176e-2, 1.666711464887098e-1, 4.9999231492715673e-1, 1.0, 1.0)
# e^r = 1 + r + r^2 P(r) for |r| <= log(2)/2
_EXPM1 = (
    1.9789267389569432e-4,
    1.3945753453299403e-3,
    8.33350419998169e-3,
    4.166628047823906e-2,
    1.666666567325592e-1,
    0.5,
)
_LOG2E, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 0.693359375, -2.12194440054690583e-4


def _reduce_exp(x: Expr, step: int) -> tuple[Expr, Expr, Expr]:
    """n, n again (in the low bits of an int32) and r, where x = step n log(2) + r."""
    shifted = _fma(x, _f(_LOG2E / step, x), _f(_MAGIC, x))
    n = shifted - _f(_MAGIC, x)
    r = _fma(n, _f(-step * _LN2_LOW, x), _fma(n, _f(-step * _LN2_HIGH, x), x))
    return n, bits_of(shifted, "int32"), r


def _power_of_two(n: Expr) -> Expr:
    """2^n as float32 for n from -126 to 127; bits above the lowest nine do not count."""
    return bits_of((n + 127) << 23, "float32")


def exp(x: Expr, scales: bool = False, most: float = 89.0) -> Expr:
    """e^x; overflows to infinity, underflows through the subnormals to 0. ``most``: x is known to be smaller."""
    x = _at_least(x, -104.0)
    if most >= 89.0:
        x = _at_most(x, 89.0)
    if scales:
        n, _, r = _reduce_exp(x, 1)
        return tir.Call("ldexp", (_horner(r, _EXP_SHORT), n), x.dtype)
    _, n, r = _reduce_exp(x, 2)
    p = _fma(_horner(r, _EXP), r * r, r) + _f(1.0, x)
    half = _power_of_two(n)  # 2^2n in two factors, so that neither overflows before the product does
    return p * half * half


def _expm1(x: Expr) -> Expr:
    """e^x - 1 for |x| <= 87, without cancellation near 0."""
    _, n, r = _reduce_exp(x, 1)
    q = _fma(_horner(r, _EXPM1), r * r, r)  # e^r - 1
    scale = _power_of_two(n)
    return _fma(q, scale, scale - _f(1.0, x))


def tanh(x: Expr, scales: bool = False) -> Expr:
    """Hyperbolic tangent: expm1(2|x|) / (expm1(2|x|) + 2)."""
    magnitude = _at_most(tir.Call("abs", (x,), x.dtype), 9.5)
    e = _expm1(magnitude + magnitude)
    positive = e / (e + _f(2.0, x))
    return tir.Call("copysign", (positive, x), x.dtype)


def sigmoid(x: Expr, scales: bool = False) -> Expr:
    """1 / (1 + e^-x), as e^x / (1 + e^x) below 0."""
    e = exp(_f(0.0, x) - tir.Call("abs", (x,), x.dtype), scales, most=0.0)
    return _where(x < _f(0.0, x), e, _f(1.0, x)) / (_f(1.0, x) + e)


# log(1 + f) for sqrt(1/2) <= 1 + f < sqrt(2): f - f^2/2 + f^3 P(f)
_LOG = (
    6.746601313352585e-2,
    -1.1675640940666199e-1,
    1.1888174712657928e-1,
    -1.2405591458082199e-1,
    1.4219550788402557e-1,
    -1.666799634695053e-1,
    2.000211924314499e-1,
    -2.5000008940696716e-1,
    3.333331346511841e-1,
)


def log(x: Expr, scales: bool = False) -> Expr:
    """Natural logarithm; NaN below 0, -infinity at 0."""
    tiny = x < _f(1.17549435e-38, x)
    scaled = _where(tiny, x * _f(8388608.0, x), x)  # subnormals made normal
    bits = bits_of(scaled, "int32")
    # subtracting the bits of sqrt(1/2) makes the exponent field count from there
    shifted = bits - 0x3F3504F3
    n = tir.cast(shifted >> 23, "float32") - _where(tiny, _f(23.0, x), _f(0.0, x))
    f = bits_of((shifted & 0x7FFFFF) + 0x3F3504F3, "float32") - _f(1.0, x)
    f2 = f * f
    tail = _fma(n, _f(_LN2_LOW, x), _fma(_f(-0.5, x), f2, _horner(f, _LOG) * (f2 * f)))
    value = _fma(n, _f(_LN2_HIGH, x), f + tail)
    infinity = _f(math.inf, x)
    value = _where(tir.logical_or(tir.EQ(x, infinity), _isnan(x)), x, value)
    value = _where(tir.EQ(x, _f(0.0, x)), _f(-math.inf, x), value)
    return _where(x < _f(0.0, x), _f(math.nan, x), value)


# erf(x) = x + x P(x^2) below the split, 1 - e^Q(x) above
_ERF_SPLIT = 0.921875
_ERF_SMALL = (
    8.349600830115378e-5,
    -8.137851837091148e-4,
    5.200604442507029e-3,
    -2.6859225705266e-2,
    1.1283692717552185e-1,
    -3.7612634897232056e-1,
    1.2837916612625122e-1,
)
_ERF_LARGE = (
    1.9822070316877216e-4,
    -3.065499709919095e-3,
    2.231524884700775e-2,
    -1.0411374270915985e-1,
    -6.369760036468506e-1,
    -1.127797245979309,
    -1.664390874793753e-4,
)


# 2^f for |f| <= 1/2, to 1e-7
_EXP2 = (1.3264452572911978e-3, 9.671726264059544e-3, 5.55073618888855e-2, 2.4022239446640015e-1, 6.931470036506653e-1, 1.0)


def _exp2_normal(x: Expr) -> Expr:
    """2^x to 1e-7 where neither overflows nor underflows: the power of two goes straight into the exponent."""
    shifted = x + _f(_MAGIC, x)
    p = _horner(x - (shifted - _f(_MAGIC, x)), _EXP2)
    return bits_of(bits_of(p, "int32") + (bits_of(shifted, "int32") << 23), "float32")


def erf(x: Expr, scales: bool = False) -> Expr:
    """Error function."""
    a = tir.Call("abs", (x,), x.dtype)
    small = _fma(_horner(x * x, _ERF_SMALL), x, x)
    large = _f(1.0, x) - _exp2_normal(_horner(_at_most(a, 4.0), [c * _LOG2E for c in _ERF_LARGE]))
    return _where(a < _f(_ERF_SPLIT, x), small, tir.Call("copysign", (large, x), x.dtype))


def float_floormod(a: Expr, b: Expr) -> Expr:
    """The remainder of floor division with the sign of ``b``, as Python's ``%`` of floats."""
    if a.dtype.bits <= 16:
        return narrow(float_floormod(widen(a), widen(b)), a.dtype)
    zero, r = _f(0.0, a), tir.Mod(a, b)
    differ = tir.NE(r < zero, b < zero)
    fixed = _where(differ, r + b, r)
    return _where(tir.EQ(r, zero), tir.Call("copysign", (zero, b), a.dtype), fixed)


def float_floordiv(a: Expr, b: Expr) -> Expr:
    """Floor division as Python's ``//`` of floats: exact, from the remainder; a / b when b is 0."""
    if a.dtype.bits <= 16:
        return narrow(float_floordiv(widen(a), widen(b)), a.dtype)
    zero, one = _f(0.0, a), _f(1.0, a)
    r = tir.Mod(a, b)
    differ = tir.And(tir.NE(r, zero), tir.NE(r < zero, b < zero))
    quotient = (a - r) / b
    quotient = _where(differ, quotient - one, quotient)
    floor = tir.Call("floor", (quotient,), a.dtype)
    floor = _where(quotient - floor > _f(0.5, a), floor + one, floor)
    floor = _where(tir.EQ(quotient, zero), tir.Call("copysign", (zero, a / b), a.dtype), floor)
    return _where(tir.EQ(b, zero), a / b, floor)


EXPANSIONS: dict[str, Callable[[Expr, bool], Expr]] = {"exp": exp, "tanh": tanh, "sigmoid": sigmoid, "log": log, "erf": erf}


def expand_call(e: tir.Call, scales: bool = False) -> Expr | None:
    """The expansion of a call of an elementary function, or None when the target's library does it. ``scales``: multiplying by
    a power of two, whatever over- or underflows, is one instruction (``ldexp`` with a float as exponent)."""
    rule = EXPANSIONS.get(e.op) if isinstance(e.op, str) else None
    if rule is None or not e.dtype.is_float or e.dtype.bits > 32:
        return None
    return rule(e.args[0], scales) if e.dtype.bits == 32 else narrow(rule(widen(e.args[0]), scales), e.dtype)
