# SPDX-License-Identifier: Apache-2.0
"""Products of a matrix and one column where rows of the matrix are contiguous: each result is the product of two rows, as in ``rows``.

There is nothing to broadcast: vectors run along the reduction.
"""

from __future__ import annotations

from typing import Any

from .accesses import blocks_of
from .applied import Applied
from .contraction_roles import match
from .rows import rows


def matvec(sch: Any, target: Any) -> Applied | None:
    """Fits programs with exactly one reduction, a contraction over one axis, along which both operands are contiguous, with one column."""
    reductions = [i for i in blocks_of(sch.func) if i.reduce]
    found = match(reductions[0]) if len(reductions) == 1 else None
    if found is None or found.extent(found.vector_axis) != 1 or len(found.reduce) != 1:
        return None
    along = found.info.reduce[0].var
    return rows(sch, target) if found.broadcast.steps(along, 1) and found.vector.steps(along, 1) else None
