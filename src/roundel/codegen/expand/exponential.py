# SPDX-License-Identifier: Apache-2.0
"""Exponentials and what is made of them: hyperbolic functions, the sigmoid, the error function.

Polynomials are minimax fits on the reduced range; argument reduction splits its constants so that the reduced argument is exact.
``scales``: multiplying by a power of two, whatever over- or underflows, is one instruction (``ldexp`` with a float as exponent).
"""

from __future__ import annotations

from ...ir import tir
from ...ir.dtype import DType
from .convert import bits_of
from .floats import LARGEST, MAGIC, Expr, at_least, at_most, fma, horner, magnitude, number, power_of_two, where, with_sign

# e^r = 1 + r + r^2 P(r) for |r| <= log(2)
_EXP = (1.9601566600613296e-4, 1.4112606877461076e-3, 8.336330763995647e-3, 4.16608601808548e-2, 1.6666607558727264e-1, 5.000003576278687e-1)
# e^r for |r| <= log(2)/2, to 1.05e-7
_EXP_SHORT = (8.312520326678771e-3, 4.1890157094222176e-2, 1.666711464887098e-1, 4.9999231492715673e-1, 1.0, 1.0)
# e^r = 1 + r + r^2 P(r) for |r| <= log(2)/2
_EXPM1 = (1.9789267389569432e-4, 1.3945753453299403e-3, 8.33350419998169e-3, 4.166628047823906e-2, 1.666666567325592e-1, 0.5)
# 2^f for |f| <= 1/2, to 1e-7 and to 2e-9
_EXP2_SHORT = (1.3264452572911978e-3, 9.671726264059544e-3, 5.55073618888855e-2, 2.4022239446640015e-1, 6.931470036506653e-1, 1.0)
EXP2 = (1.535334103286157e-4, 1.339890023915043e-3, 9.618437606642029e-3, 5.550332409475746e-2, 2.402264791027817e-1, 6.931472028810534e-1, 1.0)
# 10^r for |r| <= log10(2)/2
_EXP10 = (2.063209746963578e-1, 5.420277808202465e-1, 1.17129276201349, 2.034649797528508, 2.650948747285204, 2.302585167272493, 1.0)
_LOG2E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.693359375, -2.12194440054690583e-4
_LOG2_10, _LOG10_2_HIGH, _LOG10_2_LOW = 3.321928094887362, 0.30078125, 2.48745663981195213739e-4


def _reduce_exp(x: Expr, step: int) -> tuple[Expr, Expr, Expr]:
    """n, n again (in the low bits of an int32) and r, where x = step n log(2) + r."""
    shifted = fma(x, number(_LOG2E / step, x), number(MAGIC, x))
    n = shifted - number(MAGIC, x)
    r = fma(n, number(-step * LN2_LOW, x), fma(n, number(-step * LN2_HIGH, x), x))
    return n, bits_of(shifted, "int32"), r


def scaled(p: Expr, shifted: Expr, scales: bool) -> Expr:
    """p 2^n for n from -250 to 250, which stands in the low bits of the float ``shifted``."""
    if scales:
        return tir.Call("ldexp", (p, shifted - number(MAGIC, p)), p.dtype)
    n = bits_of(shifted, "int32") << 23 >> 23  # nine bits with their sign
    half = n >> 1
    return p * power_of_two(half) * power_of_two(n - half)  # in two factors, so that neither overflows before the product does


def exp(x: Expr, scales: bool = False, most: float = 89.0, least: float = -104.0) -> Expr:
    """e^x; overflows to infinity, underflows through the subnormals to 0. ``most``: x is known to be smaller. Of what is below ``least`` it is that of
    ``least``."""
    x = at_least(x, least)
    if most >= 89.0:
        x = at_most(x, 89.0)
    if scales:
        n, _, r = _reduce_exp(x, 1)
        return tir.Call("ldexp", (horner(r, _EXP_SHORT), n), x.dtype)
    _, n, r = _reduce_exp(x, 2)
    p = fma(horner(r, _EXP), r * r, r) + number(1.0, x)
    half = power_of_two(n)
    return p * half * half


_NORMAL = {32: -87.3365, 64: -708.396}
"""Of what is smaller the exponential is no normal number, by width."""


def exp_flushed(x: Expr, scales: bool = False) -> Expr:
    """e^x, and 0 where that is subnormal. Many processors take a hundred cycles for each operation with a subnormal operand or result."""
    least = _NORMAL[x.dtype.bits]
    value = exp(x, scales, least=least) if x.dtype.bits == 32 else tir.Call("exp", (x,), x.dtype)
    return where(x < number(least, x), number(0.0, x), value)


def exp2(x: Expr, scales: bool = False) -> Expr:
    """2^x."""
    x = at_most(at_least(x, -151.0), 129.0)
    shifted = x + number(MAGIC, x)
    return scaled(horner(x - (shifted - number(MAGIC, x)), EXP2), shifted, scales)


def exp10(x: Expr, scales: bool = False) -> Expr:
    """10^x."""
    x = at_most(at_least(x, -46.0), 39.0)
    shifted = fma(x, number(_LOG2_10, x), number(MAGIC, x))
    n = shifted - number(MAGIC, x)
    r = fma(n, number(-_LOG10_2_LOW, x), fma(n, number(-_LOG10_2_HIGH, x), x))
    return scaled(horner(r, _EXP10), shifted, scales)


