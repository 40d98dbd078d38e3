# SPDX-License-Identifier: Apache-2.0
"""Floor division and modulo of linear forms, and what undoes them: ``(i // 4) * 4 + i % 4 -> i``.

The central step writes ``s = c * Q + d * X + L`` with ``d | c`` and ``0 <= L < d``; then
``s // c = Q + X // (c / d)`` and ``s % c = d * (X % (c / d)) + L``.
"""

from __future__ import annotations

from math import gcd, inf
from typing import TYPE_CHECKING

from ..ir import tir
from ..ir.dtype import DType
from ..ir.tir import Expr, IntImm
from . import bounds, modular
from .linear import ZERO, Sum, factors, monomial, monomial_divide, multiply, poly_divide

if TYPE_CHECKING:
    from .analyzer import Analyzer


def floordiv(an: Analyzer, a: Sum, b: Sum, dtype: DType) -> Sum:
    """a // b as a canonical form; ``b`` is not 0."""
    if b.terms:
        return _divide_symbolic(an, a, b, dtype)
    c = b.const
    return _floordiv_const(an, a, c, dtype) if c > 0 else _floordiv_const(an, a * -1, -c, dtype)


def floormod(an: Analyzer, a: Sum, b: Sum, dtype: DType) -> Sum:
    """a % b as a canonical form; ``b`` is not 0."""
    if b.terms:
        return _modulo_symbolic(an, a, b, dtype)
    c = b.const
    return _floormod_const(an, a, c, dtype) if c > 0 else _floormod_const(an, a * -1, -c, dtype) * -1


