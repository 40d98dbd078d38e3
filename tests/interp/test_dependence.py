# SPDX-License-Identifier: Apache-2.0
"""Lanes never change what a program computes: random loop nests run at once and one iteration after another."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from roundel.interp import interpret, run_prim_func
from roundel.interp.dependence import Plan
from roundel.ir import IRModule, tir
from roundel.ir.dtype import DType
from roundel.script import tir as T

SIZE = 24
LOOPS = [tir.Var(n, DType("int64")) for n in "ijk"]
A = tir.decl_buffer(SIZE, "int64", "A")
B = tir.decl_buffer(SIZE, "int64", "B")
M = tir.decl_buffer((SIZE // 4, 4), "int64", "M")

coefficient = st.integers(-3, 4)
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
    buffer = draw(st.sampled_from([A, B, M]))
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
    value = LOOPS[0] * 7 + LOOPS[1] * 3 + LOOPS[2] + 1
    for load, valid in draw(st.lists(place(), max_size=2)):
        value = value + (load if valid is None else tir.if_then_else(valid, load, tir.as_index(0)))
    if draw(st.booleans()):
        value = value + target
    store = tir.BufferStore(target.buffer, value, target.indices)
    return store if inside is None else tir.If(inside, store)


@st.composite
def nest(draw):
    body = tir.seq(*draw(st.lists(statement(), min_size=1, max_size=2)))
    for v in draw(st.permutations(LOOPS)):
        kind = draw(st.sampled_from([tir.ForKind.SERIAL, tir.ForKind.UNROLLED, tir.ForKind.VECTORIZED]))
        body = tir.For(v, tir.as_index(draw(st.integers(0, 2))), tir.as_index(draw(st.integers(1, 4))), kind, body)
        if draw(st.integers(0, 3)) == 0:
            body = tir.seq(body, tir.BufferStore(A, A[5] + 1, (tir.as_index(2),)))
    params = [tir.Var(n, DType("handle")) for n in "abm"]
    return tir.PrimFunc(tuple(params), body, tuple(zip(params, (A, B, M))))


class _Serial(Plan):
    def independent(self, loop):
        return False


def results(func, serial):
    rt = interpret(IRModule({"main": func}))
    if serial:
        rt._plan = lambda ex, f: _Serial(f, {}, {})
    arrays = [np.arange(SIZE), np.arange(SIZE) * 5, np.arange(SIZE).reshape(-1, 4) * 11]
    rt["main"](*arrays)
    return arrays


@given(nest())
@settings(max_examples=250, deadline=None)
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
