# SPDX-License-Identifier: Apache-2.0
"""Reductions of whole tensors to single numbers: sums, means, largest and smallest elements of everything, in vectors."""

from __future__ import annotations

from typing import Any

from .accesses import blocks_of
from .applied import Applied
from .rows import in_vectors, inline_cheap, long_axes


def totals(sch: Any, target: Any) -> Applied | None:
    """Fits programs of plain blocks that make single numbers, some of them reductions."""
    if not all(i.is_plain for i in blocks_of(sch.func)) or not any(i.reduce for i in blocks_of(sch.func)):
        return None
    inline_cheap(sch)
    infos = blocks_of(sch.func)
    if any(long_axes(i) for i in infos):
        return None
    for info in infos:
        if info.reduce:
            in_vectors(sch, info, target, 0, None, None)
    return Applied()
