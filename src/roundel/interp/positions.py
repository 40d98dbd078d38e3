# SPDX-License-Identifier: Apache-2.0
"""Indices looked at one by one: the first that is out of range."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.errors import InterpretError
from ..ir.positions import message


def first_outside(indices: np.ndarray, limits: Sequence[int], negative: bool) -> tuple[int, ...] | None:
    """Of the first index that is out of range its value, its position, and the range; None when all are inside."""
    values = indices.astype(object) if indices.dtype == np.uint64 else indices.astype(np.int64)
    high = np.asarray(limits, np.int64) if len(limits) > 1 else np.int64(limits[0])
    low = -high if negative and indices.dtype.kind == "i" else high * 0
    bad = np.argwhere((values < low) | (values >= high))
    if not len(bad):
        return None
    at = tuple(map(int, bad[0]))
    column = at[-1] if len(limits) > 1 else 0
    return int(values[at]), *at, int(np.ravel(low)[column]), int(np.ravel(high)[column])


def require_inside(name: str, indices: np.ndarray, limits: Sequence[int], negative: bool) -> None:
    """Raises InterpretError for an index that is out of range."""
    found = first_outside(indices, limits, negative)
    if found is not None:
        raise InterpretError(message(name, indices.ndim).format(*found))
