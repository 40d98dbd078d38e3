# SPDX-License-Identifier: Apache-2.0
"""Proofs of inequalities: eliminate one atom after the other by what is known about it, until constant bounds decide.

To show ``s <= 0`` it is enough to show ``s - t * f <= 0`` for some known ``f <= 0`` and ``t >= 0``; ``f`` is chosen so
that an atom cancels (Fourier-Motzkin, goal-directed). Divisions, remainders, minima and maxima bring their defining
inequalities, products of symbols are bounded factor by factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import gcd, inf, prod
from typing import TYPE_CHECKING, Any

from ..ir import free_vars, tir
from ..ir.tir import Expr, IntImm, Var
from . import bounds
from .linear import Sum, divide_factors, factors, monomial, monomial_divide, multiply, order_key

if TYPE_CHECKING:
    from .analyzer import Analyzer

Goals = tuple[Sum, ...]
LONGEST = 24  # terms of a goal that is still pursued
MOST_CORNERS = 4  # atoms of a form whose corners are looked at
SHORT = 8  # steps of the proof that a factor is not negative


class Search:
    """A bounded depth-first search for a proof."""

    def __init__(self, an: Analyzer, fuel: int) -> None:
        self.an, self.fuel = an, fuel
        self.seen: set[tuple] = set()

    def at_most_zero(self, s: Sum) -> bool:
        """Whether s <= 0 could be shown."""
        g = s.gcd
        if g > 1:
            s = Sum({a: k // g for a, k in s.terms.items()}, -(-s.const // g))
        low, high = bounds.of_sum(self.an, s)
        if high <= 0 or at_corners(self.an, s) <= 0:
            return True
        key = (frozenset(s.terms.items()), s.const)
        if low > 0 or self.fuel <= 0 or key in self.seen or len(s.terms) > LONGEST:
            return False
        self.seen.add(key)
        self.fuel -= 1 + len(s.terms) // 6
        for goals in self.steps(s):
            if all(self.at_most_zero(g) for g in goals):
                return True
        return False

    def steps(self, s: Sum) -> Iterator[Goals]:
        """Ways to get rid of an atom, the most compound atoms first."""
        terms = sorted(s.terms.items(), key=lambda t: (-RANK.get(type(t[0]), 0), -len(order_key(t[0]))))
        for atom, k in terms:
            rule = STRUCTURE.get(type(atom))
            if rule is not None:
                yield from rule(self.an, s, atom, k)
        for goal in by_facts(self.an, s):
            yield (goal,)
        for atom, k in terms:
            if len(terms) > 1 and atom in s.terms:
                l, h = bounds.of_atom(self.an, atom)
                end = h if k > 0 else l
                if end not in (inf, -inf):
                    yield (s.plus(Sum({atom: 1}), -k) + k * end,)
            if type(atom) is tir.Mul:
                yield from factor_ends(self.an, s, atom, k)


def at_most_zero(an: Analyzer, s: Sum, fuel: int) -> bool:
    """Whether s <= 0 could be shown within ``fuel`` steps."""
    return Search(an, fuel).at_most_zero(s)


def at_corners(an: Analyzer, s: Sum) -> float:
    """The greatest value of a form with products of bounded atoms, each at most to the first power: it is taken at a corner of their box. So
    ``x * y < (x + y) * 8`` for x and y from 1 to 15, which bounds of each term do not show. Infinite where it is not known so."""
    if not any(type(a) is tir.Mul for a in s.terms):
        return inf
    terms, ends = [], {}
    for atom, k in s.terms.items():
        parts = factors(atom)
        if len(set(parts)) < len(parts):
            return inf
        terms.append((parts, k))
        for f in parts:
            ends[f] = an.bounds(f)
    if len(ends) > MOST_CORNERS or any(end in (inf, -inf) for pair in ends.values() for end in pair):
        return inf
    best = -inf
    for corner in product(*ends.values()):
        at = dict(zip(ends, corner, strict=True))
        best = max(best, s.const + sum(k * prod(at[f] for f in parts) for parts, k in terms))
    return best


def _cancel(s: Sum, f: Sum, atom: Expr) -> Sum | None:
    """s * a - f * b with a, b > 0 and without ``atom``; None when the signs do not allow it."""
    k, c = s.terms[atom], f.terms[atom]
    if (k > 0) != (c > 0):
        return None
    g = gcd(k, c)
    return (s * abs(c // g)).plus(f, -abs(k // g))


def by_facts(an: Analyzer, s: Sum) -> Iterator[Sum]:
    """Goals that known inequalities (times what is not negative) lead to; those that remove a loop variable first."""
    terms = [(term, factors(term)) for term in s.terms]
    moves = []
    for f, knowns in _prepared(an):
        for known, parts, rank in knowns:
            for term, whole in terms:
                if term is known:
                    moves.append((rank, f, term, None))
                elif len(parts) < len(whole):
                    rest = divide_factors(whole, parts)
                    if rest:
                        moves.append((rank, f, term, rest))
    moves.sort(key=lambda move: move[0])
    for _, f, term, rest in moves:
        scaled = f if rest is None else _scale_fact(an, f, rest)
        new = _cancel(s, scaled, term) if scaled is not None and term in scaled.terms else None
        if new is not None:
            yield new


def _prepared(an: Analyzer) -> list[tuple[Sum, list[tuple[Expr, list[Expr], bool]]]]:
    """The known inequalities, the latest first, with their terms: factors, and whether all of them are sizes."""
    if an._moves is None or an._moves[0] is not an.facts.inequalities:
        found = []
        for f in reversed(an.facts.inequalities):
            split = [(known, factors(known)) for known in f.terms]
            found.append((f, [(known, parts, all(type(v) is tir.Var and v.size for v in parts)) for known, parts in split]))
        an._moves = an.facts.inequalities, found
    return an._moves[1]


def in_facts(an: Analyzer) -> frozenset[Var]:
    """The variables in known inequalities."""
    if an._named is None or an._named[0] is not an.facts.inequalities:
        an._named = an.facts.inequalities, frozenset(v for f in an.facts.inequalities for atom in f.terms for v in free_vars(atom))
    return an._named[1]


def _scale_fact(an: Analyzer, f: Sum, rest: list[Expr]) -> Sum | None:
    """f * rest, still <= 0 (so ``rest`` must not be negative)."""
    if len(f.terms) > LONGEST or not _not_negative(an, rest):
        return None
    return multiply(f, Sum({monomial(rest): 1}))


def _not_negative(an: Analyzer, parts: list[Expr]) -> bool:
    """Whether every factor is >= 0, by bounds or a short proof."""
    for f in parts:
        known = an._signs.get(f)
        if known is None:
            an._signs[f] = False  # a proof of it cannot use it
            known = an._signs[f] = an.bounds(f)[0] >= 0 or Search(an, SHORT).at_most_zero(an.sum(f) * -1)
        if not known:
            return False
    return True


def reduce_divisions(an: Analyzer, s: Sum) -> Sum:
    """Remainders as quotients, coefficients below their divisor: ``(5 * n + 3) // 4 -> n + (n + 3) // 4``."""
    out = Sum({}, s.const)
    for atom, k in s.terms.items():
        if type(atom) not in (tir.FloorDiv, tir.FloorMod) or type(atom.b) is not IntImm or atom.b.value <= 0:
            out = out.plus(Sum({atom: 1}), k)
            continue
        x, c = an.sum(atom.a), atom.b.value
        low = Sum({a: n % c for a, n in x.terms.items() if n % c}, x.const)
        quotient = (x - low) // c + an.sum(tir.FloorDiv(an.expr(low, atom.dtype), atom.b))
        out = out.plus(quotient if type(atom) is tir.FloorDiv else x - quotient * c, k)
    return out


