# SPDX-License-Identifier: Apache-2.0
"""Symbolic intervals: what an expression can be while some of its variables run over their domains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from ..ir import free_vars, tir
from ..ir.dataclass import dataclass
from ..ir.dtype import DType
from ..ir.tir import Expr, Range, Var
from . import bounds, compare, divide
from .linear import Sum, factors, monomial, multiply

if TYPE_CHECKING:
    from .analyzer import Analyzer

Ends = tuple["Sum | None", "Sum | None"]  # None: unbounded
UNBOUNDED: Ends = (None, None)


@dataclass(frozen=True)
class Interval:
    """All integers from ``min`` to ``max``, both included; None is an end that is not bounded."""

    min: Expr | None
    max: Expr | None

    @property
    def bounded(self) -> bool:
        """Both ends are known."""
        return self.min is not None and self.max is not None


class Relax:
    """Removes the variables of ``dom`` from forms, in favour of the ends of their domains.

    ``conditions`` (canonical) hold for the points that are run over and may tighten the ends.
    """

    def __init__(self, an: Analyzer, dom: Mapping[Var, Range], conditions: Sequence[Expr] = ()) -> None:
        self.an, self.dom = an, dom
        self.known: list[Sum] = []
        for c in conditions:
            self._know(c)

    def _know(self, c: Expr) -> None:
        if type(c) is tir.And:
            self._know(c.a)
            self._know(c.b)
        elif type(c) in _ORDERED and c.a.dtype.is_int and c.a.dtype.lanes == 1:
            d = compare.difference(self.an, c)
            self.known += [d, d * -1] if type(c) is tir.EQ else [d]

    def runs(self, e: Expr) -> bool:
        """Whether the expression depends on a variable of the domain."""
        return not free_vars(e).isdisjoint(self.dom)

    def ends(self, s: Sum, dtype: DType) -> Ends:
        """Least and greatest value of a form."""
        low: Sum | None = Sum({}, s.const)
        high: Sum | None = low
        for atom, k in s.terms.items():
            l, h = self.atom(atom, dtype)
            if k < 0:
                l, h = h, l
            low = None if low is None or l is None else low.plus(l, k)
            high = None if high is None or h is None else high.plus(h, k)
        if self.known:
            high = self._tighten(s, high, dtype)
            negated = self._tighten(s * -1, None if low is None else low * -1, dtype)
            low = None if negated is None else negated * -1
        return low, high

    def _tighten(self, s: Sum, high: Sum | None, dtype: DType) -> Sum | None:
        """The upper end, or what a condition over the same combination of variables says."""
        mine = {a: k for a, k in s.terms.items() if self.runs(a)}
        for d in self.known if mine else ():
            theirs = {a: k for a, k in d.terms.items() if self.runs(a)}
            if theirs.keys() != mine.keys():
                continue
            t = next(mine[a] / theirs[a] for a in mine)
            if t <= 0 or t != int(t) or any(mine[a] != t * theirs[a] for a in mine):
                continue
            new = s.plus(d, -int(t))
            high = new if high is None else self.least(high, new, dtype)
        return high

    def least(self, a: Sum, b: Sum, dtype: DType, kind: type = tir.Min) -> Sum:
        """The form of min (or max) of two."""
        return self.an.sum(kind(self.an.expr(a, dtype), self.an.expr(b, dtype)))

    def atom(self, atom: Expr, dtype: DType) -> Ends:
        """Ends of an expression that is not a sum."""
        if not self.runs(atom):
            same = self.an.sum(atom)
            return same, same
        rule = _RULES.get(type(atom))
        low, high = rule(self, atom, dtype) if rule is not None else UNBOUNDED
        if (low is None or high is None) and (atom.is_index or atom.dtype.bits < 32):
            l, h = self._constant(atom)
            low = Sum({}, l) if low is None and l != -inf else low
            high = Sum({}, h) if high is None and h != inf else high
        return low, high

    def _constant(self, atom: Expr) -> bounds.Bounds:
        with self.an.scope():
            for v, r in self.dom.items():
                self.an.bind(v, r)
            return self.an.bounds(atom)

    def of(self, e: Expr) -> Ends:
        """Ends of an expression."""
        return self.ends(self.an.sum(e), e.dtype)


def interval(an: Analyzer, e: Expr, dom: Mapping[Var, Range], conditions: Sequence[Expr] = ()) -> Interval:
    """The symbolic interval of ``e`` while the variables of ``dom`` run (under conditions on them)."""
    base, reach = (e, 0) if e.dtype.lanes == 1 else _vector_base(e)
    if base is None:
        return Interval(None, None)
    relax = Relax(an, dom, conditions)
    low, high = relax.of(base)
    dtype = base.dtype
    if reach == inf or reach == -inf:  # the machine says how many lanes there are
        low, high = (low, None) if reach > 0 else (None, high)
    elif reach and high is not None and low is not None:
        low, high = (low, high + int(reach)) if reach > 0 else (low + int(reach), high)
    return Interval(None if low is None else an.expr(low, dtype), None if high is None else an.expr(high, dtype))


def _vector_base(e: Expr) -> tuple[Expr | None, float]:
    """Scalar base and reach (last lane less first; infinite for scalable vectors) of a vector index."""
    if type(e) is tir.Broadcast:
        return e.value, 0
    if type(e) is tir.Ramp and type(e.stride) is tir.IntImm:
        step = e.stride.value
        return e.base, step * (e.lanes - 1) if e.lanes > 0 else inf * step if step else 0
    return None, 0


def union_lower_bound(an: Analyzer, intervals: Sequence[Interval]) -> Interval | None:
    """An interval that the union of intervals holds for certain: of those that provably touch or overlap, joined; None where there is none."""
    out: Interval | None = None
    rest = list(intervals)
    while rest:
        found = next((i for i in rest if out is None or _touch(an, out, i)), None)
        if found is None:
            break
        rest.remove(found)
        out = found if out is None else _hull(an, out, found)
    return out


def _touch(an: Analyzer, a: Interval, b: Interval) -> bool:
    """Whether no whole number lies between two intervals."""
    below = lambda x, y: x is None or y is None or an.prove(tir.le(x, y + 1))
    return below(a.min, b.max) and below(b.min, a.max)


def _hull(an: Analyzer, a: Interval, b: Interval) -> Interval:
    low = None if a.min is None or b.min is None else an.simplify(tir.min_(a.min, b.min))
    high = None if a.max is None or b.max is None else an.simplify(tir.max_(a.max, b.max))
    return Interval(low, high)


# --- per kind of atom


def _var(r: Relax, v: Var, dtype: DType) -> Ends:
    dom = r.dom[v]
    first, extent = r.an.sum(dom.min), r.an.sum(dom.extent)
    return r.ends(first, dtype)[0], r.ends(first + extent - 1, dtype)[1]


def _positive(r: Relax, e: Expr) -> Sum | None:
    """The form of a divisor that is fixed and known to be > 0 (a divisor is never 0)."""
    return r.an.sum(e) if not r.runs(e) and r.an.bounds(e)[0] >= 0 else None


def _floordiv(r: Relax, e: Expr, dtype: DType) -> Ends:
    by = _positive(r, e.b)
    if by is None:
        return UNBOUNDED
    low, high = r.of(e.a)
    return (
        None if low is None else divide.floordiv(r.an, low, by, dtype),
        None if high is None else divide.floordiv(r.an, high, by, dtype),
    )


def _floormod(r: Relax, e: Expr, dtype: DType) -> Ends:
    by = _positive(r, e.b)
    if by is None:
        return UNBOUNDED
    low, high = r.of(e.a)
    if low is not None and high is not None:
        if divide.floordiv(r.an, low, by, dtype).same(divide.floordiv(r.an, high, by, dtype)):
            return divide.floormod(r.an, low, by, dtype), divide.floormod(r.an, high, by, dtype)
        if r.an.is_le(low * -1):
            return Sum({}, 0), r.least(high, by - 1, dtype)
    return Sum({}, 0), by - 1


def _truncdiv(r: Relax, e: Expr, dtype: DType) -> Ends:
    """The quotient toward zero grows with the dividend too."""
    by = _positive(r, e.b)
    if by is None:
        return UNBOUNDED
    low, high = (None if s is None else r.an.sum(tir.truncdiv(r.an.expr(s, dtype), e.b)) for s in r.of(e.a))
    return low, high


def _truncmod(r: Relax, e: Expr, dtype: DType) -> Ends:
    by = _positive(r, e.b)
    if by is None:
        return UNBOUNDED
    low, high = r.of(e.a)
    most, least = by - 1, by * -1 + 1
    return (
        Sum({}, 0) if low is not None and r.an.is_le(low * -1) else least,
        Sum({}, 0) if high is not None and r.an.is_le(high) else most,
    )


def _extremum(r: Relax, e: Expr, dtype: DType) -> Ends:
    kind = type(e)
    (l, h), (m, n) = r.of(e.a), r.of(e.b)
    either = lambda a, b: a if b is None else b if a is None else r.least(a, b, dtype, kind)
    both = lambda a, b: None if a is None or b is None else r.least(a, b, dtype, kind)
    return (both(l, m), either(h, n)) if kind is tir.Min else (either(l, m), both(h, n))


def _choice(r: Relax, e: Expr, dtype: DType) -> Ends:
    (l, h), (m, n) = r.of(e.true_value), r.of(e.false_value)
    return (
        None if l is None or m is None else r.least(l, m, dtype, tir.Min),
        None if h is None or n is None else r.least(h, n, dtype, tir.Max),
    )


def _product(r: Relax, e: Expr, dtype: DType) -> Ends:
    """Products whose factors are not negative, and fixed factors of known sign times one that runs."""
    if not e.is_index:
        return UNBOUNDED
    low: Sum | None = Sum({}, 1)
    high: Sum | None = low
    for f in factors(e):
        l, h = r.of(f)
        if l is None or h is None or not r.an.is_le(l * -1):
            return _scaled(r, e, dtype)
        low = None if low is None else multiply(low, l)
        high = None if high is None else multiply(high, h)
    return low, high


def _scaled(r: Relax, e: Expr, dtype: DType) -> Ends:
    running = [f for f in factors(e) if r.runs(f)]
    fixed = [f for f in factors(e) if not r.runs(f)]
    if len(running) != 1 or not fixed:
        return UNBOUNDED
    scale = Sum({monomial(fixed): 1})
    low, high = bounds.of_sum(r.an, scale)
    if low < 0 < high:
        return UNBOUNDED
    l, h = r.of(running[0])
    if high <= 0:
        l, h = h, l
    return None if l is None else multiply(l, scale), None if h is None else multiply(h, scale)


def _cast(r: Relax, e: Expr, dtype: DType) -> Ends:
    if not e.is_index:
        return UNBOUNDED
    low, high = r.of(e.value)
    widen = lambda s: None if s is None else r.an.sum(tir.cast(r.an.expr(s, e.value.dtype), e.dtype))
    return widen(low), widen(high)


_ORDERED = {tir.LT, tir.LE, tir.GT, tir.GE, tir.EQ}
_RULES: dict[type, Callable[[Relax, Any, DType], Ends]] = {
    tir.Var: _var,
    tir.FloorDiv: _floordiv,
    tir.FloorMod: _floormod,
    tir.Div: _truncdiv,
    tir.Mod: _truncmod,
    tir.Min: _extremum,
    tir.Max: _extremum,
    tir.Select: _choice,
    tir.IfThenElse: _choice,
    tir.Mul: _product,
    tir.Cast: _cast,
}
