# SPDX-License-Identifier: Apache-2.0
"""Modular sets: ``(coeff, base)`` says that a value is ``base`` plus a multiple of ``coeff`` (0: exactly ``base``)."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING, Any

from ..ir import tir
from ..ir.tir import Expr
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
    c, b = an.modular(e.a)
    m, n = an.modular(e.b)
    return normal(gcd(c, m, n), b)


def _either(an: Analyzer, e: Expr) -> Modular:
    return join(an.modular(e.a), an.modular(e.b))


_RULES: dict[type, Callable[[Analyzer, Any], Modular]] = {
    tir.IntImm: lambda an, e: (0, e.value),
    tir.Mul: _mul,
    tir.FloorDiv: _divide,
    tir.Div: _divide,
    tir.FloorMod: _floormod,
    tir.Min: _either,
    tir.Max: _either,
    tir.Select: lambda an, e: join(an.modular(e.true_value), an.modular(e.false_value)),
    tir.IfThenElse: lambda an, e: join(an.modular(e.true_value), an.modular(e.false_value)),
    tir.Cast: lambda an, e: an.modular(e.value) if e.is_index else ANY,
}
