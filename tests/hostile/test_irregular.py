# SPDX-License-Identifier: Apache-2.0
"""Sparse programs under primitives with arguments at their limits, the short form."""

from __future__ import annotations

import pytest

from tests.schedule.limit_steps import LIMITS
from tests.schedule.random_steps import STEPS

from .irregular import ADMITTED, SPARSE, attack
from .primitive_programs import draw
from .primitives import run


@pytest.mark.parametrize("seed", [0, 20])
def test_what_is_not_refused_computes_the_same(seed):
    assert list(attack(10, seed)) == []


def test_programs_are_valid():
    for seed in range(10):
        run(draw(seed, SPARSE if seed % 2 else ADMITTED))


def test_steps_have_names_of_their_own():
    assert not STEPS.keys() & LIMITS.keys()
