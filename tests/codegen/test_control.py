# SPDX-License-Identifier: Apache-2.0
"""Statements: loops of any extent, branches, lets, memory, fork-join, failures."""

import numpy as np
import pytest
from flat_programs import c, flat, func, loop

from roundel.ir import DType, IRModule, Var, decl_buffer, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import HANDLE, INT64
from roundel.ir.errors import BuildError


def var(name="i"):
    return Var(name, INT64)


def evaluate(op, *args, dtype="void"):
    return tir.Evaluate(tir.Call(op, tuple(tir.const(a) for a in args), DType(dtype)))


def test_loops_of_symbolic_extent_including_none():
    n, m = Var("n", INT64, True), Var("m", INT64, True)
    A, B = decl_buffer((n, m), "float32", "A"), decl_buffer((n,), "float32", "B")
    i, j = var(), var("j")
    body = loop(
        i, n, tir.seq(tir.BufferStore(B, tir.const(0.0), (i,)), loop(j, m, tir.BufferStore(B, B[i] + A[i, j], (i,))))
    )
    run = flat(func([A, B], body, scalars=(n, m)))["main"]
    for shape in ((3, 5), (1, 1), (4, 0), (0, 3), (0, 0), (7, 1)):
        a, out = np.random.rand(*shape).astype("f"), np.full(shape[0], 9, "f")
        run(a, out)
        np.testing.assert_allclose(out, a.sum(1), rtol=1e-6)


def test_loop_with_step_and_minimum():
    A, i = decl_buffer((40,), "int64", "A"), var()
    out = np.zeros(40, np.int64)
    body = tir.For(i, c(3), c(30), tir.ForKind.SERIAL, tir.BufferStore(A, i, (i,)), step=c(4))
    flat(func([A], body))["main"](out)
    want = np.zeros(40, np.int64)
    want[3:33:4] = np.arange(3, 33, 4)
    np.testing.assert_array_equal(out, want)


