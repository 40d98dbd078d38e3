# SPDX-License-Identifier: Apache-2.0
"""Systems of linear equations over the integers, solved by the Smith normal form: ``U A V = D`` with invertible integer U and V.

``A x = b`` becomes ``D y = U b`` with ``x = V y``: the first unknowns of ``y`` are quotients, which must be whole, and the others are free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from ..ir import free_vars, substitute, tir
from ..ir.dataclass import dataclass
from ..ir.tir import Expr, Range, Var, const
from . import compare
from .analyzer import Analyzer
from .int_set import interval
from .linear import Sum
from .linear_equation import coefficients

Matrix = list[list[int]]


@dataclass(frozen=True)
class IntConstraints:
    """Integers that variables may be: their ranges, and relations between them."""

    variables: tuple[Var, ...] = ()
    ranges: Mapping[Var, Range] = field(default_factory=dict)
    relations: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class IntConstraintsTransform:
    """Two forms of one set of integers: ``src_to_dst`` gives the variables of ``src`` by those of ``dst``, ``dst_to_src`` the reverse."""

    src: IntConstraints
    dst: IntConstraints
    src_to_dst: Mapping[Var, Expr] = field(default_factory=dict)
    dst_to_src: Mapping[Var, Expr] = field(default_factory=dict)


NEVER = IntConstraints((), {}, (compare.FALSE,))


def smith_normal_form(a: Matrix) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """``(U, D, V, V^-1)`` of a matrix of integers: D is diagonal and not negative, its entries other than 0 come first."""
    d = [list(row) for row in a]
    rows, columns = len(d), len(d[0]) if d else 0
    u, v, back = _identity(rows), _identity(columns), _identity(columns)
    for k in range(min(rows, columns)):
        if not _pivot(d, u, v, back, k):
            break
        while any(d[i][k] for i in range(k + 1, rows)) or any(d[k][j] for j in range(k + 1, columns)):
            for j in range(k + 1, columns):
                _combine_columns(d, v, back, k, j)
            for i in range(k + 1, rows):
                _combine_rows(d, u, k, i)
        if d[k][k] < 0:
            d[k], u[k] = [-x for x in d[k]], [-x for x in u[k]]
    return u, d, v, back


def _identity(n: int) -> Matrix:
    return [[int(i == j) for j in range(n)] for i in range(n)]


def _pivot(d: Matrix, u: Matrix, v: Matrix, back: Matrix, k: int) -> bool:
    """Brings an entry other than 0 to row and column ``k``; False where there is none."""
    at = next(((i, j) for j in range(k, len(d[0])) for i in range(k, len(d)) if d[i][j]), None)
    if at is None:
        return False
    i, j = at
    d[k], d[i], u[k], u[i] = d[i], d[k], u[i], u[k]
    for m in (d, v):
        for row in m:
            row[k], row[j] = row[j], row[k]
    back[k], back[j] = back[j], back[k]
    return True


def _gcd(a: int, b: int) -> tuple[int, int, int]:
    """``(g, x, y)`` with ``a x + b y = g`` > 0; x is 1 or -1 and y 0 where ``a`` divides ``b``."""
    if b % a == 0:
        return abs(a), 1 if a > 0 else -1, 0
    x, y, p, q = 1, 0, 0, 1
    while b:
        t = a // b
        a, b, x, p, y, q = b, a - t * b, p, x - t * p, q, y - t * q
    return (a, x, y) if a > 0 else (-a, -x, -y)


def _combine_columns(d: Matrix, v: Matrix, back: Matrix, k: int, j: int) -> None:
    """Columns ``k`` and ``j`` so that row ``k`` has the greatest common divisor in one and 0 in the other."""
    a, b = d[k][k], d[k][j]
    if not b:
        return
    g, x, y = _gcd(a, b)
    for m in (d, v):
        for row in m:
            row[k], row[j] = x * row[k] + y * row[j], b // g * row[k] - a // g * row[j]
    back[k], back[j] = (  # the inverse of [[x, b / g], [y, -a / g]], whose determinant is -1
        [a // g * p + b // g * q for p, q in zip(back[k], back[j], strict=True)],
        [y * p - x * q for p, q in zip(back[k], back[j], strict=True)],
    )


def _combine_rows(d: Matrix, u: Matrix, k: int, i: int) -> None:
    a, b = d[k][k], d[i][k]
    if not b:
        return
    g, x, y = _gcd(a, b)
    for m in (d, u):
        p, q = m[k], m[i]
        m[k] = [x * s + y * t for s, t in zip(p, q, strict=True)]
        m[i] = [b // g * s - a // g * t for s, t in zip(p, q, strict=True)]


def solve_linear_equations(
    equations: Sequence[Expr] | IntConstraints,
    variables: Sequence[Var] | None = None,
    ranges: Mapping[Var, Range] | None = None,
    an: Analyzer | None = None,
) -> IntConstraintsTransform:
    """The solutions of linear equations in ``variables`` by as few new variables as they need (none for a single solution).

    Equations may have other variables in them; relations that are no linear equations are kept, in the new variables. Where there is no
    solution, ``dst`` has the one relation false. Ranges of the new variables follow from ``ranges``.
    """
    if isinstance(equations, IntConstraints):
        equations, variables, ranges = equations.relations, equations.variables, equations.ranges
    src = IntConstraints(tuple(variables or ()), dict(ranges or {}), tuple(equations))
    if not src.variables:
        return IntConstraintsTransform(src, src)
    return _Equations(an or Analyzer(), src).solve()


class _Equations:
    """One system; ``rows`` and ``right``: A and b of its linear equations, ``others``: its other relations."""

    def __init__(self, an: Analyzer, src: IntConstraints) -> None:
        self.an, self.src, self.dtype = an, src, src.variables[0].dtype
        self.rows: Matrix = []
        self.right: list[Sum] = []
        self.others: list[Expr] = []
        for e in src.relations:
            row = self.row(e)
            if row is None:
                self.others.append(e)
            else:
                self.rows.append([s.const for s in row[:-1]])
                self.right.append(row[-1] * -1)

    def row(self, e: Expr) -> list[Sum] | None:
        """Coefficients and rest of an equation whose coefficients are constants."""
        if type(e) is not tir.EQ or not e.a.dtype.is_int or e.a.dtype.lanes != 1:
            return None
        parts = coefficients(self.an.sum(e.a) - self.an.sum(e.b), self.src.variables)
        return None if parts is None or any(s.terms for s in parts[:-1]) else parts

    def solve(self) -> IntConstraintsTransform:
        """The solution by the normal form."""
        n = len(self.src.variables)
        u, d, v, back = smith_normal_form(self.rows) if self.rows else ([], [], _identity(n), _identity(n))
        rank = sum(1 for k in range(min(len(d), n)) if d[k][k])
        goals = [self.combined(row, self.right) for row in u]
        relations: list[Expr] = []
        fixed: list[Sum] = []
        for k, goal in enumerate(goals):
            by = d[k][k] if k < rank else 0
            condition = self.an.expr(goal, self.dtype)
            relations.append(tir.eq(tir.floormod(condition, const(by, self.dtype)) if by else condition, const(0, self.dtype)))
            if by:
                fixed.append(self.an.sum(tir.floordiv(condition, const(by, self.dtype))))
        relations = [self.an.simplify(r) for r in relations]
        if compare.FALSE in relations:
            return IntConstraintsTransform(self.src, NEVER)
        new = tuple(Var(f"n{k}", self.dtype) for k in range(n - rank))
        y = [*fixed, *(Sum({p: 1}) for p in new)]
        forward = {x: self.an.expr(self.combined(row, y), self.dtype) for x, row in zip(self.src.variables, v, strict=True)}
        x = [Sum({p: 1}) for p in self.src.variables]
        backward = {p: self.an.expr(self.combined(row, x), self.dtype) for p, row in zip(new, back[rank:], strict=True)}
        relations += [self.an.simplify(substitute(e, forward)) for e in self.others]
        return self.with_ranges(new, forward, backward, [r for r in relations if r is not compare.TRUE])

    def combined(self, row: list[int], sums: Sequence[Sum]) -> Sum:
        """The sum of forms with a row's coefficients."""
        out = Sum({})
        for k, s in zip(row, sums, strict=True):
            out = out.plus(s, k)
        return out

    def with_ranges(self, new: tuple[Var, ...], forward: dict[Var, Expr], backward: dict[Var, Expr], relations: list[Expr]) -> IntConstraintsTransform:
        """The solution with the ranges of the new variables; what they do not imply of the old ranges becomes relations."""
        old = self.src.ranges
        ranges: dict[Var, Range] = {}
        for p, e in backward.items():
            within = interval(self.an, e, {v: old[v] for v in self.src.variables if v in old})
            if within.min is not None and within.max is not None and _is_free(within.min, within.max, self.src.variables):
                ranges[p] = Range(within.min, self.an.simplify(within.max - within.min + 1))
        with self.an.scope():
            for p, r in ranges.items():
                self.an.bind(p, r)
            for v in self.src.variables:
                if v in old:
                    e, r = forward[v], old[v]
                    relations += [self.an.simplify(tir.le(r.min, e)), self.an.simplify(tir.lt(e, tir.add(r.min, r.extent)))]
        kept = tuple(dict.fromkeys(r for r in relations if r is not compare.TRUE))
        if compare.FALSE in kept:
            return IntConstraintsTransform(self.src, NEVER)
        return IntConstraintsTransform(self.src, IntConstraints(new, ranges, kept), forward, backward)


def _is_free(low: Expr, high: Expr, variables: Sequence[Var]) -> bool:
    return free_vars(low).isdisjoint(variables) and free_vars(high).isdisjoint(variables)
