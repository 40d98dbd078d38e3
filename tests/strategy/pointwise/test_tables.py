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


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int16", "bool"])
def test_given_places_are_gathered_in_vectors_beside_much_arithmetic(dtype):
    rows, width, count = 5, 37, 101
    x, at = te.placeholder((rows, width), dtype, "x"), te.placeholder((count,), "float32", "at")
    place = lambda j: te.cast(te.floor(te.exp(at(j)) * te.sin(at(j)) * 20.0), "int64")
    value = lambda i, j: te.if_then_else(te.logical_and(place(j) >= 0, place(j) < width), x(i, place(j)), tir.const(0, dtype))
    y = te.compute((rows, count), value, "y")
    sch = attempt(elementwise, te.create_prim_func([x, at, y]).with_attr("global_symbol", "f"), Target.host()).applied
    if Target.host().vector_bytes >= 32:
        assert "T.vectorized" in sch.func.script()
    rng = np.random.default_rng(0)
    data, places = rng.integers(0, 2 if dtype == "bool" else 99, (rows, width)).astype(dtype), rng.standard_normal(count).astype("float32")
    found = np.floor(np.exp(places.astype("f8")) * np.sin(places.astype("f8")) * 20.0).astype(int)
    expected = np.where((found >= 0) & (found < width), data[:, np.clip(found, 0, width - 1)], 0)
    for run in (interpret(IRModule({"f": sch.func}))["f"], compile_module(IRModule({"f": sch.func})).load()["f"]):
        out = np.empty((rows, count), dtype)
        run(data, places, out)
        assert np.array_equal(out, expected)
