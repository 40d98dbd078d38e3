# SPDX-License-Identifier: Apache-2.0
"""What host functions do besides: constants, outputs of unknown shape, calls of registered functions, copies."""

from __future__ import annotations

from ...ir import tir
from ...ir.dtype import INT64, DType
from ...runtime.native import dlpack_code
from ..writes import writes
from .emitter import CALLS, Emitter
from .statements import check_memory

_DLTENSOR = "{ ptr, i32, i32, i32, i8, i8, i16, ptr, ptr, i64 }"


@writes(CALLS, "constant_ptr")
def _constant_ptr(em: Emitter, e: tir.Call) -> str:
    index = em.constants[e.args[0].value]
    table = em.context("constants")
    table = em.op(f"load ptr, ptr {table}, !invariant.load !0")
    return em.op(f"load ptr, ptr {em.op(f'getelementptr ptr, ptr {table}, i64 {index}')}, !invariant.load !0")


@writes(CALLS, "arena_ptr")
def _arena_ptr(em: Emitter, e: tir.Call) -> str:
    arena = em.op("load ptr, ptr %ctx, !invariant.load !0")
    return em.op(f"getelementptr i8, ptr {arena}, {em.typed(e.args[0])}")


@writes(CALLS, "copy_bytes")
def _copy_bytes(em: Emitter, e: tir.Call) -> str:
    target, source, size = e.args
    name = em.declare("llvm.memcpy.p0.p0.i64", "void", "ptr", "ptr", "i64", "i1")
    em.line(
        f"call void {name}({em.typed(target)}, {em.typed(source)}, i64 {em.value(tir.cast(size, INT64))}, i1 false)"
    )
    return ""


def _dims(em: Emitter, extents: tuple[tir.Expr, ...]) -> str:
    """An array of int64 on the stack."""
    array = em.alloca(f"[{max(len(extents), 1)} x i64], align 8")
    for k, extent in enumerate(extents):
        v = em.value(tir.cast(extent, INT64))
        em.line(f"store i64 {v}, ptr {em.op(f'getelementptr i64, ptr {array}, i64 {k}')}, align 8")
    return array


@writes(CALLS, "alloc_output")
def _alloc_output(em: Emitter, e: tir.Call) -> str:
    index, *extents = e.args
    name = em.declare("rd_alloc_output", "ptr", "ptr", "i32", "i32", "ptr")
    number = em.value(tir.cast(index, "int32"))
    memory = em.op(f"call ptr {name}(ptr %ctx, i32 {number}, i32 {len(extents)}, ptr {_dims(em, tuple(extents))})")
    check_memory(em, memory)
    return memory


@writes(CALLS, "heap_alloc")
def _heap_alloc(em: Emitter, e: tir.Call) -> str:
    name = em.declare("rd_heap_alloc", "ptr", "ptr", "i64")
    memory = em.op(f"call ptr {name}(ptr %ctx, i64 {em.value(tir.cast(e.args[0], INT64))})")
    check_memory(em, memory)
    return memory


@writes(CALLS, "heap_free")
def _heap_free(em: Emitter, e: tir.Call) -> str:
    em.line(f"call void {em.declare('rd_heap_free', 'void', 'ptr', 'ptr')}(ptr %ctx, {em.typed(e.args[0])})")
    return ""


def _slot(em: Emitter, e: tir.Call) -> str:
    """Where the pointer of a slot is kept: a variable of the function, null at first."""
    number = e.args[0].value
    if number not in em.slots:
        em.slots[number] = em.alloca("ptr, align 8")
        em.entry.append(f"  store ptr null, ptr {em.slots[number]}, align 8")
    return em.slots[number]


@writes(CALLS, "heap_keep")
def _heap_keep(em: Emitter, e: tir.Call) -> str:
    slot, memory = _slot(em, e), em.typed(e.args[1])
    former = em.op(f"load ptr, ptr {slot}, align 8")
    em.line(f"call void {em.declare('rd_heap_free', 'void', 'ptr', 'ptr')}(ptr %ctx, ptr {former})")
    em.line(f"store {memory}, ptr {slot}, align 8")
    return ""


@writes(CALLS, "heap_kept")
def _heap_kept(em: Emitter, e: tir.Call) -> str:
    return em.op(f"load ptr, ptr {_slot(em, e)}, align 8")


@writes(CALLS, "tensor_view")
def _tensor_view(em: Emitter, e: tir.Call) -> str:
    """(dtype, pointer, rank, extents...) as a DLTensor on the stack."""
    dtype, data, rank, *dims = e.args
    code, bits, lanes = dlpack_code(DType(dtype.value))
    tensor = em.alloca(f"{_DLTENSOR}, align 8")
    fields = [
        em.typed(data),
        "i32 1",
        "i32 0",
        f"i32 {rank.value}",
        f"i8 {code}",
        f"i8 {bits}",
        f"i16 {lanes}",
        f"ptr {_dims(em, tuple(dims))}",
        "ptr null",
        "i64 0",
    ]
    for k, field in enumerate(fields):
        em.line(f"store {field}, ptr {em.op(f'getelementptr {_DLTENSOR}, ptr {tensor}, i32 0, i32 {k}')}")
    return tensor


def _packed_operand(em: Emitter, a: tir.Expr) -> tuple[int, str]:
    """RdArgKind and the typed 8-byte value; a pointer that is no tensor is passed as the number of its address."""
    if type(a) is tir.StringImm:
        return 4, f"ptr {em.string(a.value)}"
    if a.dtype.is_handle:
        return 3 if type(a) is tir.Call and a.op == "tensor_view" else 1, em.typed(a)
    if a.dtype.is_float:
        return 2, f"double {em.value(tir.cast(a, 'float64'))}"
    return 1, f"i64 {em.value(tir.cast(a, INT64))}"


@writes(CALLS, "call_packed", "call_packed_into")
def _call_packed(em: Emitter, e: tir.Call) -> str:
    """(name, operands...); ``call_packed_into`` copies what is returned into its last operand, a tensor view."""
    name, *operands = e.args
    result = operands.pop() if e.op == "call_packed_into" else None
    array = em.alloca(f"[{max(len(operands), 1)} x {{ i64, i64 }}], align 8")
    for k, operand in enumerate(operands):
        kind, value = _packed_operand(em, operand)
        em.line(f"store i64 {kind}, ptr {em.op(f'getelementptr i64, ptr {array}, i64 {2 * k}')}, align 8")
        em.line(f"store {value}, ptr {em.op(f'getelementptr i64, ptr {array}, i64 {2 * k + 1}')}, align 8")
    function, types = "rd_" + e.op, ["ptr", "ptr", "i32", "ptr"]
    arguments = f"ptr %ctx, ptr {em.string(name.value)}, i32 {len(operands)}, ptr {array}"
    if result is not None:
        types.append("ptr")
        arguments += f", {em.typed(result)}"
    status = em.op(f"call i32 {em.declare(function, 'i32', *types)}({arguments})")
    holds, fails = em.name("ok"), em.name("fails")
    em.branch(em.op(f"icmp eq i32 {status}, 0"), holds, fails)
    em.start(fails)
    em.fail(status)
    em.start(holds)
    return status


@writes(CALLS, "start_profile", "stop_profile")
def _profile(em: Emitter, e: tir.Call) -> str:
    name = em.declare("rd_profile_begin" if e.op == "start_profile" else "rd_profile_end", "void", "ptr", "i32")
    em.line(f"call void {name}(ptr %ctx, i32 {em.value(tir.cast(e.args[0], 'int32'))})")
    return ""
