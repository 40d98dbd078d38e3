# SPDX-License-Identifier: Apache-2.0
"""Dividing an iteration map into an outer and an inner one, as ``blockize`` needs: ``outer * extent + inner``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..ir import free_vars, tir
from ..ir.dataclass import dataclass
from ..ir.errors import ArithError
from ..ir.tir import Expr, Range, Var
from .analyzer import Analyzer
from .iter_map import ONE, ZERO, IterMark, IterSplit, IterSum, _conjuncts, detect_iter_map, mark_expr, split_expr


@dataclass(frozen=True)
class Division:
    """One binding as ``outer * inner_extent + inner``, and how many values ``outer`` and ``inner`` take."""

    outer: Expr
    outer_extent: Expr
    inner: Expr
    inner_extent: Expr


@dataclass(frozen=True)
class SubspaceDivision:
    """Divisions per binding; the parts of the predicate that speak of outer iterators only, and the others."""

    bindings: tuple[Division, ...]
    outer_predicate: Expr
    inner_predicate: Expr


def subspace_divide(
    bindings: Sequence[Expr],
    dom: Mapping[Var, Range],
    sub_iters: Iterable[Var],
    predicate: Expr | bool = True,
    an: Analyzer | None = None,
) -> SubspaceDivision:
    """Divide ``bindings`` over ``dom`` into what ``sub_iters`` make and the rest.

    Raises ArithError when the bindings are no affine iteration map, or an iterator of the rest moves faster than one of
    ``sub_iters`` in some binding.
    """
    an = an or Analyzer()
    inner_vars = frozenset(sub_iters)
    with an.scope():
        for v, r in dom.items():
            an.bind(v, r)
        condition = an.simplify(tir.const(predicate))
        found = detect_iter_map(bindings, dom, condition, an=an)
        divide = _Divide(an, found.starts, inner_vars)
        parts = _conjuncts(condition)
        outside = tir.logical_and(*(c for c in parts if free_vars(c).isdisjoint(inner_vars)))
        out = []
        for d in map(divide.sum, found.indices):
            with an.constraint(outside):  # where it does not hold, nothing is bound: of 209 * 3 tiles, 625 exist
                outer = an.simplify(d.outer)
            out.append(Division(outer, an.simplify(d.outer_extent), an.simplify(d.inner), an.simplify(d.inner_extent)))
    return SubspaceDivision(tuple(out), outside, tir.logical_and(*(c for c in parts if not free_vars(c).isdisjoint(inner_vars))))


class _Divide:
    def __init__(self, an: Analyzer, starts: Mapping[Var, Expr], inner: frozenset[Var]) -> None:
        self.an, self.starts, self.inner = an, starts, inner

    def sum(self, s: IterSum) -> Division:
        """A binding: one split (or none), times a scale, plus a base."""
        if not s.splits:
            return Division(s.base, ONE, ZERO, ONE)
        (p,) = s.splits
        d = self.split(IterSplit(p.mark, p.lower, p.extent, ONE))
        if d.inner_extent is ONE:
            return Division(tir.add(tir.mul(d.outer, p.scale), s.base), d.outer_extent, ZERO, ONE)
        if d.outer_extent is ONE:
            return Division(ZERO, ONE, tir.add(tir.mul(d.inner, p.scale), s.base), d.inner_extent)
        if p.scale is not ONE:
            raise ArithError("a strided binding cannot be divided", why=f"in {split_expr(p, self.starts)!r}")
        return Division(d.outer, d.outer_extent, tir.add(d.inner, s.base), d.inner_extent)

    def split(self, p: IterSplit) -> Division:
        """A split of scale 1."""
        d = self.mark(p.mark)
        value = split_expr(p, self.starts)
        if d.inner_extent is ONE:
            return Division(value, p.extent, ZERO, ONE)
        if d.outer_extent is ONE:
            return Division(ZERO, ONE, value, p.extent)
        reach = tir.mul(p.lower, p.extent)
        if self.divides(reach, d.inner_extent):  # inside the inner part
            return Division(ZERO, ONE, tir.floormod(tir.floordiv(d.inner, p.lower), p.extent), p.extent)
        if self.divides(d.inner_extent, p.lower):  # above it
            by = tir.floordiv(p.lower, d.inner_extent)
            return Division(tir.floormod(tir.floordiv(d.outer, by), p.extent), p.extent, ZERO, ONE)
        if self.divides(p.lower, d.inner_extent) and self.divides(d.inner_extent, reach):
            low = tir.floordiv(d.inner_extent, p.lower)
            high = tir.floordiv(p.extent, low)
            return Division(tir.floormod(d.outer, high), high, tir.floordiv(d.inner, p.lower), low)
        if self.an.prove_equal(p.lower, 1) and self.an.prove_equal(p.extent, p.mark.extent):
            return d
        raise ArithError("the inner iterators do not make a whole part of a binding", why=f"in {value!r}")

    def mark(self, m: IterMark) -> Division:
        """A whole iterator."""
        value = mark_expr(m, self.starts)
        if not isinstance(m.source, IterSum):
            return (
                Division(ZERO, ONE, value, m.extent) if m.source in self.inner else Division(value, m.extent, ZERO, ONE)
            )
        parts = [(p, self.split(IterSplit(p.mark, p.lower, p.extent, ONE))) for p in m.source.splits]
        if all(d.inner_extent is ONE for _, d in parts):
            return Division(value, m.extent, ZERO, ONE)
        if all(d.outer_extent is ONE for _, d in parts):
            return Division(ZERO, ONE, value, m.extent)
        if m.source.base is not ZERO:
            raise ArithError("a shifted iterator cannot be divided", why=f"in {value!r}")
        return self.fused(parts)

    def fused(self, parts: list[tuple[IterSplit, Division]]) -> Division:
        """Splits (outermost first) of a fused iterator: outer ones, at most one that has both parts, inner ones."""
        outer: Expr = ZERO
        inner: Expr = ZERO
        outer_extent: Expr = ONE
        inner_extent: Expr = ONE
        below = False
        for k, (p, d) in enumerate(parts):
            if k and not self.an.prove_equal(tir.mul(d.outer_extent, d.inner_extent), p.extent):
                raise ArithError("a condition cuts off an iterator below another one", why=f"in {split_expr(p, self.starts)!r}")
            if d.outer_extent is not ONE:
                if below:
                    raise ArithError(
                        "an outer iterator moves faster than an inner one", why=f"in {split_expr(p, self.starts)!r}"
                    )
                outer = tir.add(tir.mul(outer, d.outer_extent), d.outer)
                outer_extent = tir.mul(outer_extent, d.outer_extent)
            if d.inner_extent is not ONE:
                below = True
                inner = tir.add(tir.mul(inner, d.inner_extent), d.inner)
                inner_extent = tir.mul(inner_extent, d.inner_extent)
        return Division(outer, outer_extent, inner, self.an.simplify(inner_extent))

    def divides(self, a: Expr, b: Expr) -> bool:
        """Whether b is a multiple of a."""
        return self.an.prove_equal(tir.floormod(b, a), 0)
