# SPDX-License-Identifier: Apache-2.0
"""Programs written the way TVM's documentation, tests and courses of 2021 to 2025 write them; only the import line is ours."""
# ruff: noqa: E501

TENSOR = {}
TENSOR["matmul_2021"] = '''
@T.prim_func
def matmul(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, [128, 128])
    B = T.match_buffer(b, [128, 128])
    C = T.match_buffer(c, [128, 128])
    for i, j in T.grid(128, 128):
        with T.block([128, 128], "init") as [vi, vj]:
            C[vi, vj] = T.float32(0)
        for k in range(0, 128):
            with T.block([128, 128, T.reduce_axis(0, 128)], "update") as [vi, vj, vk]:
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
'''
TENSOR["bind_2021"] = '''
@T.prim_func
def f(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (64, 64), "float32")
    C = T.match_buffer(c, (64,), "float32")
    with T.block([], "root"):
        T.reads([])
        T.writes([])
        B = T.alloc_buffer([64, 64])
        for i0, i1, j in T.grid(16, 4, 64):
            with T.block([64, (0, 64)], "B") as [vi, vj]:
                T.bind(vi, i0 * 4 + i1)
                T.bind(vj, j)
                T.reads([A[vi, vj]])
                T.writes([B[vi, vj]])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i, k in T.grid(64, 64):
            with T.block([64, T.reduce_axis(64)], "C") as [vi, vk]:
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + B[vi, vk]
'''
TENSOR["scan_opaque_2021"] = '''
@T.prim_func
def f(a: T.handle) -> None:
    A = T.match_buffer(a, (16, 16, 16), "float32")
    for i, j, k in T.grid(16, 16, 16):
        with T.block([16, T.scan_axis(0, 16), T.opaque_axis(0, 16)], "A") as [vi, vj, vk]:
            A[vi, vj, vk] = T.float32(1)
'''
TENSOR["reduce_scope"] = '''
@T.prim_func
def reduce(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128,), "float32")):
    T.func_attr({"global_symbol": "reduce", "tir.noalias": True})
    for i in T.thread_binding(128, thread="blockIdx.x"):
        tx = T.launch_thread("threadIdx.x", 128)
        cross = T.allocate([1], "float32", "local")
        with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
            T.tvm_thread_allreduce(T.uint32(1), A[i, tx], T.bool(True), cross.data, tx, dtype="handle")
        if tx == 0:
            B[i] = cross[0]
'''
TENSOR["comm_reducer_named"] = '''
@T.prim_func
def f(A: T.Buffer((128,), "float32")):
    T.attr(T.comm_reducer(lambda x0, x1, y0, y1: (T.Select(x1 >= y1, x0, y0), T.Select(x1 >= y1, x1, y1)), [T.int32(-1), T.min_value("float32")]), "reduce_scope", T.reinterpret("handle", T.uint64(0)))
    A[0] = T.float32(0)
'''
TENSOR["let_forms"] = '''
@T.prim_func
def f(A: T.Buffer((16,), "float32"), n: T.int32):
    x = T.var("int32")
    y = T.var("int32")
    with T.let(x, n + 1):
        A[0] = T.cast(x, "float32")
    T.let(y, n * 2)
    z: T.let[T.int32] = n
    w: T.int32 = n * 3
    with T.LetStmt(n * 4) as v:
        A[1] = T.cast(v + y + w + z, "float32")
    A[2] = T.cast(T.Let(x * x, where={x: n + 5}), "float32")
'''
TENSOR["pointers_2021"] = '''
@T.prim_func
def f(a: T.handle, b: T.handle, n: T.int32) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    A = T.match_buffer(a, [16], dtype="float32")
    B = T.match_buffer(b, [16], dtype="float32", elem_offset=0, align=128, offset_factor=1)
    C = T.allocate([16], "float32", "global")
    C_1 = T.buffer_decl([16], dtype="float32", data=C.data)
    for i in T.serial(0, 16):
        C_1[i] = A[i] + T.exp(A[i], dtype="float32")
    for i in range(16):
        B[i] = C_1[i] * T.sqrt(A[i], dtype="float32") + T.if_then_else(T.likely(i < n, dtype="bool"), T.max(A[i], 0.0), 0.0, dtype="float32")
'''
TENSOR["allocate_pointer"] = '''
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    C_data = T.allocate([16], "float32", "global")
    C = T.Buffer((16,), data=C_data)
    D_data: T.handle("float32") = T.allocate([4], "float32", "local")
    D = T.decl_buffer((4,), data=D_data, scope="local")
    D[0] = 1.0
    for i in range(16):
        C[i] = A[i] + D[0]
    C_2 = T.Buffer((4, 4), data=C.data)
    for i, j in T.grid(4, 4):
        B[i * 4 + j] = C_2[i, j]
'''
TENSOR["with_allocate"] = '''
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    with T.allocate([16], "float32", "global") as C_data:
        C = T.Buffer((16,), "float32", data=C_data)
        for i in range(16):
            C[i] = A[i] * 2.0
        with T.decl_buffer([4, 4], "float32", data=C_data) as D:
            for i in range(16):
                B[i] = D[i // 4, i % 4]
'''
TENSOR["store_load_2021"] = '''
@T.prim_func
def f(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (16,), "float32")
    B = T.match_buffer(b, (16,), "float32")
    for i in range(4):
        B[T.ramp(i * 4, 1, 4)] = A[T.ramp(i * 4, 1, 4)] + T.broadcast(T.float32(1), 4)
    T.buffer_store(B, B[0] + 1.0, [0])
'''
TENSOR["extern_calls"] = '''
@T.prim_func
def f(A: T.Buffer((16,), "float32"), n: T.int32) -> T.int32:
    T.evaluate(T.call_extern("handle", "tile_load", A.access_ptr("r"), T.address_of(A[4]), n))
    T.evaluate(T.call_extern("old_order", n, dtype="int32"))
    T.call_extern("void", "statement", A.data)
    T.call_packed("packed", A.data, "text", n)
    T.evaluate(T.tvm_call_packed("my.packed", T.tvm_stack_make_array(A.data, T.tvm_stack_make_shape(16, dtype="handle"), 0, 1, 0.0, 0, dtype="handle"), dtype="int32"))
    T.evaluate(T.call_llvm_pure_intrin("int32", "llvm.ctpop.i32", T.uint32(1), n))
    T.evaluate(T.reinterpret(A[0], dtype="int32"))
    return n
'''
TENSOR["iter_var_thread"] = '''
@T.prim_func
def f(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    tx = T.int32()
    bx = T.env_thread("blockIdx.x")
    T.attr(T.iter_var(tx, None, "ThreadIndex", "threadIdx.x"), "thread_extent", 32)
    with T.launch_thread(bx, 4):
        with T.launch_thread("threadIdx.y", 1) as ty:
            B[bx * 32 + tx + ty] = A[bx * 32 + tx]
'''
TENSOR["realize_prefetch"] = '''
@T.prim_func
def f(a: T.handle):
    A = T.match_buffer(a, (128, 128))
    B = T.buffer_decl((128, 128), "float32")
    with T.realize(B[0:128, 0:128], "global"):
        for i, j in T.grid(128, 128):
            B[i, j] = A[i, j]
    T.realize(B[0:16, 0:16], "shared", condition=A[0, 0] > 1.0)
    B[0, 0] = 1.0
'''
TENSOR["macro_inline"] = '''
@T.macro(hygienic=False)
def add_one(A, i):
    A[i] = A[i] + T.float32(1)

@T.inline
def twice(A, i):
    A[i] = A[i] * T.float32(2)

@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            j = T.meta_var(vi)
            B[j] = A[j]
            add_one(B, j)
            twice(B, vi)
'''
TENSOR["ptr_types"] = '''
@T.prim_func
def f(p: T.Ptr("float32"), q: T.Ptr(T.float32), r: T.handle("float32", "global"), s: T.ptr("int8"), n: T.int32):
    P = T.decl_buffer((n,), "float32", data=p)
    Q = T.Buffer((n,), "float32", data=q)
    R_ = T.Buffer((n,), "float32", data=r)
    for i in range(n):
        P[i] = Q[i] + R_[i]
'''
TENSOR["ptr_subscript"] = '''
@T.prim_func
def f(p: T.Ptr[T.float32], n: T.int32):
    P = T.buffer_decl((n,), "float32", data=p)
    for i in T.serial(n, annotations={"pragma_auto_unroll_max_step": 16, "pragma_unroll_explicit": T.bool(True)}):
        P[i] = T.float32(0)
'''
TENSOR["dynamic_shapes"] = '''
@T.prim_func
def f(a: T.handle, b: T.handle, n: T.int32):
    m = T.var("int32")
    s = T.SizeVar("s", "int32")
    A = T.match_buffer(a, (n, m), "float32", strides=(s, 1))
    B = T.match_buffer(b, (n * m,), "float32")
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi * m + vj] = A[vi, vj] + T.float32(1)
'''
TENSOR["predicate_axes"] = '''
@T.prim_func
def f(A: T.Buffer((127,), "float32"), B: T.Buffer((127,), "float32")):
    for i_0, i_1 in T.grid(32, 4):
        with T.sblock("B"):
            vi = T.axis.spatial(127, i_0 * 4 + i_1)
            T.where(i_0 * 4 + i_1 < 127)
            T.reads(A[vi])
            T.writes(B[vi])
            T.sblock_attr({"meta_schedule.thread_extent_low_inclusive": 32})
            B[vi] = T.if_then_else(vi % 2 == 0 and not vi == 4, A[vi], T.float32(0), dtype="float32")
'''
TENSOR["alloc_const"] = '''
@T.prim_func
def f(A: T.Buffer((3,), "int32")):
    c = T.allocate_const([1, 2, 3], "int32", [3])
    c_1 = T.Buffer((3,), "int32", data=c)
    for i in range(3):
        A[i] = c_1[i]
'''
TENSOR["tile_matmul_wmma_like"] = '''
@T.prim_func
def desc(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (16, 16), offset_factor=1)
    B = T.match_buffer(b, (16, 16), offset_factor=1)
    C = T.match_buffer(c, (16, 16), offset_factor=1)
    with T.block("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j, k in T.grid(16, 16, 16):
            with T.block("update"):
                vii, vjj, vkk = T.axis.remap("SSR", [i, j, k])
                C[vii, vjj] = C[vii, vjj] + A[vii, vkk] * B[vjj, vkk]
'''
TENSOR["while_and_unit"] = '''
@T.prim_func
def search(A: T.Buffer((16,), "int32"), B: T.Buffer((2,), "int32")):
    lo = T.alloc_buffer((1,), "int32", scope="local")
    lo[()] if False else None
    lo[0] = 0
    while lo[0] < 16 and A[lo[0]] < 7:
        lo[0] = lo[0] + 1
    B[0] = lo[0]
    B[1] = T.int32(0) if lo[0] > 3 else T.int32(1)
'''
TENSOR["tuple_reduction"] = '''
@T.prim_func
def argmax(idx: T.handle, val: T.handle, v0: T.handle, v1: T.handle) -> None:
    I0 = T.match_buffer(idx, [64, 32], dtype="int32")
    V0 = T.match_buffer(val, [64, 32], dtype="float32")
    A0 = T.match_buffer(v0, [64], dtype="int32")
    A1 = T.match_buffer(v1, [64], dtype="float32")
    for i0, i1 in T.grid(64, 32):
        with T.block("argmax"):
            i = T.axis.spatial(64, i0)
            k = T.axis.reduce(32, i1)
            T.reads(I0[i, k], V0[i, k])
            T.writes(A0[i], A1[i])
            with T.init():
                A0[i] = -1
                A1[i] = T.min_value("float32")
            v_0: T.int32 = T.Select(A1[i] >= V0[i, k], A0[i], I0[i, k])
            v_1: T.float32 = T.Select(A1[i] >= V0[i, k], A1[i], V0[i, k])
            A0[i] = v_0
            A1[i] = v_1
'''
TENSOR["undef_assume"] = '''
@T.prim_func
def f(A: T.Buffer((14,), "int32"), B: T.Buffer((4, 4), "int32")):
    for i, j in T.grid(4, 4):
        T.evaluate(T.assume(i * 4 + j < 14 or B[i, j] == 0))
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            if vi * 4 + vj < 14:
                B[vi, vj] = A[vi * 4 + vj]
            else:
                B[vi, vj] = T.undef(dtype="int32")
'''
TENSOR["old_decorators"] = '''
@tvm.script.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer[(128,), "float32"], B: T.Buffer[(128,), "float32"]) -> None:
        # function attr dict
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        # body
        # with T.block("root")
        for i in T.serial(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] + T.float32(1)
'''
TENSOR["s_tir_module"] = '''
@I.ir_module(s_tir=True)
class Module:
    I.module_attrs({"external_mods": [], "n": 3})
    @T.prim_func(private=True, s_tir=True)
    def add(A: T.Buffer((T.int64(2), T.int64(3)), "float32"), T_add: T.Buffer((T.int64(2), T.int64(3)), "float32")):
        T.func_attr({"op_pattern": 0, "tir.noalias": True})
        # with T.sblock("root"):
        for ax0, ax1 in T.grid(T.int64(2), T.int64(3)):
            with T.sblock("T_add"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(A[v_ax0, v_ax1])
                T.writes(T_add[v_ax0, v_ax1])
                T_add[v_ax0, v_ax1] = A[v_ax0, v_ax1] + T.float32(1.0)
'''
TENSOR["extern_prim_attrs"] = '''
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    T.func_attr({"target": T.target({"kind": "llvm", "num-cores": 4}), "layout_free_buffers": [1], "tir.is_scheduled": 1, "tir.is_entry_func": True})
    for i in T.parallel(0, 8):
        for j in T.vectorized(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.sigmoid(A[vi, vj]) + T.tanh(A[vi, vj]) + T.erf(A[vi, vj]) + T.pow(A[vi, vj], T.float32(2)) + T.rsqrt(T.fabs(A[vi, vj])) + T.floor(A[vi, vj]) + T.log(A[vi, vj]) + T.power(A[vi, vj], T.float32(2)) + T.fma(A[vi, vj], A[vi, vj], T.float32(1)) + T.round(A[vi, vj]) + T.nearbyint(A[vi, vj]) + T.trunc(A[vi, vj]) + T.exp2(A[vi, vj])
'''

