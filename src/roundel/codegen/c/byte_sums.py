# SPDX-License-Identifier: Apache-2.0
"""Sums of bytes, each with a constant factor, rounded to a byte: residual connections of quantised models, and changes of scale.

    cast("int8", clip(round((float(x) + 128.0) * 0.027 + float(y) * 0.044) - 128.0))

Such a sum is a linear form of a few small integers, whose factors are known when the model is compiled. Where no instruction multiplies floats, it is computed
in 32 bits, with as many binary digits behind the point as there is room for. How far that is from what floats give is bounded while the form is read; where
a number is nearer than that to the middle between two whole ones, floats decide. So results are those of floats.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from fractions import Fraction

from ...ir import tir
from ...ir.dataclass import dataclass
from ...ir.dtype import DType
from .types import c_type, short
from .writer import Writer

_FLOAT32 = DType("float32")
_BYTES = (DType("int8"), DType("uint8"))
_ROUNDED = Fraction(1, 1 << 23)  # the most of a number that a rounding to float32 changes, twice over
_BITS = 31
_SELDOM = 32  # at most one number in so many may be too near to a middle


@dataclass(frozen=True)
class Linear:
    """A float that is ``more`` plus the sum of bytes times their factors, computed with an ``error`` below that; no part of it is larger than ``size``."""

    factors: Mapping[tir.Expr, Fraction]
    more: Fraction
    error: Fraction = Fraction(0)

    @property
    def size(self) -> Fraction:
        """A bound of the absolute value of the float and of every part of its sum."""
        return abs(self.more) + sum((abs(by) * max(map(abs, x.dtype.limits)) for x, by in self.factors.items()), Fraction(0))

    @staticmethod
    def of(e: tir.Expr) -> Linear | None:
        """None of other values."""
        if type(e) is tir.FloatImm:
            return Linear({}, Fraction(e.value)) if math.isfinite(e.value) else None
        if type(e) is tir.Cast:
            return Linear({e.value: Fraction(1)}, Fraction(0)) if e.dtype is _FLOAT32 and e.value.dtype in _BYTES else None
        if type(e) is tir.Call and e.op == "fma":
            e = tir.Add(tir.Mul(e.args[0], e.args[1]), e.args[2])
        if type(e) not in (tir.Add, tir.Sub, tir.Mul) or e.dtype is not _FLOAT32:
            return None
        a, b = Linear.of(e.a), Linear.of(e.b)
        if a is None or b is None:
            return None
        if type(e) is tir.Mul:
            number, form = (b, a) if a.factors else (a, b)
            return None if number.factors else form._times(number.more)._rounded()
        return a._plus(b._times(Fraction(-1 if type(e) is tir.Sub else 1)))._rounded()

    def _times(self, by: Fraction) -> Linear:
        return Linear({x: f * by for x, f in self.factors.items()}, self.more * by, self.error * abs(by))

    def _plus(self, other: Linear) -> Linear:
        factors = {x: self.factors.get(x, Fraction(0)) + other.factors.get(x, Fraction(0)) for x in (*self.factors, *other.factors)}
        return Linear(factors, self.more + other.more, self.error + other.error)

    def _rounded(self) -> Linear:
        return Linear(self.factors, self.more, self.error + self.size * _ROUNDED)


@dataclass(frozen=True)
class _Whole:
    """The form in integers, with ``places`` binary digits behind the point and an error of at most ``near`` of their units."""

    factors: tuple[int, ...]
    more: int
    places: int
    near: int

    @staticmethod
    def of(form: Linear) -> _Whole | None:
        """None where there is no room for digits that would tell nearly always."""
        places = _BITS - 1 - math.ceil(form.size + 1).bit_length()
        one = Fraction(1 << max(places, 0))
        cut = sum(max(map(abs, x.dtype.limits)) for x in form.factors) + 1
        near = math.ceil(form.error * one + Fraction(cut, 2)) + 1
        if places < 1 or 2 * near * _SELDOM > one:
            return None
        return _Whole(tuple(round(by * one) for by in form.factors.values()), round(form.more * one), places, near)


def byte_sum(w: Writer, dtype: DType, value: tir.Expr, limits: tuple[int, int, int], plain: str) -> str | None:
    """The text of such a sum, rounded, with ``limits`` (a zero point, and the least and the largest result) as the function ``plain`` of floats has them; None
    of others."""
    form = Linear.of(value)
    whole = _Whole.of(form) if form is not None and form.factors else None
    if form is None or whole is None:
        return None
    names = {x: f"x{k}" for k, x in enumerate(form.factors)}
    inner = Writer(w.helpers, w.symbol, contract=w.contract)
    inner.memo = dict(names)
    inner.env = {x: name for x, name in names.items() if type(x) is tir.Var}
    floats = inner.value(value)
    t, places, near = c_type(dtype), whole.places, whole.near
    parameters, numbers = ", ".join(f"{c_type(x.dtype)} {name}" for x, name in names.items()), ", ".join(map(str, limits))
    total = " + ".join([str(whole.more + (1 << (places - 1))), *(f"{name} * {by}" for name, by in zip(names.values(), whole.factors, strict=True))])
    zero, low, high = limits
    body = f"""({parameters}) {{
  const int32_t y = {total}, n = (y >> {places}) + {zero};
  if ((((uint32_t)y + {near}) & {(1 << places) - 1}) < {2 * near}) return NAME_exactly({", ".join(names.values())});
  return ({t})(n < {low} ? {low} : n > {high} ? {high} : n);
}}"""
    name = f"rd_sum_{short(dtype)}_{hashlib.sha256((body + floats).encode()).hexdigest()[:8]}"
    w.helpers.use((name, f"""#ifdef RD_NO_FLOATS
#if defined(__GNUC__)
__attribute__((noinline))
#endif
static {t} {name}_exactly({parameters}) {{ return {plain}({floats}, {numbers}); }}
RD_INLINE {t} {name}{body.replace("NAME", name)}
#else
RD_INLINE {t} {name}({parameters}) {{ return {plain}({floats}, {numbers}); }}
#endif"""))
    return f"{name}({', '.join(map(w.value, form.factors))})"
