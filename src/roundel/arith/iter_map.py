# SPDX-License-Identifier: Apache-2.0
"""Affine iteration maps: indices that split and fuse loop variables without losing or repeating an iteration.

A *mark* is a whole iterator: a variable or a fused sum, with its extent. A *split*, which is
``((mark // lower) % extent) * scale``, is a part of a mark. A *sum* adds splits and a base. ``(i * 16 + j) // 4`` over
i < 8, j < 16 is the split (lower 4, extent 32) of the mark that fuses i and j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import gcd
from typing import Any

from ..ir import free_vars, tir
from ..ir.dataclass import dataclass
from ..ir.dtype import INT64
from ..ir.errors import ArithError
from ..ir.tir import Expr, Range, Var, index_const
from . import compare
from .analyzer import Analyzer
from .linear import Sum, factors, monomial
from .surjective import Windows, contiguous

ZERO, ONE = index_const(0), index_const(1)


@dataclass(frozen=True)
class IterMark:
    """A whole iterator over [0, extent): ``source`` is a variable (less its minimum) or a sum of splits."""

    source: Var | IterSum
    extent: Expr

    def __repr__(self) -> str:
        return f"IterMark({mark_expr(self, {})!r}, extent={self.extent!r})"


@dataclass(frozen=True)
class IterSplit:
    """``((mark // lower) % extent) * scale``"""

    mark: IterMark
    lower: Expr
    extent: Expr
    scale: Expr

    def __repr__(self) -> str:
        return f"IterSplit({split_expr(self, {})!r})"


@dataclass(frozen=True)
class IterSum:
    """The sum of splits, plus ``base``."""

    splits: tuple[IterSplit, ...]
    base: Expr

    def __repr__(self) -> str:
        return f"IterSum({sum_expr(self, {})!r})"


@dataclass(frozen=True)
class IterMap:
    """What ``detect_iter_map`` found: per index a sum of at most one split; ``starts`` are the variables' minima."""

    indices: tuple[IterSum, ...]
    starts: Mapping[Var, Expr]

    def __repr__(self) -> str:
        return f"IterMap({', '.join(repr(sum_expr(s, self.starts)) for s in self.indices)})"

    def exprs(self, an: Analyzer | None = None) -> tuple[Expr, ...]:
        """The indices as expressions again (normalised)."""
        an = an or Analyzer()
        return tuple(an.simplify(sum_expr(_joined(s, an), self.starts)) for s in self.indices)

    def extents(self) -> tuple[Expr, ...]:
        """How many values each index takes."""
        return tuple(s.splits[0].extent if s.splits else ONE for s in self.indices)


def detect_iter_map(
    indices: Sequence[Expr],
    dom: Mapping[Var, Range],
    predicate: Expr | bool = True,
    *,
    check_bijective: bool = False,
    padding: bool = False,
    surjective: bool = False,
    an: Analyzer | None = None,
) -> IterMap:
    """How ``indices`` split and fuse the variables of ``dom`` (where ``predicate`` holds).

    Raises ArithError when an index is not such a map or two indices share part of an iterator; with
    ``check_bijective`` also when some iterations are lost. ``padding`` lets factors that do not divide an extent round
    it up (then the map is injective only). With ``surjective`` iterators may be padded, on either side, and overlap (``x * 7 + y`` over y < 8), as
    long as every combination of values of the indices is taken.
    """
    an = an or Analyzer()
    with an.scope():
        for v, r in dom.items():
            an.bind(v, r)
        condition = an.simplify(tir.const(predicate))
        attempts = [tuple(map(tir.as_index, indices)), tuple(an.simplify(i) for i in indices)]
        error: ArithError | None = None
        for exprs in dict.fromkeys(attempts):
            for refine, onto in ((False, False), (True, False), *(((False, True), (True, True)) if surjective else ())):
                try:
                    return _Detect(an, dom, condition, padding, refine, onto).run(exprs, check_bijective)
                except ArithError as e:
                    error = error or e
    assert error is not None
    raise error


class _Detect:
    """One attempt. ``refine`` cuts low iterators out of divisions: ``(i * 6 + j) // 4`` over j < 6 becomes
    ``(i * 3 + j // 2) // 2``, which is what simplification leaves; without it the fused iterator stays whole. ``onto``: iterators may be padded
    and overlap where the map stays onto (``surjective``).
    """

    def __init__(self, an: Analyzer, dom: Mapping[Var, Range], condition: Expr, padding: bool, refine: bool, onto: bool = False) -> None:
        self.an, self.padding, self.dom, self.refine, self.onto = an, padding, dom, refine, onto
        self.padded: list[IterMark] = []
        self.starts = {v: r.min for v, r in dom.items()}
        self.marks = {v: IterMark(v, an.simplify(tir.cast(r.extent, INT64))) for v, r in dom.items()}
        self.bounded: list[
            tuple[IterSum, IterSplit, Expr]
        ] = []  # splits, what a condition makes of them, their new base
        self.learn(condition)

    def run(self, exprs: Sequence[Expr], bijective: bool) -> IterMap:
        """The map of these indices, checked."""
        sums = tuple(self.fused(self.parse(e)) for e in exprs)
        if self.onto:
            Windows(self.an, self.padded, self.fail).check(sums)
            self.check_bounded(sums)
        else:
            self.check(sums, bijective)
        return IterMap(sums, self.starts)

    def fail(self, what: str, e: Any) -> ArithError:
        """The error that something is not an affine iteration map."""
        return ArithError(f"not an affine iteration map: {what}", why=f"in {e!r}")

    # --- conditions

    def learn(self, condition: Expr) -> None:
        """Bounds on fused iterators from a conjunction of comparisons."""
        limits: dict[tuple[IterSplit, ...], list[Any]] = {}
        for c in _conjuncts(condition):
            if type(c) is tir.IntImm or free_vars(c).isdisjoint(self.dom):
                continue
            if type(c) not in (tir.LT, tir.LE):
                raise self.fail("the condition is not a comparison", c)
            d = compare.difference(self.an, c)
            mine = {a: k for a, k in d.terms.items() if not free_vars(a).isdisjoint(self.dom)}
            sign = 1 if all(k > 0 for k in mine.values()) else -1 if all(k < 0 for k in mine.values()) else 0
            if not mine or not sign:
                raise self.fail("the condition compares two iterators", c)
            rest = Sum({a: k for a, k in d.terms.items() if a not in mine}, d.const)
            body = self.parse(self.an.expr(Sum({a: k * sign for a, k in mine.items()}), c.a.dtype))
            limit = limits.setdefault(body.splits, [body, None, None])
            # sign > 0: body <= -rest;  sign < 0: body >= rest
            limit[1 if sign < 0 else 2] = tir.cast(self.an.expr(rest if sign < 0 else rest * -1, c.a.dtype), INT64)
        for body, low, high in sorted(limits.values(), key=lambda t: len(t[0].splits)):
            whole = self.fuse(IterSum(body.splits, ZERO))
            if len(whole.splits) != 1 or whole.splits[0].scale is not ONE:
                raise self.fail("the condition does not bound one iterator", body)
            offset, end = body.base + whole.base, whole.splits[0].extent - 1
            first = ZERO if low is None else self.an.simplify(tir.max_(low - offset, 0))
            last = end if high is None else tir.min_(high - offset, end)
            extent = self.an.simplify(last - first + 1)
            mark = IterMark(IterSum(whole.splits, self.an.simplify(ZERO - first)), extent)
            self.bounded.append((body, IterSplit(mark, ONE, extent, ONE), self.an.simplify(first + whole.base)))

    # --- expressions to sums

    def parse(self, e: Expr) -> IterSum:
        """An expression as a sum of splits; raises ArithError where it is none."""
        if free_vars(e).isdisjoint(self.dom):
            return IterSum((), self.an.simplify(tir.cast(e, INT64)))
        rule = _PARSE.get(type(e))
        if rule is None:
            raise self.fail(f"{type(e).__name__} of an iterator", e)
        return rule(self, e)

    def add(self, a: IterSum, b: IterSum, k: int = 1) -> IterSum:
        """a + k * b"""
        splits = list(a.splits)
        for s in b.splits:
            same = next((o for o in splits if o.mark == s.mark and o.lower is s.lower and o.extent is s.extent), None)
            if same is None:
                splits.append(s if k == 1 else self.scaled(s, index_const(k)))
                continue
            splits.remove(same)
            scale = self.an.simplify(same.scale + s.scale * k)
            if scale is not ZERO:
                splits.append(IterSplit(s.mark, s.lower, s.extent, scale))
        return IterSum(tuple(splits), self.an.simplify(a.base + b.base * k))

    def scaled(self, s: IterSplit, k: Expr) -> IterSplit:
        """A split times a factor."""
        return IterSplit(s.mark, s.lower, s.extent, self.an.simplify(s.scale * k))

    def times(self, a: IterSum, k: Expr) -> IterSum:
        """A sum times a factor."""
        return IterSum(tuple(self.scaled(s, k) for s in a.splits), self.an.simplify(a.base * k))

    # --- fusing

    def fused(self, s: IterSum) -> IterSum:
        """``fuse``, with an error when the splits do not make one iterator."""
        out = self.fuse(s)
        if len(out.splits) > 1:
            raise self.fail("iterators overlap or leave gaps", sum_expr(s, self.starts))
        return out

    def fuse(self, s: IterSum) -> IterSum:
        """The sum with all its splits as one split of a fused mark, when they fit together."""
        s = self.apply_bounds(s)
        if len(s.splits) < 2:
            return s
        order, extent = self.in_order(s.splits), None
        if order is None and self.onto:
            order, extent = contiguous(self.an, s.splits) or (None, None)
        if order is None:
            return s
        scale = order[-1].scale
        splits = tuple(
            IterSplit(p.mark, p.lower, p.extent, self.an.simplify(tir.floordiv(p.scale, scale))) for p in order
        )
        extent = self.an.simplify(tir.product_of([p.extent for p in splits])) if extent is None else extent
        mark = IterMark(IterSum(splits, ZERO), extent)
        whole = self.apply_bounds(IterSum((IterSplit(mark, ONE, extent, scale),), s.base))
        return whole

    def in_order(self, splits: Sequence[IterSplit]) -> list[IterSplit] | None:
        """Outermost first, each scale the next one's scale times its extent; None when they do not fit."""
        constant = [p for p in splits if type(p.scale) is tir.IntImm]
        if any(p.scale.value < 0 for p in constant):
            return None
        firsts = [min(constant, key=lambda p: p.scale.value)] if constant else list(splits)
        for first in firsts:
            chain, rest = [first], [p for p in splits if p is not first]
            while rest:
                expected = chain[-1].scale * chain[-1].extent
                follow = next((p for p in rest if self.an.prove_equal(p.scale, expected)), None)
                if follow is None:
                    break
                rest.remove(follow)
                chain.append(follow)
            if not rest:
                return chain[::-1]
        return None

    def apply_bounds(self, s: IterSum) -> IterSum:
        """Splits that a condition bounds together become one split of the bounded mark."""
        for body, whole, first in reversed(self.bounded):
            found = self.find(s.splits, body.splits)
            if found is not None:
                s = self.put(s, found[0], self.scaled(whole, found[1]), first)
                continue
            parts = [self.part(s.splits, q, body, whole, first) for q in s.splits] if self.refine else []
            for taken, made, shift in filter(None, parts):
                if all(t in s.splits for t in taken):
                    s = self.put(s, taken, made, shift)
        return s

    def put(self, s: IterSum, taken: Sequence[IterSplit], made: IterSplit, first: Expr) -> IterSum:
        """The sum with one split in place of others; ``first`` is the bounded iterator's first value."""
        rest = tuple(p for p in s.splits if p not in taken)
        return IterSum((*rest, made), self.an.simplify(s.base + first * made.scale))

    def part(
        self, splits: Sequence[IterSplit], q: IterSplit, body: IterSum, whole: IterSplit, first: Expr
    ) -> tuple[list[IterSplit], IterSplit, Expr] | None:
        """Where the bounded iterator was divided by g: its remainder ``q``, or its quotient that ``q`` belongs to."""
        last = next((p for p in body.splits if p.scale is ONE), None)
        if last is None or q.mark != last.mark:
            return None
        low = q.lower is last.lower
        g = q.extent if low else self.an.simplify(tir.floordiv(q.lower, last.lower))
        others = [p for p in body.splits if p is not last]
        if not all(
            self.an.prove_equal(tir.floormod(x, g), 0) for x in (whole.extent, first, *(p.scale for p in others))
        ):
            return None
        if low:
            return [q], IterSplit(whole.mark, ONE, g, q.scale), ZERO
        if not (self.an.prove_equal(last.lower * g, q.lower) and self.an.prove_equal(q.extent * g, last.extent)):
            return None
        quotient = [self.scaled_down(p, g) for p in others] + [IterSplit(q.mark, q.lower, q.extent, ONE)]
        found = self.find(splits, quotient)
        extent, shift = (self.an.simplify(tir.floordiv(x, g)) for x in (whole.extent, first))
        return None if found is None else (found[0], IterSplit(whole.mark, g, extent, found[1]), shift)

    def find(self, splits: Sequence[IterSplit], pattern: Sequence[IterSplit]) -> tuple[list[IterSplit], Expr] | None:
        """Those of ``splits`` that are the pattern times a common factor, and the factor."""
        taken, scale = [], None
        for p in pattern:
            hit = next((s for s in splits if s.mark == p.mark and s.lower is p.lower and s.extent is p.extent), None)
            if hit is None:
                return None
            factor = self.an.simplify(tir.floordiv(hit.scale, p.scale))
            if not self.an.prove_equal(factor * p.scale, hit.scale) or (scale is not None and factor is not scale):
                return None
            taken.append(hit)
            scale = factor
        return (taken, scale) if scale is not None else None

    # --- dividing

    def divide(self, e: Expr) -> tuple[IterSum, IterSum]:
        """Quotient and remainder of a FloorDiv or FloorMod node's operands."""
        by, x = self.an.simplify(tir.cast(e.b, INT64)), self.apply_bounds(self.parse(e.a))
        if not free_vars(by).isdisjoint(self.dom) or not self.an.prove(by >= 0):
            raise self.fail("division by something that is not a positive constant", e)
        base = x.base
        if x.splits and not self.an.prove_equal(tir.floormod(base, by), 0):
            x, base = self.padded_left(x, by, e) if self.onto else (self.shifted(x, e), ZERO)
        high = self.an.simplify(tir.floordiv(base, by))
        if not x.splits:
            return IterSum((), high), IterSum((), self.an.simplify(tir.floormod(base, by)))
        quotient, rest = self.divide_splits(x.splits, by, e)
        return IterSum(quotient, high), IterSum(rest, ZERO)

    def divide_splits(
        self, splits: Sequence[IterSplit], by: Expr, e: Expr
    ) -> tuple[tuple[IterSplit, ...], tuple[IterSplit, ...]]:
        """Quotient and remainder; low splits that have factors in common with the divisor are taken out first."""
        if not self.refine:
            splits = self.fused(IterSum(tuple(splits), ZERO)).splits
        order = self.in_order(splits)
        if order is None or order[-1].scale is not ONE:
            raise self.fail("iterators that do not make one iterator are divided", e)
        low: list[IterSplit] = []
        below: Expr = ONE
        while order and by is not ONE:
            p = order[-1]
            g = self.common(p.extent, by)
            if g is ONE:
                break
            low.append(IterSplit(p.mark, p.lower, g, below))
            below, by = self.an.simplify(below * g), self.an.simplify(tir.floordiv(by, g))
            rest = self.an.simplify(tir.floordiv(p.extent, g))
            part = [] if rest is ONE else [IterSplit(p.mark, self.an.simplify(p.lower * g), rest, g)]
            order = [self.scaled_down(s, g) for s in (*order[:-1], *part)]
        if order and by is not ONE:
            (top,) = self.fused(IterSum(tuple(order), ZERO)).splits
            if self.an.prove(top.extent <= by):
                return (), (self.scaled(top, below), *low)
            low.append(IterSplit(top.mark, top.lower, by, below))
            if not (self.padding or self.onto) and not self.an.prove_equal(tir.floormod(top.extent, by), 0):
                raise self.fail(f"the divisor does not divide the extent {top.extent!r}", e)
            order = [
                IterSplit(
                    top.mark, self.an.simplify(top.lower * by), self.an.simplify(tir.ceildiv(top.extent, by)), ONE
                )
            ]
        return tuple(order), tuple(low)

    def common(self, extent: Expr, by: Expr) -> Expr:
        """A common factor: the greatest of two constants; one of the two where it divides the other. What is padded to be divided stays whole otherwise, if
        it is not refined: parts of 49 by 21 and by 3 lie in one row of parts of 63."""
        if type(extent) is tir.IntImm and type(by) is tir.IntImm:
            found = gcd(extent.value, by.value)
            return index_const(found if self.refine or not self.padding or found in (extent.value, by.value) else 1)
        if self.an.prove_equal(tir.floormod(by, extent), 0):
            return extent
        return by if self.an.prove_equal(tir.floormod(extent, by), 0) else ONE

    def scaled_down(self, s: IterSplit, g: Expr) -> IterSplit:
        """A split divided by a factor of its scale."""
        return IterSplit(s.mark, s.lower, s.extent, self.an.simplify(tir.floordiv(s.scale, g)))

    def shifted(self, s: IterSum, e: Expr) -> IterSum:
        """The iterator ``s + base`` over [0, base + extent) as one mark: padding on the left."""
        s = self.fused(s)
        (p,) = s.splits
        if not self.padding or p.scale is not ONE or not self.an.prove(s.base >= 0):
            raise self.fail("an iterator with an offset is divided", e)
        extent = self.an.simplify(p.extent + s.base)
        return IterSum((IterSplit(IterMark(IterSum((p,), s.base), extent), ONE, extent, ONE),), ZERO)

    def padded_left(self, s: IterSum, by: Expr, e: Expr) -> tuple[IterSum, Expr]:
        """``s + base`` as an iterator that begins ``base % by`` earlier, and the whole blocks of the base."""
        (p,) = self.fused(IterSum(s.splits, ZERO)).splits
        if p.scale is not ONE:
            raise self.fail("an iterator with an offset and a scale is divided", e)
        low = self.an.simplify(tir.floormod(s.base, by))
        mark = IterMark(IterSum((p,), low), self.an.simplify(p.extent + low))
        self.padded.append(mark)
        return IterSum((IterSplit(mark, ONE, mark.extent, ONE),), ZERO), self.an.simplify(s.base - low)

    # --- checks

    def check_bounded(self, sums: Sequence[IterSum]) -> None:
        """What a condition bounds is used by its bounded iterator only."""
        used = {m for s in sums for p in s.splits for m in (p.mark, *_inside(p.mark))}
        for body, whole, _ in self.bounded:
            if whole.mark not in used and any(p.mark in used for p in body.splits):
                raise self.fail("a condition bounds iterators that are used apart", sum_expr(body, self.starts))

    def check(self, sums: Sequence[IterSum], bijective: bool) -> None:
        """No part of an iterator is used twice; with ``bijective`` every part is used."""
        parts: dict[IterMark, list[IterSplit]] = {}
        for s in sums:
            for p in s.splits:
                parts.setdefault(p.mark, []).append(p)
        done: list[IterMark] = []
        while parts:
            mark = self.outermost(parts)
            self.check_parts(mark, parts.pop(mark), bijective)
            done.append(mark)
            if isinstance(mark.source, IterSum):
                for p in mark.source.splits:
                    parts.setdefault(p.mark, []).append(p)
        for body, whole, _ in self.bounded:
            if whole.mark not in done and (bijective or self.touches(body, done)):
                raise self.fail("a condition bounds iterators that are used apart", sum_expr(body, self.starts))
        for v, mark in self.marks.items():
            if (bijective or self.padding) and mark not in done and not self.an.prove_equal(mark.extent, 1):
                raise self.fail("an iterator is not used", v)

    def touches(self, body: IterSum, done: list[IterMark]) -> bool:
        """Whether some iterator that a condition bounds is used."""
        return any(p.mark in done for p in body.splits)

    def outermost(self, parts: Mapping[IterMark, Any]) -> IterMark:
        """A mark that no other mark still to be seen is made of."""
        inner = {m for top in parts for m in _inside(top)}
        return next(m for m in parts if m not in inner)

    def check_parts(self, mark: IterMark, splits: list[IterSplit], bijective: bool) -> None:
        """The splits of one mark lie side by side."""
        expected: Expr = ONE
        rest = list(splits)
        while rest:
            part = next((p for p in rest if self.an.prove_equal(p.lower, expected)), None)
            if part is None:
                part = None if bijective or self.padding else self.next_part(rest, expected)
                if part is None:
                    raise self.fail("parts of an iterator overlap or are missing", mark)
            rest.remove(part)
            expected = self.an.simplify(part.lower * part.extent)
        if self.an.prove_equal(expected, mark.extent):
            return
        enough = tir.ge(expected, mark.extent) if self.padding else tir.eq(tir.floormod(mark.extent, expected), 0)
        if bijective or not self.an.prove(enough):
            raise self.fail("an iterator is not used up", mark)

    def next_part(self, rest: list[IterSplit], expected: Expr) -> IterSplit | None:
        """The lowest part above a gap."""
        fits = [p for p in rest if self.an.prove_equal(tir.floormod(p.lower, expected), 0)]
        for p in fits:
            if all(o is p or self.an.prove(o.lower >= p.lower * p.extent) for o in rest):
                return p
        return None


def _inside(mark: IterMark) -> Iterator[IterMark]:
    if isinstance(mark.source, IterSum):
        for p in mark.source.splits:
            yield p.mark
            yield from _inside(p.mark)


def _conjuncts(c: Expr) -> list[Expr]:
    return [*_conjuncts(c.a), *_conjuncts(c.b)] if type(c) is tir.And else [c]


# --- parsing, one rule per node


def _variable(d: _Detect, v: Var) -> IterSum:
    mark = d.marks[v]
    if d.an.prove_equal(mark.extent, 1):
        return IterSum((), d.an.simplify(tir.cast(d.starts[v], INT64)))
    return IterSum((IterSplit(mark, ONE, mark.extent, ONE),), d.an.simplify(tir.cast(d.starts[v], INT64)))


def _multiply(d: _Detect, e: Expr) -> IterSum:
    a, b = d.parse(e.a), d.parse(e.b)
    if a.splits and b.splits:
        return _rearranged(d, e)
    return d.times(b, a.base) if b.splits else d.times(a, b.base)


def _rearranged(d: _Detect, e: Expr) -> IterSum:
    """A monomial whose factors, but for one, are free of iterators."""
    parts = factors(e)
    running = [f for f in parts if not free_vars(f).isdisjoint(d.dom)]
    fixed = [f for f in parts if free_vars(f).isdisjoint(d.dom)]
    if len(running) != 1 or not fixed:
        raise d.fail("a product of iterators", e)
    return d.times(d.parse(running[0]), monomial(fixed))


def _cast(d: _Detect, e: Expr) -> IterSum:
    if not e.is_index:
        raise d.fail("a cast", e)
    return d.parse(e.value)


_PARSE: dict[type, Callable[[_Detect, Any], IterSum]] = {
    tir.Var: _variable,
    tir.Add: lambda d, e: d.add(d.parse(e.a), d.parse(e.b)),
    tir.Sub: lambda d, e: d.add(d.parse(e.a), d.parse(e.b), -1),
    tir.Mul: _multiply,
    tir.FloorDiv: lambda d, e: d.divide(e)[0],
    tir.FloorMod: lambda d, e: d.divide(e)[1],
    tir.Cast: _cast,
}


# --- back to expressions


def _joined(s: IterSum, an: Analyzer) -> IterSum:
    """A sum in which neighbouring parts of one iterator are one part, as ``x // n * n + x % n`` is x."""
    out: list[IterSplit] = []
    for p in s.splits:
        if isinstance(p.mark.source, IterSum):
            p = IterSplit(IterMark(_joined(p.mark.source, an), p.mark.extent), p.lower, p.extent, p.scale)
        above = out[-1] if out else None
        if (
            above is not None
            and above.mark == p.mark
            and an.prove_equal(above.lower, p.lower * p.extent)
            and an.prove_equal(above.scale, p.scale * p.extent)
        ):
            out[-1] = IterSplit(p.mark, p.lower, an.simplify(above.extent * p.extent), p.scale)
        else:
            out.append(p)
    return IterSum(tuple(out), s.base)


def mark_expr(m: IterMark, starts: Mapping[Var, Expr]) -> Expr:
    """The value of a whole iterator, in [0, extent)."""
    if isinstance(m.source, IterSum):
        return sum_expr(m.source, starts)
    return tir.sub(m.source, starts.get(m.source, 0))


def split_expr(p: IterSplit, starts: Mapping[Var, Expr]) -> Expr:
    """The value of a split, scale included."""
    e = tir.floordiv(mark_expr(p.mark, starts), p.lower)
    covered = tir.mul(p.lower, p.extent)
    if covered is not p.mark.extent and (type(covered) is tir.IntImm or Analyzer().simplify(covered) is not p.mark.extent):
        e = tir.floormod(e, p.extent)
    return tir.mul(e, p.scale)


def sum_expr(s: IterSum, starts: Mapping[Var, Expr]) -> Expr:
    """The value of a sum."""
    return tir.add(tir.sum_of([split_expr(p, starts) for p in s.splits]), s.base)
