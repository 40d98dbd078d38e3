# SPDX-License-Identifier: Apache-2.0
"""Lowered programs: allocations, aliasing views, vector values, predicates, tasks, host functions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from roundel.interp import interpret, run_prim_func
from roundel.ir import IRModule, tir
from roundel.ir.attrs import Attrs
from roundel.ir.constants import ConstData
from roundel.ir.dtype import DType
from roundel.ir.errors import InterpretError
from roundel.ir.graph import GlobalVar

HANDLE = DType("handle")


def i64(n):
    return tir.index_const(n)


def var(name, dtype="int64"):
    return tir.Var(name, DType(dtype))


def func(params, body, **attrs):
    """``params`` are Buffers and Vars; a buffer's parameter is a handle of its own."""
    handles = [var(p.name, "handle") if isinstance(p, tir.Buffer) else p for p in params]
    pairs = tuple((h, p) for h, p in zip(handles, params) if isinstance(p, tir.Buffer))
    return tir.PrimFunc(tuple(handles), body, pairs, Attrs(attrs))


def store(buffer, value, *indices, predicate=None):
    return tir.BufferStore(buffer, value, tuple(tir.as_index(i) for i in indices), predicate)


def serial(v, n, body, kind=tir.ForKind.SERIAL):
    return tir.For(v, i64(0), tir.as_index(n), kind, body)


def rand(*shape, dtype="float32"):
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


def test_views_with_one_data_pointer_alias():
    A, B = tir.decl_buffer(8, "float32", "A"), tir.decl_buffer(4, "uint32", "B")
    arena = tir.decl_buffer(128, "uint8", "arena")
    floats = tir.decl_buffer(8, "float32", "floats", data=arena.data, elem_offset=16)
    bits = tir.decl_buffer(4, "uint32", "bits", data=arena.data, elem_offset=18)
    i, j = var("i"), var("j")
    body = tir.Allocate(
        arena,
        tir.DeclBuffer(
            floats,
            tir.DeclBuffer(bits, tir.seq(serial(i, 8, store(floats, A[i], i)), serial(j, 4, store(B, bits[j], j)))),
        ),
    )
    a, b = rand(8), np.empty(4, "uint32")
    run_prim_func(func([A, B], body), [a, b])
    assert (b == a[2:6].view("uint32")).all()


def test_dependence_through_aliasing_views_is_respected():
    arena = tir.decl_buffer(64, "uint8", "arena")
    x = tir.decl_buffer(8, "float32", "x", data=arena.data)
    y = tir.decl_buffer(8, "float32", "y", data=arena.data, elem_offset=1)
    A, B = tir.decl_buffer(8, "float32", "A"), tir.decl_buffer(9, "float32", "B")
    i, k, m = var("i"), var("k"), var("m")
    body = tir.Allocate(
        arena,
        tir.DeclBuffer(
            x,
            tir.DeclBuffer(
                y,
                tir.seq(
                    store(x, tir.const(1.0), 0),
                    serial(i, 8, store(y, x[i] + A[i], i)),
                    serial(k, 8, store(B, x[k], k)),
                    serial(m, 1, store(B, y[7], 8)),
                ),
            ),
        ),
    )
    a, b = rand(8), np.empty(9, "float32")
    run_prim_func(func([A, B], body), [a, b])
    want = [np.float32(1)]
    for v in a:
        want.append(np.float32(want[-1] + v))
    np.testing.assert_array_equal(b, np.array(want))


