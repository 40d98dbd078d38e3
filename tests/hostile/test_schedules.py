# SPDX-License-Identifier: Apache-2.0
"""Random tensor programs, the short form: scheduled and lowered for some machines of each kind, some run at several widths of vectors, each
way that there is to schedule them."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz.tensor_programs import FAMILIES, draw

from .schedules import LANES, machine, problems, wrong

SOME = ("x86-64", "haswell", "znver4", "rv64gcv")


@pytest.mark.parametrize("first", (0, 6, 12))
def test_any_program_is_scheduled_and_lowered(first):
    """A rule that fails is a warning of the log, which fails the test too."""
    for seed in range(first, first + 6):
        assert list(problems(draw(seed), run=False, targets=SOME)) == [], seed


@pytest.mark.parametrize("seed", range(100, 105))
def test_every_alternative_computes_the_same(seed):
    assert list(wrong(draw(seed), machine(LANES[seed % len(LANES)]), every=True)) == []


def test_programs_are_of_every_family():
    """With symbolic sizes, constants, several blocks, reductions over several axes."""
    drawn = [draw(seed) for seed in range(200)]
    assert set(Counter(d.family for d in drawn)) == set(FAMILIES)
    assert sum(bool(d.sizes) for d in drawn) > 30 and sum(bool(d.constants) for d in drawn) > 30
    assert [d.func.script() for d in drawn[:5]] == [draw(seed).func.script() for seed in range(5)]