def _split(an: Analyzer, s: Sum, c: int) -> tuple[Sum, int, Sum, Sum]:
    """(Q, d, X, L) as in the file's header."""
    whole: dict[Expr, int] = {}
    rest: dict[Expr, int] = {}
    for a, k in s.terms.items():
        if k % c:
            rest[a] = k
        else:
            whole[a] = k // c
    qc, rc = divmod(s.const, c)
    q = Sum(whole, qc)
    if not rest:
        return q, c, ZERO, Sum({}, rc)
    for d in (c, *sorted({gcd(k, c) for k in rest.values()}, reverse=True)):
        if d == 1:
            break
        low = {a: k for a, k in rest.items() if k % d}
        h, l = divmod(rc, d)
        t = 0
        if low:
            lo, hi = bounds.of_sum(an, Sum(low, l))
            if lo == -inf or hi == inf or lo // d != hi // d:
                continue
            t = lo // d
        return q, d, Sum({a: k // d for a, k in rest.items() if k % d == 0}, h + t), Sum(low, l - t * d)
    return q, 1, Sum(rest, rc), ZERO


def _floordiv_const(an: Analyzer, s: Sum, c: int, dtype: DType) -> Sum:
    if c == 1:
        return s
    q, d, x, _ = _split(an, s, c)
    m = c // d
    if not x.terms:
        return q + x.const // m
    lo, hi = bounds.of_sum(an, x)
    if lo != -inf and hi != inf and lo // m == hi // m:
        return q + lo // m
    t = x.const // m
    return q + t + _div_atom(an, x - t * m, m, dtype)


def _div_atom(an: Analyzer, x: Sum, m: int, dtype: DType) -> Sum:
    only = x.only()
    if only is not None and only[1] == 1:
        inner = only[0]
        if type(inner) is tir.FloorDiv:
            by = an.sum(inner.b)
            if (by.terms or by.const) and (inner.is_index or (x.const == 0 and not by.terms and by.const > 0)):  # of data, what is joined may wrap
                return floordiv(an, an.sum(inner.a).plus(by, x.const), by * m, dtype)
        if (
            type(inner) is tir.FloorMod
            and x.const == 0
            and type(inner.b) is IntImm
            and inner.b.value > 0
            and inner.b.value % m == 0
        ):
            return _floormod_const(an, _floordiv_const(an, an.sum(inner.a), m, dtype), inner.b.value // m, dtype)
    return an.atom(tir.FloorDiv(an.expr(x, dtype), IntImm(m, dtype)))


def _floormod_const(an: Analyzer, s: Sum, c: int, dtype: DType) -> Sum:
    if c == 1:
        return ZERO
    s = _drop_inner_mods(an, s, c)
    _, d, x, low = _split(an, s, c)
    m = c // d
    if not x.terms:
        return low + d * (x.const % m)
    lo, hi = bounds.of_sum(an, x)
    if lo != -inf and hi != inf and lo // m == hi // m:
        return low + (x - lo // m * m) * d
    coeff, base = modular.of_sum(an, x)
    if coeff % m == 0:
        return low + d * (base % m)
    x = x - x.const // m * m
    return an.atom(tir.FloorMod(an.expr(x, dtype), IntImm(m, dtype))) * d + low


def _drop_inner_mods(an: Analyzer, s: Sum, c: int) -> Sum:
    """(y % 12 + z) % 4 -> (y + z) % 4"""
    for atom, k in s.terms.items():
        if type(atom) is tir.FloorMod and type(atom.b) is IntImm and k * atom.b.value % c == 0:
            lo, hi = bounds.of_sum(an, s)
            if 0 <= lo and hi < c:
                return s
            return _drop_inner_mods(an, s.plus(Sum({atom: 1}), -k).plus(an.sum(atom.a), k), c)
    return s


# --- divisors that are not constants


def _common(a: Sum, b: Sum) -> tuple[int, list[Expr]]:
    """The factor that all terms of both share: (integer, factors)."""
    g = gcd(a.gcd, a.const, b.gcd, b.const)
    if a.const or b.const:
        return g, []
    atoms = [*a.terms, *b.terms]
    shared: list[Expr] = []
    for f in factors(atoms[0]):
        if all(monomial_divide(t, [*shared, f]) is not None for t in atoms):
            shared.append(f)
    return g, shared


def _cancel(s: Sum, g: int, shared: list[Expr]) -> Sum:
    terms: dict[Expr, int] = {}
    const = s.const // g
    for a, k in s.terms.items():
        rest = monomial_divide(a, shared) if shared else [a]
        if rest:
            terms[monomial(rest)] = k // g
        else:
            const += k // g
    return Sum(terms, const)


def _scaled(s: Sum, g: int, shared: list[Expr]) -> Sum | None:
    return s * g if not shared else multiply(s, Sum({monomial(shared): g}))


def _reduced(an: Analyzer, a: Sum, b: Sum) -> tuple[Sum, Sum, Sum, int, list[Expr]]:
    """a == q * b + g * r and b == g * b', without common factors: (q, r, b', g, factors of g)."""
    q, r = poly_divide(a, b)
    g, shared = _common(r, b) if r.terms or r.const else (1, [])
    if g > 1 or shared:
        r, b = _cancel(r, g, shared), _cancel(b, g, shared)
    return q, r, b, g, shared


def _divide_symbolic(an: Analyzer, a: Sum, b: Sum, dtype: DType) -> Sum:
    q, r, b, _, _ = _reduced(an, a, b)
    if not r.terms and r.const == 0:
        return q
    if not b.terms:
        return q + floordiv(an, r, b, dtype)
    if an.in_range(r, b):
        return q
    cut = _cut_low(an, r, b)
    if cut is not None:
        return q + floordiv(an, cut[0], cut[1], dtype)
    inner = r.only()
    if inner is not None and inner[1] == 1 and type(inner[0]) is tir.FloorDiv and inner[0].is_index and bounds.of_sum(an, b)[0] >= 0:
        by = an.sum(inner[0].b)  # (x // c) // n -> x // (c * n)
        whole, shift = multiply(b, by), by * r.const
        if whole is not None and (whole.terms or whole.const):
            return q + floordiv(an, an.sum(inner[0].a) + shift, whole, dtype)
    return q + an.atom(tir.FloorDiv(an.expr(r, dtype), an.expr(b, dtype)))


def _modulo_symbolic(an: Analyzer, a: Sum, b: Sum, dtype: DType) -> Sum:
    _, r, small, g, shared = _reduced(an, a, b)
    if not r.terms and r.const == 0:
        return ZERO
    out = _modulo_reduced(an, r, small, dtype)
    scaled = _scaled(out, g, shared)
    return scaled if scaled is not None else an.atom(tir.FloorMod(an.expr(a, dtype), an.expr(b, dtype)))


def _modulo_reduced(an: Analyzer, r: Sum, b: Sum, dtype: DType) -> Sum:
    if not b.terms:
        return floormod(an, r, b, dtype)
    if an.in_range(r, b):
        return r
    cut = _cut_low(an, r, b)
    if cut is not None:
        high = multiply(floormod(an, cut[0], cut[1], dtype), cut[2])
        if high is not None:
            return high + cut[3]
    return an.atom(tir.FloorMod(an.expr(r, dtype), an.expr(b, dtype)))


def _cut_low(an: Analyzer, r: Sum, b: Sum) -> tuple[Sum, Sum, Sum, Sum] | None:
    """(X, m, d, L) with r == d * X + L, b == d * m and 0 <= L < d, for a monomial b."""
    single = b.only()
    if single is None or b.const or len(r.terms) < 2:
        return None
    parts, c = factors(single[0]), single[1]
    tried: list[tuple[int, list[Expr]]] = []
    for a, k in r.terms.items():
        rest, shared = factors(a), []
        for f in parts:
            if f in rest:
                rest.remove(f)
                shared.append(f)
        g = gcd(k, c)
        if (g == 1 and not shared) or (g, shared) in tried:
            continue
        tried.append((g, shared))
        high = {x: n for x, n in r.terms.items() if n % g == 0 and monomial_divide(x, shared) is not None}
        low = Sum({x: n for x, n in r.terms.items() if x not in high}, r.const)
        d = Sum({monomial(shared): g}) if shared else Sum({}, g)
        m = _cancel(b, g, shared)
        if high and (low.terms or low.const) and bounds.of_sum(an, m)[0] >= 0 and an.in_range(low, d):
            return _cancel(Sum(high), g, shared), m, d, low
    return None


# --- putting quotients and remainders together again


def merge(an: Analyzer, s: Sum, dtype: DType) -> Sum:
    """Undo divisions where quotient and remainder of one value meet in a sum."""
    while True:
        for atom, k in s.terms.items():
            rule = _MERGE.get(type(atom))
            new = rule(an, s, atom, k, dtype) if rule is not None else None
            if new is not None:
                s = new
                break
        else:
            return s


def _matches(s: Sum, part: Sum, k: int) -> bool:
    """Whether all terms of k * part are in s, as they are."""
    get = s.terms.get
    return bool(part.terms) and all(get(a) == k * c for a, c in part.terms.items())


def _merge_mod(an: Analyzer, s: Sum, atom: Expr, k: int, dtype: DType) -> Sum | None:
    if len(s.terms) < 2:
        return None
    x, by = an.sum(atom.a), an.sum(atom.b)
    if not by.terms and not by.const:  # what an extent of 0 leaves: it is never computed
        return None
    quotient = floordiv(an, x, by, dtype)
    whole = multiply(quotient, by)
    if whole is not None and _matches(s, whole, k) and atom not in whole.terms:  # k*c*(x // c) + k*(x % c)
        return s.plus(whole, -k).plus(Sum({atom: 1}), -k).plus(x, k)
    if by.terms:
        return None
    c = by.const
    for other, n in s.terms.items():
        if type(other) is not tir.FloorMod or type(other.b) is not IntImm or not other.b.value or other is atom:
            continue
        y, m = an.sum(other.a), other.b.value
        if n == k * c and y.terms == quotient.terms:  # k*c*((x // c) % m) + k*(x % c)
            joined = _floormod_const(an, x + c * (y.const - quotient.const), c * m, dtype)
            return s.plus(Sum({other: n, atom: k}), -1).plus(joined, k)
        if n % k == 0 and n // k < -1 and m * (-n // k) == c and y.same(floordiv(an, x, Sum({}, -n // k), dtype)):
            return s.plus(Sum({other: n, atom: k}), -1).plus(_floormod_const(an, x, -n // k, dtype), k)
    return None


def _merge_div(an: Analyzer, s: Sum, atom: Expr, k: int, dtype: DType) -> Sum | None:
    """x - c * (x // c) -> x % c, and c * (x // c) -> x - r where x % c is known to be r."""
    if type(atom.b) is not IntImm or not atom.b.value or k % atom.b.value:
        return None
    c = atom.b.value
    x, t = an.sum(atom.a), -(k // c)
    if _matches(s, x, t):
        return s.plus(x, -t).plus(Sum({atom: 1}), -k).plus(_floormod_const(an, x, c, dtype), t)
    if an.facts.remainders:
        coeff, base = modular.of_sum(an, x)
        if coeff % c == 0:
            return s.plus(Sum({atom: 1}), -k).plus(x - base % c, -t)
    return None


def _merge_product(an: Analyzer, s: Sum, atom: Expr, k: int, dtype: DType) -> Sum | None:
    """x - n * (x // n) -> x % n for a divisor that is a monomial."""
    parts = factors(atom)
    for f in parts:
        if type(f) is tir.FloorDiv and type(f.b) is not IntImm:
            by, x = an.sum(f.b), an.sum(f.a)
            only = by.only()
            if only is None or by.const or k % only[1] or monomial_divide(atom, [f, *factors(only[0])]) != []:
                continue
            t = -(k // only[1])
            if _matches(s, x, t):
                return s.plus(x, -t).plus(Sum({atom: 1}), -k).plus(floormod(an, x, by, dtype), t)
            rest = floormod(an, x, by, dtype) if an.facts.remainders else None
            if rest is not None and not rest.terms:  # n * (x // n) where x % n is known
                return s.plus(Sum({atom: 1}), -k).plus(x - rest, -t)
    return None


_MERGE = {tir.FloorMod: _merge_mod, tir.FloorDiv: _merge_div, tir.Mul: _merge_product}


# --- division that rounds toward zero


def truncdiv(an: Analyzer, a: Sum, b: Sum, dtype: DType) -> Sum | None:
    """Quotient rounded toward zero, by floor division where signs are known; None where they are not."""
    (l, h), (m, n) = bounds.of_sum(an, a), bounds.of_sum(an, b)
    if n < 0 and m <= n:  # bounds that exclude each other: the divisor is never defined
        out = truncdiv(an, a, b * -1, dtype)
        return None if out is None else out * -1
    if m >= 0 and l >= 0:
        return floordiv(an, a, b, dtype)
    if m >= 0 and h <= 0:
        return floordiv(an, a * -1, b, dtype) * -1
    if not b.terms and all(k % b.const == 0 for k in (*a.terms.values(), a.const)):
        return floordiv(an, a, b, dtype)
    return None


def truncmod(an: Analyzer, a: Sum, b: Sum, dtype: DType) -> Sum | None:
    """Remainder with the sign of ``a``; None where signs are not known."""
    quotient = truncdiv(an, a, b, dtype)
    if quotient is None:
        return None
    l, h = bounds.of_sum(an, a)
    if bounds.of_sum(an, b)[1] < 0:
        b = b * -1
    return floormod(an, a, b, dtype) if l >= 0 else floormod(an, a * -1, b, dtype) * -1 if h <= 0 else ZERO
