# SPDX-License-Identifier: Apache-2.0
"""Conditions: comparisons of integers as ``form <= 0`` or ``form == 0``, and boolean logic over them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from ..ir import tir
from ..ir.dtype import BOOL, DType
from ..ir.tir import Expr, IntImm
from . import bounds, modular
from .effects import has_effect
from .linear import Sum, order_key, to_expr

if TYPE_CHECKING:
    from .analyzer import Analyzer

TRUE, FALSE = IntImm(1, BOOL), IntImm(0, BOOL)
_ENDS = {tir.LT, tir.LE}
INTEGER = {tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE}

# how far an inequality of indices is from failing: it holds exactly where this is >= 0
SLACK: dict[type[Expr], Callable[[Any], Expr]] = {
    tir.LT: lambda c: c.b - c.a - 1,
    tir.LE: lambda c: c.b - c.a,
    tir.GT: lambda c: c.a - c.b - 1,
    tir.GE: lambda c: c.a - c.b,
}


def difference(an: Analyzer, e: Expr) -> Sum:
    """``d`` such that the comparison ``e`` says d <= 0 (d == 0, d != 0 for EQ and NE)."""
    a, b = an.sum(e.a), an.sum(e.b)
    kind = type(e)
    if kind is tir.GT or kind is tir.GE:
        a, b = b, a
    out = a - b
    return out + 1 if kind is tir.LT or kind is tir.GT else out


def tighten(an: Analyzer, d: Sum) -> Sum:
    """An equivalent of d <= 0 with coprime coefficients, without low parts and divisions that do not matter."""
    while d.terms:
        g = d.gcd
        if g > 1:
            d = Sum({a: k // g for a, k in d.terms.items()}, -(-d.const // g))
        only = d.only()
        if only is not None and type(only[0]) is tir.FloorDiv and type(only[0].b) is IntImm and only[0].b.value > 0:
            d = _undo_division(an, only[0], only[1], d.const)
            continue
        cut = _cut(an, d) if len(d.terms) > 1 else None
        if cut is None:
            return d
        d = cut
    return d


def _undo_division(an: Analyzer, atom: Expr, k: int, const: int) -> Sum:
    """k * (x // c) + const <= 0, for k = 1 or -1, as a condition on x."""
    x, c = an.sum(atom.a), atom.b.value
    return x + (const * c - c + 1) if k > 0 else x * -1 + const * c


def _cut(an: Analyzer, d: Sum) -> Sum | None:
    """g * A + L <= 0 as A + ceil(L / g) <= 0, where that is the same for all values of L."""
    for g in sorted({abs(k) for k in d.terms.values()}, reverse=True):
        if g == 1:
            return None
        low = {a: k for a, k in d.terms.items() if k % g}
        if not low:
            continue
        l, h = bounds.of_sum(an, Sum(low, d.const))
        if l != -inf and h != inf and -(-l // g) == -(-h // g):
            return Sum({a: k // g for a, k in d.terms.items() if k % g == 0}, -(-l // g))
    return None


def at_most_zero(an: Analyzer, d: Sum, dtype: DType) -> Expr:
    """The canonical condition d <= 0."""
    d = tighten(an, d)
    low, high = bounds.of_sum(an, d)
    if high <= 0 or low > 0:
        return TRUE if high <= 0 else FALSE
    if an.is_le(d):
        return TRUE
    if an.is_le(d * -1 + 1):
        return FALSE
    return an.known(_below(an, d, dtype))


def _below(an: Analyzer, d: Sum, dtype: DType) -> Expr:
    left = Sum({a: k for a, k in d.terms.items() if k > 0})
    right = Sum({a: -k for a, k in d.terms.items() if k < 0})
    c = d.const
    if not right.terms:
        return tir.LT(an.expr(left, dtype), to_expr(Sum({}, 1 - c), dtype))
    if not left.terms:
        return tir.LE(to_expr(Sum({}, c), dtype), an.expr(right, dtype))
    if c > 0:
        return tir.LT(an.expr(left + (c - 1), dtype), an.expr(right, dtype))
    if c == 0:
        return tir.LE(an.expr(left, dtype), an.expr(right, dtype))
    return tir.LT(an.expr(left, dtype), an.expr(right + (1 - c), dtype))


def is_zero(an: Analyzer, d: Sum, dtype: DType) -> Expr:
    """The canonical condition d == 0."""
    if not d.terms:
        return FALSE if d.const else TRUE
    g = d.gcd
    if d.const % g:
        return FALSE
    low, high = bounds.of_sum(an, d)
    if low > 0 or high < 0:
        return FALSE
    d = d // g
    coeff, base = modular.of_sum(an, d)
    if base % coeff if coeff else base:
        return FALSE
    split = _split_equality(an, d)
    if split is not None:
        return conjunction(an, [is_zero(an, s, dtype) for s in split])
    if an.is_le(d + 1) or an.is_le(d * -1 + 1):
        return FALSE
    if an.is_le(d) and an.is_le(d * -1):
        return TRUE
    lead = min(d.terms, key=lambda a: (-abs(d.terms[a]), order_key(a)))
    if d.terms[lead] < 0:
        d = d * -1
    left = Sum({a: k for a, k in d.terms.items() if k > 0})
    right = Sum({a: -k for a, k in d.terms.items() if k < 0}, -d.const)
    return an.known(tir.EQ(an.expr(left, dtype), an.expr(right, dtype)))


def _split_equality(an: Analyzer, d: Sum) -> tuple[Sum, Sum] | None:
    """g * A + L == 0 with |L| < g is A == 0 and L == 0."""
    if len(d.terms) < 2:
        return None
    for g in sorted({abs(k) for k in d.terms.values()}, reverse=True):
        low = {a: k for a, k in d.terms.items() if k % g}
        if g == 1 or not low:
            continue
        lo, hi = bounds.of_sum(an, Sum(low, d.const))
        if lo != -inf and hi != inf and hi - lo < g:  # one multiple of g at most lies in [lo, hi]
            t = -(-lo // g)
            return Sum({a: k // g for a, k in d.terms.items() if k % g == 0}, t), Sum(low, d.const - t * g)
    return None


# --- rules


def compare(an: Analyzer, e: Expr) -> Expr:
    """A comparison in canonical form (LT, LE, EQ or NE; decided where bounds or facts decide)."""
    if not (e.a.dtype.is_int and e.a.dtype.lanes == 1) or has_effect(e):
        return an.simplify_data(e)
    return _COMPARE[type(e)](an, difference(an, e), e.a.dtype)


def negation(an: Analyzer, e: Expr) -> Expr:
    """Not of a canonical condition, pushed into comparisons of integers and through and/or."""
    if type(e) is IntImm:
        return FALSE if e.value else TRUE
    rule = _NEGATE.get(type(e))
    if rule is None or (type(e) in INTEGER and not e.a.dtype.is_int):
        return an.known(tir.Not(e))
    return rule(an, e)


def _not_equal(an: Analyzer, d: Sum, dtype: DType) -> Expr:
    same = is_zero(an, d, dtype)
    return negation(an, same) if type(same) is not tir.EQ else an.known(tir.NE(same.a, same.b))


def _parts(an: Analyzer, e: Expr, kind: type, out: list[Expr]) -> None:
    if type(e) is kind:
        _parts(an, e.a, kind, out)
        _parts(an, e.b, kind, out)
    else:
        out.append(e)


def logic_and(an: Analyzer, e: Expr) -> Expr:
    """Conjunction: each part under the ones before it; what is implied drops."""
    parts: list[Expr] = []
    _parts(an, e, tir.And, parts)
    return conjunction(an, [an.simplify(p) for p in parts])


def conjunction(an: Analyzer, conditions: list[Expr]) -> Expr:
    """The canonical conjunction of canonical conditions."""
    flat: list[Expr] = []
    for c in conditions:
        _parts(an, c, tir.And, flat)
    kept: list[Expr] = []
    for c in dict.fromkeys(flat):
        if type(c) is IntImm:
            if c.value:
                continue
            return FALSE
        kept.append(c)
    if len(kept) > 1:
        kept = _reduce(an, kept)
    if FALSE in kept:
        return FALSE
    return _join(tir.And, kept, TRUE)


def _reduce(an: Analyzer, parts: list[Expr]) -> list[Expr]:
    """Without the parts that the others imply; [false] when they contradict each other."""
    out = list(parts)
    for c in parts:
        others = [o for o in out if o is not c and not _are_two_ends(an, c, o)]
        if not others or not an.shares(c, others):
            continue
        with an.scope():
            for o in others:
                an.learn(o)
            got = an.simplify(c)
        if type(got) is IntImm:
            if not got.value:
                return [FALSE]
            out.remove(c)
    return out


def _are_two_ends(an: Analyzer, c: Expr, o: Expr) -> bool:
    """Whether two inequalities bound one form from below and from above, with room between: then what fails the one keeps the other, and
    neither follows from the other, whatever else holds."""
    if not (type(c) in _ENDS and type(o) in _ENDS and c.a.dtype is o.a.dtype and c.a.dtype.is_int and c.a.dtype.lanes == 1):
        return False
    a, b = difference(an, c), difference(an, o)
    return a.const + b.const <= 0 and len(a.terms) == len(b.terms) and all(b.terms.get(atom) == -k for atom, k in a.terms.items())


def logic_or(an: Analyzer, e: Expr) -> Expr:
    """Disjunction: duplicates and parts that imply another drop."""
    parts: list[Expr] = []
    _parts(an, e, tir.Or, parts)
    flat: list[Expr] = []
    for p in parts:
        _parts(an, an.simplify(p), tir.Or, flat)
    kept: list[Expr] = []
    for c in dict.fromkeys(flat):
        if type(c) is IntImm:
            if c.value:
                return TRUE
            continue
        kept.append(c)
    if len(kept) > 1:
        pairs = [(c, n) for c, n in ((c, negation(an, c)) for c in kept) if n is not TRUE]
        if any(n is FALSE for _, n in pairs):
            return TRUE
        reduced = _reduce(an, [n for _, n in pairs])
        if FALSE in reduced:
            return TRUE
        kept = [c for c, n in pairs if n in reduced]
    return an.known(_join(tir.Or, kept, FALSE))


def _join(kind: type, parts: list[Expr], empty: IntImm) -> Expr:
    if not parts:
        return empty
    out = parts[0]
    for p in parts[1:]:
        out = kind(out, p)
    return out


def _flip(an: Analyzer, e: Expr) -> Expr:
    """Not (d <= 0) is 1 - d <= 0."""
    return at_most_zero(an, difference(an, e) * -1 + 1, e.a.dtype)


_COMPARE: dict[type, Callable[[Analyzer, Sum, DType], Expr]] = {
    tir.LT: at_most_zero,
    tir.LE: at_most_zero,
    tir.GT: at_most_zero,
    tir.GE: at_most_zero,
    tir.EQ: is_zero,
    tir.NE: _not_equal,
}
_NEGATE: dict[type, Callable[[Analyzer, Any], Expr]] = {
    tir.LT: _flip,
    tir.LE: _flip,
    tir.GT: _flip,
    tir.GE: _flip,
    tir.EQ: lambda an, e: an.known(tir.NE(e.a, e.b)),
    tir.NE: lambda an, e: an.known(tir.EQ(e.a, e.b)),
    tir.Not: lambda an, e: e.a,
    tir.And: lambda an, e: an.simplify(tir.Or(negation(an, e.a), negation(an, e.b))),
    tir.Or: lambda an, e: conjunction(an, [negation(an, e.a), negation(an, e.b)]),
}
CONDITIONS: dict[type, Callable[[Analyzer, Any], Expr]] = {
    tir.LT: compare,
    tir.LE: compare,
    tir.GT: compare,
    tir.GE: compare,
    tir.EQ: compare,
    tir.NE: compare,
    tir.And: logic_and,
    tir.Or: logic_or,
    tir.Not: lambda an, e: negation(an, an.simplify(e.a)),
}
__all__ = [
    "CONDITIONS",
    "FALSE",
    "TRUE",
    "at_most_zero",
    "compare",
    "conjunction",
    "difference",
    "is_zero",
    "negation",
    "tighten",
]
