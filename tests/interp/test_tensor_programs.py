# SPDX-License-Identifier: Apache-2.0
"""Tensor programs in block form, scheduled and not, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.interp import interpret, run_prim_func
from roundel.ir.errors import CallError, InterpretError
from roundel.script import tir as T


def rand(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@T.prim_func
def matmul(a: T.handle, b: T.handle, c: T.handle):
    n, m, k = T.int64(), T.int64(), T.int64()
    A = T.match_buffer(a, (n, k), "float32")
    B = T.match_buffer(b, (k, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    for i, j, r in T.grid(n, m, k):
        with T.block("C"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]


@pytest.mark.parametrize("n,m,k", [(7, 5, 3), (1, 1, 1), (0, 4, 3), (31, 64, 13)])
def test_matmul_dynamic(n, m, k):
    a, b, c = rand(n, k), rand(k, m), np.empty((n, m), "float32")
    run_prim_func(matmul, [a, b, c])
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)


def test_contradicting_shapes():
    with pytest.raises(CallError, match="dimension 0 of argument B of matmul is 4, expected 3"):
        interpret(matmul)["matmul"](rand(2, 3), rand(4, 5), rand(2, 5))


@T.prim_func
def scheduled_matmul(
    A: T.Buffer((37, 19), "float32"), B: T.Buffer((19, 29), "float32"), C: T.Buffer((37, 29), "float32")
):
    C_local = T.alloc_buffer((37, 29), "float32", scope="local")
    for i0 in T.parallel(5):
        for j0 in range(4):
            for i1 in T.unroll(8):
                for j1 in T.vectorized(8):
                    with T.block("init"):
                        T.where(i0 * 8 + i1 < 37 and j0 * 8 + j1 < 29)
                        vi = T.axis.spatial(37, i0 * 8 + i1)
                        vj = T.axis.spatial(29, j0 * 8 + j1)
                        C_local[vi, vj] = T.float32(0)
            for k0, i1, j1, k1 in T.grid(5, 8, 8, 4):
                with T.block("update"):
                    T.where(i0 * 8 + i1 < 37 and j0 * 8 + j1 < 29 and k0 * 4 + k1 < 19)
                    vi = T.axis.spatial(37, i0 * 8 + i1)
                    vj = T.axis.spatial(29, j0 * 8 + j1)
                    vk = T.axis.reduce(19, k0 * 4 + k1)
                    C_local[vi, vj] = C_local[vi, vj] + A[vi, vk] * B[vk, vj]
            for i1, j1 in T.grid(8, 8):
                with T.block("write"):
                    T.where(i0 * 8 + i1 < 37 and j0 * 8 + j1 < 29)
                    vi = T.axis.spatial(37, i0 * 8 + i1)
                    vj = T.axis.spatial(29, j0 * 8 + j1)
                    C[vi, vj] = C_local[vi, vj]


def test_scheduled_matmul():
    a, b, c = rand(37, 19), rand(19, 29), np.empty((37, 29), "float32")
    run_prim_func(scheduled_matmul, [a, b, c])
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)


def test_padded_convolution_loads_lazily():
    @T.prim_func
    def conv(
        X: T.Buffer((3, 9, 7), "float32"), W: T.Buffer((4, 3, 3, 3), "float32"), Y: T.Buffer((4, 9, 7), "float32")
    ):
        for k, y, x, c, r, s in T.grid(4, 9, 7, 3, 3, 3):
            with T.block("conv"):
                vk, vy, vx, vc, vr, vs = T.axis.remap("SSSRRR", [k, y, x, c, r, s])
                with T.init():
                    Y[vk, vy, vx] = 0.0
                Y[vk, vy, vx] += (
                    T.if_then_else(
                        vy + vr >= 1 and vy + vr < 10 and vx + vs >= 1 and vx + vs < 8,
                        X[vc, vy + vr - 1, vx + vs - 1],
                        T.float32(0),
                    )
                    * W[vk, vc, vr, vs]
                )

    x, w, y = rand(3, 9, 7), rand(4, 3, 3, 3), np.empty((4, 9, 7), "float32")
    run_prim_func(conv, [x, w, y])
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    np.testing.assert_allclose(y, np.einsum("cyxrs,kcrs->kyx", windows, w), rtol=1e-4, atol=1e-5)


def test_out_of_bounds_names_buffer_index_and_shape():
    @T.prim_func
    def shift(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i + 1]

    with pytest.raises(InterpretError, match=r"index \(8,\) is out of bounds of buffer A of shape \(8,\)"):
        run_prim_func(shift, [rand(8), rand(8)])


def test_loop_carried_dependences_run_in_order():
    @T.prim_func
    def cumsum(A: T.Buffer((50,), "int64"), B: T.Buffer((50,), "int64")):
        B[0] = A[0]
        for i in range(1, 50):
            B[i] = B[i - 1] + A[i]

    a, b = np.arange(50), np.empty(50, "int64")
    run_prim_func(cumsum, [a, b])
    assert (b == np.cumsum(a)).all()


def test_shared_temporary_is_not_raced():
    @T.prim_func
    def reuse(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        tmp = T.alloc_buffer((1,), "float32")
        for i in range(8):
            with T.block("a"):
                vi = T.axis.spatial(8, i)
                tmp[0] = A[vi] * 2.0
            with T.block("b"):
                vi = T.axis.spatial(8, i)
                B[vi] = tmp[0] + 1.0

    a, b = rand(8), np.empty(8, "float32")
    run_prim_func(reuse, [a, b])
    np.testing.assert_array_equal(b, a * 2 + 1)


def test_double_buffering():
    @T.prim_func
    def rolling(A: T.Buffer((9,), "float32"), B: T.Buffer((8,), "float32")):
        tmp = T.alloc_buffer((2,), "float32")
        tmp[0] = A[0] * 3.0
        for i in range(8):
            tmp[(i + 1) % 2] = A[i + 1] * 3.0
            B[i] = tmp[i % 2] + tmp[(i + 1) % 2]

    a, b = rand(9), np.empty(8, "float32")
    run_prim_func(rolling, [a, b])
    np.testing.assert_array_equal(b, a[:-1] * 3 + a[1:] * 3)


def test_scatter_last_wins_and_accumulates():
    @T.prim_func
    def scatter(
        I: T.Buffer((6,), "int32"),
        V: T.Buffer((6,), "float32"),
        L: T.Buffer((3,), "float32"),
        S: T.Buffer((3,), "float32"),
    ):
        for i in range(3):
            L[i] = 0.0
            S[i] = 0.0
        for i in range(6):
            L[I[i]] = V[i]
            S[I[i]] += V[i]

    idx, v = np.array([2, 0, 2, 1, 0, 0], "int32"), np.arange(1, 7).astype("float32")
    last, total = np.empty(3, "float32"), np.empty(3, "float32")
    run_prim_func(scatter, [idx, v, last, total])
    assert last.tolist() == [6, 4, 3] and total.tolist() == [13, 4, 4]


def test_insertion_sort_with_while():
    @T.prim_func
    def sort(A: T.Buffer((4, 13), "float32")):
        j = T.alloc_buffer((1,), "int64")
        key = T.alloc_buffer((1,), "float32")
        for r in range(4):
            for i in range(1, 13):
                key[0] = A[r, i]
                j[0] = i - 1
                while j[0] >= 0 and A[r, j[0]] > key[0]:
                    A[r, j[0] + 1] = A[r, j[0]]
                    j[0] = j[0] - 1
                A[r, j[0] + 1] = key[0]

    a = rand(4, 13)
    want = np.sort(a, axis=1)
    run_prim_func(sort, [a])
    np.testing.assert_array_equal(a, want)


def test_while_in_lanes_stops_per_lane():
    @T.prim_func
    def collatz(A: T.Buffer((30,), "int64"), B: T.Buffer((30,), "int64")):
        for i in T.parallel(30):
            with T.block("count"):
                vi = T.axis.spatial(30, i)
                x = T.alloc_buffer((1,), "int64")
                x[0] = A[vi]
                B[vi] = T.int64(0)
                while x[0] != 1:
                    x[0] = T.if_then_else(x[0] % 2 == 0, x[0] // 2, 3 * x[0] + 1)
                    B[vi] = B[vi] + 1

    def steps(n):
        k = 0
        while n != 1:
            n, k = (n // 2 if n % 2 == 0 else 3 * n + 1), k + 1
        return k

    a, b = np.arange(1, 31), np.empty(30, "int64")
    run_prim_func(collatz, [a, b])
    assert b.tolist() == [steps(int(n)) for n in a]


def test_triangular_loops_and_if():
    @T.prim_func
    def lower(A: T.Buffer((9, 9), "float32"), B: T.Buffer((9, 9), "float32"), S: T.Buffer((9,), "float32")):
        for i in T.parallel(9):
            S[i] = 0.0
            for j in range(9):
                if j > i:
                    B[i, j] = 0.0
                else:
                    B[i, j] = A[i, j]
            for j in range(i + 1):
                S[i] = S[i] + A[i, j]

    a, b, s = rand(9, 9), np.empty((9, 9), "float32"), np.empty(9, "float32")
    run_prim_func(lower, [a, b, s])
    np.testing.assert_array_equal(b, np.tril(a))
    np.testing.assert_allclose(s, np.tril(a).sum(1), rtol=1e-5)


def test_threads_with_shared_memory_and_barrier():
    @T.prim_func
    def reverse(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4, 32), "float32")):
        for bx in T.thread_binding(4, thread="blockIdx.x"):
            with T.block("group"):
                vb = T.axis.spatial(4, bx)
                shared = T.alloc_buffer((32,), "float32", scope="shared")
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    shared[tx] = A[vb, tx]
                    T.evaluate(T.storage_sync("shared"))
                    B[vb, tx] = shared[31 - tx]

    a, b = rand(4, 32), np.empty((4, 32), "float32")
    run_prim_func(reverse, [a, b])
    np.testing.assert_array_equal(b, a[:, ::-1])


def test_reduction_bound_to_threads_or_vector():
    @T.prim_func
    def total(A: T.Buffer((5, 16), "float32"), B: T.Buffer((5,), "float32"), C: T.Buffer((5,), "float32")):
        for i in range(5):
            for k in T.thread_binding(16, thread="threadIdx.x"):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = 0.0
                    B[vi] += A[vi, vk]
            C[i] = 0.0
            for k in T.vectorized(16):
                C[i] = T.max(C[i], A[i, k])

    a, b, c = rand(5, 16), np.empty(5, "float32"), np.empty(5, "float32")
    run_prim_func(total, [a, b, c])
    np.testing.assert_allclose(b, a.sum(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(c, np.maximum(a.max(1), 0))


def test_fused_loop():
    @T.prim_func
    def transpose(A: T.Buffer((6, 7), "float32"), B: T.Buffer((7, 6), "float32")):
        for f in range(42):
            with T.block("B"):
                vi = T.axis.spatial(7, f // 6)
                vj = T.axis.spatial(6, f % 6)
                B[vi, vj] = A[vj, vi]

    a, b = rand(6, 7), np.empty((7, 6), "float32")
    run_prim_func(transpose, [a, b])
    np.testing.assert_array_equal(b, a.T)


def test_match_buffer_views():
    @T.prim_func
    def tiles(A: T.Buffer((8, 12), "float32"), B: T.Buffer((8, 12), "float32")):
        for io, jo in T.grid(2, 3):
            with T.block("tile"):
                vi, vj = T.axis.remap("SS", [io, jo])
                s0, s1 = T.int64(), T.int64()
                offset = T.int64()
                a = T.match_buffer(
                    A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), "float32", strides=[s0, s1], offset_factor=1
                )
                b = T.match_buffer(
                    B[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), "float32", strides=[s0, s1], elem_offset=offset
                )
                for i, j in T.grid(4, 4):
                    b[i, j] = a[j, i] + T.cast(offset, "float32") + T.cast(s0, "float32")

    a, b = rand(8, 12), np.empty((8, 12), "float32")
    run_prim_func(tiles, [a, b])
    want = np.empty_like(a)
    for i in range(2):
        for j in range(3):
            want[4 * i : 4 * i + 4, 4 * j : 4 * j + 4] = (
                a[4 * i : 4 * i + 4, 4 * j : 4 * j + 4].T + np.float32(i * 48 + j * 4) + np.float32(12)
            )
    np.testing.assert_array_equal(b, want)


def test_in_place_and_overlapping_arguments():
    @T.prim_func
    def shift(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i] + 1.0

    memory = np.zeros(9, "float32")
    run_prim_func(shift, [memory[:8], memory[1:]])
    assert memory.tolist() == list(range(9))
    same = rand(8)
    want = same + 1
    run_prim_func(shift, [same, same])
    np.testing.assert_array_equal(same, want)


def test_strided_arguments_are_written_back():
    @T.prim_func
    def double(A: T.Buffer((4, 3), "float32")):
        for i, j in T.grid(4, 3):
            A[i, j] = A[i, j] * 2.0

    a = rand(3, 4)
    want = a * 2
    run_prim_func(double, [a.T])
    np.testing.assert_array_equal(a, want)


def test_read_only_argument():
    @T.prim_func
    def fill(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = 1.0

    a = rand(4)
    a.flags.writeable = False
    with pytest.raises(InterpretError, match="read-only"):
        run_prim_func(fill, [a])


def test_wrong_arguments():
    with pytest.raises(CallError, match="takes 3 arguments"):
        run_prim_func(matmul, [rand(2, 2)])
    with pytest.raises(CallError, match="is float32, got float64"):
        run_prim_func(matmul, [rand(2, 2), rand(2, 2, dtype="float64"), rand(2, 2)])


def test_performance_of_a_convolution():
    @T.prim_func
    def conv(
        X: T.Buffer((64, 58, 58), "float32"),
        W: T.Buffer((64, 64, 3, 3), "float32"),
        Y: T.Buffer((64, 56, 56), "float32"),
    ):
        for k, y, x, c, r, s in T.grid(64, 56, 56, 64, 3, 3):
            with T.block("conv"):
                vk, vy, vx, vc, vr, vs = T.axis.remap("SSSRRR", [k, y, x, c, r, s])
                with T.init():
                    Y[vk, vy, vx] = 0.0
                Y[vk, vy, vx] += X[vc, vy + vr, vx + vs] * W[vk, vc, vr, vs]

    from roundel.interp.dependence import Plan

    plan = Plan(conv, {}, {})
    loops = list(plan.loops)
    assert [plan.independent(s) for s in loops] == [True] * 3 + [False] * 3


def test_temporaries_of_parallel_iterations_are_private():
    @T.prim_func
    def softmax(A: T.Buffer((6, 9), "float32"), B: T.Buffer((6, 9), "float32")):
        largest = T.alloc_buffer((1,), "float32")
        total = T.alloc_buffer((1,), "float32")
        for i in T.parallel(6):
            largest[0] = T.min_value("float32")
            total[0] = 0.0
            for j in range(9):
                largest[0] = T.max(largest[0], A[i, j])
            for j in range(9):
                total[0] = total[0] + T.exp(A[i, j] - largest[0])
            for j in range(9):
                B[i, j] = T.exp(A[i, j] - largest[0]) / total[0]

    a, b = rand(6, 9), np.empty((6, 9), "float32")
    run_prim_func(softmax, [a, b])
    want = np.exp(a - a.max(1, keepdims=True))
    np.testing.assert_allclose(b, want / want.sum(1, keepdims=True), rtol=1e-5)


def test_a_race_of_a_parallel_loop_shows():
    @T.prim_func
    def total(A: T.Buffer((16,), "float32"), B: T.Buffer((1,), "float32")):
        B[0] = 0.0
        for i in T.parallel(16):
            B[0] = B[0] + A[i]

    a, b = np.ones(16, "float32"), np.empty(1, "float32")
    run_prim_func(total, [a, b])
    assert b[0] != 16
