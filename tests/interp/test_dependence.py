# SPDX-License-Identifier: Apache-2.0
"""Lanes never change what a program computes: random loop nests run at once and one iteration after another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundel.interp import interpret, run_prim_func
from roundel.interp.dependence import Plan
from roundel.ir import IRModule, tir
from roundel.ir.dtype import DType
from roundel.script import parse
from roundel.script import tir as T

SIZE = 24
LOOPS = [tir.Var(n, DType("int64")) for n in "ijk"]
A = tir.decl_buffer(SIZE, "int64", "A")
B = tir.decl_buffer(SIZE, "int64", "B")
M = tir.decl_buffer((SIZE // 4, 4), "int64", "M")
C = tir.decl_buffer(6, "int64", "C")

coefficient = st.sampled_from([0, 0, 1, 1, -1, 2, 3, 4, -3])
linear = st.tuples(st.integers(0, 6), coefficient, coefficient, coefficient).map(
    lambda c: tir.as_index(c[0]) + LOOPS[0] * c[1] + LOOPS[1] * c[2] + LOOPS[2] * c[3]
)
fused = st.tuples(linear, st.sampled_from([2, 3, 4, 6]), st.booleans()).map(
    lambda c: c[0] // c[1] if c[2] else c[0] % c[1]
)
guarded = st.one_of(linear, fused).map(lambda e: tir.floormod(e, tir.as_index(SIZE)))
bare = st.one_of(linear, fused)


@st.composite
def place(draw):
    """A buffer element: an index brought into range by a modulus, or left as it is and guarded by a condition."""
    buffer = draw(st.sampled_from([A, B, M, C]))
    if buffer is C:
        return C[tir.floormod(draw(linear), 6) if draw(st.booleans()) else tir.as_index(draw(st.integers(0, 5)))], None
    if buffer is M:
        flat = draw(guarded)
        return M[tir.floordiv(flat, 4), tir.floormod(flat, 4)], None
    if draw(st.booleans()):
        return buffer[draw(guarded)], None
    e = draw(bare)
    return buffer[e], tir.logical_and(tir.ge(e, 0), tir.lt(e, SIZE))


@st.composite
def statement(draw):
    target, inside = draw(place())
    value = tir.as_index(1)
    for v, k in zip(LOOPS, draw(st.sampled_from([(7, 3, 1), (0, 3, 1), (0, 0, 1), (7, 0, 0), (0, 0, 0)]))):
        value = value + v * k
    for load, valid in draw(st.lists(place(), max_size=2)):
        value = value + (load if valid is None else tir.if_then_else(valid, load, tir.as_index(0)))
    if draw(st.booleans()):
        value = value + target
    store = tir.BufferStore(target.buffer, value, target.indices)
    return store if inside is None else tir.If(inside, store)


@st.composite
def nest(draw):
    body = tir.seq(*draw(st.lists(statement(), min_size=1, max_size=2)))
    order = draw(st.permutations(LOOPS))
    for k, v in enumerate(order):
        done = order[k + 1 :]  # loops around this one
        kind = draw(st.sampled_from([tir.ForKind.SERIAL, tir.ForKind.UNROLLED, tir.ForKind.VECTORIZED]))
        body = tir.For(v, tir.as_index(draw(st.integers(0, 2))), tir.as_index(draw(st.integers(1, 4))), kind, body)
        if draw(st.integers(0, 2)) == 0:  # a cache filled before it is used, or a part of it
            filled, copied = tir.Var("l", DType("int64")), draw(st.sampled_from([A, B]))
            fill = tir.BufferStore(
                C, copied[filled + draw(st.integers(0, 9))] + draw(st.sampled_from([0, *done])), (filled,)
            )
            body = tir.seq(
                tir.For(filled, tir.as_index(0), tir.as_index(draw(st.integers(3, 6))), tir.ForKind.SERIAL, fill), body
            )
        if draw(st.integers(0, 3)) == 0:
            body = tir.seq(body, tir.BufferStore(A, A[5] + 1, (tir.as_index(2),)))
    params = [tir.Var(n, DType("handle")) for n in "abmc"]
    return tir.PrimFunc(tuple(params), body, tuple(zip(params, (A, B, M, C))))


@st.composite
def cached(draw):
    """``for i, j: fill part of C; A[4 * i + j] = C[...]``, where the cache may be filled before use or not."""
    i, j, k = LOOPS
    extent, stride = draw(st.integers(1, 6)), draw(st.integers(0, 1))
    value = B[k + draw(st.integers(0, 3))] + draw(st.sampled_from([0, 0, i, j]))
    place = k * stride + draw(st.sampled_from([0, 0, 0, tir.floormod(j, tir.as_index(1 + 5 * (extent == 1)))]))
    fill = tir.For(k, tir.as_index(0), tir.as_index(extent), tir.ForKind.SERIAL, tir.BufferStore(C, value, (place,)))
    if draw(st.integers(0, 3)) == 0:
        fill = tir.If(tir.lt(draw(st.sampled_from([i, j])), 2), fill)
    choices = [tir.as_index(0), tir.as_index(2), tir.floormod(i + j, 3), j, i]
    if draw(st.booleans()):  # a window that moves
        extent, place = draw(st.integers(1, 3)), k + draw(st.sampled_from([i, j]))
        value = draw(st.sampled_from([B[k], B[place], B[place] + k, B[k] + i]))
        fill = tir.For(
            k, tir.as_index(0), tir.as_index(extent), tir.ForKind.SERIAL, tir.BufferStore(C, value, (place,))
        )
        choices = [i, j, i + (extent - 1), j + (extent - 1)]
    read = C[draw(st.sampled_from(choices))]
    use = tir.BufferStore(A, read + 1, (i * 4 + j,))
    body = tir.seq(*draw(st.permutations([fill, use]))) if draw(st.booleans()) else tir.seq(fill, use)
    split = draw(st.booleans())
    for v in draw(st.permutations([i, j])):
        body = tir.For(v, tir.as_index(0), tir.as_index(4), tir.ForKind.SERIAL, body)
        if split:
            body, split = tir.seq(tir.BufferStore(C, i * 0 + 5, (tir.as_index(1),)), body), False
    params = [tir.Var(n, DType("handle")) for n in "abmc"]
    return tir.PrimFunc(tuple(params), body, tuple(zip(params, (A, B, M, C))))


class _Serial(Plan):
    def independent(self, loop):
        return False


def results(func, serial):
    rt = interpret(IRModule({"main": func}))
    if serial:
        rt._plan = lambda ex, f: _Serial(f, {}, {})
    arrays = [np.arange(SIZE), np.arange(SIZE) * 5, np.arange(SIZE).reshape(-1, 4) * 11, np.arange(6) * 13]
    rt["main"](*arrays)
    return arrays


@given(st.one_of(nest(), cached()))
@settings(max_examples=200, deadline=None)
def test_lanes_agree_with_serial_execution(func):
    for got, want in zip(results(func, False), results(func, True)):
        np.testing.assert_array_equal(got, want)


def verdicts(func, **values):
    env = {v: values[v.name] for b in func.buffer_params for e in b.shape for v in [e] if type(v) is tir.Var}
    plan = Plan(func, env, {})
    return {s.loop_var.name: plan.independent(s) for s in plan.loops}


def test_what_is_proved():
    @T.prim_func
    def conv(
        X: T.Buffer((64, 58, 58), "float32"),
        W: T.Buffer((64, 64, 3, 3), "float32"),
        Y: T.Buffer((64, 56, 56), "float32"),
    ):
        for ko, y, x, c, r, s, ki in T.grid(4, 56, 56, 64, 3, 3, 16):
            with T.block("conv"):
                vk = T.axis.spatial(64, ko * 16 + ki)
                vy, vx, vc, vr, vs = T.axis.remap("SSRRR", [y, x, c, r, s])
                with T.init():
                    Y[vk, vy, vx] = 0.0
                Y[vk, vy, vx] += X[vc, vy + vr, vx + vs] * W[vk, vc, vr, vs]

    assert verdicts(conv) == {"ko": True, "y": True, "x": True, "c": False, "r": False, "s": False, "ki": True}

    @T.prim_func
    def fused(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 6), "float32")
        B = T.match_buffer(b, (n, 6), "float32")
        for fo, fi in T.grid(n, 6):
            B[(fo * 6 + fi) // 6, (fo * 6 + fi) % 6] = A[fo, fi]
        for i in range(n):
            for w in range(3):
                B[i // 2, w] = A[i, w]

    assert verdicts(fused, n=7) == {"fo": True, "fi": True, "i": False, "w": True}


def test_caches_are_recognised():
    @T.prim_func
    def cached(A: T.Buffer((8, 6), "float32"), B: T.Buffer((6, 4), "float32"), C: T.Buffer((8, 4), "float32")):
        row = T.alloc_buffer((6, 4), "float32", scope="local")
        late = T.alloc_buffer((4,), "float32", scope="local")
        for j in range(4):
            late[j] = 0.0
        for i, k in T.grid(8, 6):
            for j in range(4):
                row[k, j] = B[k, j]
            for j in range(4):
                C[i, j] = C[i, j] + A[i, k] * row[k, j]
        for i in range(8):
            for j in range(4):
                C[i, j] = C[i, j] + late[j]
            for j in range(4):
                late[j] = B[0, j]

    plan = Plan(cached, {}, {})
    assert [plan.independent(s) for s in plan.loops if s.loop_var.name in "ik"] == [True, False, False]
    a, b, c = (
        np.random.default_rng(k).standard_normal(s).astype("float32") for k, s in enumerate([(8, 6), (6, 4), (8, 4)])
    )
    want = c + a @ b
    want[1:] += b[0]
    run_prim_func(cached, [a, b, c])
    np.testing.assert_allclose(c, want, rtol=1e-5, atol=1e-6)


def test_a_moving_window_is_not_a_cache():
    @T.prim_func
    def window(A: T.Buffer((6,), "int64"), B: T.Buffer((4,), "int64")):
        tmp = T.alloc_buffer((6,), "int64")
        for i in range(4):
            for k in range(3):
                with T.block("fill"):
                    v = T.axis.spatial(6, i + k)
                    w = T.axis.opaque(3, k)
                    tmp[v] = A[w]
            with T.block("use"):
                v = T.axis.spatial(4, i)
                B[v] = tmp[v]

    a, b = np.arange(6) * 7 + 1, np.zeros(4, "int64")
    run_prim_func(window, [a, b])
    assert (b == 1).all()


@T.prim_func
def overwritten(C: T.Buffer((6,), "int64"), M: T.Buffer((6,), "int64")):
    for k in range(2):
        M[0] = 1 + C[1]
        M[k] = 1 + k


@T.prim_func
def through_private_memory(C: T.Buffer((6,), "int64"), M: T.Buffer((6,), "int64")):
    for k in range(6):
        with T.block("x"):
            v = T.axis.spatial(6, k)
            own = T.alloc_buffer((1,), "int64")
            own[0] = v * 3
            C[0] = own[0]
            M[v] = C[0]


@T.prim_func
def moving_view(C: T.Buffer((6,), "int64"), M: T.Buffer((6,), "int64")):
    for k in range(4):
        with T.block("x"):
            v = T.axis.spatial(4, k)
            w = T.match_buffer(C[v : v + 3], (3,), "int64", offset_factor=1)
            for j in range(3):
                w[j] = j


@T.prim_func
def read_through_a_moving_view(C: T.Buffer((6,), "int64"), M: T.Buffer((6,), "int64")):
    out = T.alloc_buffer((6,), "int64")
    for k in range(4):
        with T.block("x"):
            v = T.axis.spatial(4, k)
            w = T.match_buffer(M[v : v + 3], (3,), "int64", offset_factor=1)
            C[0] = w[0]
            out[v] = C[0]
    for n in range(4):
        C[n + 1] = out[n]


@pytest.mark.parametrize("func", [overwritten, through_private_memory, moving_view, read_through_a_moving_view])
def test_values_of_another_iteration_are_no_cache(func):
    plan = Plan(func, {}, {})
    assert not plan.independent(next(s for s in plan.loops if s.loop_var.name == "k"))
    got, want = ([np.arange(6) * 13, np.arange(6) * 7] for _ in range(2))
    interpret(IRModule({"main": func}))["main"](*got)
    rt = interpret(IRModule({"main": func}))
    rt._plan = lambda ex, f: _Serial(f, {}, {})
    rt["main"](*want)
    np.testing.assert_array_equal(got, want)


def test_long_loops_run_in_pieces(monkeypatch):
    from roundel.interp import stmt

    monkeypatch.setattr(stmt, "LANES", 64)

    @T.prim_func
    def outer(A: T.Buffer((37,), "float32"), B: T.Buffer((29,), "float32"), C: T.Buffer((37, 29), "float32")):
        for i, j in T.grid(37, 29):
            C[i, j] = A[i] * B[j]

    a, b, c = np.arange(37, dtype="float32"), np.arange(29, dtype="float32"), np.empty((37, 29), "float32")
    run_prim_func(outer, [a, b, c])
    np.testing.assert_array_equal(c, a[:, None] * b)

    @T.prim_func
    def fused(A: T.Buffer((37, 29), "float32"), B: T.Buffer((29, 37), "float32")):
        for f in T.parallel(37 * 29):
            with T.block("B"):
                vi = T.axis.spatial(37, f // 29)
                vj = T.axis.spatial(29, f % 29)
                tmp = T.alloc_buffer((40,), "float32")
                tmp[vj] = A[vi, vj]
                B[vj, vi] = tmp[vj]

    d = np.empty((29, 37), "float32")
    run_prim_func(fused, [c, d])
    np.testing.assert_array_equal(d, c.T)


@pytest.mark.parametrize("scope", ["local", "shared", "shared.dyn"])
def test_each_block_of_threads_has_its_shared_memory(scope):
    """One row is in the memory, which all blocks of threads have under one name."""
    func = parse(f"""
from roundel.script import parse, tir as T

@T.prim_func
def main(A: T.Buffer((3, 4), "int32"), Y: T.Buffer((3, 4), "int32")):
    row = T.alloc_buffer((4,), "int32", scope="{scope}")
    for i in T.thread_binding(3, thread="blockIdx.x"):
        for j in range(4):
            row[j] = A[i, j]
        for j in range(4):
            Y[i, j] = row[j] + 1
""")
    a, y = np.arange(12, dtype="int32").reshape(3, 4), np.zeros((3, 4), "int32")
    run_prim_func(func, [a, y])
    np.testing.assert_array_equal(y, a + 1)