def test_vectors():
    A, B = tir.decl_buffer((4, 16), "float32", "A"), tir.decl_buffer((4, 16), "float32", "B")
    S, P = tir.decl_buffer(4, "float32", "S"), tir.decl_buffer((4, 4), "float32", "P")
    i = var("i")
    ramp = tir.Ramp(i64(0), i64(1), 16)
    load = tir.BufferLoad(A, (i, ramp))
    half = tir.BufferLoad(A, (i, tir.Ramp(i64(1), i64(4), 4)))
    body = serial(
        i,
        4,
        tir.seq(
            tir.BufferStore(
                B,
                tir.mul(load, tir.Broadcast(tir.const(2.0), 16)) + tir.Broadcast(tir.cast(i, "float32"), 16),
                (i, ramp),
            ),
            store(S, tir.call("reduce_add", load), i),
            tir.BufferStore(P, tir.Shuffle((half, half), (3, 0, 5, 6)), (i, tir.Ramp(i64(0), i64(1), 4))),
        ),
    )
    a, b, s, p = rand(4, 16), np.empty((4, 16), "float32"), np.empty(4, "float32"), np.empty((4, 4), "float32")
    run_prim_func(func([A, B, S, P], body), [a, b, s, p])
    np.testing.assert_array_equal(b, a * 2 + np.arange(4, dtype="float32")[:, None])
    np.testing.assert_allclose(s, a.sum(1), rtol=1e-4, atol=1e-5)
    picked = a[:, 1::4]
    np.testing.assert_array_equal(p, np.concatenate([picked, picked], 1)[:, [3, 0, 5, 6]])


def test_predicated_tail():
    A, B = tir.decl_buffer(13, "float32", "A"), tir.decl_buffer(13, "float32", "B")
    i = var("i")
    ramp = tir.Ramp(i * 8, i64(1), 8)
    inside = tir.lt(ramp, tir.Broadcast(i64(13), 8))
    body = serial(
        i, 2, tir.BufferStore(B, tir.BufferLoad(A, (ramp,), inside) + tir.Broadcast(tir.const(1.0), 8), (ramp,), inside)
    )
    a, b = rand(13), np.empty(13, "float32")
    run_prim_func(func([A, B], body), [a, b])
    np.testing.assert_array_equal(b, a + 1)


def test_register_tile_of_vector_elements():
    A, B = tir.decl_buffer((2, 8), "float32", "A"), tir.decl_buffer((2, 8), "float32", "B")
    tile = tir.decl_buffer((2,), "float32x8", "tile", scope="local")
    ramp = tir.Ramp(i64(0), i64(1), 8)
    body = tir.Allocate(
        tile,
        tir.seq(
            *(store(tile, tir.BufferLoad(A, (i64(k), ramp)), k) for k in range(2)),
            *(tir.BufferStore(B, tir.BufferLoad(tile, (i64(1 - k),)), (i64(k), ramp)) for k in range(2)),
        ),
    )
    a, b = rand(2, 8), np.empty((2, 8), "float32")
    run_prim_func(func([A, B], body), [a, b])
    np.testing.assert_array_equal(b, a[::-1])


def test_private_memory_of_parallel_iterations():
    A, B = tir.decl_buffer((6, 5), "float32", "A"), tir.decl_buffer((6, 5), "float32", "B")
    row = tir.decl_buffer(5, "float32", "row")
    i, j, k = var("i"), var("j"), var("k")
    body = serial(
        i,
        6,
        tir.Allocate(row, tir.seq(serial(j, 5, store(row, A[i, j], 4 - j)), serial(k, 5, store(B, row[k], i, k)))),
        tir.ForKind.PARALLEL,
    )
    a, b = rand(6, 5), np.empty((6, 5), "float32")
    run_prim_func(func([A, B], body), [a, b])
    np.testing.assert_array_equal(b, a[:, ::-1])


def test_fresh_memory_is_poisoned():
    B, tmp = tir.decl_buffer(4, "float32", "B"), tir.decl_buffer(4, "float32", "tmp")
    i = var("i")
    b = np.zeros(4, "float32")
    run_prim_func(func([B], tir.Allocate(tmp, serial(i, 4, store(B, tmp[i], i)))), [b])
    assert np.isnan(b).all()


