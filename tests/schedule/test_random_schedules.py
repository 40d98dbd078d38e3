# SPDX-License-Identifier: Apache-2.0
"""Random legal schedules keep results, and their traces replay to the same program."""

from __future__ import annotations

import pytest

from roundel.ir import structural_equal
from roundel.schedule import Schedule

from .programs import PROGRAMS, check, conv2d, matmul
from .random_steps import Steps

CASES = {**PROGRAMS, "matmul_odd": lambda: matmul(1, 7, 5), "conv2d_strided": lambda: conv2d(3, 5, 7, 2, 2)}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", CASES)
def test_results_stay(name, seed):
    func = CASES[name]()
    steps = Steps(func, seed)
    done = [steps.step() for _ in range(24)]
    assert any(done)
    check(steps.sch, func)
    if seed < 2:
        again = Schedule(func)
        steps.sch.trace.apply_to(again)
        assert structural_equal(again.mod, steps.sch.mod)