TENSOR["course_1"] = '''
import numpy as np
@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def mm_relu(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")):
        T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
        Y = T.alloc_buffer((128, 128), dtype="float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.block("Y"):
                # block axes
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
'''
TENSOR["gpu_tensor"] = '''
@tvm.script.ir_module
class MyModuleMatmul:
    @T.prim_func
    def main(A: T.Buffer((1024, 1024), "float32"), B: T.Buffer((1024, 1024), "float32"), C: T.Buffer((1024, 1024), "float32")) -> None:
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i0_0_i1_0_fused in T.thread_binding(16, thread="blockIdx.x"):
            for tx in T.thread_binding(0, 64, thread="threadIdx.x"):
                for k in T.serial(0, 1024, annotations={"software_pipeline_stage": [0, 0, 1]}):
                    with T.block("C"):
                        v0 = T.axis.spatial(1024, i0_0_i1_0_fused * 64 + tx)
                        vk = T.axis.reduce(1024, k)
                        T.block_attr({"warp_execution": 1})
                        with T.init():
                            C[v0, 0] = T.float32(0)
                        C[v0, 0] += A[v0, vk] * B[vk, 0]
'''
TENSOR["match_buffer_views"] = '''
@T.prim_func
def tensor_core_impl(a: T.handle, b: T.handle, c: T.handle) -> None:
    sa = T.var("int32")
    sb = T.var("int32")
    A = T.match_buffer(a, (16, 16), "float32", align=64, offset_factor=8, strides=[sa, 1], scope="global")
    B = T.match_buffer(b, (16, 16), "float32", align=64, offset_factor=8, strides=[sb, 1])
    C = T.match_buffer(c, (16, 16), "float32", align=128, elem_offset=T.int32(0))
    with T.block("root"):
        T.reads(A[0:16, 0:16], B[0 : 16, 0 : 16])
        T.writes(C[0 : 16, 0 : 16])
        for i in T.serial(16):
            with T.block("row"):
                vi = T.axis.spatial(16, i)
                T.reads(A[vi, 0:16], B[vi, 0:16])
                T.writes(C[vi, 0:16])
                Ar = T.match_buffer(A[vi, 0:16], (16,), "float32", strides=[1], offset_factor=1)
                for j in T.vectorized(16):
                    C[vi, j] = Ar[j] + B[vi, j]
'''
TENSOR["cse_let"] = '''
@T.prim_func
def func(A: T.Buffer((16, 16), "float32"), n: T.int32, flag: T.bool):
    for i in range(16):
        x: T.int32 = i * n
        y = T.int64(x) + T.Cast("int64", n)
        with T.LetStmt(T.float32(i)) as z:
            if flag and x % 2 == 0 or not (y > 4):
                A[i, T.min(n, 15)] = z + T.Cast("float32", y) if n > 3 else z
            else:
                T.evaluate(0)
        if T.likely(i + 1 < 16): A[i + 1, 0] = A[i, 0] ** 2.0
        A[i, 1:3] = T.broadcast(A[i, 0], 2)
        A[i, T.ramp(4, 2, 4)] = T.Broadcast(T.float32(1), 4)
'''
TENSOR["int_literals"] = '''
@T.prim_func
def f(A: T.Buffer(16, "int32"), B: T.Buffer((4, 4), "uint8"), C: T.Buffer([2, 2], T.float16), D: T.Buffer((), "int64")):
    A[0] = 0x10 + 1_000
    A[1] = -A[0] // 3 % 5
    A[2] = A[0] << 2 >> 1 & 0xFF | 1 ^ 3
    A[3] = T.abs(A[0]) + T.max(A[0], 3, ) + T.truncdiv(A[0], 2)
    A[4] = T.cast(A[1] > 3, "int32") + T.int32(T.bool(True))
    A[5] = T.if_then_else(A[0] != 3, A[1], T.int32(2)) + T.Select(A[0] >= 3, 1, 2)
    B[0, 0] = T.uint8(255)
    B[1, 1] = B[0, 0] + T.uint8(1)
    C[0, 0] = T.float16(1.5) * C[1, 1]
    C[0, 1] = T.exp(C[0, 0]) + T.max_value("float16")
    D[()] = T.int64(2) ** 3 if False else T.int64(8)
'''