# --- what defines an atom


def _floordiv(an: Analyzer, s: Sum, q: Expr, k: int) -> Iterator[Goals]:
    """c * q <= x <= c * q + c - 1; alone, q <= r is x < (r + 1) * c and q >= r is x >= r * c"""
    if abs(k) == 1 and bounds.of_sum(an, an.sum(q.b))[0] >= 0:
        rest, x = s.plus(Sum({q: 1}), -k), an.sum(q.a)
        limit = multiply(rest * -1 + 1 if k > 0 else rest, an.sum(q.b))
        if limit is not None:
            yield (x - limit + 1 if k > 0 else limit - x,)
    elif type(q.b) is IntImm and q.b.value > 0:
        c, x = q.b.value, an.sum(q.a)
        below = Sum({q: c}).plus(x, -1) if k > 0 else Sum({q: -c}).plus(x, 1) - (c - 1)
        new = _cancel(s, below, q)
        if new is not None:
            yield (new,)


def _floormod(an: Analyzer, s: Sum, r: Expr, k: int) -> Iterator[Goals]:
    """0 <= r < c and r == x - c * (x // c)"""
    by, x = an.sum(r.b), an.sum(r.a)
    rest = s.plus(Sum({r: 1}), -k)
    if bounds.of_sum(an, by)[0] >= 0:
        if k < 0:
            yield (rest,)
        elif by.terms:
            yield (rest.plus(by, k) - k,)
        if k > 0 and bounds.of_sum(an, x)[0] >= 0:
            yield (rest.plus(x, k),)
    if not by.terms:
        quotient = an.sum(tir.FloorDiv(r.a, r.b))
        if r not in quotient.terms:
            yield (rest.plus(x, k).plus(quotient, -k * by.const),)


