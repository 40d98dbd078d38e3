# SPDX-License-Identifier: Apache-2.0
"""Loads and stores: strides and offsets, vectors of every shape, predicates, packed types, odd and zero lengths."""

import re

import ml_dtypes
import numpy as np
import pytest
from flat_programs import c, elementwise, flat, func, loop

from roundel import te
from roundel.build.inspect import inspect
from roundel.build.units import Units
from roundel.ir import DType, IRModule, Var, decl_buffer, tir
from roundel.ir.dtype import HANDLE, INT64
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target
from roundel.target.spec import MachineSpec


def var(name="i"):
    return Var(name, INT64)


def load(b, *indices, predicate=None):
    return tir.BufferLoad(b, tuple(indices), predicate)


def ramp(base, lanes, stride=1):
    return tir.Ramp(tir.as_index(base), c(stride), lanes)


def store(b, value, *indices, predicate=None):
    return tir.BufferStore(b, value, tuple(indices), predicate)


def test_strides_and_offset():
    A = decl_buffer((5, 7), "float32", "A", strides=(16, 2), elem_offset=3)
    B = decl_buffer((5, 7), "float32", "B")
    i, j = var(), var("j")
    a = np.arange(200, dtype="f")
    flat_a = decl_buffer((200,), "float32", "A_flat")
    view = A.replace(data=flat_a.data)
    out = np.zeros((5, 7), "f")
    flat(func([flat_a, B], tir.DeclBuffer(view, loop(i, 5, loop(j, 7, store(B, view[i, j], i, j))))))["main"](a, out)
    np.testing.assert_array_equal(out, np.lib.stride_tricks.as_strided(a[3:], (5, 7), (64, 8)))


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16", "float64"])
@pytest.mark.parametrize("stride", [0, 1, 2, 3, -1])
def test_vectors_of_any_stride(dtype, stride):
    A, B = decl_buffer((64,), dtype, "A"), decl_buffer((64,), dtype, "B")
    data = (
        np.random.default_rng(0).integers(0, 2, 64).astype(DType(dtype).numpy)
        if dtype == "bool"
        else np.arange(64).astype(DType(dtype).numpy)
    )
    out = np.zeros(64, DType(dtype).numpy)
    flat(func([A, B], store(B, load(A, ramp(20, 8, stride)), ramp(3, 8))))["main"](data, out)
    want = np.zeros_like(out)
    want[3:11] = data[20 + stride * np.arange(8)]
    np.testing.assert_array_equal(out, want)
    if stride:
        out[:] = 0
        flat(func([A, B], store(B, load(A, ramp(5, 8)), ramp(20, 8, stride))))["main"](data, out)
        want[:] = 0
        want[20 + stride * np.arange(8)] = data[5:13]
        np.testing.assert_array_equal(out, want)


def test_a_vector_index_that_is_a_sum():
    A, B = decl_buffer((8, 64), "float32", "A"), decl_buffer((64,), "float32", "B")
    i = var()
    index = tir.Add(tir.Mul(tir.Broadcast(i, 4), tir.Broadcast(c(8), 4)), tir.Ramp(c(1), c(2), 4))
    data, out = np.random.default_rng(0).standard_normal((8, 64)).astype("f"), np.zeros(64, "f")
    flat(func([A, B], loop(i, 4, store(B, load(A, i, index), ramp(i * 4, 4)))))["main"](data, out)
    want = np.zeros(64, "f")
    for k in range(4):
        want[4 * k : 4 * k + 4] = data[k, 8 * k + 1 + 2 * np.arange(4)]
    np.testing.assert_array_equal(out, want)


