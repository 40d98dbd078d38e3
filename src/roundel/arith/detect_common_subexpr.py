# SPDX-License-Identifier: Apache-2.0
"""Subexpressions that occur more than once."""

from __future__ import annotations

from collections import Counter

from ..ir.tir import Expr, FloatImm, IntImm, StringImm, Var
from .effects import has_effect, parts


def detect_common_subexpr(e: Expr, threshold: int = 2) -> dict[Expr, int]:
    """The largest subexpressions (no variables, no constants) that occur at least ``threshold`` times in ``e``, and how often.

    A subexpression that occurs only within another of them is left out. Expressions with effects are not counted. An expression is its
    value at one time: whether memory that it reads changes in between is for the caller to know.
    """
    counts: Counter[Expr] = Counter()
    inside: dict[Expr, Counter[Expr]] = {}

    def count(x: Expr, above: Expr | None) -> None:
        counts[x] += 1
        if above is not None:
            inside.setdefault(x, Counter())[above] += 1
        for p in parts(x):
            count(p, x)

    count(e, None)
    common = {x: n for x, n in counts.items() if n >= threshold and type(x) not in _LEAVES and not has_effect(x)}
    return {x: n for x, n in common.items() if not any(within == n and above in common for above, within in inside.get(x, {}).items())}


_LEAVES = (Var, IntImm, FloatImm, StringImm)