TENSOR["imports_tvm"] = '''
import tvm
import tvm.script
from tvm.script import ir as I
from tvm.script.parser import tir as T
from tvm.script import tir
@tvm.script.ir_module
class M:
    @tir.prim_func
    def f(a: T.handle):
        A = T.match_buffer(a, (4,), "float32")
        for i in tvm.script.tir.grid(4):
            A[i] = 1.0
'''
TENSOR["comments_and_docstrings"] = '''
@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    """Adds one."""
    T.func_attr({"global_symbol": "f", "tir.noalias": True})  # attrs
    # with T.sblock("root"):
    for ij in T.grid(4, 4):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", ij)
            B[vi, vj] = A[vi, vj] + T.float32(1)
'''
TENSOR["sblock_as"] = '''
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    with T.sblock():
        T.reads(A[0:8, 0:8])
        T.writes(B[0:8])
        tmp = T.sblock_alloc_buffer([8], dtype="float32", scope="local")
        for i in range(8):
            with T.sblock("init"):
                v = T.axis.S(8, i)
                tmp[v] = 0.0
        for i, k in T.grid(8, T.int64(8)):
            with T.sblock("acc"):
                v = T.axis.S(8, i)
                vk = T.axis.R(8, k)
                tmp[v] += A[v, vk]
        for i in range(8):
            with T.sblock("out"):
                v = T.axis.spatial((0, 8), i)
                B[v] = tmp[v]
'''
TENSOR["int32_shapes"] = '''
@T.prim_func
def f(a: T.handle, b: T.handle, n: T.int32, m: T.int32):
    A = T.match_buffer(a, [n, m], "float32")
    B = T.match_buffer(b, [m, n], "float32")
    for i, j in T.grid(n, m):
        with T.block("T"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vj, vi] = A[vi, vj]
'''

