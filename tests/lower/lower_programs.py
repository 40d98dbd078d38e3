# SPDX-License-Identifier: Apache-2.0
"""Tensor programs that lowering is tested on: shapes are odd on purpose."""

from __future__ import annotations

from roundel.script import tir as T


@T.prim_func
def matmul(A: T.Buffer((7, 13), "float32"), B: T.Buffer((13, 11), "float32"), C: T.Buffer((7, 11), "float32")):
    for i, j, k in T.grid(7, 11, 13):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def matmul_vector_reduction(
    A: T.Buffer((5, 13), "float32"), B: T.Buffer((13, 3), "float32"), C: T.Buffer((5, 3), "float32")
):
    for i, j in T.grid(5, 3):
        for k in T.vectorized(13):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def matmul_split(A: T.Buffer((10, 13), "float32"), B: T.Buffer((13, 37), "float32"), C: T.Buffer((10, 37), "float32")):
    for i0, j0, k0 in T.grid(3, 5, 4):
        for k1 in T.unroll(4):
            for i1 in T.unroll(4):
                for j1 in T.vectorized(8):
                    with T.block("C"):
                        vi = T.axis.spatial(10, i0 * 4 + i1)
                        vj = T.axis.spatial(37, j0 * 8 + j1)
                        vk = T.axis.reduce(13, k0 * 4 + k1)
                        T.where(i0 * 4 + i1 < 10 and j0 * 8 + j1 < 37 and k0 * 4 + k1 < 13)
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def register_tile(A: T.Buffer((24, 64), "float32"), B: T.Buffer((64, 32), "float32"), C: T.Buffer((24, 32), "float32")):
    CL = T.alloc_buffer((24, 32), "float32", scope="local")
    BL = T.alloc_buffer((64, 32), "float32", scope="local")
    for i0, j0 in T.grid(4, 2):
        for k in range(64):
            for j1 in T.vectorized(16):
                with T.block("BL"):
                    vk = T.axis.spatial(64, k)
                    vj = T.axis.spatial(32, j0 * 16 + j1)
                    BL[vk, vj] = B[vk, vj]
            for i1 in T.unroll(6):
                for j1 in T.vectorized(16):
                    with T.block("CL"):
                        vi = T.axis.spatial(24, i0 * 6 + i1)
                        vj = T.axis.spatial(32, j0 * 16 + j1)
                        vk = T.axis.reduce(64, k)
                        with T.init():
                            CL[vi, vj] = T.float32(0)
                        CL[vi, vj] = CL[vi, vj] + A[vi, vk] * BL[vk, vj]
        for i1 in T.unroll(6):
            for j1 in T.vectorized(16):
                with T.block("C"):
                    vi = T.axis.spatial(24, i0 * 6 + i1)
                    vj = T.axis.spatial(32, j0 * 16 + j1)
                    C[vi, vj] = T.max(CL[vi, vj], T.float32(0))


