# SPDX-License-Identifier: Apache-2.0
"""Random legal schedules keep results, and their traces replay to the same program."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.ir import structural_equal, substitute, tir
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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_stay_whatever_open_decisions_become(name, seed):
    """Random primitives on a program with symbolic factors; afterwards any choice gives the same results."""
    func = PROGRAMS[name]()
    steps = Steps(func, seed)
    for _ in range(10):
        steps.open_split() if steps.random.random() < 0.35 else steps.step()
    rng = np.random.default_rng(seed)
    for _ in range(2):
        chosen = [d.domain[rng.integers(len(d))] for d in steps.sch.decisions]
        values = {v: tir.index_const(int(x)) for d, row in zip(steps.sch.decisions, chosen) for v, x in zip(d.variables, row)}
        check(Schedule(substitute(steps.sch.func, values)), func)
