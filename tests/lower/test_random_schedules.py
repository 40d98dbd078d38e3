# SPDX-License-Identifier: Apache-2.0
"""Lowering keeps what randomly scheduled programs compute, in the interpreter and compiled."""

from __future__ import annotations

import numpy as np
import pytest
from lower_helpers import arguments
from random_schedules import PROGRAMS, random_schedule

from roundel.build import build
from roundel.interp import interpret
from roundel.lower import lower


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("seed", range(12))
def test_lowering_keeps_results(program, seed):
    mod = random_schedule(program, seed).mod
    given = arguments(mod["main"], {})
    want, got = [a.copy() for a in given], [a.copy() for a in given]
    interpret(mod)["main"](*want)
    interpret(lower(mod))["main"](*got)
    np.testing.assert_allclose(got[-1], want[-1], rtol=1e-4, atol=1e-4)
    if seed < 4:
        build(mod)["main"](*given)
        np.testing.assert_allclose(given[-1], want[-1], rtol=1e-4, atol=1e-4)
