# SPDX-License-Identifier: Apache-2.0
"""Indices of C source have 32 bits exactly where all that is computed on the way to them fits, and mean the same."""

import numpy as np
import pytest

import roundel as rd
from roundel.build import build
from roundel.ir import Attrs, IRModule, tir
from roundel.ir.visit import walk
from roundel.lower import lower
from roundel.lower.narrow_indices import narrow_indices
from roundel.script import tir as T


def lowered(func):
    return lower(IRModule({"main": func}, {"target": rd.Target("c")}))


def loops(mod):
    return [s.loop_var.dtype for f in mod.functions.values() for s in walk(f.body) if type(s) is tir.For]


@T.prim_func
def triangle(A: T.Buffer((40, 50), "float32"), B: T.Buffer((40, 50), "int64")):
    for i in range(40):
        for j in range(i, 50):
            B[i, j] = T.cast(i * 7 - j, "int64") + T.cast(A[(i * 3 + j) % 40, j // 2], "int64")


def test_loops_of_known_sizes_are_narrow_and_compute_the_same():
    mod = lowered(triangle)
    assert set(loops(mod)) == {"int32"}
    a, got = np.random.default_rng(0).uniform(-9, 9, (40, 50)).astype("f"), np.zeros((40, 50), "int64")
    want = got.copy()
    rd.build(triangle, target="c")["triangle"](a, got)
    rd.build(triangle)["triangle"](a, want)
    np.testing.assert_array_equal(got, want)


@T.prim_func
def indirect(A: T.Buffer((1000,), "float32"), P: T.Buffer((30,), "int64"), S: T.Buffer((30,), "uint8"), B: T.Buffer((30,), "float32")):
    for i in range(30):
        B[i] = A[P[i]] + A[T.cast(S[i], "int64") * 3 + T.cast(i, "int64")]


def test_indices_from_memory_keep_the_width_that_they_need():
    mod = lowered(indirect)
    widths = {i.dtype for f in mod.functions.values() for e in walk(f.body) if type(e) is tir.BufferLoad and e.buffer.name == "A" for i in e.indices}
    assert widths == {"int64", "int32"}  # a number that was read from int64 memory may be any; three bytes and a loop variable fit
    rng = np.random.default_rng(1)
    a, p, s, b = rng.standard_normal(1000).astype("f"), rng.integers(0, 1000, 30), rng.integers(0, 256, 30).astype("uint8"), np.zeros(30, "f")
    rd.build(indirect, target="c")["indirect"](a, p, s, b)
    np.testing.assert_array_equal(b, a[p] + a[s.astype(int) * 3 + np.arange(30)])


@T.prim_func
def long(A: T.handle, B: T.handle, n: T.int64):
    a = T.match_buffer(A, (n,), "float32")
    b = T.match_buffer(B, (n,), "float32")
    for i in range(n):
        b[i] = a[n - 1 - i]


def test_sizes_of_the_call_stay_wide():
    assert set(loops(lowered(long))) == {"int64"}


@pytest.mark.parametrize("rows", [1 << 12, 1 << 20])
def test_what_would_overflow_stays_wide(rows):
    @T.prim_func
    def func(B: T.Buffer((rows, 4096), "uint8")):
        for i in range(rows):
            for j in range(4096):
                B[i, j] = T.cast((i * 4099 + j) // 65537 % 256, "uint8")

    mod = lowered(func)
    divided = {e.dtype for f in mod.functions.values() for e in walk(f.body) if type(e) is tir.FloorDiv}
    assert divided == {"int32" if rows < 1 << 19 else "int64"}


@T.prim_func
def parallel(A: T.Buffer((64, 16), "float32"), B: T.Buffer((64, 16), "float32")):
    for i in T.parallel(64):
        for j in range(16):
            B[i, j] = A[i, 15 - j]


def test_tasks_get_narrow_ranges():
    mod = lowered(parallel)
    (task,) = [f for f in mod.functions.values() if f.attrs.get("kind") == "task"]
    assert [p.dtype for p in task.params[:2]] == ["int32", "int32"] and set(loops(mod)) == {"int32"}
    a, b = np.random.default_rng(2).standard_normal((64, 16)).astype("f"), np.zeros((64, 16), "f")
    rd.build(parallel, target="c")["parallel"](a, b)
    np.testing.assert_array_equal(b, a[:, ::-1])


@pytest.mark.parametrize("far", [5 << 32, -(5 << 32), (1 << 31) - 2])
def test_a_variable_of_two_loops_has_the_range_of_each(far):
    """Behind a loop (or a name) that is narrow, the same variable may be too long for that, and the other way round."""
    out, i, v = tir.decl_buffer((18,), "int64", "B"), tir.Var("i", "int64"), tir.Var("v", "int64")

    def numbered(low, at):
        body = tir.Let(v, i * 3, tir.BufferStore(out, v + i, (i - low + at,)))
        return tir.For(i, tir.index_const(low), tir.index_const(3), tir.ForKind.SERIAL, body)

    lows = [0, far, 7, -far, far, -4]
    data = tir.Var("B", "handle")
    func = tir.PrimFunc((data,), tir.seq(*(numbered(low, 3 * k) for k, low in enumerate(lows))), ((data, out),), Attrs(kind="kernel"))
    mod = narrow_indices(IRModule({"main": func}, {"target": rd.Target("c")}))
    got = np.zeros(18, np.int64)
    build(mod, "c", pipeline=())["main"](got)
    np.testing.assert_array_equal(got, [4 * (low + k) for low in lows for k in range(3)])
    assert "int32" in set(loops(mod))


def test_machine_code_keeps_its_indices():
    assert set(loops(lower(IRModule({"main": triangle}, {"target": rd.Target("x86-64-v3")})))) == {"int64"}
