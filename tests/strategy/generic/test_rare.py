# SPDX-License-Identifier: Apache-2.0
"""Sums that a likely choice leaves are computed where it does not, together with what is made for them alone."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.ir import IRModule, tir
from roundel.strategy.generic.generic import generic
from roundel.strategy.program import Program
from roundel.target import Target


def program(rows, columns, inner, shared):
    """Sums of three neighbours for each result, or, where a number for ``shared`` rows says so, a product with a matrix."""
    x, w = te.placeholder((rows, inner), "float32", "X"), te.placeholder((inner, columns), "float32", "W")
    z, t = te.placeholder((rows, columns + 2), "float32", "Z"), te.placeholder((rows // shared,), "float32", "t")
    k, r = te.reduce_axis((0, inner), "k"), te.reduce_axis((0, 3), "r")
    twice = te.compute((rows, inner), lambda i, j: x[i, j] + x[i, j], "twice")
    product = te.compute((rows, columns), lambda i, j: te.sum(twice[i, k] * w[k, j], axis=k), "product")
    near = te.compute((rows, columns), lambda i, j: te.sum(z[i, j + r], axis=r), "near")
    likely = lambda i: tir.call("likely", t[i // shared] > 0.0)
    return te.create_prim_func([x, w, z, t, te.compute((rows, columns), lambda i, j: tir.select(likely(i), near[i, j], product[i, j]) + 1.0, "Y")])


@pytest.mark.parametrize("rows, columns, inner, shared", [(8, 16, 5, 2), (9, 24, 7, 3), (5, 13, 4, 1)])
def test_rare_sums_are_right_and_cost_nothing_elsewhere(rows, columns, inner, shared):
    target = Target("x86-64-v3")
    (sketch,) = generic(Program(program(rows, columns, inner, shared), target))
    func = sketch.schedule().func
    assert ("T.where(not T.likely(" in func.script()) == (columns % 8 == 0)
    rng = np.random.default_rng(rows)
    x, w, z, t = (rng.standard_normal(s).astype("float32") for s in ((rows, inner), (inner, columns), (rows, columns + 2), (rows // shared,)))
    out = np.full((rows, columns), np.nan, dtype="float32")
    rd.build(IRModule({"main": func.with_attr("global_symbol", "main")}), target=target)["main"](x, w, z, t, out)
    near = z[:, :-2] + z[:, 1:-1] + z[:, 2:]
    wanted = np.where(np.repeat(t > 0, shared)[:, None], near, 2 * x @ w) + 1
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-5)