def _extremum(an: Analyzer, s: Sum, m: Expr, k: int) -> Iterator[Goals]:
    rest = s.plus(Sum({m: 1}), -k)
    x, y = an.sum(m.a), an.sum(m.b)
    a, b = rest.plus(x, k), rest.plus(y, k)
    if (k > 0) == (type(m) is tir.Min):
        yield (a,)
        yield (b,)
        if any(atom in y.terms for atom in x.terms):  # 2 * min(x, y) <= x + y, and 2 * s <= 1 is enough
            yield (a + b - 1,)
    else:
        yield a, b


def _choice(an: Analyzer, s: Sum, e: Expr, k: int) -> Iterator[Goals]:
    rest = s.plus(Sum({e: 1}), -k)
    yield rest.plus(an.sum(e.true_value), k), rest.plus(an.sum(e.false_value), k)


def _product(an: Analyzer, s: Sum, m: Expr, k: int) -> Iterator[Goals]:
    """Products: divisions by a symbol (n * (x // n) <= x), minima and maxima times something not negative."""
    parts = factors(m) if m.is_index else []
    for i, f in enumerate(parts):
        rest = parts[:i] + parts[i + 1 :]
        if type(f) is tir.FloorDiv:
            new = _scaled_quotient(an, s, m, f, rest, k)
            if new is not None:
                yield (new,)
        if type(f) in (tir.Min, tir.Max):
            a, b = (multiply(an.sum(side), Sum({monomial(rest): 1})) for side in (f.a, f.b))
            if a is None or b is None or not _not_negative(an, rest):
                continue
            base = s.plus(Sum({m: 1}), -k)
            if (k > 0) == (type(f) is tir.Min):
                yield (base.plus(a, k),)
                yield (base.plus(b, k),)
            else:
                yield base.plus(a, k), base.plus(b, k)


def _scaled_quotient(an: Analyzer, s: Sum, m: Expr, f: Expr, rest: list[Expr], k: int) -> Sum | None:
    """x - c + 1 <= c * (x // c) <= x, times the other factors, applied to the product ``m`` in ``s``."""
    by, x = an.sum(f.b), an.sum(f.a)
    lone = by.only()
    others = rest if not by.terms else monomial_divide(m, [f, *factors(lone[0])]) if lone and not by.const else None
    whole = multiply(Sum({f: 1}), by)
    if others is None or whole is None or bounds.of_sum(an, by)[0] < 0 or not _not_negative(an, others):
        return None
    fact: Sum | None = whole - x if k > 0 else x - by - whole + 1
    if others:
        fact = multiply(fact, Sum({monomial(others): 1}))
    return _cancel(s, fact, m) if fact is not None and m in fact.terms else None


def factor_ends(an: Analyzer, s: Sum, m: Expr, k: int) -> Iterator[Goals]:
    """One factor of a product of indices at its constant bound."""
    parts = factors(m) if m.is_index else []
    for i, f in enumerate(parts):
        rest = parts[:i] + parts[i + 1 :]
        l, h = an.bounds(f)
        part = monomial(rest)
        end = _greatest_quotient(an, f) if k > 0 and h == inf and type(f) is tir.FloorDiv else h if k > 0 else l
        if end not in (inf, -inf) and _not_negative(an, rest):
            yield (s.plus(Sum({m: 1}), -k).plus(Sum({part: 1}), k * end) if end else s.plus(Sum({m: 1}), -k),)


def _greatest_quotient(an: Analyzer, q: Expr) -> float:
    """x // d <= c - 1 where a known inequality suggests x < c * d."""
    x, by = an.sum(q.a), an.sum(q.b)
    lone = by.only()
    if lone is None or by.const or bounds.of_sum(an, by)[0] < 0:
        return inf
    times = {-f.terms[lone[0]] for f in an.facts.inequalities if f.terms.get(lone[0], 0) < 0 and any(a in f.terms for a in x.terms)}
    return next((c - 1 for c in sorted(times) if Search(an, SHORT).at_most_zero(x.plus(by, -c) + 1)), inf)


RANK: dict[type, int] = {
    tir.FloorDiv: 4,
    tir.FloorMod: 5,
    tir.Min: 6,
    tir.Max: 6,
    tir.Select: 7,
    tir.IfThenElse: 7,
    tir.Mul: 3,
}
STRUCTURE: dict[type, Callable[[Analyzer, Sum, Any, int], Iterator[Goals]]] = {
    tir.FloorDiv: _floordiv,
    tir.FloorMod: _floormod,
    tir.Min: _extremum,
    tir.Max: _extremum,
    tir.Select: _choice,
    tir.IfThenElse: _choice,
    tir.Mul: _product,
}
