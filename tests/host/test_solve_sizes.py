# SPDX-License-Identifier: Apache-2.0
"""Sizes that parameters have only inside of expressions."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel.host.solve_sizes import solve_sizes
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.script import tir as T


@I.ir_module
class Chained:
    @R.function
    def main(x: R.Tensor(("2 * n", 3), "float32"), y: R.Tensor(("3 * m + n + 1",), "float32")):
        n, m = T.int64(), T.int64()
        with R.dataflow():
            a = R.reshape(x, (n, 6))
            b = R.sum(R.strided_slice(y, axes=[0], begin=[0], end=[m]))
            c = R.add(a, b)
            R.output(c)
        return c


@I.ir_module
class Plain:
    @R.function
    def main(x: R.Tensor(("n", "n + 2"), "float32")):
        with R.dataflow():
            c = R.add(x, x)
            R.output(c)
        return c


def test_solved_for_and_checked():
    x, y = np.arange(12, dtype="f").reshape(4, 3), np.arange(9, dtype="f")
    want = x.reshape(2, 6) + 1  # n = 2, m = 2
    for f in (rd.compile(Chained), rd.interpret(solve_sizes(Chained))["main"]):
        np.testing.assert_array_equal(f(x, y), want)
        assert f(x[:0], y[:4]).shape == (0, 6)
        with pytest.raises(rd.RoundelError, match="x"):
            f(x[:3], y)
        with pytest.raises(rd.RoundelError, match="y"):
            f(x, y[:8])


def test_sizes_that_are_whole_dimensions_are_left():
    assert solve_sizes(Plain) is Plain
