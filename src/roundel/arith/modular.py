# SPDX-License-Identifier: Apache-2.0
"""Modular sets: ``(coeff, base)`` says that a value is ``base`` plus a multiple of ``coeff`` (0: exactly ``base``)."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING, Any

from ..ir import tir
from ..ir.tir import Expr
from . import bounds
from .linear import Sum, factors

if TYPE_CHECKING:
    from .analyzer import Analyzer

Modular = tuple[int, int]
ANY: Modular = (1, 0)


def normal(coeff: int, base: int) -> Modular:
    """The base reduced to [0, coeff)."""
    return (coeff, base % coeff) if coeff else (0, base)


def of_sum(an: Analyzer, s: Sum) -> Modular:
    """Modular set of a linear form."""
    coeff, base = 0, s.const
    for atom, k in s.terms.items():
        c, b = of_atom(an, atom)
        coeff, base = gcd(coeff, k * c), base + k * b
        if coeff == 1:
            return ANY
    return normal(coeff, base)


def of_atom(an: Analyzer, atom: Expr) -> Modular:
    """Modular set of an expression that is not a sum, by its structure and the facts in scope."""
    known = an.facts.modular.get(atom)
    if known is not None:
        return known
    rule = _RULES.get(type(atom))
    return rule(an, atom) if rule is not None else ANY


def join(a: Modular, b: Modular) -> Modular:
    """The smallest set that holds both."""
    return normal(gcd(a[0], b[0], a[1] - b[1]), a[1])


def _mul(an: Analyzer, e: Expr) -> Modular:
    coeff, base = 0, 1
    for f in factors(e) if e.is_index else (e.a, e.b):
        c, b = an.modular(f)
        coeff, base = gcd(coeff * c, coeff * b, base * c), base * b
    if not e.is_index:  # it may wrap: what is known of it holds up to multiples of the width only
        coeff = gcd(coeff, 1 << e.dtype.bits)
    return normal(coeff, base)


def _divide(an: Analyzer, e: Expr) -> Modular:
    if type(e.b) is not tir.IntImm or e.b.value <= 0:
        return ANY
    c, b = an.modular(e.a)
    return (
        normal(c // e.b.value, b // e.b.value)
        if c % e.b.value == 0 and (type(e) is tir.FloorDiv or b % e.b.value == 0)
        else ANY
    )


def _floormod(an: Analyzer, e: Expr) -> Modular:
    """A remainder, rounded either way, differs from the dividend by a multiple of the divisor."""
    c, b = an.modular(e.a)
    m, n = an.modular(e.b)
    return normal(gcd(c, m, n), b)


def meet(a: Modular, b: Modular) -> Modular | None:
    """What lies in both sets (Chinese remainder theorem); None where nothing does."""
    (m, r), (n, s) = a, b
    if m == 0 or n == 0:
        exact, (coeff, base) = (a, b) if m == 0 else (b, a)
        d = exact[1] - base
        return exact if (d % coeff == 0 if coeff else d == 0) else None
    g = gcd(m, n)
    if (s - r) % g:
        return None
    step = (s - r) // g * pow(m // g, -1, n // g) if n > g else 0
    return normal(m // g * n, r + m * step)


def _call(an: Analyzer, e: Any) -> Modular:
    rule = _CALLS.get(e.op) if isinstance(e.op, str) and e.dtype.is_int else None
    return ANY if rule is None else rule(an, *e.args)


def _bits_and(an: Analyzer, a: Expr, b: Expr) -> Modular:
    """Low bits that are zero in one operand are zero in the result; with a mask of low bits it is a remainder."""
    for x, y in ((a, b), (b, a)):
        if type(y) is tir.IntImm and y.value >= 0 and y.value & (y.value + 1) == 0:
            c, base = an.modular(x)
            return normal(gcd(c, y.value + 1), base)
    return normal(max(_power_of_two(an.modular(a)), _power_of_two(an.modular(b))), 0)


def _power_of_two(m: Modular) -> int:
    """The greatest power of two (up to 2 ** 62) that divides all values."""
    g = gcd(*m)
    return g & -g if g else 1 << 62


def _shift_left(an: Analyzer, a: Expr, n: Expr) -> Modular:
    if type(n) is not tir.IntImm or not 0 <= n.value < a.dtype.bits:
        return ANY
    c, b = an.modular(a)
    return normal(gcd(c << n.value, 1 << a.dtype.bits), b << n.value)


def _shift_right(an: Analyzer, a: Expr, n: Expr) -> Modular:
    if type(n) is not tir.IntImm or not 0 <= n.value < a.dtype.bits:
        return ANY
    c, b = an.modular(a)
    return normal(c >> n.value, b >> n.value) if c % (1 << n.value) == 0 else ANY


_CALLS: dict[str, Callable[..., Modular]] = {
    "bitwise_and": _bits_and,
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "likely": lambda an, a: an.modular(a),
}


def _cast(an: Analyzer, e: Any) -> Modular:
    """A value that the type holds is kept; one that wraps is known up to multiples of the width."""
    if e.is_index:
        return an.modular(e.value)
    if e.dtype.lanes != 1 or not e.dtype.is_int:
        return ANY
    value = _unrounded(an, e.value)
    if value is None:
        return ANY
    c, b = an.modular(value)
    low, high = bounds.of_dtype(e.dtype)
    l, h = an.bounds(value)
    return normal(c, b) if low <= l and h <= high else normal(gcd(c, 1 << e.dtype.bits), b)


def _unrounded(an: Analyzer, value: Expr) -> Expr | None:
    """The whole number that is converted, where it may go through floating point without being rounded."""
    if value.dtype.is_int:
        return value
    if type(value) is not tir.Cast or not value.value.dtype.is_int:
        return None
    l, h = an.bounds(value.value)
    limit = bounds.EXACT_FLOATS.get(value.dtype.element, 0)
    return value.value if -limit <= l and h <= limit else None


def _either(an: Analyzer, e: Expr) -> Modular:
    return join(an.modular(e.a), an.modular(e.b))


_RULES: dict[type, Callable[[Analyzer, Any], Modular]] = {
    tir.IntImm: lambda an, e: (0, e.value),
    tir.Mul: _mul,
    tir.FloorDiv: _divide,
    tir.Div: _divide,
    tir.FloorMod: _floormod,
    tir.Mod: _floormod,
    tir.Min: _either,
    tir.Max: _either,
    tir.Select: lambda an, e: join(an.modular(e.true_value), an.modular(e.false_value)),
    tir.IfThenElse: lambda an, e: join(an.modular(e.true_value), an.modular(e.false_value)),
    tir.Cast: _cast,
    tir.Call: _call,
}
