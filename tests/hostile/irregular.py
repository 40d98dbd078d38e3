# SPDX-License-Identifier: Apache-2.0
"""Primitives in long chains, with arguments at their limits, on programs in which nothing is dense: loops that other loops or memory tell, variables
of blocks with any values, views that overlap. Otherwise as ``primitives``."""

from __future__ import annotations

from collections.abc import Iterator

from tests.schedule.limit_steps import ALL
from tests.schedule.random_steps import NAMES

from .attempts import attempts
from .primitive_admitted import FORMS as ADMITTED
from .primitive_programs import draw
from .primitive_sparse import FORMS as SPARSE
from .primitives import scheduled

LENGTHS = (1, 2, 4, 8, 12, 15)
DRAWN = [*NAMES, *ALL, *ALL]


def attack(count: int, seed: int, start: int = 0) -> Iterator[str]:
    """``count`` programs, each with a sequence of primitives."""
    for k in attempts(range(seed, seed + count), start):
        yield from (f"case {k}: {problem}" for problem in case(k))


def case(seed: int) -> Iterator[str]:
    """What goes wrong with one program and one sequence of primitives; the first step after which it does is named."""
    func = draw(seed, SPARSE if seed % 2 else ADMITTED)
    problem = scheduled(func, seed, every_step=False, known=ALL, names=DRAWN, most=LENGTHS)
    if problem:
        yield scheduled(func, seed, every_step=True, known=ALL, names=DRAWN, most=LENGTHS) or problem
