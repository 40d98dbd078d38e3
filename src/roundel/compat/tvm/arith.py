# SPDX-License-Identifier: Apache-2.0
"""``tvm.arith``: the analyzer under TVM's names. What it tells comes in objects with TVM's fields, an open end as ``POS_INF`` or ``NEG_INF``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from enum import IntEnum
from math import inf
from typing import Any, ClassVar

from ... import arith as _arith
from ...arith import *  # noqa: F403
from ...arith import Interval, IterSplit, IterSum
from ...ir import tir
from ...ir.dataclass import dataclass
from ...ir.tir import Expr, Range, Var

IterSplitExpr, IterSumExpr = IterSplit, IterSum
IterMapExpr = IterSplit | IterSum


class ProofStrength(IntEnum):
    """How hard a proof is tried: ``Analyzer.can_prove`` always tries what it can."""

    DEFAULT = 0
    SYMBOLIC_BOUND = 1


@dataclass(frozen=True)
class ConstIntBound:
    """The smallest and the largest value."""

    min_value: int
    max_value: int
    POS_INF: ClassVar[int] = 2**63 - 1
    NEG_INF: ClassVar[int] = -(2**63 - 1)


@dataclass(frozen=True)
class ModularSet:
    """``base`` plus a multiple of ``coeff``; ``base`` alone where ``coeff`` is 0."""

    coeff: int
    base: int


@dataclass(frozen=True)
class IntervalSet:
    """All integers from ``min_value`` to ``max_value``, each an expression, or None where there is no end."""

    min_value: Any
    max_value: Any

    def is_single_point(self) -> bool:
        """Whether it holds one number."""
        return self.min_value is not None and self.min_value is self.max_value

    def is_everything(self) -> bool:
        """Whether neither end is known."""
        return self.min_value is None and self.max_value is None

    @staticmethod
    def vector(e: Expr) -> IntervalSet:
        """The lanes of a vector, of a scalar itself."""
        return _interval_set(_arith.Analyzer().int_set(e, {}))

    @staticmethod
    def single_point(point: Any) -> IntervalSet:
        """One number."""
        return IntervalSet(tir.as_index(point), tir.as_index(point))


IntSet = IntervalSet


def _interval_set(found: Interval) -> IntervalSet:
    return IntervalSet(found.min, found.max)


def _range(values: Any) -> Range:
    """A domain, given as TVM takes it."""
    if isinstance(values, Range):
        return values
    first = tir.as_index(values.min_value)
    return Range(first, tir.as_index(values.max_value) - first + 1)


class Analyzer(_arith.Analyzer):  # type: ignore[no-redef]
    """Roundel's analyzer, with TVM's names besides its own."""

    def can_prove(self, expr: Any, strength: ProofStrength = ProofStrength.DEFAULT) -> bool:
        """``prove``."""
        return self.prove(expr)

    def can_prove_equal(self, lhs: Any, rhs: Any) -> bool:
        """``prove_equal``."""
        return self.prove_equal(lhs, rhs)

    def canonical_simplify(self, expr: Any) -> Expr:
        """``simplify``, which gives the canonical form."""
        return self.simplify(expr)

    def const_int_bound(self, expr: Any) -> ConstIntBound:
        """``bounds`` as an object."""
        low, high = self.bounds(tir.as_index(expr))
        ends = {inf: ConstIntBound.POS_INF, -inf: ConstIntBound.NEG_INF}
        return ConstIntBound(int(ends.get(low, low)), int(ends.get(high, high)))

    def const_int_bound_is_bound(self, var: Var) -> bool:
        """Whether an end of a variable's values is known."""
        return self.bounds(var) != _arith.Analyzer().bounds(var)

    def modular_set(self, expr: Any) -> ModularSet:
        """``modular`` as an object."""
        return ModularSet(*self.modular(tir.as_index(expr)))

    def int_set(self, expr: Any, dom_map: Mapping[Var, Any] | None = None, predicate: Any = None) -> Any:  # type: ignore[override]
        """The symbolic interval of ``expr`` while the variables of ``dom_map`` (ranges or interval sets) run."""
        return _interval_set(super().int_set(tir.as_index(expr), {v: _range(r) for v, r in (dom_map or {}).items()}, predicate))

    def constraint_scope(self, constraint: Any) -> AbstractContextManager[Any]:
        """``with analyzer.constraint_scope(x > 0):`` the condition holds inside."""
        return self.constraint(constraint)

    def bind(self, var: Var, expr: Any, allow_override: bool = False) -> None:
        """``var`` lies in a Range, or stands for an expression."""
        super().bind(var, expr)

    def update(self, var: Var, info: ConstIntBound | ModularSet, override: bool = False) -> None:
        """What is known of a variable: its bounds or its remainder."""
        if isinstance(info, ModularSet):
            self.assume(tir.eq(var % info.coeff, info.base) if info.coeff else tir.eq(var, info.base))
            return
        if info.min_value > ConstIntBound.NEG_INF:
            self.assume(var >= info.min_value)
        if info.max_value < ConstIntBound.POS_INF:
            self.assume(var <= info.max_value)


def estimate_region_lower_bound(region: Any, var_dom: Mapping[Var, Range], predicate: Any) -> list[IntervalSet] | None:
    """What of a region is touched for certain, by dimension; None where that is not known."""
    return _boxes(_arith.estimate_region_lower(tuple(region), var_dom, tir.const(predicate)))


def estimate_region_upper_bound(region: Any, var_dom: Mapping[Var, Range], predicate: Any) -> list[IntervalSet] | None:
    """Boxes that hold what is touched of a region, by dimension."""
    return _boxes(_arith.estimate_region(tuple(region), var_dom, predicate=tir.const(predicate)))


def _boxes(found: Any) -> list[IntervalSet] | None:
    an = _arith.Analyzer()
    return None if found is None else [IntervalSet(r.min, an.simplify(r.min + r.extent - 1)) for r in found]
