# SPDX-License-Identifier: Apache-2.0
"""Regions (one Range per dimension): relaxation over loops, union, intersection, cover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir import free_vars, tir
from ..ir.errors import ArithError
from ..ir.tir import BufferRegion, Expr, Range, Var
from .analyzer import Analyzer
from .int_set import interval

Region = Sequence[Range]


def end(r: Range) -> Expr:
    """One past the last index."""
    return tir.add(r.min, r.extent)


def between(an: Analyzer, low: Expr, high: Expr) -> Range:
    """[low, high), simplified."""
    return Range(an.simplify(low), an.simplify(tir.sub(high, low)))


def relax_range(an: Analyzer, r: Range, dom: Mapping[Var, Range], conditions: Sequence[Expr] = ()) -> Range | None:
    """The hull of a range while the variables of ``dom`` run; None where it is not bounded."""
    if r.min.dtype.lanes == 1 and (not dom or (dom.keys().isdisjoint(free_vars(r.min)) and dom.keys().isdisjoint(free_vars(r.extent)))):
        return Range(an.simplify(r.min), an.simplify(r.extent))
    low = interval(an, r.min, dom, conditions).min
    high = interval(an, tir.sub(tir.add(r.min, r.extent), 1), dom, conditions).max
    return None if low is None or high is None else between(an, low, high + 1)


def estimate_region(
    region: BufferRegion | Region,
    dom: Mapping[Var, Range],
    *,
    predicate: Expr | None = None,
    an: Analyzer | None = None,
) -> tuple[Range, ...]:
    """A box that holds the region for all points of ``dom`` (with ``predicate``): the upper bound.

    A dimension without bound becomes the buffer's whole dimension; without a buffer this raises ArithError.
    """
    an = an or Analyzer()
    ranges = region.region if isinstance(region, BufferRegion) else region
    with an.scope():
        conditions = [an.simplify(predicate)] if predicate is not None else []
        out = []
        for k, r in enumerate(ranges):
            found = relax_range(an, r, dom, conditions)
            if found is None:
                if not isinstance(region, BufferRegion):
                    raise ArithError(f"the range of dimension {k} is not bounded", why=f"it starts at {r.min!r}")
                found = Range.of(region.buffer.shape[k])
            out.append(found)
    return tuple(out)


def union(a: Region, b: Region, an: Analyzer | None = None) -> tuple[Range, ...]:
    """The hull of two regions."""
    an = an or Analyzer()
    return tuple(
        x if x.min is y.min and x.extent is y.extent else between(an, tir.min_(x.min, y.min), tir.max_(end(x), end(y)))
        for x, y in zip(a, b, strict=True)
    )


def intersect(a: Region, b: Region, an: Analyzer | None = None) -> tuple[Range, ...]:
    """What both hold; extents are >= 0."""
    an = an or Analyzer()
    out = []
    for x, y in zip(a, b, strict=True):
        low = an.simplify(tir.max_(x.min, y.min))
        out.append(Range(low, an.simplify(tir.max_(tir.sub(tir.min_(end(x), end(y)), low), 0))))
    return tuple(out)


def covers(outer: Region, inner: Region, an: Analyzer | None = None) -> bool:
    """Whether ``outer`` provably holds all of ``inner``."""
    an = an or Analyzer()
    return all(
        an.prove(tir.le(x.min, y.min)) and an.prove(tir.le(end(y), end(x))) for x, y in zip(outer, inner, strict=True)
    )


def same_region(a: Region, b: Region, an: Analyzer | None = None) -> bool:
    """Whether two regions are provably equal."""
    an = an or Analyzer()
    return all(an.prove_equal(x.min, y.min) and an.prove_equal(x.extent, y.extent) for x, y in zip(a, b, strict=True))


def disjoint(a: Region, b: Region, an: Analyzer | None = None) -> bool:
    """Whether two regions provably have no point in common."""
    an = an or Analyzer()
    return any(an.prove(tir.le(end(x), y.min)) or an.prove(tir.le(end(y), x.min)) for x, y in zip(a, b, strict=True))


def is_point(r: Range) -> bool:
    """Whether the range is one index."""
    return type(r.extent) is tir.IntImm and r.extent.value == 1
