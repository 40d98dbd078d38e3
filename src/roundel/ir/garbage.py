# SPDX-License-Identifier: Apache-2.0
"""Python's search for cyclic garbage, put off while a model is compiled: it took a third of the time and found next to nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARE = (1_000_000, 50, 100)  # objects made between two searches; searches of the young between those of older ones


@contextmanager
def rare_collection() -> Iterator[None]:
    """Within, cycles are searched for once in a million objects (in all threads; an outer use decides when that ends)."""
    before = gc.get_threshold()
    if before[0] >= RARE[0] or not before[0]:
        yield
        return
    gc.set_threshold(*RARE)
    try:
        yield
    finally:
        gc.set_threshold(*before)
