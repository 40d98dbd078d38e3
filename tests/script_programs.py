# SPDX-License-Identifier: Apache-2.0
"""Tensor programs as people write them for TVM (papers, courses, tutorials), in older and newer spellings."""


HEADER = "from roundel.script import ir as I, relax as R, tir as T\n"

MM_RELU = '''
@I.ir_module
class MyModule:
    @T.prim_func
    def mm_relu(A: T.Buffer((128, 128), "float32"),
                B: T.Buffer((128, 128), "float32"),
                C: T.Buffer((128, 128), "float32")):
        T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
        Y = T.alloc_buffer((128, 128), dtype="float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.block("Y"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j)
                vk = T.axis.reduce(128, k)
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
'''

OLD_BUFFER_SYNTAX = '''
@I.ir_module
class MyModule:
    @T.prim_func
    def main(A: T.Buffer[(4, 4), "int64"], B: T.Buffer[(4, 4), "int64"], C: T.Buffer[16, "int64"]) -> None:
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j in T.grid(4, 4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(4, j)
                C[vi * 4 + vj] = A[vi, vj] + B[vi, vj]
'''

HANDLES = '''
@T.prim_func
def matmul(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, [1024, 1024])
    B = T.match_buffer(b, [1024, 1024], dtype="float16")
    C = T.match_buffer(c, (1024, 1024), "float32")
    for i0, j0, i1, j1, k0, k1 in T.grid(32, 32, 32, 32, 128, 8):
        with T.block("matmul"):
            vi = T.axis.S(1024, i0 * 32 + i1)
            vj = T.axis.S(1024, j0 * 32 + j1)
            vk = T.axis.R((0, 1024), k0 * 8 + k1)
            T.reads([A[vi, vk], B[vk, vj]])
            T.writes([C[vi, vj]])
            T.block_attr({"meta_schedule.tiling_structure": "SSRSRS", "pragma": 1})
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] += A[vi, vk] * T.cast(B[vk, vj], "float32")
'''

DYNAMIC = '''
@T.prim_func
def softmax(var_x: T.handle, var_y: T.handle):
    n = T.int64()
    m = T.var("int64")
    X = T.match_buffer(var_x, (n, m), "float32")
    Y = T.match_buffer(var_y, (n, m), "float32")
    mx = T.sblock_alloc_buffer((n,), "float32")
    s = T.sblock_alloc_buffer((n,), "float32")
    for i in range(n):
        for k in range(m):
            with T.sblock("max"):
                v, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    mx[v] = T.min_value("float32")
                mx[v] = T.max(mx[v], X[v, vk])
    for i, k in T.grid(n, m):
        with T.sblock("sum"):
            v, vk = T.axis.remap("SR", [i, k])
            with T.init():
                s[v] = 0.0
            s[v] += T.exp(X[v, vk] - mx[v])
    for i, j in T.grid(n, m):
        with T.sblock("out"):
            v, w = T.axis.remap("SS", [i, j])
            Y[v, w] = T.exp(X[v, w] - mx[v]) / s[v]
'''

TENSORIZED = '''
@T.prim_func
def main(A: T.Buffer((1024, 1024), "float32"), C: T.Buffer((1024, 1024), "float32"), D: T.Buffer((16, 4), "uint8", strides=(8, 1), scope="shared", align=32)):
    for i_0, j_0 in T.grid(64, 64):
        with T.block("tile"):
            vi0, vj0 = T.axis.remap("SS", [i_0, j_0])
            T.reads(A[vi0 * 16:vi0 * 16 + 16, vj0 * 16:vj0 * 16 + 16])
            T.writes(C[vi0 * 16:vi0 * 16 + 16, vj0 * 16:vj0 * 16 + 16])
            s0 = T.int32()
            s1 = T.int32()
            AT = T.match_buffer(A[vi0 * 16:vi0 * 16 + 16, vj0 * 16:vj0 * 16 + 16], (16, 16), "float32", strides=[s0, s1], offset_factor=16)
            CT = T.match_buffer(C[vi0 * 16:vi0 * 16 + 16, vj0 * 16:vj0 * 16 + 16], (16, 16), "float32", strides=[1024, 1], offset_factor=16)
            T.evaluate(T.call_extern("int32", "tile_add", CT.access_ptr("w"), AT.access_ptr("r", offset=4), s0, AT.strides[1], AT.elem_offset))
'''

