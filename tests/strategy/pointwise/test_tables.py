# SPDX-License-Identifier: Apache-2.0
"""Places and weights along an axis are made once, not for every element that looks them up."""

from __future__ import annotations

import numpy as np
import pytest

from roundel import te
from roundel.build import compile_module
from roundel.interp import interpret
from roundel.ir import IRModule, tir
from roundel.strategy.choose import attempt
from roundel.strategy.rules import elementwise
from roundel.target import Target


def stretched(rows, width, dtype="float32"):
    """y[i, j] = x[i, place(j)] * weight(j) with place(j) = floor(sqrt(j)), weight(j) = j / 8."""
    x = te.placeholder((rows, width), dtype, "x")
    root = te.compute((width,), lambda j: te.sqrt(te.cast(j, "float64")), "square")
    place = te.compute((width,), lambda j: te.cast(te.floor(root(j)), "int64"), "place")
    weight = te.compute((width,), lambda j: te.cast(te.cast(j, "float64") / 8.0, dtype), "weight")
    y = te.compute((rows, width), lambda i, j: x(i, tir.max_(tir.min_(place(j), width - 1), 0)) * weight(j), "y")
    return te.create_prim_func([x, y]).with_attr("global_symbol", "f")


@pytest.mark.parametrize("rows, width", [(40, 100), (33, 7), (300, 16)])
def test_tables_are_made_once(rows, width):
    sch = attempt(elementwise, stretched(rows, width), Target.host()).applied
    text = sch.func.script()
    assert text.count("T.sqrt") == 1 and 'T.sblock("place")' in text and 'T.sblock("square")' not in text
    x = np.random.default_rng(0).standard_normal((rows, width)).astype("float32")
    j = np.arange(width)
    for run in (interpret(IRModule({"f": sch.func}))["f"], compile_module(IRModule({"f": sch.func})).load()["f"]):
        y = np.empty_like(x)
        run(x, y)
        np.testing.assert_allclose(y, x[:, np.floor(np.sqrt(j)).astype(int)] * (j / 8).astype("float32"), rtol=1e-6)


def test_tables_of_few_readers_are_inlined():
    sch = attempt(elementwise, stretched(3, 100), Target.host()).applied
    assert 'T.sblock("place")' not in sch.func.script()
