# SPDX-License-Identifier: Apache-2.0
"""Roots and divisions that are the same in all iterations are computed once; those that are not stay where they are, and results are the same."""

from __future__ import annotations

import numpy as np
import pytest

from roundel import te
from roundel.build import compile_module
from roundel.interp import interpret
from roundel.ir import IRModule, tir, walk
from roundel.lower import lower
from roundel.script import tir as T
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target


def lets(func: tir.PrimFunc) -> list[tir.Let]:
    """Values that lowering has bound."""
    return [n for n in walk(lower(IRModule({"main": func}))["main"].body) if type(n) is tir.Let and n.var.dtype.is_float]


def normalised(n: int, m: int) -> tir.PrimFunc:
    """Rows divided by the root of their squares' sum."""
    x, k = te.placeholder((n, m), "float32", "x"), te.reduce_axis((0, m), "k")
    total = te.compute((n,), lambda i: te.sum(x[i, k] * x[i, k], axis=k), "total")
    return te.create_prim_func([x, te.compute((n, m), lambda i, j: x[i, j] * (1.0 / te.sqrt(total[i] + 1e-5)), "y")]).with_attr("global_symbol", "main")


@pytest.mark.parametrize("m", [41, 109, 640])
def test_a_root_for_each_row(m):
    func, _ = schedule_program(normalised(7, m), Target("znver5"))
    roots = [n for n in walk(lower(IRModule({"main": func}))["main"].body) if type(n) is tir.Call and n.op == "sqrt"]
    assert len(roots) == 1 and all(n.dtype.lanes == 1 for n in roots)
    own, _ = schedule_program(normalised(7, m), Target.host())
    x, y = np.random.default_rng(0).standard_normal((7, m)).astype("float32"), np.empty((7, m), "float32")
    compile_module(IRModule({"main": own})).load()["main"](x, y)
    np.testing.assert_allclose(y, x / np.sqrt((x * x).sum(1, keepdims=True) + 1e-5), rtol=1e-5)


@T.prim_func
def changing(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
    s = T.alloc_buffer((1,), "float32", scope="local")
    s[0] = x[0]
    for i in range(8):
        y[i] = 1.0 / T.sqrt(s[0])
        s[0] = s[0] + x[i]


@T.prim_func
def given(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
    for i in range(8):
        y[i] = 1.0 / T.sqrt(x[0]) * x[i]


@T.prim_func
def behind(x: T.Buffer((8,), "float32"), y: T.Buffer((9,), "float32")):
    s = T.alloc_buffer((1,), "float32", scope="local")
    s[0] = x[0]
    for i in range(8):
        y[i] = 1.0 / T.sqrt(s[0]) * x[i]
    s[0] = s[0] * 4.0
    y[8] = 1.0 / T.sqrt(s[0])


@T.prim_func
def twice(x: T.Buffer((8,), "float32"), y: T.Buffer((9,), "float32")):
    s = T.alloc_buffer((1,), "float32", scope="local")
    s[0] = x[0]
    for i in range(8):
        y[i] = 1.0 / T.sqrt(s[0]) * x[i]
    y[8] = 1.0 / T.sqrt(s[0])


@pytest.mark.parametrize("func, count", [(changing, 0), (given, 0), (behind, 1), (twice, 1)])
def test_what_stays(func, count):
    """What the loop changes, what is not the program's own, and what is written between two uses is computed where it was."""
    assert len(lets(func)) == count
    x = np.random.default_rng(0).uniform(1, 2, 8).astype("float32")
    wanted, got = (np.empty([n.value for n in func.buffer_params[1].shape], "float32") for _ in range(2))
    mod = IRModule({"main": func.with_attr("global_symbol", "main")})
    interpret(mod)["main"](x, wanted)
    compile_module(mod).load()["main"](x, got)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)
