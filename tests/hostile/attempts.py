# SPDX-License-Identifier: Apache-2.0
"""How far an attack is: a line on standard error after every hundred attempts, so that a long one that is stopped can go on from there."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
EVERY = 100


def attempts(of: Iterable[T], start: int = 0) -> Iterator[T]:
    """The attempts ``of`` an attack without the first ``start``; they must not follow from those left out, as numbers drawn in turn do."""
    begun = time.monotonic()
    for number, attempt in enumerate(of, 1):
        if number > start:
            yield attempt
            if number % EVERY == 0:
                print(f"{number} attempts done, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