GPU = '''
@T.prim_func
def vec(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
    for i_0 in T.thread_binding(0, 8, thread="blockIdx.x"):
        for i_1 in T.thread_binding(128, "threadIdx.x", annotations={"pragma_unroll": 1}):
            with T.block("B"):
                vi = T.axis.spatial(1024, i_0 * 128 + i_1)
                T.where(i_0 * 128 + i_1 < 1000)
                B[vi] = T.Select(A[vi] > T.float32(0), A[vi], T.float32(0))
'''

LAUNCH = '''
@T.prim_func
def vec(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
    bx = T.env_thread("blockIdx.x")
    T.launch_thread(bx, 8)
    tx = T.launch_thread("threadIdx.x", 128)
    B[bx * 128 + tx] = A[bx * 128 + tx] if bx < 4 else A[0]
'''

FLAT = '''
@T.prim_func
def flat(A: T.Buffer((64,), "float32"), n: T.int32, p: T.handle("float32"), x: T.float32) -> T.int32:
    T.func_attr({"kind": "task", "target": {"kind": "llvm", "keys": ["cpu"]}, "x": None, "y": 1.5, "inf": float("inf")})
    buf = T.allocate([64], "float32", "global", annotations={"arena": T.bool(True)})
    view = T.decl_buffer((8, 8), "float32", data=buf.data, strides=(8, 1))
    P = T.decl_buffer((n,), "int8", data=p)
    with T.LetStmt(n + 1) as m:
        view[0, 0] = T.Cast("float32", m)
    with T.let(T.Var("w", "int32"), n):
        T.evaluate(0)
    k: T.int32 = n * 2
    y = T.bind(T.sqrt(x))
    if k > 3 and not (n == 2 or x < y):
        for i in T.parallel(8):
            for j in T.vectorized(8, annotations={"hint": "x"}):
                view[i, j] = A[i * 8 + j] * y
    elif k <= 0:
        A[0] = T.if_then_else(n > 0, A[1], T.infinity("float32"))
    else:
        T.attr(A.data, "storage", 1)
        for i in T.unroll(4):
            A[i * 4:i * 4 + 4] = A[0:8:2] + T.Broadcast(T.float32(1), 4)
    while A[0] < T.float32(10):
        A[0] = A[0] + 1.0
    assert n >= 0, "n is the length"
    with T.attr(None, "pragma", "x"):
        T.evaluate(T.call_packed("my.func", A.data, "name", 3, n))
    A.vstore([T.Ramp(0, 1, 4)], A.vload([T.Ramp(4, 1, 4)], predicate=T.Broadcast(n > 2, 4)), predicate=T.Broadcast(n > 1, 4))
    T.prefetch(T.address_of(A[3]), 0, 3)
    T.keep_order()
    for i in T.serial(2, 8, step=2):
        for j in range(i, 9):
            A[i] = T.reinterpret("float32", T.int32(1)) + T.call_llvm_pure_intrin("float32", "llvm.fabs.f32", T.uint32(1), A[j])
    return k + 1
'''

