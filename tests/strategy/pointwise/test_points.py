# SPDX-License-Identifier: Apache-2.0
"""The rule for statements over points: neighbours in vectors where they go the same way, points in parallel."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.build import compile_module
from roundel.builder import make_program
from roundel.interp import interpret
from roundel.ir import IRModule, graph
from roundel.ir.attrs import Attrs
from roundel.ir.op import get_op
from roundel.strategy.choose import attempt, takes
from roundel.strategy.rules import points
from roundel.target import Target

TARGET = Target.host()


def program(name, *infos, **attrs):
    op = get_op(name)
    args = [graph.Var(f"x{k}", graph.TensorInfo(shape, dtype)) for k, (shape, dtype) in enumerate(infos)]
    full = {**op.attributes, **attrs}
    return make_program(lambda *a, **kw: op.compute(a, Attrs(kw)), args, full).func.with_attr("global_symbol", "f")


@pytest.mark.parametrize("shape, axis", [((7, 300), 0), ((3, 5, 67), 1), ((40, 16), 0), ((9, 3), 0), ((4, 11), 1)])
def test_scans_along_any_axis(shape, axis):
    func = program("cumsum", (shape, "float32"), axis=axis)
    sch = attempt(points, func, TARGET).applied
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    expected = np.cumsum(x, axis)
    for run in (interpret(IRModule({"f": sch.func}))["f"], compile_module(IRModule({"f": sch.func})).load()["f"]):
        y = np.empty_like(x)
        run(x, y)
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def test_which_points_run_together():
    vectors = lambda *a, **kw: "T.vectorized" in _scheduled(program(*a, **kw)).script()
    assert vectors("cumsum", ((7, 300), "float32"), axis=0)
    assert not vectors("cumsum", ((300, 70), "float32"), axis=1)  # neighbours are far apart
    rows = ((50, 80), "float32"), ((9, 1), "int64"), ((9, 80), "float32")
    assert vectors("scatter_nd", *rows, reduction="add")
    places = ((50, 80), "float32"), ((50, 80), "int64"), ((50, 80), "float32")
    assert vectors("scatter_elements", *places, axis=0)  # each goes to a place in its own column
    rows = _scheduled(program("scatter_elements", *places, axis=1)).script()  # neighbours are far apart
    assert rows.count("T.vectorized") == 1 and "for lane in T.vectorized(80)" in rows  # a row is copied in vectors


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("width", [70, 600])
def test_many_columns_together(dtype, width):
    """Statements that keep one number each take many vectors of a row at once."""
    func = program("cumsum", ((9, width), dtype), axis=0)
    sch = _scheduled(func)
    x = np.random.default_rng(0).integers(0, 5, (9, width)).astype(dtype)
    y = np.empty_like(x)
    compile_module(IRModule({"f": sch})).load()["f"](x, y)
    np.testing.assert_array_equal(y, np.cumsum(x, 0, dtype=dtype))


def _scheduled(func):
    return attempt(points, func, TARGET).applied.func


def test_others_are_left_to_other_rules():
    assert not takes(points, program("nn.relu", ((4, 5), "float32")), TARGET)
    assert not takes(points, program("sum", ((4, 5), "float32"), axis=1), TARGET)
