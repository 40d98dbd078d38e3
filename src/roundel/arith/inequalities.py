# SPDX-License-Identifier: Apache-2.0
"""Systems of linear inequalities over the integers, by Fourier and Motzkin's elimination: one variable after the other is bounded by the later ones.

Eliminating over the rationals loses nothing that holds but may keep points that are no integers' shadows; so the relations are kept beside the
ranges, and ranges are hulls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from ..ir import substitute, tir
from ..ir.dtype import DType
from ..ir.tir import Expr, Range, Var
from . import compare
from .analyzer import Analyzer
from .linear import Sum, to_expr
from .linear_equation import coefficients
from .solve import NEVER, IntConstraints, IntConstraintsTransform


def solve_linear_inequalities(
    relations: Sequence[Expr] | IntConstraints,
    variables: Sequence[Var] | None = None,
    ranges: Mapping[Var, Range] | None = None,
    an: Analyzer | None = None,
) -> IntConstraints:
    """The same integers by ranges, each of constant extent and with a minimum in the variables after it, and by what is left of the relations.

    A variable that is not bounded on both sides has no range. Relations that are not linear in the variables are kept. Where there is no
    solution, the one relation is false and there are no variables.
    """
    if isinstance(relations, IntConstraints):
        relations, variables, ranges = relations.relations, relations.variables, relations.ranges
    return _Elimination(an or Analyzer(), tuple(variables or ())).solve(relations, dict(ranges or {}))


def deskew_ranges(found: IntConstraints, an: Analyzer | None = None) -> IntConstraintsTransform:
    """Constraints with new variables that begin at 0: what has a single value goes, a variable without a range stays."""
    an = an or Analyzer()
    if found.relations == NEVER.relations:
        return IntConstraintsTransform(found, NEVER)
    forward: dict[Var, Expr] = {}
    backward: dict[Var, Expr] = {}
    ranges: dict[Var, Range] = {}
    kept: list[Var] = []
    for v in reversed(found.variables):
        r = found.ranges.get(v)
        if r is None:
            forward[v] = backward[v] = v
            kept.append(v)
            continue
        low = an.simplify(substitute(r.min, forward))
        if an.value(r.extent) == 1:
            forward[v] = low
            continue
        new = Var(v.name, v.dtype)
        forward[v], backward[new] = an.simplify(low + new), an.simplify(v - r.min)
        ranges[new] = Range(tir.const(0, v.dtype), r.extent)
        kept.append(new)
    with an.scope():
        for v, r in ranges.items():
            an.bind(v, r)
        left = [an.simplify(substitute(e, forward)) for e in found.relations]
    if compare.FALSE in left:
        return IntConstraintsTransform(found, NEVER)
    relations = tuple(dict.fromkeys(e for e in left if e is not compare.TRUE))
    return IntConstraintsTransform(found, IntConstraints(tuple(kept[::-1]), ranges, relations), forward, backward)


class _Elimination:
    """Inequalities are forms that are at most 0; bounds of a variable are the least and the greatest whole numbers that they leave."""

    def __init__(self, an: Analyzer, variables: tuple[Var, ...]) -> None:
        self.an, self.variables = an, variables
        self.bounds: dict[Var, tuple[list[Sum], list[Sum]]] = {}
        self.others: list[Expr] = []

    def solve(self, relations: Sequence[Expr], ranges: Mapping[Var, Range]) -> IntConstraints:
        """Eliminate all variables, then bound them from the last to the first."""
        forms: list[Sum] = []
        for e in relations:
            forms += self.forms(e)
        for v, r in ranges.items():
            me, low = Sum({v: 1}), self.an.sum(r.min)
            forms += [low - me, me - low - self.an.sum(r.extent) + 1]
        for v in self.variables:
            forms = self.eliminate(v, self.reduced(forms))
        left = [compare.at_most_zero(self.an, f, self.dtype(f)) for f in self.reduced(forms)]
        if compare.FALSE in left:
            return NEVER
        with self.an.scope():
            out = self.ranges()
        return NEVER if out is None else IntConstraints(out.variables, out.ranges, (*out.relations, *(e for e in left if e is not compare.TRUE)))

    def dtype(self, s: Sum) -> DType:
        """The type of a form's terms."""
        return next(iter(s.terms)).dtype if s.terms else self.variables[0].dtype

    def forms(self, e: Expr) -> list[Sum]:
        """A comparison as forms; what is none is kept as it stands."""
        if type(e) not in compare.INTEGER - {tir.NE} or not e.a.dtype.is_int or e.a.dtype.lanes != 1:
            self.others.append(e)
            return []
        d = compare.difference(self.an, e)
        return [d, d * -1] if type(e) is tir.EQ else [d]

    def reduced(self, forms: Sequence[Sum]) -> list[Sum]:
        """Of forms with the same terms the tightest."""
        tightest: dict[frozenset, Sum] = {}
        for f in forms:
            g = f.gcd
            if g > 1:
                f = Sum({a: k // g for a, k in f.terms.items()}, -(-f.const // g))
            key = frozenset(f.terms.items())
            old = tightest.get(key)
            if old is None or old.const < f.const:
                tightest[key] = f
        return [f for f in tightest.values() if f.terms or f.const > 0]

    def eliminate(self, v: Var, forms: Sequence[Sum]) -> list[Sum]:
        """The inequalities that follow without ``v``; its bounds are noted."""
        low: list[tuple[int, Sum]] = []
        high: list[tuple[int, Sum]] = []
        out: list[Sum] = []
        for f in forms:
            parts = coefficients(f, [v])
            if parts is None or parts[0].terms:
                self.others.append(compare._below(self.an, f, self.dtype(f)))
            elif not parts[0].const:
                out.append(f)
            else:
                k = parts[0].const
                (high if k > 0 else low).append((abs(k), parts[1]))
        self.bounds[v] = ([self.whole(r, k, up=True) for k, r in low], [self.whole(r * -1, k) for k, r in high])
        return out + [r * m + s * k for k, r in high for m, s in low]

    def whole(self, s: Sum, k: int, up: bool = False) -> Sum:
        """s / k, rounded down or up."""
        if k == 1:
            return s
        dtype = self.dtype(s)
        return self.an.sum(tir.floordiv(self.an.expr(s + (k - 1) if up else s, dtype), tir.const(k, dtype)))

    def ranges(self) -> IntConstraints | None:
        """Ranges, the last variable's first; None where a variable has no value."""
        found: dict[Var, Range] = {}
        relations: list[Expr] = []
        for v in reversed(self.variables):
            low, high = self.outermost(self.bounds[v][0], -1), self.outermost(self.bounds[v][1], 1)
            best = min(((self.extent(l, h), i, j) for i, l in enumerate(low) for j, h in enumerate(high)), default=(inf, 0, 0))
            if best[0] < 1:
                return None
            if best[0] <= v.dtype.limits[1] // 2:  # more than that is what types hold, not what the relations say
                r = Range(self.an.expr(low[best[1]], v.dtype), tir.const(best[0], v.dtype))
                found[v] = r
                self.an.bind(v, r)
                self.an.forget()  # forms with v were simplified while its bounds were found
            relations += [tir.ge(v, self.an.expr(l, v.dtype)) for l in low] + [tir.le(v, self.an.expr(h, v.dtype)) for h in high]
        kept = []
        for c in (*self.others, *relations):
            simple = self.an.simplify(c)
            if simple is compare.FALSE:
                return None
            if simple is not compare.TRUE:
                kept.append(simple)
        return IntConstraints(self.variables, found, tuple(dict.fromkeys(kept)))

    def outermost(self, forms: list[Sum], sign: int) -> list[Sum]:
        """Bounds without those that others imply."""
        forms = [self.an.sum(to_expr(f, self.dtype(f))) for f in forms]  # with what is known of later variables
        out: list[Sum] = []
        for f in forms:
            if any(self.an.is_le((o - f) * sign) for o in out):
                continue
            out = [o for o in out if not self.an.is_le((f - o) * sign)] + [f]
        return out

    def extent(self, low: Sum, high: Sum) -> float:
        """How many values lie between two bounds at most."""
        return self.an.bounds(self.an.expr(high - low + 1, self.dtype(high)))[1]