def test_gather_and_scatter_through_an_index_array():
    A, N, B = decl_buffer((64,), "float32", "A"), decl_buffer((16,), "int32", "N"), decl_buffer((64,), "float32", "B")
    rng = np.random.default_rng(0)
    data, index = rng.standard_normal(64).astype("f"), rng.permutation(64)[:16].astype("int32")
    out, i = np.zeros(64, "f"), var()
    flat(func([A, N, B], loop(i, 16, store(B, load(A, load(N, i)), i))))["main"](data, index, out)
    np.testing.assert_array_equal(out[:16], data[index])
    for predicate in (None, tir.LT(tir.Ramp(c(0), c(1), 16), tir.Broadcast(c(11), 16))):
        out[:] = 0
        flat(func([A, N, B], store(B, load(A, load(N, ramp(0, 16)), predicate=predicate), ramp(0, 16))))["main"](
            data, index, out
        )
        n = 16 if predicate is None else 11
        np.testing.assert_array_equal(out[:n], data[index][:n])
        assert not out[n:16].any()
        out[:] = 0
        flat(func([A, N, B], store(B, load(A, ramp(0, 16)), load(N, ramp(0, 16)), predicate=predicate)))["main"](
            data, index, out
        )
        want = np.zeros(64, "f")
        want[index[:n]] = data[:n]
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float64", "bfloat16"])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 17])
def test_main_loop_and_predicated_step(dtype, count):
    """y = x for symbolic n in steps of 8, the last one predicated; nothing beyond the end is touched."""
    n, i = Var("n", INT64, True), var()
    A, B = decl_buffer((n,), dtype, "A"), decl_buffer((n,), dtype, "B")
    base = n // 8 * 8
    lane = tir.Add(tir.Broadcast(base, 8), tir.Ramp(c(0), c(1), 8))
    inside = tir.LT(lane, tir.Broadcast(n, 8))
    body = tir.seq(
        loop(i, n // 8, store(B, load(A, ramp(i * 8, 8)), ramp(i * 8, 8))),
        tir.If(tir.LT(base, n), store(B, load(A, ramp(base, 8), predicate=inside), ramp(base, 8), predicate=inside)),
    )
    data = np.random.default_rng(0).integers(0, 2, count).astype(DType(dtype).numpy)
    out = np.zeros(count + 8, DType(dtype).numpy)
    flat(func([A, B], body, scalars=(n,)))["main"](data, out[:count])
    np.testing.assert_array_equal(out[:count], data)
    assert not out[count:].astype(bool).any()


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize("lanes", [1, 2, 3, 8, 16])
@pytest.mark.parametrize("start", [0, 1, 4])
def test_packed_int4(dtype, lanes, start):
    A, B, W = decl_buffer((48,), dtype, "A"), decl_buffer((48,), dtype, "B"), decl_buffer((48,), "int32", "W")
    kind = getattr(ml_dtypes, dtype)
    low = -8 if dtype == "int4" else 0
    data = np.random.default_rng(0).integers(low, low + 16, 48).astype(kind)
    index = (c(start),) if lanes == 1 else (ramp(start, lanes),)
    value = load(A, *index)
    shown = store(W, tir.cast(value, "int32"), *index)
    added = store(B, tir.Add(value, value), *index)
    out, wide = np.zeros(48, kind), np.zeros(48, "int32")
    flat(func([A, B, W], tir.seq(shown, added)))["main"](data, out, wide)
    part = slice(start, start + lanes)
    np.testing.assert_array_equal(wide[part], data[part].astype(int))
    twice = (data.astype(int) * 2 - low) % 16 + low
    np.testing.assert_array_equal(out[part].astype(int), twice[part])
    assert not out[part.stop :].astype(int).any() and not out[:start].astype(int).any()


@pytest.mark.parametrize("lanes", [1, 2, 3, 16, 17])
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
def test_narrowed_vectors_stay_within_their_lanes(lanes, dtype):
    A, B = decl_buffer((64,), "int32", "A"), decl_buffer((64,), dtype, "B")
    x, out = np.arange(64, dtype="int32"), np.full(64, 7, dtype)
    below = tir.LT(ramp(16, 16), tir.Broadcast(c(16 + lanes), 16))
    stored = [tir.BufferStore(B, tir.cast(load(A, ramp(16, 16)), dtype), (ramp(start, 16),), p)
              for start, p in ((0, below), (32, tir.And(below, tir.LT(ramp(0, 16), tir.Broadcast(c(9), 16)))))]
    flat(func([A, B], tir.seq(*stored)))["main"](x, out)
    want = np.full(64, 7, dtype)
    want[: min(lanes, 16)], want[32 : 32 + min(lanes, 9)] = x[16 : 16 + min(lanes, 16)], x[16 : 16 + min(lanes, 9)]
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("source", [0, 20, "i"])
def test_addresses_of_packed_elements(source):
    A, B, i = decl_buffer((32,), "int4", "A"), decl_buffer((32,), "int4", "B", elem_offset=0), var()
    start = i * 8 + 4 if source == "i" else c(source)
    addresses = [tir.Call("address_of", (tir.BufferLoad(b, (at,)),), HANDLE) for b, at in ((B, c(6)), (A, start))]
    copy = tir.Evaluate(tir.Call("call_extern", (tir.StringImm("memcpy"), *addresses, tir.IntImm(4, INT64)), HANDLE))
    data, got = np.random.default_rng(0).integers(-8, 8, 32).astype(ml_dtypes.int4), np.zeros(32, ml_dtypes.int4)
    flat(func([A, B], loop(i, 3, copy)))["main"](data, got)
    start = 20 if source == "i" else source
    want = np.zeros(32, int)
    want[6:14] = data[start : start + 8].astype(int)
    np.testing.assert_array_equal(got.astype(int), want)


def test_packed_int4_at_symbolic_positions():
    A, B, i = decl_buffer((31,), "int4", "A"), decl_buffer((31,), "int4", "B"), var()
    data = np.random.default_rng(0).integers(-8, 8, 31).astype(ml_dtypes.int4)
    out = np.zeros(31, ml_dtypes.int4)
    flat(func([A, B], loop(i, 31, store(B, load(A, 30 - i), i))))["main"](data, out)
    np.testing.assert_array_equal(out.astype(int), data.astype(int)[::-1])


def test_unaligned_arrays():
    raw = np.zeros(4 * 64 + 1, np.uint8)
    x = raw[1:].view(np.float32)
    x[:] = np.arange(64)
    for lanes in (1, 16):
        np.testing.assert_array_equal(elementwise(lambda v: v + 1.0, x, lanes=lanes), x + 1)


def test_vector_elements():
    A, B = decl_buffer((4,), "float32x4", "A"), decl_buffer((4,), "float32x4", "B")
    i = var()
    flat_a, flat_b = decl_buffer((16,), "float32", "a"), decl_buffer((16,), "float32", "b")
    A, B = A.replace(data=flat_a.data), B.replace(data=flat_b.data)
    x, out = np.arange(16, dtype="f"), np.zeros(16, "f")
    body = tir.DeclBuffer(A, tir.DeclBuffer(B, loop(i, 4, store(B, load(A, i) + load(A, i), i))))
    flat(func([flat_a, flat_b], body))["main"](x, out)
    np.testing.assert_array_equal(out, 2 * x)


def test_shuffles():
    A, B = decl_buffer((8,), "float32", "A"), decl_buffer((6,), "float32", "B")
    x, out = np.arange(8, dtype="f"), np.zeros(6, "f")
    low, high = load(A, ramp(0, 5)), load(A, ramp(5, 3))
    flat(func([A, B], store(B, tir.Shuffle((low, high), (7, 0, 4, 5, 5, 2)), ramp(0, 6))))["main"](x, out)
    np.testing.assert_array_equal(out, x[[7, 0, 4, 5, 5, 2]])
    flat(func([A, B], store(B, tir.Shuffle((low, high), (6,)), c(0))))["main"](x, out)
    assert out[0] == 6
    scalars = tir.Shuffle((load(A, c(3)), load(A, c(1))), (1, 0, 0, 1, 1, 0))
    flat(func([A, B], store(B, scalars, ramp(0, 6))))["main"](x, out)
    np.testing.assert_array_equal(out, x[[1, 3, 3, 1, 1, 3]])


def test_rank_zero():
    A, B = decl_buffer((), "float32", "A"), decl_buffer((), "float32", "B")
    out = np.zeros((), "f")
    flat(func([A, B], store(B, load(A) + 1.0)))["main"](np.array(2, "f"), out)
    assert out == 3


@pytest.mark.parametrize("lanes, hidden", [(8, True), (1, False)])
def test_loops_of_vectors_do_not_know_how_the_addresses_of_what_is_only_read_were_made(lanes, hidden):
    """Pointers that change in outer loops are hidden from LLVM inside of the innermost one, but not from its own vectoriser, nor those that are written."""
    A, B = decl_buffer((6, 5, 16), "float32", "A"), decl_buffer((6, 5, 16), "float32", "B")
    i, j, k = var(), var("j"), var("k")
    where = k * lanes if lanes == 1 else ramp(k * lanes, lanes)
    program = func([A, B], loop(i, 6, loop(j, 5, loop(k, 16 // lanes, store(B, load(A, i, j, where) * 2.0, i, j, where)))))
    (unit,) = Units(IRModule({"main": program}), MachineSpec.host()).kernels()
    frozen = re.findall(r"freeze ptr (%v\d+)", unit.text)
    assert len(frozen) == hidden
    assert all(re.search(rf"{p} = getelementptr i32, ptr %p0,|{p} = getelementptr i32, ptr %v", unit.text) for p in frozen)
    a, out = np.random.default_rng(0).standard_normal((6, 5, 16), "f"), np.zeros((6, 5, 16), "f")
    flat(program)["main"](a, out)
    np.testing.assert_array_equal(out, a * 2)


@pytest.mark.parametrize("first, step, walking", [(0, 1, 2), (0, 2, 2), (3, 1, 0)])
def test_pointers_walk_through_loops_of_vectors_in_webassembly(first, step, walking):
    """One for the neighbours of each buffer, which differ by what a load can add, and none for memory that is the loop's own."""
    A, B, C = (decl_buffer((6, 64), "float32", name) for name in "ABC")
    i, k = var(), var("k")
    at = lambda n: ramp(k * 8 + n, 4)
    body = tir.seq(*(store(B, load(A, i, at(n)) * 2.0, i, at(n)) for n in (0, 4)), tir.Allocate(C, store(C, load(B, i, at(0)), i, at(0))))
    inner = tir.For(k, c(first), c(8 - first), tir.ForKind.SERIAL, body, step=None if step == 1 else c(step))
    (unit,) = Units(IRModule({"main": func([A, B], loop(i, 6, inner))}), MachineSpec("wasm32-unknown-unknown", "generic", "+simd128")).kernels()
    assert len(walks := re.findall(r"(%at\d+) = phi ptr .*\[ (%v\d+), %loop\d+ \]", unit.text)) == walking
    assert all(f"{further} = getelementptr i8, ptr {walk}, i64 {32 * step}" in unit.text for walk, further in walks)


@pytest.mark.parametrize("count", [5, 12, 30])
def test_pointers_that_go_along_have_no_parameters_name(count):
    """Of functions with many parameters, one was called as a pointer was: p10."""
    inputs = [te.placeholder((40, 40), "float32", f"x{k}") for k in range(count)]
    sums = te.compute((20, 40), lambda i, j: sum((x[i * 2, j] for x in inputs[1:]), inputs[0][i * 2, j]), "y")
    scheduled, _ = schedule_program(te.create_prim_func([*inputs, sums]), Target("wasm32"), ())
    assert "phi ptr" in inspect(IRModule({"main": scheduled}), target="wasm32").llvm
