# SPDX-License-Identifier: Apache-2.0
"""Expressions that are linear in some variables, conditions that bound single variables, and what a condition says of one variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from ..ir import free_vars, tir
from ..ir.dtype import INT64, DType
from ..ir.errors import ConstantError
from ..ir.tir import Expr, Range, Var
from . import compare
from .analyzer import Analyzer
from .int_set import Interval
from .linear import Sum, factors, monomial, multiply


def detect_linear_equation(e: Expr, variables: Sequence[Var], an: Analyzer | None = None) -> list[Expr] | None:
    """The coefficients of the variables, and what is left without them, last: ``a * 4 + b + 7`` in ``[a]`` is ``[4, b + 7]``.

    None where the expression is not linear in them (``a * a``, ``a % 2``).
    """
    an = an or Analyzer()
    parts = coefficients(an.sum(e), variables)
    return None if parts is None else [_typed(an, p, e.dtype) for p in parts]


def coefficients(s: Sum, variables: Sequence[Var]) -> list[Sum] | None:
    """The forms of the coefficients of the variables and of the rest; None where a term is not linear in them."""
    out = [Sum({}) for _ in variables]
    rest = Sum({}, s.const)
    own = set(variables)
    for atom, k in s.terms.items():
        if own.isdisjoint(free_vars(atom)):
            rest = rest.plus(Sum({atom: 1}), k)
            continue
        parts = factors(atom)
        at = [i for i, f in enumerate(parts) if type(f) is Var and f in own]
        others = [f for i, f in enumerate(parts) if i not in at]
        if len(at) != 1 or not all(own.isdisjoint(free_vars(f)) for f in others):
            return None
        index = variables.index(parts[at[0]])  # type: ignore[arg-type]
        out[index] = out[index].plus(Sum({monomial(others): 1}) if others else Sum({}, 1), k)
    return [*out, rest]


def _typed(an: Analyzer, s: Sum, dtype: DType) -> Expr:
    """A form in a type; one with a constant that the type does not hold is of int64."""
    try:
        return an.expr(s, dtype)
    except ConstantError:
        return an.expr(s, INT64)


def detect_clip_bound(condition: Expr, variables: Sequence[Var], an: Analyzer | None = None) -> list[Expr | None] | None:
    """The least and the greatest value of each variable by a conjunction of bounds, ``[min, max, min, max, ...]``; None for an end that is not
    bounded. None as a whole where a part of the condition is not a bound on one variable."""
    an = an or Analyzer()
    out: list[Expr | None] = [None] * (2 * len(variables))
    parts: list[Expr] = []
    compare._parts(an, an.rewrite_simplify(condition), tir.And, parts)
    for c in parts:
        if not free_vars(c).isdisjoint(variables):
            found = _one_bound(an, c, variables)
            if found is None:
                return None
            index, low, high = found
            for at, new, pick in ((2 * index, low, tir.max_), (2 * index + 1, high, tir.min_)):
                old = out[at]
                out[at] = old if new is None else new if old is None else an.simplify(pick(old, new))
    return out


def _one_bound(an: Analyzer, c: Expr, variables: Sequence[Var]) -> tuple[int, Expr | None, Expr | None] | None:
    """(variable, low, high) of a comparison that bounds one of the variables."""
    used = [v for v in variables if v in free_vars(c)]
    if len(used) != 1 or type(c) not in _BOUNDS:
        return None
    found = deduce_bound(used[0], c, an=an)
    return None if found is None else (variables.index(used[0]), found.min, found.max)


def deduce_bound(
    v: Var,
    condition: Expr,
    hint: Mapping[Var, Interval | Range] | None = None,
    relax: Mapping[Var, Interval | Range] | None = None,
    an: Analyzer | None = None,
) -> Interval | None:
    """An interval of ``v`` (ends may be open) within which a comparison holds, whatever the variables of ``relax`` are in their intervals.

    ``hint`` says in what intervals other variables are, for the signs of coefficients. None where nothing is found: ``v`` occurs in a remainder,
    a minimum, a load; a coefficient may be of either sign; an equality holds for no single value.
    """
    an = an or Analyzer()
    if type(condition) not in _BOUNDS or not condition.a.dtype.is_int or condition.a.dtype.lanes != 1 or v not in free_vars(condition):
        return None
    with an.scope():
        for known, interval in {**(hint or {}), **(relax or {})}.items():
            _assume(an, known, interval)
        deduce = _Deduction(an, v, {k: _range(i) for k, i in (relax or {}).items()}, condition.a.dtype)
        d = compare.difference(an, condition)
        return deduce.equal(d) if type(condition) is tir.EQ else deduce.at_most_zero(d)


_BOUNDS = (tir.LT, tir.LE, tir.GT, tir.GE, tir.EQ)


def _assume(an: Analyzer, v: Var, interval: Interval | Range) -> None:
    if isinstance(interval, Range):
        an.bind(v, interval)
        return
    if interval.min is not None:
        an.assume(tir.ge(v, interval.min))
    if interval.max is not None:
        an.assume(tir.le(v, interval.max))


def _range(interval: Interval | Range) -> Range | None:
    """The interval as a Range; None where an end is open."""
    if isinstance(interval, Range):
        return interval
    return None if interval.min is None or interval.max is None else Range(interval.min, interval.max - interval.min + 1)


class _Deduction:
    """Takes apart what stands around ``v``, from the outside in."""

    def __init__(self, an: Analyzer, v: Var, relax: Mapping[Var, Range | None], dtype: DType) -> None:
        self.an, self.v, self.relax, self.dtype = an, v, relax, dtype

    def at_most_zero(self, d: Sum) -> Interval | None:
        """Where ``d <= 0``."""
        found = self.around(d)
        if found is None:
            return None
        inner, k, rest = found
        low, high = self.sign(k)
        most = self.greatest(rest)
        if most is None or (low <= 0 <= high):
            return None
        if low > 0:
            return self.inside(inner, None, self.quotient(most * -1, k))
        return self.inside(inner, self.quotient(most, k * -1, up=True), None)

    def equal(self, d: Sum) -> Interval | None:
        """Where ``d == 0``: one value, which must not depend on what is relaxed."""
        found = self.around(d)
        if found is None:
            return None
        inner, k, rest = found
        low, high = self.sign(k)
        if inner is not self.v or low <= 0 <= high or not self.free(rest):
            return None
        at = self.quotient(rest * -1, k)
        by = multiply(at, k)
        if by is None or not self.an._is_zero(by + rest):
            return None
        value = self.an.expr(at, self.dtype)
        return Interval(value, value)

    def around(self, d: Sum) -> tuple[Expr, Sum, Sum] | None:
        """(what ``v`` is in, its coefficient, the rest): a linear form in ``v``, or in one quotient that ``v`` is in."""
        parts = coefficients(d, [self.v])
        if parts is not None:
            return (self.v, parts[0], parts[1]) if self.free(parts[0]) else None
        inside = [a for a in d.terms if self.v in free_vars(a)]
        if len(inside) != 1 or type(inside[0]) is not tir.FloorDiv or type(inside[0].b) is not tir.IntImm or not inside[0].b.value:
            return None
        atom = inside[0]
        return atom, Sum({}, d.terms[atom]), d.plus(Sum({atom: 1}), -d.terms[atom])

    def inside(self, inner: Expr, low: Sum | None, high: Sum | None) -> Interval | None:
        """Bounds on a quotient as bounds on its dividend, until ``v`` stands alone."""
        if inner is self.v:
            return Interval(*(None if s is None else self.an.expr(s, self.dtype) for s in (low, high)))
        c, x = inner.b.value, self.an.sum(inner.a)
        if c < 0:
            c, x = -c, x * -1
        return self.at_most_zero(x - (high * c + (c - 1)) if high is not None else low * c - x)  # type: ignore[operator]

    def quotient(self, a: Sum, by: Sum, up: bool = False) -> Sum:
        """a / by rounded down (up), as a form; ``by`` has one sign."""
        number = self.an.expr(a + by - 1 if up else a, self.dtype)
        return self.an.sum(tir.floordiv(number, self.an.expr(by, self.dtype)))

    def sign(self, k: Sum) -> tuple[Any, Any]:
        """Bounds of a coefficient."""
        return self.an.bounds(self.an.expr(k, INT64)) if k.terms else (k.const, k.const)

    def free(self, s: Sum) -> bool:
        """Whether nothing in a form is relaxed."""
        return not any(not free_vars(a).isdisjoint(self.relax) for a in s.terms)

    def greatest(self, s: Sum) -> Sum | None:
        """The greatest value of a form while what is relaxed runs."""
        if self.free(s):
            return s
        if any(r is None for r in self.relax.values()):
            return None
        e = self.an.expr(s, self.dtype)
        high = self.an.int_set(e, {v: r for v, r in self.relax.items() if r is not None}).max
        return None if high is None or (self.an.bounds(high)[1] == inf and not free_vars(high)) else self.an.sum(high)