def test_while_counts_collatz_steps():
    A, B, i = decl_buffer((20,), "int64", "A"), decl_buffer((20,), "int32", "B"), var()
    x = decl_buffer((1,), "int64", "x", scope="local")
    step = tir.BufferStore(x, tir.if_then_else(tir.eq(x[0] % 2, 0), tir.floordiv(x[0], 2), x[0] * 3 + 1), (c(0),))
    body = tir.Allocate(
        x,
        tir.seq(
            tir.BufferStore(x, A[i], (c(0),)),
            tir.BufferStore(B, tir.const(0, "int32"), (i,)),
            tir.While(tir.gt(x[0], 1), tir.seq(step, tir.BufferStore(B, B[i] + tir.const(1, "int32"), (i,)))),
        ),
    )
    start, out = np.arange(1, 21), np.zeros(20, "int32")
    flat(func([A, B], loop(i, 20, body)))["main"](start, out)

    def steps(v):
        return 0 if v == 1 else 1 + steps(v // 2 if v % 2 == 0 else 3 * v + 1)

    assert out.tolist() == [steps(int(v)) for v in start]


def test_lazy_choice_guards_loads_and_branches():
    A, B, i = decl_buffer((8,), "float32", "A"), decl_buffer((12,), "float32", "B"), var()
    padded = tir.if_then_else(tir.logical_and(tir.ge(i, 2), tir.lt(i, 10)), A[i - 2], 0.5)
    a, out = np.random.rand(8).astype("f"), np.zeros(12, "f")
    flat(func([A, B], loop(i, 12, tir.BufferStore(B, padded, (i,)))))["main"](a, out)
    np.testing.assert_array_equal(out, np.pad(a, 2, constant_values=0.5))
    branch = tir.If(
        tir.lt(i, 4), tir.BufferStore(B, A[i], (i,)), tir.If(tir.ge(i, 10), tir.BufferStore(B, tir.const(-1.0), (i,)))
    )
    out[:] = 7
    flat(func([A, B], loop(i, 12, branch)))["main"](a, out)
    np.testing.assert_array_equal(out, [*a[:4], *[7] * 6, -1, -1])


def test_let_and_the_same_loop_variable_twice():
    A, B, i, j, s, t = (
        decl_buffer((8,), "float32", "A"),
        decl_buffer((8,), "float32", "B"),
        var(),
        var("j"),
        var("s"),
        Var("t", DType("float32")),
    )
    inner = tir.Let(
        s, i + j, tir.Let(t, tir.BufferLoad(A, (s,)), tir.BufferStore(B, t * t + tir.cast(s, "float32"), (s,)))
    )
    body = tir.seq(loop(i, 2, loop(j, 2, inner)), loop(i, 5, loop(j, 4, inner)))
    a, out = np.random.rand(8).astype("f"), np.zeros(8, "f")
    flat(func([A, B], body, contract=False))["main"](a, out)
    np.testing.assert_array_equal(out, a * a + np.arange(8, dtype="f"))


def test_a_variable_bound_again_means_the_new_value():
    B, i, s = decl_buffer((40,), "int64", "B"), var(), var("s")

    def bound(value):
        return tir.Let(s, value, tir.BufferStore(B, s * 3 + tir.floordiv(s - 4, 2), (s,)))

    once = tir.For(s, i * 2 + 20, c(1), tir.ForKind.SERIAL, tir.BufferStore(B, s * 3, (s,)))
    out = np.zeros(40, np.int64)
    flat(
        func(
            [B],
            loop(i, 3, tir.seq(bound(i), bound(i + 5), once, tir.Let(s, i * 2 + 21, tir.BufferStore(B, s * 3, (s,))))),
        )
    )["main"](out)
    want = np.zeros(40, np.int64)
    for k in range(3):
        for v in (k, k + 5):
            want[v] = v * 3 + (v - 4) // 2
        want[2 * k + 20], want[2 * k + 21] = 3 * (2 * k + 20), 3 * (2 * k + 21)
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("size", [16, 100_000])
def test_private_memory_on_the_stack_and_in_the_workspace(size):
    A, B, i = decl_buffer((size,), "float32", "A"), decl_buffer((size,), "float32", "B"), var()
    T, U = decl_buffer((size,), "float32", "T"), decl_buffer((size,), "float32", "U")
    body = tir.Allocate(
        T,
        tir.Allocate(
            U,
            tir.seq(
                loop(i, size, tir.seq(tir.BufferStore(T, A[i] * 2.0, (i,)), tir.BufferStore(U, A[i] * 3.0, (i,)))),
                loop(i, size, tir.BufferStore(B, T[size - 1 - i] + U[i], (i,))),
            ),
        ),
    )
    a, out = np.random.rand(size).astype("f"), np.zeros(size, "f")
    flat(func([A, B], body, contract=False))["main"](a, out)
    np.testing.assert_allclose(out, 2 * a[::-1] + 3 * a, rtol=1e-6)


def test_workspace_of_symbolic_size_also_inside_loops():
    n, m = Var("n", INT64, True), Var("m", INT64, True)
    A, B, i, j = decl_buffer((n, m), "float32", "A"), decl_buffer((n, m), "float32", "B"), var(), var("j")
    T = decl_buffer((m,), "float32", "T")
    triangle = decl_buffer((i + 1,), "float32", "triangle")
    body = loop(
        i,
        n,
        tir.seq(
            tir.Allocate(
                T,
                tir.seq(
                    loop(j, m, tir.BufferStore(T, A[i, j] + 1.0, (j,))),
                    loop(j, m, tir.BufferStore(B, T[m - 1 - j], (i, j))),
                ),
            ),
            tir.Allocate(
                triangle,
                tir.seq(
                    loop(j, i + 1, tir.BufferStore(triangle, tir.const(1.0), (j,))),
                    loop(j, i + 1, tir.BufferStore(B, B[i, 0] + triangle[j], (i, c(0)))),
                ),
            ),
        ),
    )
    a, out = np.random.rand(4, 6).astype("f"), np.zeros((4, 6), "f")
    flat(func([A, B], body, scalars=(n, m)))["main"](a, out)
    want = (a + 1)[:, ::-1].copy()
    want[:, 0] += np.arange(4) + 1
    np.testing.assert_allclose(out, want, rtol=1e-6)


def scale_module(dtype="float32", grain=0):
    """y = x * f in a parallel loop, f a scalar parameter; and a workspace of the caller that the tasks share."""
    n, f = Var("n", INT64, True), Var("f", DType(dtype))
    A, B, T = decl_buffer((n,), dtype, "A"), decl_buffer((n,), dtype, "B"), decl_buffer((n,), dtype, "T")
    i = var()
    begin, end, tn, tf = var("begin"), var("end"), Var("n", INT64, True), Var("f", DType(dtype))
    tA, tB, tT = (decl_buffer((tn,), dtype, b) for b in "ABT")
    handles = [Var(b, HANDLE) for b in "ABT"]
    own = decl_buffer((50_000,), dtype, "own")
    j = var("j")
    work = tir.Allocate(
        own,
        tir.seq(
            loop(j, 50_000, tir.BufferStore(own, tA[i], (j,))), tir.BufferStore(tB, own[49_999] * tf + tT[i], (i,))
        ),
    )
    task = tir.PrimFunc(
        (begin, end, *handles, tn, tf),
        tir.For(i, begin, end - begin, tir.ForKind.SERIAL, work),
        tuple(zip(handles, (tA, tB, tT))),
        Attrs(kind="task"),
    )
    call = evaluate("parallel_for", "main_task", n, grain, A.data, B.data, T.data, n, f, dtype="int32")
    body = tir.Allocate(T, tir.seq(loop(i, n, tir.BufferStore(T, tir.const(1, dtype), (i,))), call))
    return IRModule({"main": func([A, B], body, scalars=(f, n)), "main_task": task})


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "bfloat16"])
def test_parallel_loops(dtype, threads):
    run = flat(scale_module(dtype, grain=3), threads=threads)["main"]
    for count in (0, 1, 2, 37):
        a = np.arange(count).astype(DType(dtype).numpy)
        out = np.zeros_like(a)
        run(a, out, 2)
        np.testing.assert_array_equal(out.astype("f"), 2 * np.arange(count) + 1)