@T.prim_func
def exp_dynamic(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in T.vectorized(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = T.exp(A[vi])


@T.prim_func
def row_bias_dynamic(a: T.handle, s: T.handle, b: T.handle):
    n = T.int64()
    m = T.int64()
    A = T.match_buffer(a, (n, m), "float32")
    S = T.match_buffer(s, (n,), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    for i in T.parallel(n):
        for j0 in range((m + 7) // 8):
            for j1 in T.vectorized(8):
                with T.block("B"):
                    vi = T.axis.spatial(n, i)
                    vj = T.axis.spatial(m, j0 * 8 + j1)
                    T.where(j0 * 8 + j1 < m)
                    B[vi, vj] = A[vi, vj] * S[vi] + T.float32(1)


@T.prim_func
def softmax(A: T.Buffer((5, 9), "float32"), B: T.Buffer((5, 9), "float32")):
    M = T.alloc_buffer((5,), "float32")
    E = T.alloc_buffer((5, 9), "float32")
    S = T.alloc_buffer((5,), "float32")
    for i in T.parallel(5):
        for j in range(9):
            with T.block("M"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    M[vi] = T.min_value("float32")
                M[vi] = T.max(M[vi], A[vi, vj])
        for j in T.vectorized(9):
            with T.block("E"):
                vi, vj = T.axis.remap("SS", [i, j])
                E[vi, vj] = T.exp(A[vi, vj] - M[vi])
        for j in T.vectorized(9):
            with T.block("S"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + E[vi, vj]
        for j in range(9):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = E[vi, vj] / S[vi]


@T.prim_func
def conv_padded(
    X: T.Buffer((4, 7, 7), "float32"), W: T.Buffer((8, 4, 3, 3), "float32"), Y: T.Buffer((8, 7, 7), "float32")
):
    for o in T.parallel(8):
        for h, w, i, r, s in T.grid(7, 7, 4, 3, 3):
            with T.block("Y"):
                vo, vh, vw, vi, vr, vs = T.axis.remap("SSSRRR", [o, h, w, i, r, s])
                with T.init():
                    Y[vo, vh, vw] = T.float32(0)
                Y[vo, vh, vw] = (
                    Y[vo, vh, vw]
                    + T.if_then_else(
                        1 <= vh + vr and vh + vr < 8 and 1 <= vw + vs and vw + vs < 8,
                        X[vi, vh + vr - 1, vw + vs - 1],
                        T.float32(0),
                    )
                    * W[vo, vi, vr, vs]
                )


@T.prim_func
def conv_padded_vector(
    X: T.Buffer((2, 6, 21), "float32"), W: T.Buffer((2, 3, 3), "float32"), Y: T.Buffer((6, 21), "float32")
):
    for h in range(6):
        for w0 in range(3):
            for i, r, s in T.grid(2, 3, 3):
                for w1 in T.vectorized(8):
                    with T.block("Y"):
                        vh = T.axis.spatial(6, h)
                        vw = T.axis.spatial(21, w0 * 8 + w1)
                        vi, vr, vs = T.axis.remap("RRR", [i, r, s])
                        T.where(w0 * 8 + w1 < 21)
                        with T.init():
                            Y[vh, vw] = T.float32(0)
                        Y[vh, vw] = (
                            Y[vh, vw]
                            + T.if_then_else(
                                1 <= vh + vr and vh + vr < 7 and 1 <= vw + vs and vw + vs < 22,
                                X[vi, vh + vr - 1, vw + vs - 1],
                                T.float32(0),
                            )
                            * W[vi, vr, vs]
                        )


@T.prim_func
def halo_stage(X: T.Buffer((19,), "float32"), Y: T.Buffer((16,), "float32")):
    """A producer computed at its consumer, with overlapping windows: memory may move into the loop."""
    P = T.alloc_buffer((19,), "float32")
    for t in range(4):
        for i in range(7):
            with T.block("P"):
                v = T.axis.spatial(19, t * 4 + i)
                P[v] = X[v] * X[v]
        for i, r in T.grid(4, 4):
            with T.block("Y"):
                v = T.axis.spatial(16, t * 4 + i)
                vr = T.axis.reduce(4, r)
                with T.init():
                    Y[v] = T.float32(0)
                Y[v] = Y[v] + P[v + vr]


@T.prim_func
def rolling(X: T.Buffer((10,), "float32"), Y: T.Buffer((10,), "float32")):
    """A value flows from one iteration to the next: memory must stay outside of the loop."""
    P = T.alloc_buffer((2,), "float32")
    for t in range(10):
        with T.block("roll"):
            v = T.axis.opaque(10, t)
            Y[v] = T.if_then_else(v == 0, T.float32(0), P[(v + 1) % 2])
            P[v % 2] = X[v]


@T.prim_func
def running_sum(X: T.Buffer((10,), "float32"), Y: T.Buffer((10,), "float32")):
    total = T.alloc_buffer((1,), "float32")
    total[0] = T.float32(0)
    for t in range(10):
        total[0] = total[0] + X[t]
        Y[t] = total[0]


@T.prim_func
def transpose_vector(A: T.Buffer((9, 16), "float32"), B: T.Buffer((16, 9), "float32")):
    for i in range(9):
        for j in T.vectorized(16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj, vi] = A[vi, vj]


@T.prim_func
def diagonal(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.vectorized(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi, vi] + A[vi // 4, vi % 4]


@T.prim_func
def gather(A: T.Buffer((10, 6), "float32"), I: T.Buffer((7,), "int64"), B: T.Buffer((7, 6), "float32")):
    for i in range(7):
        for j in T.vectorized(6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[I[vi], vj]


@T.prim_func
def gather_lanes(A: T.Buffer((10,), "float32"), I: T.Buffer((8,), "int64"), B: T.Buffer((8,), "float32")):
    for i in T.vectorized(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[I[vi]]


@T.prim_func
def branches(A: T.Buffer((21,), "float32"), B: T.Buffer((21,), "float32")):
    for i in T.vectorized(21):
        with T.block("B"):
            vi = T.axis.spatial(21, i)
            T.reads(A[vi])
            T.writes(B[vi])
            if A[vi] > T.float32(0):
                B[vi] = T.sqrt(A[vi])
            else:
                if vi % 2 == 0:
                    B[vi] = T.float32(-1)
                else:
                    B[vi] = A[vi]


@T.prim_func
def lets(A: T.Buffer((5, 12), "float32"), B: T.Buffer((5, 12), "float32")):
    for i in range(5):
        for j in T.vectorized(12):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vi, vj])
                x: T.float32 = A[vi, vj]
                B[vi, vj] = x * x + x


@T.prim_func
def inner_reduction_lanes(A: T.Buffer((6, 8, 5), "float32"), B: T.Buffer((6, 8), "float32")):
    """A serial reduction inside of a vectorized loop is widened in place."""
    for i in range(6):
        for j in T.vectorized(8):
            for k in range(5):
                with T.block("B"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        B[vi, vj] = T.float32(1)
                    B[vi, vj] = B[vi, vj] * A[vi, vj, vk]


@T.prim_func
def triangle(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    """Extents that differ between lanes have no vector form."""
    for i in T.vectorized(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi, 0:8])
            T.writes(B[vi])
            B[vi] = T.float32(0)
            for k in range(vi + 1):
                B[vi] = B[vi] + A[vi, k]


@T.prim_func
def private_lanes(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i in range(4):
        for j in T.vectorized(8):
            with T.block("outer"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vi, vj])
                P = T.alloc_buffer((3,), "float32")
                for k in range(3):
                    with T.block("P"):
                        vk = T.axis.spatial(3, k)
                        P[vk] = A[vi, vj] * T.Cast("float32", vk)
                B[vi, vj] = P[0] + P[1] + P[2]


@T.prim_func
def argmax(A: T.Buffer((4, 17), "float32"), V: T.Buffer((4,), "float32"), I: T.Buffer((4,), "int64")):
    for i, k in T.grid(4, 17):
        with T.block("argmax"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                V[vi] = T.min_value("float32")
                I[vi] = T.int64(0)
            v: T.float32 = T.Select(A[vi, vk] > V[vi], A[vi, vk], V[vi])
            j: T.int64 = T.Select(A[vi, vk] > V[vi], vk, I[vi])
            V[vi] = v
            I[vi] = j


@T.prim_func
def views(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    for i, j in T.grid(2, 4):
        with T.block("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4])
            T.writes(B[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4])
            a = T.match_buffer(A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), "float32", offset_factor=1)
            b = T.match_buffer(B[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), "float32", offset_factor=1)
            for r, c in T.grid(4, 4):
                b[r, c] = a[c, r]


@T.prim_func
def blockized(A: T.Buffer((8, 12), "float32"), B: T.Buffer((12, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    for i0, j0, k0 in T.grid(2, 2, 3):
        with T.block("outer"):
            vi, vj, vk = T.axis.remap("SSR", [i0, j0, k0])
            T.reads(A[vi * 4 : vi * 4 + 4, vk * 4 : vk * 4 + 4], B[vk * 4 : vk * 4 + 4, vj * 4 : vj * 4 + 4])
            T.writes(C[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4])
            with T.init():
                for i, j in T.grid(4, 4):
                    with T.block("init"):
                        ii, jj = T.axis.remap("SS", [i, j])
                        C[vi * 4 + ii, vj * 4 + jj] = T.float32(0)
            for i, j, k in T.grid(4, 4, 4):
                with T.block("inner"):
                    ii, jj, kk = T.axis.remap("SSR", [i, j, k])
                    C[vi * 4 + ii, vj * 4 + jj] = (
                        C[vi * 4 + ii, vj * 4 + jj] + A[vi * 4 + ii, vk * 4 + kk] * B[vk * 4 + kk, vj * 4 + jj]
                    )


@T.prim_func
def threads(A: T.Buffer((6, 32), "float32"), B: T.Buffer((6, 32), "float32")):
    for i in T.thread_binding(6, thread="blockIdx.x"):
        for j in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(3)


@T.prim_func
def guarded_division(A: T.Buffer((19,), "int64"), B: T.Buffer((19,), "int64")):
    for i in T.vectorized(19):
        with T.block("B"):
            vi = T.axis.spatial(19, i)
            B[vi] = T.if_then_else(A[vi] == T.int64(0), T.int64(7), T.int64(100) // A[vi])


@T.prim_func
def concat(A: T.Buffer((5, 9), "float32"), B: T.Buffer((6, 9), "float32"), C: T.Buffer((11, 9), "float32")):
    for i in range(11):
        for j in T.vectorized(9):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.if_then_else(vi < 5, A[vi, vj], B[vi - 5, vj])


@T.prim_func
def fused_parallel(A: T.Buffer((6, 10), "float32"), B: T.Buffer((6, 10), "float32")):
    for f in T.parallel(60):
        with T.block("B"):
            vi = T.axis.spatial(6, f // 10)
            vj = T.axis.spatial(10, f % 10)
            B[vi, vj] = T.if_then_else(vi + vj < 7, A[vi, vj], T.float32(2))


@T.prim_func
def countdown(A: T.Buffer((1,), "int64"), B: T.Buffer((1,), "int64")):
    with T.block("root"):
        T.reads(A[0])
        T.writes(B[0])
        x = T.alloc_buffer((1,), "int64")
        x[0] = A[0]
        B[0] = T.int64(0)
        while x[0] > T.int64(0):
            x[0] = x[0] - T.int64(3)
            B[0] = B[0] + T.int64(1)


@T.prim_func
def wide_types(A: T.Buffer((40,), "int8"), B: T.Buffer((40,), "bool"), C: T.Buffer((40,), "int32")):
    for i in T.vectorized(40):
        with T.block("C"):
            vi = T.axis.spatial(40, i)
            C[vi] = T.Select(B[vi], T.Cast("int32", A[vi]) * 3, T.int32(-1))


@T.prim_func
def narrow_indices(a: T.handle, b: T.handle):
    n = T.int32()
    m = T.var("int32")
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n, m * 2), "int32")
    for i in T.serial(0, n):
        for j in T.vectorized(m):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj * 2] = T.Cast("int32", A[vi, vj] * T.float32(20))
                B[vi, vj * 2 + 1] = T.max(n, m) * 1000 + T.Cast("int32", vj)


@T.prim_func
def symbolic_pad(x: T.handle, y: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (n, 5), "float32")
    Y = T.match_buffer(y, (n * 2 + 1, n + 5), "float32")
    for i in T.parallel(n * 2 + 1):
        for j0 in range((n + 4) // 16 + 1):
            for j1 in T.vectorized(16):
                with T.block("Y"):
                    vi = T.axis.spatial(n * 2 + 1, i)
                    vj = T.axis.spatial(n + 5, j0 * 16 + j1)
                    T.where(j0 * 16 + j1 < n + 5)
                    Y[vi, vj] = T.if_then_else(n <= vi and vi < 2 * n and vj < 5, X[vi - n, vj], T.float32(0))


@T.prim_func
def short_windows(x: T.handle, y: T.handle):
    """Sums over windows that a border cuts; the loops over whole vectors may not run at all."""
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (n, m), "float32")
    Y = T.match_buffer(y, (n, m), "float32")
    for i in range(n):
        for r, s in T.grid(3, 3):
            for j in T.vectorized(m):
                with T.block("Y"):
                    vi, vr, vs, vj = T.axis.remap("SRRS", [i, r, s, j])
                    with T.init():
                        Y[vi, vj] = T.float32(0)
                    Y[vi, vj] = Y[vi, vj] + T.if_then_else(
                        1 <= vi + vr and vi + vr < n + 1 and 1 <= vj + vs and vj + vs < m + 1,
                        X[vi + vr - 1, vj + vs - 1],
                        T.float32(0),
                    )
