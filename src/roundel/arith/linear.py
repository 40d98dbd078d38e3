# SPDX-License-Identifier: Apache-2.0
"""Linear forms: sums of atoms with integer coefficients, the canonical shape of every index expression.

An *atom* is an interned canonical expression that is not itself a sum: a variable, a product of atoms (a monomial such
as ``n * m``), a floor division, a minimum, ... Two index expressions are equal as polynomials iff their forms are.
"""

from __future__ import annotations

from itertools import count
from math import gcd
from typing import Any

from ..ir import tir
from ..ir.dtype import INT64, DType
from ..ir.tir import Expr, IntImm

_SMALL = {v: IntImm(v, INT64) for v in range(-64, 1025)}
_sequence = count()
MAX_PRODUCT = 64  # terms; a product of sums that would have more stays a product


def imm(value: int, dtype: DType = INT64) -> IntImm:
    """An integer constant (small int64 ones are kept alive)."""
    if dtype is INT64:
        hit = _SMALL.get(value)
        if hit is not None:
            return hit
    return IntImm(value, dtype)


class Sum:
    """``sum of terms[atom] * atom + const``; never changed after construction, no coefficient is 0."""

    __slots__ = ("const", "terms")

    def __init__(self, terms: dict[Expr, int], const: int = 0) -> None:
        self.terms = terms
        self.const = const

    def __repr__(self) -> str:
        return f"Sum({self.terms}, {self.const})"

    def __add__(self, other: Sum | int) -> Sum:
        return Sum(self.terms, self.const + other) if isinstance(other, int) else self.plus(other, 1)

    def __sub__(self, other: Sum | int) -> Sum:
        return Sum(self.terms, self.const - other) if isinstance(other, int) else self.plus(other, -1)

    def __mul__(self, k: int) -> Sum:
        if k == 1:
            return self
        return Sum({a: c * k for a, c in self.terms.items()}, self.const * k) if k else ZERO

    def __floordiv__(self, k: int) -> Sum:
        """Exact when ``k`` divides every coefficient; the constant is rounded down."""
        return self if k == 1 else Sum({a: c // k for a, c in self.terms.items()}, self.const // k)

    def plus(self, other: Sum, k: int) -> Sum:
        """self + k * other"""
        if not k:
            return self
        terms = dict(self.terms)
        for a, c in other.terms.items():
            n = terms.get(a, 0) + k * c
            if n:
                terms[a] = n
            else:
                del terms[a]
        return Sum(terms, self.const + k * other.const)

    def same(self, other: Sum) -> bool:
        """Equal as linear forms."""
        return self.const == other.const and self.terms == other.terms

    @property
    def gcd(self) -> int:
        """Greatest common divisor of the coefficients, the constant left out; 0 without terms."""
        return gcd(*self.terms.values())

    def only(self) -> tuple[Expr, int] | None:
        """The atom and coefficient when there is exactly one term."""
        return next(iter(self.terms.items())) if len(self.terms) == 1 else None


ZERO = Sum({}, 0)
ONE = Sum({}, 1)


def factors(atom: Expr) -> list[Expr]:
    """The factors of a monomial, in canonical order. A product of data is one factor: it may wrap, so that nothing follows from its parts."""
    if type(atom) is not tir.Mul or not atom.is_index:
        return [atom]
    out: list[Expr] = []
    while type(atom) is tir.Mul:
        out.append(atom.b)
        atom = atom.a
    out.append(atom)
    out.reverse()
    return out


def monomial(parts: list[Expr]) -> Expr:
    """The canonical product of atoms (at least one)."""
    parts = sorted(parts, key=order_key) if len(parts) > 1 else parts
    out = parts[0]
    for p in parts[1:]:
        out = tir.Mul(out, p)
    return out


def multiply(a: Sum, b: Sum) -> Sum | None:
    """The product, expanded; None when that would be too large."""
    if not a.terms:
        return b * a.const
    if not b.terms:
        return a * b.const
    if len(a.terms) * len(b.terms) > MAX_PRODUCT:
        return None
    terms: dict[Expr, int] = {}
    for x, c in a.terms.items():
        for y, d in b.terms.items():
            m = monomial(factors(x) + factors(y))
            terms[m] = terms.get(m, 0) + c * d
    out = Sum({m: c for m, c in terms.items() if c}, 0)
    if b.const:
        out = out.plus(Sum(a.terms), b.const)
    if a.const:
        out = out.plus(Sum(b.terms), a.const)
    return out + a.const * b.const


def monomial_divide(atom: Expr, by: list[Expr]) -> list[Expr] | None:
    """The factors of ``atom`` without those of ``by``; None when it does not hold them all."""
    return divide_factors(factors(atom), by)


def divide_factors(parts: list[Expr], by: list[Expr]) -> list[Expr] | None:
    """The list without the factors of ``by``; None when it does not hold them all."""
    rest = list(parts)
    for f in by:
        for k, r in enumerate(rest):
            if r is f:
                del rest[k]
                break
        else:
            return None
    return rest


def leading(s: Sum) -> tuple[list[Expr], int]:
    """Factors and coefficient of the leading term (highest degree, then key); ([], const) without terms."""
    if not s.terms:
        return [], s.const
    atom = min(s.terms, key=lambda a: (-degree(a), order_key(a)))
    return factors(atom), s.terms[atom]


def poly_divide(s: Sum, by: Sum) -> tuple[Sum, Sum]:
    """``(q, r)`` with ``s == q * by + r``, by division of polynomials with integer coefficients."""
    head, k = leading(by)
    quotient, rest = ZERO, s
    for _ in range(32):
        step = next((x for a, c in rest.terms.items() if (x := _quotient_term(a, c, head, k)) is not None), None)
        part = multiply(step, by) if step is not None else None
        if step is None or part is None:
            break
        quotient, rest = quotient + step, rest - part
    return quotient, rest


def _quotient_term(atom: Expr, coeff: int, head: list[Expr], k: int) -> Sum | None:
    rest = monomial_divide(atom, head) if coeff % k == 0 else None
    if rest is None:
        return None
    return Sum({monomial(rest): coeff // k}) if rest else Sum({}, coeff // k)


def degree(atom: Expr) -> int:
    """Number of factors of a monomial."""
    n = 1
    while type(atom) is tir.Mul:
        n += 1
        atom = atom.a
    return n


def order_key(atom: Expr) -> str:
    """A string that orders atoms by how they read, variables first; equal only for one and the same atom."""
    facts: dict[str, Any] | None = atom._facts
    if facts is None:
        facts = atom._facts = {}
    key: Any = facts.get("order")
    if key is None:
        key = facts["order"] = _make_key(atom)
    return key


def _make_key(atom: Expr) -> str:
    if type(atom) is tir.Var:
        return f"{atom.name}~{next(_sequence):08d}"
    if type(atom) is IntImm:
        return str(atom.value)
    if isinstance(atom, tir.BufferLoad):
        text = f"~{atom.buffer.name}[{','.join(order_key(i) for i in atom.indices)}]~{next(_sequence):08d}"
    else:
        parts = (getattr(atom, f) for f in atom._children)
        text = f"~{type(atom).__name__}({','.join(_part_key(p) for p in parts)})"
    return text if len(text) < 300 else f"{text[:300]}~{next(_sequence):08d}"


def _part_key(part: object) -> str:
    if isinstance(part, Expr):
        return order_key(part)
    return ",".join(map(_part_key, part)) if isinstance(part, tuple) else str(part)


def _print_order(term: tuple[Expr, int]) -> tuple:
    atom, k = term
    return -degree(atom), -abs(k), order_key(atom)


def to_expr(s: Sum, dtype: DType = INT64) -> Expr:
    """The form as an expression: highest degree and largest coefficient first, the constant last."""
    terms = s.terms
    if not terms:
        return imm(s.const, dtype)
    if len(terms) == 1:
        ((atom, k),) = terms.items()
        if k > 0:
            return _with_const(atom if k == 1 else tir.Mul(atom, imm(k, dtype)), s.const, dtype)
        items = [(atom, k)]
    else:
        items = sorted(terms.items(), key=_print_order)
    head = next((t for t in items if t[1] > 0), None)
    if head is not None:
        out = _term(head[0], head[1], dtype)
        const = s.const
    else:
        out, const = (imm(s.const, dtype), 0)
    for t in items:
        if t is head:
            continue
        atom, k = t
        out = tir.Add(out, _term(atom, k, dtype)) if k > 0 else tir.Sub(out, _term(atom, -k, dtype))
    return _with_const(out, const, dtype)


def _term(atom: Expr, k: int, dtype: DType) -> Expr:
    return atom if k == 1 else tir.Mul(atom, imm(k, dtype))


def _with_const(out: Expr, const: int, dtype: DType) -> Expr:
    if const > 0:
        return tir.Add(out, imm(const, dtype))
    return tir.Sub(out, imm(-const, dtype)) if const < 0 else out
