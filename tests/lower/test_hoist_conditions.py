# SPDX-License-Identifier: Apache-2.0
"""A condition on data that is said to be likely leaves the loops in which it has one value, which then have no branches."""

from __future__ import annotations

import numpy as np
import pytest

from roundel import te
from roundel.driver import build_module
from roundel.ir import IRModule, tir
from roundel.ir.visit import statements, walk
from roundel.lower import PIPELINE, hoist_conditions


def _rows(guarded: bool):
    """C[i, j] = X[i, j] where X[i, 0] > 0, else -X[i, j]; ``guarded``: of a row that need not be there."""
    x = te.placeholder((8, 16), "float32", "X")
    row = lambda i: i + 1 if guarded else i
    positive = te.compute((8,), lambda i: x[i, 0] > 0, "E")
    choice = lambda i, j: tir.select(tir.call("likely", positive[row(i)]), x[i, j], 0.0 - x[i, j])
    value = (lambda i, j: te.if_then_else(row(i) + j < 8, choice(i, j), 1.0)) if guarded else choice
    func = te.create_prim_func([x, te.compute((8, 16), value, "C")]).with_attr("global_symbol", "main")
    return IRModule({"main": func})


def _hoisted(mod):
    for step in PIPELINE[: PIPELINE.index(hoist_conditions) + 1]:
        mod = step(mod)
    return mod["main"].body


def test_each_case_has_a_loop_without_branches():
    body = _hoisted(_rows(guarded=False))
    (choice,) = (s for s in statements(body) if type(s) is tir.If)
    for case in (choice.then_case, choice.else_case):
        assert type(case) is tir.For
        assert not any(type(n) in (tir.If, tir.Select) for n in walk(case))


@pytest.mark.parametrize("guarded", [False, True])
def test_results_are_the_same(guarded):
    mod = _rows(guarded)
    x = np.random.default_rng(0).standard_normal((8, 16)).astype("float32")
    got = np.empty_like(x)
    build_module(mod)["main"](x, got)
    expected = np.where(x[:, :1] > 0, x, -x)
    if guarded:
        i, j = np.indices(x.shape)
        expected = np.where(i + 1 + j < 8, np.where(np.roll(x[:, :1], -1, 0) > 0, x, -x), 1)
    np.testing.assert_array_equal(got, expected)
