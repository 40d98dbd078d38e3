# SPDX-License-Identifier: Apache-2.0
"""What holds in every iteration of loops of known lengths, found by trying them all: for positions that no rule of arithmetic bounds.

    for i, j in grid(8, 8): if j <= i: p[i * (i + 1) // 2 + j] = a[i, j]        # p: (36,)
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...arith import Analyzer
from ...arith.closed_form import numpy_function
from ...ir import tir
from ...ir.tir import Expr, Range
from ...ir.visit import free_vars, substitute

MOST = 1 << 16
"""Iterations that are tried: some tenths of a second at most, and few programs need it."""

Fact = Expr | tuple[tir.Var, Range | Expr]
"""A condition, or what a variable is."""


def always(condition: Expr, facts: Iterable[Fact]) -> bool:
    """Whether a condition holds wherever the facts do, of which the outermost loop's comes first. False also where there are too many
    iterations, or something else than loops of known lengths tells."""
    an = Analyzer()
    known: dict[tir.Var, Expr] = {}
    under: list[Expr] = []
    for fact in facts:
        if isinstance(fact, Expr):
            under.append(substitute(fact, known))
            continue
        var, value = fact
        if isinstance(value, Range):
            low, extent = substitute(value.min, known), substitute(value.extent, known)
            an.bind(var, Range(low, extent))
            under += [tir.le(low, var), tir.lt(var, low + extent)]
        else:
            known[var] = substitute(value, known)
    condition = substitute(condition, known)
    loops = sorted(free_vars(condition), key=lambda v: v.name)
    ends = [an.bounds(v) for v in loops]
    if not all(np.isfinite(end) for both in ends for end in both):
        return False
    counts = [int(high - low) + 1 for low, high in ends]
    under = [u for u in under if u.is_index and free_vars(u) <= set(loops)]
    if not condition.is_index or np.prod(counts, dtype=object) > MOST:
        return False
    columns = [grid.astype(object) + int(low) for grid, (low, _) in zip(np.indices(counts), ends, strict=True)]  # exact, as indices are
    try:
        holds, *others = numpy_function([condition, *under], loops)(*columns)
    except ZeroDivisionError:
        return False
    reached = np.logical_and.reduce([np.ones(counts, bool), *(np.broadcast_to(o, counts).astype(bool) for o in others)])
    return bool(np.all(np.broadcast_to(holds, counts).astype(bool) | ~reached))