CONSTANTS = '''
@T.prim_func
def consts(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int8"), C: T.Buffer((), "bool"), D: T.Buffer((4,), "bfloat16")):
    A[0] = T.float32("inf")
    A[1] = T.float32("-inf")
    A[2] = T.float32("nan")
    A[3] = -1.5
    A[4] = T.float32(3)
    A[5] = 1e-30
    A[6] = T.max_value("float32")
    A[7] = T.float32("-nan")
    B[0] = T.int8(-128)
    B[1] = T.max_value("int8")
    B[2] = 7
    B[3] = T.truncmod(T.int8(7), B[2]) + T.floormod(B[1], T.int8(3)) - T.truncdiv(B[0], B[1])
    B[4] = B[0] << T.int8(1) | B[1] & ~B[2] ^ T.shift_right(B[3], T.int8(2))
    B[5] = -B[0] + T.ceildiv(B[1], T.int8(4)) - T.floordiv(B[2], T.int8(2))
    C[()] = T.bool(True)
    D[0] = T.bfloat16(1.5)
    D[1] = T.Cast("bfloat16", A[0]) ** T.bfloat16(2.0)
    D[2] = T.Shuffle([D[0:4], D[0:4]], [5])
    D[3] = T.reduce_max(D[0:4])
'''

SCAN = '''
@T.prim_func
def cumsum(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("scan"):
            v = T.axis.scan(8, i)
            if v == 0:
                B[v] = A[v]
            else:
                B[v] = B[v - 1] + A[v]
    with T.sblock("opaque"):
        w = T.axis.opaque((2, 5), 3)
        T.reads()
        T.writes(B[w])
        B[w] = 1.0
'''

VECTORS = '''
from tvm.script import tir as T
@T.prim_func
def f(A: T.Buffer((16,), "float32"), p: T.ptr("float32"), C: T.Buffer((8,), "float32")):
    T.func_attr({"map": T.index_map(lambda i, j: (i // 4, j, i % 4)), "m2": T.index_map(lambda *a: a[::-1], ndim=2)})
    x: T.float32x4 = A.vload((4,), "float32x4")
    lo = T.vectorlow("float32x2", x)
    hi: T.float32x2 = T.vectorhigh("float32x2", x)
    C[0:4] = T.vectorcombine("float32x4", lo, hi)
    C[0:4] = T.float32x4(1.5)
    for ij in T.grid(2, 2):
        C[ij[0] * 2 + ij[1]] = 0.0
    bx = T.env_thread("blockIdx.x")
    T.attr(bx, "thread_extent", 4)
    y: T.int32
    with T.launch_thread("threadIdx.x", 2) as tx, T.attr(0, "pragma", True):
        C[bx * 2 + tx] = A[tx]
'''

WMMA = '''
from tvm.script import tir as T
@T.prim_func
def f(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (128, 128), "float16", offset_factor=16, scope="wmma.matrix_a", align=128)
    d0 = T.int32()
    d1 = T.int32()
    C = T.match_buffer(c, (128, 128), "float32", strides=[d0, d1], elem_offset=T.int32(0))
    with T.block("root"):
        T.reads(A[0:128, 0:128], C[0:128, 0:128])
        T.writes(C[0:128, 0:128])
        for i in T.serial(0, 128):
            with T.block():
                vi = T.axis.S(128, i)
                T.block_attr({"auto_copy": True, "l": ["a", 1]})
                T.evaluate(T.tvm_mma_sync(C.data, C.elem_offset // d0 // 16, A.data, A.elem_offset, dtype="handle"))
'''

OLDER_FORMS = '''
from tvm.script import tir as T
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer(4, "bool"), n: T.int64):
    T.preflattened_buffer(A, (4,), dtype="int32", data=A.data)
    B[0] = A[0] == 1 and (A[1] != 2 or not B[1])
    A[1] = T.bitwise_and(A[0], 3) + T.shift_right(A[1], 1) + T.clz(A[2]) + T.abs(A[1]) + T.min(A[0], 3)
    A[2] = T.Select(n > 2 and 0 <= n < 5, 1, 2)
    A[3] = T.int32(n) + T.Cast("int32", n) + n.astype("int32")
    assert 0 < n
'''

ALL = {k: v for k, v in dict(globals()).items() if isinstance(v, str) and k.isupper() and k != "HEADER"}
