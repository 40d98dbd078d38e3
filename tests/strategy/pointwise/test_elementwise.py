# SPDX-License-Identifier: Apache-2.0
"""Elementwise programs: long chains of functions go through several vectors side by side, where these compute hardly more than there is, and
through short vectors where rows are short."""

from __future__ import annotations

import numpy as np
import pytest

from roundel import te
from roundel.build import compile_module
from roundel.ir import IRModule, tir, walk
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target


def chain(rows: int, columns: int, length: int) -> tir.PrimFunc:
    """Exponentials of exponentials, so many, of a matrix and a row."""
    x, w = te.placeholder((rows, columns), "float32", "x"), te.placeholder((columns,), "float32", "w")

    def value(i, j):
        v = x[i, j] + w[j]
        for _ in range(length):
            v = te.exp(v * -1.0)
        return v

    return te.create_prim_func([x, w, te.compute((rows, columns), value, "y")]).with_attr("global_symbol", "main")


@pytest.mark.parametrize("columns, length, lanes", [(121, 3, 64), (121, 1, 16), (40, 3, 16), (17, 3, 32), (64, 2, 64), (7, 3, 8), (3, 3, 4), (2, 3, 2)])
def test_vectors_side_by_side(columns, length, lanes):
    func, _ = schedule_program(chain(9, columns, length), Target("znver5"))
    assert [n.extent.value for n in walk(func.body) if type(n) is tir.For and n.kind is tir.ForKind.VECTORIZED] == [lanes]
    own, _ = schedule_program(chain(9, columns, length), Target.host())
    x, w = (np.random.default_rng(0).uniform(-1, 1, n).astype("float32") for n in ((9, columns), (columns,)))
    wanted, got = x + w, np.empty((9, columns), "float32")
    for _ in range(length):
        wanted = np.exp(-wanted)
    compile_module(IRModule({"main": own})).load()["main"](x, w, got)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)