def _quarter_expm1(x: Expr) -> Expr:
    """(e^x - 1) / 4 for -100 <= x <= 89.5, without cancellation near 0."""
    _, n, r = _reduce_exp(x, 1)
    q = fma(horner(r, _EXPM1), r * r, r)  # e^r - 1
    scale = power_of_two(n - 2)
    return fma(q, scale, scale - number(0.25, x))


def expm1(x: Expr, scales: bool = False) -> Expr:
    """e^x - 1."""
    quarter = _quarter_expm1(at_most(at_least(x, -20.0), 89.0))
    return where(magnitude(x) < number(1e-10, x), x, quarter * number(4.0, x))


def sinh(x: Expr, scales: bool = False) -> Expr:
    """Hyperbolic sine: (e + e / (e + 1)) / 2 for e = expm1(|x|)."""
    quarter = _quarter_expm1(at_most(magnitude(x), 89.5))
    half = quarter + quarter
    value = half + half / at_most(fma(number(4.0, x), quarter, number(1.0, x)), LARGEST)
    return with_sign(where(magnitude(x) < number(1e-5, x), magnitude(x), value), x)


def cosh(x: Expr, scales: bool = False) -> Expr:
    """Hyperbolic cosine: (e^|x| + e^-|x|) / 2."""
    half = fma(_quarter_expm1(at_most(magnitude(x), 89.5)), number(2.0, x), number(0.5, x))
    return half + number(0.25, x) / half


def tanh(x: Expr, scales: bool = False) -> Expr:
    """Hyperbolic tangent: expm1(2|x|) / (expm1(2|x|) + 2)."""
    m = at_most(magnitude(x), 9.5)
    _, n, r = _reduce_exp(m + m, 1)
    scale = power_of_two(n)
    e = fma(fma(horner(r, _EXPM1), r * r, r), scale, scale - number(1.0, x))
    return with_sign(e / (e + number(2.0, x)), x)


def sigmoid(x: Expr, scales: bool = False) -> Expr:
    """1 / (1 + e^-x), as e^x / (1 + e^x) below 0."""
    e = exp(number(0.0, x) - magnitude(x), scales, most=0.0)
    return where(x < number(0.0, x), e, number(1.0, x)) / (number(1.0, x) + e)


# erf(x) = x + x P(x^2) below the split, 1 - e^Q(x) above
_ERF_SPLIT = 0.921875
_ERF_SMALL = (8.349600830115378e-5, -8.137851837091148e-4, 5.200604442507029e-3, -2.6859225705266e-2, 1.1283692717552185e-1, -3.7612634897232056e-1,
              1.2837916612625122e-1)
_ERF_LARGE = (1.9822070316877216e-4, -3.065499709919095e-3, 2.231524884700775e-2, -1.0411374270915985e-1, -6.369760036468506e-1, -1.127797245979309,
              -1.664390874793753e-4)


def _exp2_normal(x: Expr) -> Expr:
    """2^x to 1e-7 where neither overflows nor underflows: the power of two goes straight into the exponent."""
    shifted = x + number(MAGIC, x)
    p = horner(x - (shifted - number(MAGIC, x)), _EXP2_SHORT)
    return bits_of(bits_of(p, "int32") + (bits_of(shifted, "int32") << 23), "float32")


def erf(x: Expr, scales: bool = False) -> Expr:
    """Error function."""
    a = magnitude(x)
    small = fma(horner(x * x, _ERF_SMALL), x, x)
    large = number(1.0, x) - _exp2_normal(horner(at_most(a, 4.0), [c * _LOG2E for c in _ERF_LARGE]))
    return where(a >= number(_ERF_SPLIT, x), with_sign(large, x), small)  # of NaN the small one, which is NaN


# erfc(a) e^(a^2) in (a - 2) / (a + 2) for 0 <= a <= 10.1
_ERFC = (-1.1835219503886963e-05, 1.3619640349403307e-05, 0.0001545083579323823, 4.977967005035529e-05, -0.000971943704991821, -0.0008487239753074353,
         0.006995152988455251, 0.003733141187423351, -0.07897836225668554, 0.2416581757411059, -0.4271858530222951, 0.25539567655280676)


def erfc(x: Expr, scales: bool = False) -> Expr:
    """1 - erf(x), with all digits where it is small: e^(-a^2) and a polynomial in float64 (M. Shepherd and J. Laframboise, Chebyshev approximation of
    (1 + 2x) exp(x^2) erfc x)."""
    a = at_most(magnitude(x), 10.1)
    square = a * a  # rounded; what that takes away changes the exponential by a factor
    wide = tir.cast(a, DType("float64").with_lanes(x.dtype.lanes))
    lost = tir.cast(square, wide.dtype) - wide * wide
    factor = fma(lost, fma(lost, number(0.5, wide), number(1.0, wide)), number(1.0, wide))
    p = horner((wide - number(2.0, wide)) / (wide + number(2.0, wide)), _ERFC) * factor
    value = tir.cast(p, x.dtype) * exp(number(0.0, x) - square, most=0.0)
    return where(x < number(0.0, x), number(2.0, x) - value, value)