def task_module():
    A, B = var("a", "handle"), var("b", "handle")
    begin, end, n = var("begin"), var("end"), var("n")
    x, y = tir.decl_buffer((n,), "float32", "x", data=A), tir.decl_buffer((n,), "float32", "y", data=B)
    i = var("i")
    task_body = tir.DeclBuffer(
        x, tir.DeclBuffer(y, tir.For(i, begin, end - begin, tir.ForKind.SERIAL, store(y, x[i] * tir.const(2.0), i)))
    )
    task = tir.PrimFunc((begin, end, A, B, n), task_body, (), Attrs(kind="task"))
    X, Y = tir.decl_buffer((n,), "float32", "X"), tir.decl_buffer((n,), "float32", "Y")
    launch = tir.Evaluate(tir.call("parallel_for", tir.StringImm("task"), n, 1, X.data, Y.data, n))
    px, py = var("px", "handle"), var("py", "handle")
    kernel = tir.PrimFunc((px, py, n), launch, ((px, X), (py, Y)), Attrs(kind="kernel"))
    return task, kernel


def test_tasks_kernels_and_host():
    task, kernel = task_module()
    m = tir.Var("m", DType("int64"), True)
    I, O = tir.decl_buffer((m,), "float32", "I"), tir.decl_buffer((m,), "float32", "O")
    arena = tir.decl_buffer((m * 4 + 64,), "uint8", "arena")
    t = tir.decl_buffer((m,), "float32", "t", data=arena.data, elem_offset=16)
    weights = ConstData(np.arange(3, dtype="float32"))
    p = var("p", "handle")
    w = tir.decl_buffer(3, "float32", "w", data=p)

    def call(a, b):
        return tir.Evaluate(tir.Call(GlobalVar("kernel"), (a, b, m), DType("void")))

    body = tir.Allocate(
        arena,
        tir.DeclBuffer(
            t,
            tir.Let(
                p,
                tir.call("constant_ptr", tir.StringImm(weights.key)),
                tir.DeclBuffer(
                    w,
                    tir.seq(
                        tir.Assert(tir.gt(m, 2), "too short"),
                        call(tir.call("address_of", I[0]), tir.call("address_of", t[0])),
                        call(tir.call("address_of", t[0]), O.data),
                        store(O, w[2], 1),
                    ),
                ),
            ),
        ),
        Attrs(arena=True),
    )
    pi, po = var("pi", "handle"), var("po", "handle")
    host = tir.PrimFunc(
        (pi, po), body, ((pi, I), (po, O)), Attrs(kind="host", num_inputs=1, num_outputs=1, global_symbol="main")
    )
    rt = interpret(IRModule({"main": host, "kernel": kernel, "task": task}))
    x = rand(7)
    want = x * 4
    want[1] = 2
    np.testing.assert_array_equal(rt["main"](x), want)
    with pytest.raises(InterpretError, match="too short"):
        rt["main"](rand(2))


def test_unknown_function_and_unbound_variable():
    A = tir.decl_buffer(2, "float32", "A")
    missing = tir.Evaluate(tir.Call(GlobalVar("nowhere"), (), DType("void")))
    with pytest.raises(InterpretError, match="no function 'nowhere'"):
        run_prim_func(func([A], missing), [rand(2)])
    with pytest.raises(InterpretError, match="variable k has no value"):
        run_prim_func(func([A], store(A, tir.const(1.0), var("k"))), [rand(2)])


def test_packed_and_extern_calls():
    A = tir.decl_buffer(4, "float32", "A")
    view = tir.Call("tensor_view", (tir.StringImm("float32"), A.data, i64(1), i64(4)), HANDLE)
    body = tir.seq(
        tir.Evaluate(tir.call("call_packed", tir.StringImm("test.double"), view, dtype="void")),
        store(A, tir.call("call_pure_extern", tir.StringImm("expf"), tir.const(0.0), dtype="float32"), 0),
    )

    def double(x):
        x *= 2

    a = rand(4)
    want = a * 2
    want[0] = 1
    interpret(func([A], body, global_symbol="f"), packed={"test.double": double})["f"](a)
    np.testing.assert_array_equal(a, want)
    with pytest.raises(InterpretError, match=r"no foreign function 'test\.double'"):
        run_prim_func(func([A], body), [a])


