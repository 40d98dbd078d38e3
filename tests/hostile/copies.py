# SPDX-License-Identifier: Apache-2.0
"""Primitives that copy, lay out or inline, each by itself, on programs of further forms (``primitive_forms``): as ``primitives``, with more tries a program."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from roundel.ir.errors import ScheduleError
from tests.schedule.random_steps import STEPS, Steps

from .attempts import attempts
from .primitive_forms import FORMS
from .primitive_programs import draw
from .primitives import differs, run

NAMES = (
    "write_at read_at cache_read cache_write cache_inplace cache_index reindex reindex_cache transform_layout transform_block_layout pad_einsum "
    "decompose_padding set_scope compute_inline reverse_compute_inline"
).split()


def attack(count: int, seed: int, start: int = 0) -> Iterator[str]:
    """``count`` programs, on each of which every primitive is tried twice."""
    for k in attempts(range(seed, seed + count), start):
        yield from (f"case {k}: {problem}" for problem in case(k))


def case(seed: int) -> Iterator[str]:
    """What goes wrong with one program."""
    func = draw(seed, FORMS)
    want = run(func)
    for n, name in enumerate(NAMES * 2):
        steps = Steps(func, seed)
        steps.random = Random(seed * len(NAMES) * 2 + n)
        try:
            STEPS[name](steps, steps.sch)
        except ScheduleError:
            continue
        except Exception as error:
            yield f"{name} fails: {type(error).__name__}: {error}"
            continue
        why = differs(steps.sch.func, want, seed)
        if why:
            yield f"{name}: {why}"