def test_parameters_of_every_scalar_type():
    types = ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64"]
    scalars = [Var(f"s{k}", DType(t)) for k, t in enumerate(types)]
    out = decl_buffer((len(types),), "float64", "out")
    body = tir.seq(*(tir.BufferStore(out, tir.cast(s, "float64"), (c(k),)) for k, s in enumerate(scalars)))
    values = [True, -3, 60000, -70000, 2**40, 1.5, 0.1, 0.1]
    got = np.zeros(len(types))
    flat(func([out], body, scalars=tuple(scalars)))["main"](got, *values)
    np.testing.assert_array_equal(got, [1, -3, 60000, -70000, 2**40, 1.5, np.float32(0.1), 0.1])


def test_a_failing_assert_stops_a_kernel():
    A, i = decl_buffer((4,), "int32", "A"), var()
    body = loop(
        i,
        4,
        tir.seq(
            tir.Assert(tir.ge(A[i], 0), 'A must not be negative: "quoted" \\ ünicode'),
            tir.BufferStore(A, A[i] + tir.const(1, "int32"), (i,)),
        ),
    )
    run = flat(func([A], body))["main"]
    a = np.array([1, 2, -1, 4], "int32")
    with pytest.raises(Exception, match='A must not be negative: "quoted"'):
        run(a)
    assert a.tolist() == [2, 3, -1, 4]


def test_foreign_functions():
    A, B, i = decl_buffer((4,), "float64", "A"), decl_buffer((4,), "float64", "B"), var()
    value = tir.Call("call_pure_extern", (tir.StringImm("cbrt"), A[i]), DType("float64"))
    a, out = np.array([1.0, 8, 27, -8]), np.zeros(4)
    flat(func([A, B], loop(i, 4, tir.BufferStore(B, value, (i,)))))["main"](a, out)
    np.testing.assert_allclose(out, [1, 2, 3, -2])
    rounded = tir.Call(
        "call_llvm_pure_intrin", (tir.StringImm("llvm.floor.f64"), tir.const(1, "uint32"), A[i] * 0.3), DType("float64")
    )
    flat(func([A, B], loop(i, 4, tir.BufferStore(B, rounded, (i,)))))["main"](a, out)
    np.testing.assert_array_equal(out, np.floor(a * 0.3))
    with pytest.raises(BuildError, match=r"no_such_function|cannot be linked"):
        missing = tir.Call("call_extern", (tir.StringImm("no_such_function_anywhere"), A[i]), DType("float64"))
        flat(func([A, B], loop(i, 4, tir.BufferStore(B, missing, (i,)))))


def test_prefetch_and_addresses():
    A, B = decl_buffer((64,), "float32", "A"), decl_buffer((64,), "float32", "B")
    at = tir.Call("address_of", (tir.BufferLoad(A, (c(8),)),), HANDLE)
    view = decl_buffer((8,), "float32", "view")
    i = var()
    body = tir.seq(
        evaluate("prefetch", A[0], 0, 3),
        tir.Let(view.data, at, tir.DeclBuffer(view, loop(i, 8, tir.BufferStore(B, view[i], (i,))))),
    )
    a, out = np.random.rand(64).astype("f"), np.zeros(64, "f")
    flat(func([A, B], body))["main"](a, out)
    np.testing.assert_array_equal(out[:8], a[8:16])


def test_deep_expressions():
    A, B = decl_buffer((1,), "float32", "A"), decl_buffer((1,), "float32", "B")
    value = A[0]
    for _ in range(3000):
        value = tir.Add(value, tir.const(1.0))
    out = np.zeros(1, "f")
    flat(func([A, B], tir.BufferStore(B, value, (c(0),))))["main"](np.zeros(1, "f"), out)
    assert out[0] == 3000


def test_errors_name_what_is_wrong():
    A, i, stray = decl_buffer((4,), "float32", "A"), var(), var("stray")
    with pytest.raises(BuildError, match="variable stray is used but not defined"):
        flat(func([A], loop(i, 4, tir.BufferStore(A, tir.const(1.0), (stray,)))))
    with pytest.raises(BuildError, match="parallel loop over i"):
        flat(func([A], tir.For(i, c(0), c(4), tir.ForKind.PARALLEL, tir.BufferStore(A, tir.const(1.0), (i,)))))
    with pytest.raises(BuildError, match="intrinsic frobnicate cannot be compiled"):
        flat(func([A], tir.BufferStore(A, tir.Call("frobnicate", (A[0],), DType("float32")), (c(0),))))
    with pytest.raises(BuildError, match="is a pointer without a buffer"):
        flat(tir.PrimFunc((Var("p", HANDLE),), evaluate("undef"), (), Attrs(kind="kernel")))