GRAPH = {}
GRAPH["emit_te"] = '''
def add_one(a):
    from roundel import te
    return te.compute(a.shape, lambda *i: a(*i) + 1.0, "out")

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        with R.dataflow():
            y = R.emit_te(add_one, x)
            z = R.emit_te(add_one, y, primfunc_name_hint="again")
            R.output(z)
        return z
'''
GRAPH["nested"] = '''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        @R.function
        def inner(y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            z = R.add(y, x)
            return z
        w = inner(x)
        v = inner(w)
        return v
'''
GRAPH["symbolic"] = '''
@I.ir_module
class Module:
    I.module_attrs({"device_num": 4})
    I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 0, "global")], "dummy": [I.dummy_global_info()]})
    @T.prim_func
    def exp(var_a: T.handle, var_b: T.handle):
        T.func_attr({"tir.noalias": True})
        n, m = T.int64(), T.int64()
        A = T.match_buffer(var_a, (n, m * T.int64(4)))
        B = T.match_buffer(var_b, (n, m * T.int64(4)))
        for i, j in T.grid(n, m * T.int64(4)):
            with T.sblock("exp"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.exp(A[vi, vj])

    @R.function(private=True)
    def helper(x: R.Tensor(("n", "4 * m"), dtype="float32"), s: R.Shape(["n", "m"])) -> R.Tensor(("n * m * 4",), "float32"):
        n = T.int64()
        m = T.int64()
        y: R.Tensor((n * m * 4,), "float32") = R.flatten(x)
        return y

    @R.function
    def main(x: R.Tensor((n, 4 * m), "float32"), p: R.Prim("int64"), o: R.Object, c: R.Callable((R.Tensor((2,), "float32"),), R.Tensor((2,), "float32")), t: R.Tuple(R.Tensor((n,), "float32"), R.Shape(ndim=2))) -> R.Tensor(ndim=1, dtype="float32"):
        R.func_attr({"relax.rewrap": 1, "num_input": 1})
        n = T.int64()
        m = T.int64()
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n, 4 * m), dtype="float32"))
            lv1: R.Tensor((n * m * 4,), "float32") = cls.helper(lv, R.shape([n, m]))
            gv: R.Tensor((n * m * 4,), "float32") = R.add(lv1, R.const(1, "float32"))
            R.output(gv)
        k = T.int64()
        lv2 = R.match_cast(gv, R.Tensor((k,), "float32"))
        s: R.Shape([n, m]) = R.shape([n, m])
        pv: R.Prim("int64") = R.prim_value(n * 2)
        _ = R.print(lv2, format="{}")
        _1: R.Tuple() = R.assert_op(R.const(True, "bool"), lv2, format="x is {}")
        return lv2
'''
GRAPH["calls"] = '''
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2, 3), "float32"), C: T.Buffer((2, 3), "float32")):
        for i, j in T.grid(2, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(2, 3):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * T.float32(2)
    @T.prim_func(private=True)
    def inplace(A: T.Buffer((2, 3), "float32")):
        for i, j in T.grid(2, 3):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi, vj] + T.float32(1)
    @R.function(pure=False)
    def main(x: R.Tensor((2, 3), "float32")):
        two = R.call_tir(Module.f, (x,), out_sinfo=[R.Tensor((2, 3), "float32"), R.Tensor((2, 3), dtype="float32")])
        a = two[0]
        b: R.Tensor((2, 3), "float32") = two[1]
        c = R.call_tir_inplace(Module.inplace, (a,), inplace_indices=[0], out_sinfo=R.Tensor((2, 3), "float32"))
        d = R.call_dps_packed("my.dps", (b, c), R.Tensor((2, 3), "float32"))
        e = R.call_packed("my.packed", d, R.str("mode"), R.prim_value(3), sinfo_args=(R.Tensor((2, 3), "float32"),))
        f = R.call_pure_packed("my.pure", e, sinfo_args=R.Tensor((2, 3), "float32"))
        g = R.call_pure_packed("vm.builtin.copy", f, sinfo_args=R.Tensor(ndim=2, dtype="float32"))
        h = R.null_value()
        s = R.shape_of(g)
        return (f, g, s)
'''
GRAPH["conditional"] = '''
@R.function
def main(cond: R.Tensor((), "bool"), x: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((2, 3), dtype="float32"):
    if cond:
        y = R.add(x, x)
    else:
        w = R.multiply(x, x)
        y = R.multiply(w, x)
    return y
'''
GRAPH["strings"] = '''
@R.function
def main(x: "R.Tensor((2, 3), 'float32')", y: "R.Tensor(('m',), 'float32')") -> "R.Tensor((2, 3), 'float32')":
    m = T.int64()
    z: "R.Tensor((2, 3), 'float32')" = R.add(x, R.const([[1.0], [2.0]], "float32"))
    return z
'''
GRAPH["ops"] = '''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 3, 32, 32), "float32"), w: R.Tensor((16, 3, 3, 3), "float32"), b: R.Tensor((1, 16, 1, 1), "float32")) -> R.Tensor((1, 10), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            lv: R.Tensor((1, 16, 32, 32), dtype="float32") = R.nn.conv2d(x, w, strides=[1, 1], padding=[1, 1, 1, 1], dilation=[1, 1], groups=1, data_layout="NCHW", kernel_layout="OIHW", out_layout="NCHW", out_dtype="float32")
            lv1 = R.add(lv, b)
            lv2 = R.nn.relu(lv1)
            lv3 = R.nn.max_pool2d(lv2, pool_size=[2, 2], strides=[2, 2], dilation=[1, 1], padding=[0, 0, 0, 0], layout="NCHW", out_layout="NCHW")
            lv4 = R.nn.adaptive_avg_pool2d(lv3, output_size=[1, 1], layout="NCHW")
            lv5 = R.reshape(lv4, R.shape([1, 16]))
            lv6 = R.permute_dims(lv5, axes=[1, 0])
            lv7 = R.matmul(lv5, lv6, out_dtype="void")
            lv8 = R.zeros(R.shape([1, 10]), dtype="float32")
            lv9 = R.broadcast_to(lv7, (1, 10))
            lv10 = R.nn.softmax(R.add(lv8, lv9), axis=-1)
            lv11 = R.split(lv10, indices_or_sections=2, axis=1)
            lv12 = lv11[0]
            lv13 = R.concat((lv12, lv11[1]), axis=1)
            lv14 = R.astype(R.where(R.greater(lv13, R.const(0.5, "float32")), lv13, lv13), dtype="float32")
            lv15 = R.strided_slice(lv14, axes=[0, 1], begin=[0, 0], end=[1, 10], strides=[1, 1])
            lv16 = R.take(lv15, R.const([0], "int64"), axis=0)
            lv17 = R.expand_dims(R.squeeze(lv16, axis=[0]), axis=0)
            lv18 = R.full(R.shape([1, 10]), R.const(2, "float32"), dtype="float32")
            lv19 = R.clip(R.maximum(lv17, lv18), min=0, max=R.prim_value(6))
            lv20 = R.nn.layer_norm(lv19, R.ones((10,), "float32"), R.zeros((10,), "float32"), axes=[-1], epsilon=1e-5)
            lv21 = R.mean(R.sum(lv20, axis=[0], keepdims=True), axis=None, keepdims=False)
            lv22 = R.variance(lv20, axis=-1, keepdims=True)
            lv23 = R.arange(0, 10, 1, dtype="int64")
            lv24 = R.one_hot(R.const([1], "int64"), R.prim_value(T.float32(1)), R.prim_value(T.float32(0)), depth=10, axis=-1)
            lv25 = R.nn.gelu(R.nn.silu(R.tril(lv20, 0)))
            lv26 = R.nn.dropout(lv25, rate=0.5)[0]
            gv = R.add(R.multiply(lv26, lv22), R.argmax(lv20, axis=1, keepdims=True).astype("float32")) if False else R.add(lv25, lv21)
            R.output(gv)
        return gv
'''
GRAPH["vdevice"] = '''
@I.ir_module
class Module:
    I.module_attrs({"attr": 10})
    I.module_global_infos({"vdevice": [I.vdevice({"kind": "cuda", "arch": "sm_80"}, 0, "global"), I.vdevice("llvm")]})
    @R.function
    def f(a: R.Tensor((128, 128), "float32", "cuda:0"), c: R.Tensor((128, 128), "float32", "vdevice:1")) -> R.Tensor((128, 128), "float32"):
        s = R.multiply(a, c)
        t = R.to_vdevice(s, I.vdevice("llvm"))
        u = R.hint_on_device(s, R.device(device_type=1, device_id=0)) if False else t
        return u
'''
GRAPH["closures"] = '''
@I.ir_module
class Module:
    @R.function
    def lifted(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        return R.add(x, y)
    @R.function(pure=False)
    def main(x: R.Tensor((2, 3), "float32")) -> R.Object:
        c = R.make_closure(Module.lifted, (x,))
        r = R.invoke_closure(c, (x,), sinfo_args=(R.Tensor((2, 3), "float32")))
        return r
'''
GRAPH["recursion_while"] = '''
@I.ir_module
class Module:
    @R.function
    def while_loop(i: R.Tensor((), "int32"), s: R.Tensor((1,), "float32")) -> R.Tensor((1,), "float32"):
        cond: R.Tensor((), "bool") = R.call_pure_packed("test.vm.less", i, R.const(10), sinfo_args=R.Tensor((), dtype="bool"))
        c = R.const(1, dtype="int32")
        if cond:
            new_i = R.add(i, c)
            new_s = R.add(s, s)
            r = Module.while_loop(new_i, new_s)
        else:
            r = s
        return r
'''
GRAPH["tuple_params"] = '''
@R.function
def main(x: R.Tensor((2,), "float32"), t: R.Tuple(R.Tensor((2,), "float32"), R.Tuple(R.Tensor((), "int64")))):
    a, b = t
    (c,) = b
    u = (x, (a, c))
    v = R.tuple(x, a)
    e = ()
    w: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")) = v
    return u
'''
GRAPH["mixture"] = '''
@tvm.script.ir_module
class MyModuleMixture:
    @T.prim_func
    def linear0(x: T.handle, w: T.handle, b: T.handle, z: T.handle):
        m, n, k = T.int64(), T.int64(), T.int64()
        X = T.match_buffer(x, (1, m), "float32")
        W = T.match_buffer(w, (n, m), "float32")
        B = T.match_buffer(b, (n, ), "float32")
        Z = T.match_buffer(z, (1, n), "float32")
        Y = T.alloc_buffer((1, n), "float32")
        for i, j, k in T.grid(1, n, m):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
        for i, j in T.grid(1, n):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]

    @R.function
    def main(x: R.Tensor((1, "m"), "float32"), w0: R.Tensor(("n", "m"), "float32"), b0: R.Tensor(("n", ), "float32"), w1: R.Tensor(("k", "n"), "float32"), b1: R.Tensor(("k", ), "float32")):
        m, n, k = T.int64(), T.int64(), T.int64()
        with R.dataflow():
            lv0 = R.call_dps_packed("env.linear", (x, w0, b0), R.Tensor((1, n), "float32"))
            lv1 = R.call_dps_packed("env.relu", (lv0, ), R.Tensor((1, n), "float32"))
            out = R.call_tir(MyModuleMixture.linear0, (lv1, w1, b1), R.Tensor((1, k), "float32"))
            R.output(out)
        return out
'''
GRAPH["old_relax_call_tir"] = '''
@tvm.script.ir_module
class M:
    @T.prim_func
    def relu(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (1, n), "float32")
        Y = T.match_buffer(y, (1, n), "float32")
        for i, j in T.grid(1, n):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.max(X[vi, vj], T.float32(0))
    @R.function
    def main(x: Tensor((1, 784), "float32")):
        with R.dataflow():
            lv0 = R.call_tir(relu, (x,), (1, 784), dtype="float32")
            R.output(lv0)
        return lv0
'''
GRAPH["module_attr_device"] = '''
@I.ir_module
class Module:
    I.module_attrs({"system_lib_prefix": "hello_"})
    @R.function
    def main(x: R.Tensor(("batch", 10), dtype="float32"), packed_params: R.Tuple(R.Tensor((10, 5), dtype="float32"), R.Tensor((5,), dtype="float32"))) -> R.Tensor(("batch", 5), dtype="float32"):
        batch = T.int64(is_size_var=True)
        R.func_attr({"num_input": 1})
        with R.dataflow():
            w: R.Tensor((10, 5), dtype="float32") = packed_params[0]
            b: R.Tensor((5,), dtype="float32") = packed_params[1]
            lv: R.Tensor((batch, 5), dtype="float32") = R.matmul(x, w, out_dtype="void")
            lv1: R.Tensor((batch, 5), dtype="float32") = R.add(lv, b)
            gv: R.Tensor((batch, 5), dtype="float32") = R.nn.relu(lv1)
            R.output(gv)
        return gv
'''
GRAPH["kv_cache"] = '''
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def append(var_cache: T.handle, var_new: T.handle, var_out: T.handle, pos: T.int64):
        T.func_attr({"tir.noalias": T.bool(True)})
        n = T.int64(is_size_var=True)
        cache = T.match_buffer(var_cache, (T.int64(64), T.int64(8)), "float16")
        new = T.match_buffer(var_new, (n, T.int64(8)), "float16")
        out = T.match_buffer(var_out, (T.int64(64), T.int64(8)), "float16")
        for i, j in T.grid(T.int64(64), T.int64(8)):
            with T.block("out"):
                vi, vj = T.axis.remap("SS", [i, j])
                out[vi, vj] = T.if_then_else(vi >= pos and vi < pos + n, new[vi - pos, vj], cache[vi, vj])
    @R.function
    def main(cache: R.Tensor((64, 8), "float16"), new: R.Tensor(("n", 8), "float16"), pos: R.Shape(["p"])) -> R.Tensor((64, 8), "float16"):
        p = T.int64()
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.append, (cache, new), out_sinfo=R.Tensor((64, 8), "float16"), tir_vars=R.shape([p]))
            R.output(gv)
        return gv
'''
GRAPH["attention_etc"] = '''
@I.ir_module
class Module:
    @R.function
    def main(q: R.Tensor((2, 4, 8, 16), "float32"), k: R.Tensor((2, 4, 8, 16), "float32"), v: R.Tensor((2, 4, 8, 16), "float32"), ids: R.Tensor((2, 4), "int64"), emb: R.Tensor((100, 16), "float32")):
        with R.dataflow():
            a = R.nn.attention(q, k, v, scale=0.25, causal_mask="TopLeft")
            b = R.permute_dims(a, [0, 2, 1, 3])
            c = R.reshape(b, (2, 8, 64)) if False else R.reshape(b, R.shape([2, -1]))
            d = R.take(emb, ids, axis=0)
            e = R.nn.rms_norm(d, R.ones((16,), "float32"), axes=[-1], epsilon=1e-5)
            f = R.cumsum(e, axis=1)
            g = R.topk(f, k=3, axis=-1, largest=True, ret_type="both", dtype="int64")
            h = R.repeat(g[0], 2, axis=1)
            i = R.flip(R.tile(h, (1, 1, 2)), axis=0)
            j = R.einsum((f, f), subscripts="bij,bkj->bik")
            l = R.nn.pad(j, pad_width=[0, 0, 1, 1, 1, 1], pad_value=0.0)
            m = R.stack([f, f], axis=0)
            n = R.full_like(f, R.const(1.0, "float32"))
            o = R.scatter_elements(f, R.const([[[0]]], "int64"), R.const([[[1.0]]], "float32"), axis=0, reduction="update")
            p = R.gather_elements(f, R.const([[[0]]], "int64"), axis=1)
            q1 = R.logical_and(R.less(f, n), R.isnan(f))
            r = R.power(R.sqrt(R.abs(f)), R.const(2.0, "float32"))
            s = R.max(f, axis=1)
            t = R.sort(f, axis=-1, descending=True)
            u = R.argsort(f, axis=-1, descending=False, dtype="int32")
            w = R.nn.log_softmax(f, axis=-1)
            x = R.nn.leakyrelu(R.nn.gelu_tanh(f), alpha=0.1)
            y = R.image.resize2d(R.reshape(f, (1, 2, 4, 16)), (8, 32), layout="NCHW", method="linear", coordinate_transformation_mode="half_pixel")
            z = R.nn.batch_norm(y, R.ones((2,), "float32"), R.zeros((2,), "float32"), R.zeros((2,), "float32"), R.ones((2,), "float32"), axis=1)
            R.output(c, i, l, m, o, p, q1, r, s, t, u, w, x, z)
        return (c, i, l, m, o, p, q1, r, s, t, u, w, x, z[0])
'''
GRAPH["relax_old"] = '''
@tvm.script.ir_module
class M:
    @R.function
    def foo(x: Tensor((m, n), "float32"), y: Object) -> Tensor:
        m, n = T.var("int64"), T.var("int64")
        lv0 = R.match_cast(x, R.Tensor((m, n), "float32"))
        with R.dataflow():
            lv1: R.Tensor = R.exp(lv0)
            gv0 = R.add(lv1, lv1)
            R.output(gv0)
        return gv0
'''
GRAPH["R_forms"] = '''
@I.ir_module
class M:
    @R.function(check_well_formed=False)
    def main(x: R.Tensor(("n",), dtype="float32"), s: R.Shape(["n", "2 * n"]), p: R.Prim(value="n")) -> R.Tuple(R.Tensor(dtype="float32", ndim=1), R.Prim("int64"), R.Shape(ndim=2)):
        n = T.int64(is_size_var=True)
        z = R.call_pure_packed("f", x, sinfo_args=(R.Tensor(ndim=1, dtype="float32"),))
        k = T.int64()
        w = R.match_cast(z, R.Tensor((k,), "float32"))
        u: R.Tensor((k,), dtype="float32") = R.add(w, R.const(2.0))
        q: R.Prim("int64") = R.prim_value(k + n)
        t = R.shape([k, n * 2])
        return (u, q, t)
'''
