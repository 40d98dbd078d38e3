# SPDX-License-Identifier: Apache-2.0
"""Lanes that lie near each other: whole vectors are loaded, nothing outside of them is, and results are those of the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from roundel import te
from roundel.arith import Analyzer
from roundel.build import compile_module
from roundel.interp import interpret
from roundel.ir import IRModule, tir, walk
from roundel.ir.dtype import DType
from roundel.lower import lower
from roundel.lower.nearby_lanes import lane_offsets
from roundel.schedule import Schedule
from roundel.strategy.choose import attempt
from roundel.strategy.rules import elementwise, windows
from roundel.target import Target

TARGET = Target.host()

PLACES = {
    "second": (lambda j: j * 2, lambda n: 2 * n), "second, odd": (lambda j: j * 2 + 1, lambda n: 2 * n), "third": (lambda j: j * 3, lambda n: 3 * n),
    "fourth": (lambda j: j * 4 + 3, lambda n: 4 * n), "backwards": (lambda j: -j, None), "twice": (lambda j: j // 2, lambda n: -(-n // 2)),
    "four times": (lambda j: j // 4, lambda n: -(-n // 4)), "repeated": (lambda j: j % 4, lambda n: 4),
}


def gathered(place, rows, n, dtype="float32"):
    """y[i, j] = x[i, place(j)] + 1, and the length of a row of x."""
    index, length = PLACES[place]
    m = n if length is None else length(n)
    x = te.placeholder((rows, m), dtype, "x")
    at = (lambda j: n - 1 - j) if place == "backwards" else index
    y = te.compute((rows, n), lambda i, j: x[i, at(j)] + tir.const(1, dtype), "y")
    return te.create_prim_func([x, y]).with_attr("global_symbol", "f"), m, np.array([at(j) for j in range(n)])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("n", [16, 37, 64, 100])
def test_elements_near_each_other(place, n):
    dtype = "int8" if n == 100 else "float32"
    func, m, index = gathered(place, 3, n, dtype)
    sch = attempt(elementwise, func, TARGET).applied
    assert "T.vectorized" in sch.func.script()
    x = np.random.default_rng(0).integers(-9, 9, (3, m)).astype(dtype)
    for run in (interpret(IRModule({"f": sch.func}))["f"], compile_module(IRModule({"f": sch.func})).load()["f"]):
        y = np.empty((3, n), dtype)
        run(x, y)
        np.testing.assert_array_equal(y, x[:, index] + 1)


def test_loads_are_whole_vectors():
    sch = attempt(elementwise, gathered("second", 2, 64)[0], Target.host()).applied
    loads = [n for n in walk(lower(IRModule({"f": sch.func}))["f"].body) if type(n) is tir.BufferLoad]
    assert loads and all(type(i.indices[-1]) is tir.Ramp and i.indices[-1].stride.value == 1 for i in loads)


@pytest.mark.parametrize("how, stride", [("max", 2), ("sum", 2), ("max", 3), ("sum", 1)])
@pytest.mark.parametrize("width", [31, 40])
def test_windows_along_the_last_axis(how, stride, width):
    """Pooling of plain images, with NaNs and infinities; the outermost elements are the first and the last of memory."""
    out = (width - 3) // stride + 1
    x = te.placeholder((2, 5, width), "float32", "x")
    a, b = te.reduce_axis(3, "a"), te.reduce_axis(3, "b")
    y = te.compute((2, 3, out), lambda n, i, j: getattr(te, how)(x[n, i + a.var, j * stride + b.var], axis=[a, b]), "y")
    func = te.create_prim_func([x, y]).with_attr("global_symbol", "f")
    sch = attempt(windows, func, Target.host()).applied if Target.host().vector_bytes >= 32 else Schedule(func)
    data = np.random.default_rng(0).standard_normal((2, 5, width)).astype("float32")
    data[0, 2, 7], data[1, 1, 3] = np.nan, np.inf
    parts = np.stack([data[:, i:i + 3, j:j + stride * (out - 1) + 1:stride] for i in range(3) for j in range(3)])
    with np.errstate(invalid="ignore"):
        expected = parts.max(0) if how == "max" else parts.sum(0)
    got = np.empty(expected.shape, "float32")
    compile_module(IRModule({"f": sch.func})).load()["f"](data, got)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("inner", [2, 3, 5, 7, (2, 2), 9])
@pytest.mark.parametrize("n", [16, 37])
def test_sums_over_short_rows(inner, n):
    """Lanes along another dimension than the last; written out, all elements are picked from the same vectors, first and last of memory included."""
    inner = inner if isinstance(inner, tuple) else (inner,)
    x = te.placeholder((3, n, *inner), "float32", "x")
    over = [te.reduce_axis(k, f"r{i}") for i, k in enumerate(inner)]
    y = te.compute((3, n), lambda i, j: te.sum(x[(i, j, *(r.var for r in over))], axis=over), "y")
    sch = Schedule(te.create_prim_func([x, y]).with_attr("global_symbol", "f"))
    block = sch.get_block("y")
    i, j, *steps = sch.get_loops(block)
    outer, lanes = sch.split(j, [None, 8])
    sch.reorder(i, outer, *steps, lanes)
    sch.decompose_reduction(block, steps[0])
    sch.vectorize(lanes)
    for loop in steps:
        sch.unroll(loop)
    data = np.random.default_rng(0).standard_normal((3, n, *inner)).astype("float32")
    got = np.empty((3, n), "float32")
    compile_module(IRModule({"f": sch.func})).load()["f"](data, got)
    np.testing.assert_allclose(got, data.reshape(3, n, -1).sum(-1), rtol=1e-5, atol=1e-5)
    if n == 16:
        loads = {e for e in walk(lower(IRModule({"f": sch.func}))["f"].body) if type(e) is tir.BufferLoad and e.buffer.name == "x"}
        assert len(loads) == int(np.prod(inner))  # a vector each, whole or in lanes that are loaded alone


def test_what_lanes_add():
    i, ramp = tir.Var("i", DType("int64")), lambda base, step: tir.Ramp(base, tir.index_const(step), 4)
    offsets = lambda e: (lane_offsets(e, Analyzer()) or (None, None))[1]
    by = lambda n: tir.Broadcast(tir.index_const(n), 4)
    assert offsets(ramp(i, 3)) == (0, 3, 6, 9)
    assert offsets(tir.FloorDiv(ramp(i * 4 + 1, 1), by(2))) == (0, 1, 1, 2)
    assert offsets(tir.FloorMod(ramp(i * 4, 1), by(2))) == (0, 1, 0, 1)
    assert offsets(tir.FloorDiv(ramp(i * 4, 1), by(3))) is None  # depends on i
    assert offsets(tir.Add(tir.Mul(ramp(i, 1), by(2)), tir.Broadcast(i, 4))) == (0, 2, 4, 6)
