# SPDX-License-Identifier: Apache-2.0
"""Where two accesses can meet: which variables have the same value in both instances whenever they touch one element.

Each dimension says ``index(x) = index'(x')``, where x' are copies of the variables that may differ. The difference is a sum of
parts, each a multiple of the distance of one index part from its copy: ``16 * d(i) + d(j) = 0``. Where the small parts together are less than what
divides the others, the sum falls apart (|d(j)| < 16: both are 0), as the digits of a number do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import ceil, floor, gcd, inf

from roundel.arith import Analyzer
from roundel.arith.linear import Sum, factors, monomial
from roundel.ir import Var, free_vars, substitute, tir
from roundel.ir.dataclass import dataclass
from roundel.ir.tir import Expr, Range


@dataclass(slots=True)
class Part:
    """``scale * factor * (value of the part)``; ``key`` is the index part that is equal in both instances where the value is 0."""

    scale: int
    low: float
    high: float
    key: Expr | None
    factor: Expr | None = None


@dataclass
class Meeting:
    """What holds wherever two accesses touch one element. ``possible`` is False where they never do.

    ``equal`` are expressions with the same value in both instances, ``distance`` of a variable its value in the second less that in the first.
    """

    possible: bool = True
    equal: set[Expr] = field(default_factory=set)
    distance: dict[Var, int] = field(default_factory=dict)


def meet(an: Analyzer, first: Sequence[Range], second: Sequence[Range], copies: Mapping[Var, Var]) -> Meeting:
    """How the region ``first`` over some variables and the region ``second`` over their ``copies`` meet; ``an`` knows the ranges of both."""
    work = _Solve(an, copies)
    for a, b in zip(first, second):
        work.dimension(a, b)
    return work.run()


class _Solve:
    def __init__(self, an: Analyzer, copies: Mapping[Var, Var]) -> None:
        self.an, self.copies = an, copies
        self.moving = frozenset(copies) | frozenset(copies.values())
        self.found = Meeting()
        self.sums: list[tuple[list[Part], int]] = []

    def dimension(self, a: Range, b: Range) -> None:
        """Both regions have one index of a dimension."""
        difference = self.an.sum(b.min).plus(self.an.sum(a.min), -1)
        parts = self.parts(difference)
        lengths = [self.an.bounds(r.extent)[1] for r in (a, b)]
        if lengths != [1, 1]:
            parts.append(Part(1, -(lengths[0] - 1), lengths[1] - 1, None))
        self.sums.append((parts, difference.const))

    def parts(self, s: Sum) -> list[Part]:
        """The terms of a difference: those that belong to a variable and its copy together."""
        terms, out = dict(s.terms), []
        for atom in list(terms):
            if atom not in terms or not free_vars(atom) & self.copies.keys():
                continue
            twin = self.an.simplify(substitute(atom, self.copies))
            if terms.get(twin) == -terms[atom]:
                scale = terms.pop(twin)
                del terms[atom]
                low, high = self.an.bounds(atom)
                factor, rest = self.apart(atom)
                if factor is not None:
                    low, high = self.an.bounds(rest)
                out.append(Part(scale, low - high, high - low, rest, factor))
        return out + [Part(k, *self.an.bounds(atom), None) for atom, k in terms.items()]

    def apart(self, atom: Expr) -> tuple[Expr | None, Expr]:
        """A product of what stays and what moves."""
        parts = factors(atom)
        fixed = [f for f in parts if not free_vars(f) & self.moving]
        if not fixed or len(fixed) == len(parts):
            return None, atom
        return monomial(fixed), monomial([f for f in parts if f not in fixed])

    def run(self) -> Meeting:
        """Take the sums apart until nothing more follows."""
        while self.sums and self.found.possible:
            parts, const = self.sums.pop()
            self.split([p for p in parts if p.key is None or p.key not in self.found.equal], const)
            if not self.sums:
                self.combine()
        return self.found

    def split(self, parts: list[Part], const: int) -> None:
        if not parts:
            self.found.possible = self.found.possible and const == 0
            return
        if all(p.factor is None for p in parts):
            self.split_numbers(sorted(parts, key=lambda p: abs(p.scale)), const)
        elif const == 0:
            self.split_factors(parts)

    def split_numbers(self, parts: list[Part], const: int) -> None:
        """Low parts, whose sum is less than the common divisor of the others, count for themselves."""
        if const % gcd(*(p.scale for p in parts)):
            self.found.possible = False
            return
        low = high = 0.0
        for k in range(len(parts) + 1):
            rest = gcd(*(p.scale for p in parts[k:]))
            if k == len(parts) or (k and low > -inf and high < inf):
                first, last = (ceil((low + const) / rest), floor((high + const) / rest)) if rest else (0, 0)
                if not rest and not low + const <= 0 <= high + const:
                    first, last = 1, 0
                if first > last:
                    self.found.possible = False
                    return
                if first == last and rest:
                    self.number(parts[:k], const - first * rest)
                    self.split_numbers(parts[k:], first * rest)
                    return
            if k < len(parts):
                ends = [parts[k].scale * e if e else 0 for e in (parts[k].low, parts[k].high)]
                low, high = low + min(ends), high + max(ends)
        self.number(parts, const)

    def number(self, parts: list[Part], const: int) -> None:
        """The sum of parts is -const, and cannot be taken apart."""
        if len(parts) != 1:
            if not parts and const:
                self.found.possible = False
            return
        part, value = parts[0], -const // parts[0].scale if const % parts[0].scale == 0 else None
        if value is None or not part.low <= value <= part.high:
            self.found.possible = False
        elif part.key is not None:
            if value == 0:
                self.know(part.key)
            if type(part.key) is Var:
                self.found.distance[part.key] = value

    def split_factors(self, parts: list[Part]) -> None:
        """``n * d(i) + d(j) = 0`` with 0 <= j < n says that both are 0."""
        factor = max((p.factor for p in parts if p.factor is not None), key=lambda f: len(factors(f)))
        above = [p for p in parts if p.factor is factor]
        below = [p for p in parts if p.factor is not factor]
        scale = abs(above[0].scale)
        if any(p.key is None for p in parts) or any(abs(p.scale) != scale for p in above) or len({p.scale > 0 for p in parts}) > 1:
            return
        rest = tir.sum_of([p.key * (p.factor if p.factor is not None else 1) * abs(p.scale) for p in below])  # type: ignore[operator]
        if self.an.prove(rest >= 0) and self.an.prove(rest < factor * scale) and self.an.prove(factor >= 1 if not below else True):
            self.split([Part(p.scale, p.low, p.high, p.key) for p in above], 0)
            self.split(below, 0)

    def know(self, e: Expr) -> None:
        """An expression has one value in both instances."""
        if e in self.found.equal:
            return
        self.found.equal.add(e)
        if type(e) is Var:
            self.found.distance[e] = 0
        elif type(e) not in (tir.FloorDiv, tir.FloorMod):
            there = self.an.sum(substitute(e, self.copies))
            s = there.plus(self.an.sum(e), -1)
            if len(s.terms) > 2:
                self.sums.append((self.parts(s), s.const))

    def combine(self) -> None:
        """Where quotient and remainder are equal, the number is."""
        for e in [e for e in self.found.equal if type(e) is tir.FloorMod]:
            number = self.an.simplify(e.a)
            quotient = self.an.simplify(tir.floordiv(e.a, e.b))
            if number not in self.found.equal and (quotient in self.found.equal or not free_vars(quotient) & self.moving):
                self.know(number)
                if type(number) is not Var:
                    there = self.an.sum(substitute(number, self.copies))
                    s = there.plus(self.an.sum(number), -1)
                    self.sums.append((self.parts(s), s.const))
