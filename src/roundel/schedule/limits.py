# SPDX-License-Identifier: Apache-2.0
"""Boxes of what loops run over, as conditions limit them.

    for o, i in grid(13, 8): x[o * 8 + i] where o * 8 + i < 100    ->    x[0 : 100]

Each index is a sum of loops (``o * 8 + i``), and each condition an upper limit of one loop, or of an index by all of its loops or the outer ones, as a
split leaves it whose factor does not divide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import gcd, inf

from roundel.arith import Analyzer
from roundel.arith.compare import SLACK
from roundel.ir import Var, free_vars, substitute
from roundel.ir.dataclass import dataclass
from roundel.ir.tir import Expr, IntImm, Range, const, floordiv, ge, min_

from .tree import is_one

Terms = Mapping[Var, Expr]
"""How far an index moves with each loop."""


def exact_box(ranges: Sequence[Range], loops: Mapping[Var, Range], conditions: Sequence[Expr], an: Analyzer, once: bool = False) -> list[Range] | None:
    """For ranges that begin where the loops say: the box of which they take every element, in all combinations, where the conditions hold; None where
    that is not shown. With ``once``, they take none twice."""
    if not independent(loops):
        return None
    terms = [_terms(r.min, loops, an) for r in ranges]
    used = [v for t in terms if t is not None for v in t]
    if None in terms or len(used) != len(set(used)):
        return None
    outside = [c for c in conditions if free_vars(c).isdisjoint(loops)]
    limits = [c for c in conditions if c not in outside]
    if not all(an.prove(c) for c in outside):
        return None
    cut, left = _cut(loops, limits, an)
    if not all(v in used or has_iterations(r.extent, an) for v, r in cut.items()):
        return None
    box = [_span(r, t or {}, cut, an) if _is_dense(r, t or {}, cut, an, once) else None for r, t in zip(ranges, terms, strict=True)]
    for c in left:
        k = next((k for k, t in enumerate(terms) if t and free_vars(c) & loops.keys() <= t.keys()), None)
        if k is None or box[k] is None or not _is_dense(ranges[k], terms[k] or {}, cut, an, once=True):
            return None
        box[k] = _limited(c, ranges[k], terms[k] or {}, box[k], cut, an)
    return None if None in box else box  # type: ignore[return-value]


def outer_box(ranges: Sequence[Range], loops: Mapping[Var, Range], conditions: Sequence[Expr], an: Analyzer) -> list[Range] | None:
    """A box outside of which the ranges take no element; conditions that are no limits as above are passed over. None where an index is no sum of loops."""
    terms = [_terms(r.min, loops, an) for r in ranges]
    if not independent(loops) or any(t is None or not all(an.prove(step >= 1) for step in t.values()) for t in terms):
        return None
    cut, left = _cut(loops, [c for c in conditions if not free_vars(c).isdisjoint(loops)], an)
    box = [_span(r, t or {}, cut, an) for r, t in zip(ranges, terms, strict=True)]
    for c in left:
        for k, t in enumerate(terms):
            asked = _relaxed(c, t or {}, cut, an)
            if asked is not None:
                box[k] = _limited(asked, ranges[k], t or {}, box[k], cut, an) or box[k]
    return box


def independent(loops: Mapping[Var, Range]) -> bool:
    """Whether no loop says how far another one of them runs (as in a triangle), so that together they run over a box."""
    return not any(free_vars(e) & loops.keys() for r in loops.values() for e in (r.min, r.extent))


def has_iterations(extent: Expr, an: Analyzer) -> bool:
    """Whether a loop of this extent has an iteration where no size is 0."""
    if type(extent) is IntImm:
        return extent.value >= 1
    with an.scope():
        for v in free_vars(extent):
            if v.size:
                an.assume(v >= 1)
        return an.prove(extent >= 1)


def _relaxed(condition: Expr, terms: Terms, loops: Mapping[Var, Range], an: Analyzer) -> Expr | None:
    """What a condition asks at least of the loops that move an index, whatever the others do; None where it is none on these."""
    others = [v for v in free_vars(condition) & loops.keys() if v not in terms]
    if not others:
        return condition
    if len(others) == len(free_vars(condition) & loops.keys()) or type(condition) not in SLACK or not condition.is_index:
        return None
    slack = SLACK[type(condition)](condition)
    for v in others:
        moved = an.simplify(substitute(slack, {v: v + 1}) - slack)
        if type(moved) is not IntImm:
            return None
        slack = substitute(slack, {v: loops[v].min + loops[v].extent - 1 if moved.value > 0 else loops[v].min})
    return ge(slack, 0)


def _terms(index: Expr, loops: Mapping[Var, Range], an: Analyzer) -> Terms | None:
    """Those of an index; None where it is no sum of multiples of loops and of what they do not change."""
    if type(index) is Var:
        return {index: const(1)} if index in loops else {}
    out = {v: an.simplify(substitute(index, {v: v + 1}) - index) for v in free_vars(index) if v in loops}
    return out if all(free_vars(step).isdisjoint(loops) for step in out.values()) else None


def _cut(loops: Mapping[Var, Range], limits: Sequence[Expr], an: Analyzer) -> tuple[dict[Var, Range], list[Expr]]:
    """The loops as far as the limits of single ones hold, and the other conditions."""
    out, left = dict(loops), []
    for c in limits:
        mine = free_vars(c) & loops.keys()
        found = _falls(c, dict.fromkeys(mine, const(1)), an) if len(mine) == 1 else None
        if found is None:
            left.append(c)
            continue
        (v,) = mine
        out[v] = _within(out[v], found.slack, found.fall, an)
    return out, left


def _is_dense(r: Range, terms: Terms, loops: Mapping[Var, Range], an: Analyzer, once: bool) -> bool:
    """Whether the ranges that begin at an index leave nothing out between the first and the last, and, with ``once``, do not overlap."""
    width = r.extent
    for v, step in sorted(terms.items(), key=lambda t: t[1].value if type(t[1]) is IntImm else inf):
        if not an.prove(step >= 1) or not (an.prove_equal(width, step) if once else an.prove(width >= step)):
            return False
        width = width + (loops[v].extent - 1) * step
    return True


def _span(r: Range, terms: Terms, loops: Mapping[Var, Range], an: Analyzer) -> Range:
    """From the begin of the first of the ranges to the end of the last."""
    if r.min in loops and is_one(r.extent):
        return loops[r.min]  # type: ignore[index]
    if not terms:
        return r
    width = r.extent
    for v, step in terms.items():
        width = width + (loops[v].extent - 1) * step
    return Range(an.simplify(substitute(r.min, {v: loops[v].min for v in terms})), an.simplify(width))


def _limited(condition: Expr, r: Range, terms: Terms, box: Range, loops: Mapping[Var, Range], an: Analyzer) -> Range | None:
    """The span of the ranges that begin where a condition holds, which falls as their index rises by its outer loops; None for other conditions."""
    mine = free_vars(condition) & terms.keys()
    found = _falls(condition, {v: terms[v] for v in mine}, an)
    if found is None:
        return None
    inner = _span(r, {v: step for v, step in terms.items() if v not in mine}, loops, an)
    first = an.simplify(substitute(inner.min, {v: const(0, v.dtype) for v in mine}))  # where it begins with the outer loops at 0
    units = floordiv(found.slack, found.fall) + 1
    extent = an.simplify(first + (units - 1) * found.unit + inner.extent - box.min)
    return box if an.prove(extent >= box.extent) else Range(box.min, an.simplify(min_(box.extent, extent)))


@dataclass(frozen=True)
class _Fall:
    """A condition that holds as long as ``slack - fall * x >= 0`` where loops together have moved an index by ``x`` times ``unit``."""

    slack: Expr
    fall: int
    unit: int


def _falls(condition: Expr, terms: Terms, an: Analyzer) -> _Fall | None:
    """Such a condition on loops that move an index by ``terms``; None where it is another."""
    if type(condition) not in SLACK or not condition.is_index or not all(type(step) is IntImm for step in terms.values()):
        return None
    steps = {v: step.value for v, step in terms.items()}  # type: ignore[attr-defined]
    unit, slack = gcd(*steps.values()), SLACK[type(condition)](condition)
    moved = {v: an.simplify(substitute(slack, {v: v + 1}) - slack) for v in steps}
    falls = {Fraction(-n.value * unit, steps[v]) if type(n) is IntImm else None for v, n in moved.items()}
    fall = falls.pop() if len(falls) == 1 else None
    if not fall or fall < 0 or fall.denominator > 1:
        return None
    return _Fall(substitute(slack, {v: const(0, v.dtype) for v in steps}), int(fall), unit)


def _within(r: Range, slack: Expr, fall: int, an: Analyzer) -> Range:
    """A range as far as ``slack - fall * x >= 0`` for its elements x."""
    extent = an.simplify(floordiv(slack, fall) + 1 - r.min)
    return r if an.prove(extent >= r.extent) else Range(r.min, an.simplify(min_(r.extent, extent)))