def test_int4_is_packed_low_nibble_first():
    A, B = tir.decl_buffer(5, "int4", "A"), tir.decl_buffer(5, "int8", "B")
    C = tir.decl_buffer(5, "int4", "C")
    raw = tir.decl_buffer(3, "uint8", "raw", data=C.data)
    R = tir.decl_buffer(3, "uint8", "R")
    i, j = var("i"), var("j")
    body = tir.seq(
        serial(i, 5, tir.seq(store(B, tir.cast(A[i], "int8"), i), store(C, A[i], i))), serial(j, 3, store(R, raw[j], j))
    )
    a = np.array([-8, 7, -1, 3, 2]).astype(ml_dtypes.int4)
    b, c, r = np.empty(5, "int8"), np.zeros(5, ml_dtypes.int4), np.empty(3, "uint8")
    run_prim_func(func([A, B, C, R], body), [a, b, c, r])
    assert b.tolist() == [-8, 7, -1, 3, 2] and (c == a).all()
    assert r.tolist()[:2] == [0x78, 0x3F]


def test_outputs_of_data_dependent_shape():
    I, count = tir.decl_buffer(6, "float32", "I"), tir.decl_buffer(1, "int64", "count")
    n = tir.Var("n", DType("int64"), True)
    O = tir.decl_buffer((n,), "float32", "O")
    p, pi, po, i, j = var("p", "handle"), var("pi", "handle"), var("po", "handle"), var("i"), var("j")
    out = tir.decl_buffer((n,), "float32", "out", data=p)
    positive = tir.gt(I[i], 0.0)
    body = tir.Allocate(
        count,
        tir.seq(
            store(count, i64(0), 0),
            serial(i, 6, tir.If(positive, store(count, count[0] + 1, 0))),
            tir.Let(
                n,
                count[0],
                tir.Let(
                    p,
                    tir.call("alloc_output", 0, n, dtype="handle"),
                    tir.DeclBuffer(
                        out,
                        tir.seq(
                            store(count, i64(0), 0),
                            serial(
                                j,
                                6,
                                tir.If(
                                    tir.gt(I[j], 0.0),
                                    tir.seq(store(out, I[j], count[0]), store(count, count[0] + 1, 0)),
                                ),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    )
    attrs = Attrs(kind="host", num_inputs=1, num_outputs=1)
    host = tir.PrimFunc((pi, po), body, ((pi, I), (po, O)), attrs)
    x = np.array([1, -2, 3, 0, 5, -6], "float32")
    assert interpret(IRModule({"main": host}))["main"](x).tolist() == [1, 3, 5]


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_narrow_types_in_memory(dtype):
    A, B = tir.decl_buffer(5, dtype, "A"), tir.decl_buffer(5, dtype, "B")
    i = var("i")
    kept = DType(dtype).numpy
    a = np.array([0.5, -1.25, 3.0, np.nan, 16.0]).astype(kept)
    b = np.zeros(5, kept)
    value = tir.max_(tir.cast(tir.cast(A[i], "float32") * tir.const(2.0), dtype), A[i])
    run_prim_func(func([A, B], serial(i, 5, store(B, value, i))), [a, b])
    want = np.maximum((a.astype("float32") * 2).astype(kept).astype("float32"), a.astype("float32"))
    np.testing.assert_array_equal(b.astype("float32"), want)


def test_launched_threads():
    A = tir.decl_buffer((3, 8), "float32", "A")
    bx, tx = var("blockIdx.x"), var("threadIdx.x")
    body = tir.AttrStmt(
        bx, "thread_extent", i64(3), tir.AttrStmt(tx, "thread_extent", i64(8), store(A, A[bx, tx] * 2.0, bx, tx))
    )
    a = rand(3, 8)
    want = a * 2
    run_prim_func(func([A], body), [a])
    np.testing.assert_array_equal(a, want)
