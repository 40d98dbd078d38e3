# SPDX-License-Identifier: Apache-2.0
"""Random programs under random primitives, the short form; and that the programs are as hostile as they are said to be."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from roundel.interp import run_prim_func
from roundel.ir import structural_equal
from roundel.script import tir as T

from .primitive_programs import draw
from .primitives import attack, run


@pytest.mark.parametrize("seed", range(0, 100, 20))
def test_what_is_not_refused_computes_the_same(seed):
    assert list(attack(20, seed)) == []


def test_programs_follow_from_the_seed():
    assert all(structural_equal(draw(seed), draw(seed)) for seed in range(10))


def test_a_race_is_found():
    """A loop that all iterations of write one element is no parallel loop: the order of its iterations is seen."""

    @T.prim_func
    def last_one_wins(A: T.Buffer((6, 2), "int32"), V: T.Buffer((6,), "int32"), Y: T.Buffer((1,), "int32")):
        for i in T.parallel(6):
            with T.sblock("b"):
                vi = T.axis.spatial(6, i)
                T.reads(V[vi])
                T.writes(Y[0])
                Y[0] = V[vi]

    results = {int(run(last_one_wins, Random(seed))[2][0]) for seed in range(20)}
    assert len(results) > 1


def test_iterations_run_once_in_any_order():
    @T.prim_func
    def twice(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in T.vectorized(8):
            with T.sblock("b"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 2

    a, b = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    run_prim_func(twice, [a, b], order=Random(1))
    assert (b == 2 * a).all()
