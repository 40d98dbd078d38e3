# SPDX-License-Identifier: Apache-2.0
"""One index as a sum of parts of iterators, whether or not they fit together to an iteration map."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir import free_vars, tir
from ..ir.dtype import INT64
from ..ir.errors import ArithError
from ..ir.tir import Expr, Range, Var
from .analyzer import Analyzer
from .iter_map import ZERO, IterSplit, IterSum, _Detect, _joined
from .linear import Sum, degree


def normalize_to_iter_sum(index: Expr, dom: Mapping[Var, Range], an: Analyzer | None = None) -> IterSum:
    """``z + (y + x * 4 + 2) * n + 3`` as the parts ``x * (n * 4)``, ``y * n``, ``z`` and the base ``2 * n + 3``: the largest scale first.

    Terms that are no part of an iterator, such as ``max(z, a)``, stay in the base.
    """
    an = an or Analyzer()
    with an.scope():
        for v, r in dom.items():
            an.bind(v, r)
        detect = _Detect(an, dom, tir.const(True), False, False, onto=True)
        found, form = IterSum((), ZERO), an.sum(tir.as_index(index))
        rest = Sum({}, form.const)
        for atom, k in form.terms.items():
            part = None
            if not free_vars(atom).isdisjoint(dom):
                try:
                    part = detect.parse(atom)
                except ArithError:
                    pass
            if part is None:
                rest = rest.plus(Sum({atom: 1}), k)
            else:
                found = detect.add(found, part, k)
        base = an.simplify(found.base + tir.cast(an.expr(rest, index.dtype), INT64))
        ordered = sorted(found.splits, key=lambda p: _magnitude(an, p))
        return _joined(IterSum(tuple(ordered), base), an)


def _magnitude(an: Analyzer, p: IterSplit) -> tuple[int, int]:
    """Large scales first: those with more symbols, then those with a larger factor."""
    s = an.sum(p.scale)
    if not s.terms:
        return 0, -s.const
    return min((-degree(a), -k) for a, k in s.terms.items())
