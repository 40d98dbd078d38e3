# SPDX-License-Identifier: Apache-2.0
"""The effect of a call of an LLVM intrinsic is the intrinsic's: what it writes is no read-only memory, and is read again afterwards."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

import roundel as rd
from roundel.build import inspect
from roundel.ir import tir
from roundel.ir.tir.effect import Effect, llvm_effect
from roundel.script import parse

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("before"):
            v = T.axis.spatial(64, i)
            B[v] = A[v] * T.float32(2)
    with T.block("written"):
        T.reads(C[0:64])
        T.writes(A[0:64])
        T.evaluate({call})
    for i in range(64):
        with T.block("after"):
            v = T.axis.spatial(64, i)
            B[v] = B[v] + A[v]
"""
WRITES = {
    "memset": ('T.call_llvm_intrin("void", "llvm.memset.p0.i64", T.uint32(4), {a}, T.int8(0), T.int64(128), T.bool(False))', lambda c: (0, 32)),
    "memcpy": ('T.call_llvm_intrin("void", "llvm.memcpy.p0.p0.i64", T.uint32(4), {a}, {c}, T.int64(64), T.bool(False))', lambda c: (c[:16], 16)),
    "store": ('T.call_llvm_intrin("void", "llvm.masked.store.v4f32.p0", T.uint32(4), T.broadcast(T.float32(7), 4), {a}, T.int32(4), '
              "T.broadcast(T.bool(True), 4))", lambda c: (7, 4)),
    "said to be pure": ('T.call_llvm_pure_intrin("void", "llvm.memset.p0.i64", T.uint32(4), {a}, T.int8(0), T.int64(128), T.bool(False))', lambda c: (0, 32)),
}
POINTERS = {"address": "T.address_of({x}[0])", "data": "{x}.data", "access": 'T.tvm_access_ptr(T.type_annotation("float32"), {x}.data, 0, 64, 2)'}


@pytest.mark.parametrize("pointer", POINTERS.values(), ids=POINTERS)
@pytest.mark.parametrize("call, written", WRITES.values(), ids=WRITES)
def test_what_an_intrinsic_writes_is_read_again(call, written, pointer):
    func = parse(PROGRAM.format(call=call.format(a=pointer.format(x="A"), c=pointer.format(x="C"))))
    a, c = np.arange(64, dtype="f"), np.arange(64, dtype="f") + 100
    want = a.copy()
    value, count = written(c)
    want[:count] = value
    b = np.zeros(64, "f")
    rd.build(func)["main"](a, b, c)
    np.testing.assert_array_equal(a, want)
    np.testing.assert_array_equal(b, np.arange(64) * 2 + want)


def test_only_what_is_not_written_is_read_only():
    func = parse(PROGRAM.format(call=WRITES["memset"][0].format(a="T.address_of(A[0])")))
    declared = re.search(r"define .*", inspect(func).llvm).group()
    first = declared.split("ptr noalias")[2]
    assert "readonly" not in first
    pure = parse(PROGRAM.format(call='T.call_llvm_intrin("float32", "llvm.sqrt.f32", T.uint32(1), A[0])'))
    assert "readonly" in re.search(r"define .*", inspect(pure).llvm).group()


DECLARATIONS = """
float @llvm.fabs.f32(float); float @llvm.sqrt.f32(float); float @llvm.pow.f32(float, float); float @llvm.fma.f32(float, float, float)
float @llvm.ldexp.f32.i32(float, i32); i32 @llvm.lrint.i32.f32(float); float @llvm.copysign.f32(float, float); i32 @llvm.abs.i32(i32, i1)
i32 @llvm.ctpop.i32(i32); i32 @llvm.cttz.i32(i32, i1); i32 @llvm.bswap.i32(i32); i32 @llvm.fshl.i32(i32, i32, i32); i32 @llvm.smax.i32(i32, i32)
i32 @llvm.sadd.sat.i32(i32, i32); {i32, i1} @llvm.smul.with.overflow.i32(i32, i32); i32 @llvm.sshl.sat.i32(i32, i32)
i32 @llvm.fptosi.sat.i32.f32(float); float @llvm.vector.reduce.fadd.v4f32(float, <4 x float>); i32 @llvm.vector.reduce.add.v4i32(<4 x i32>)
float @llvm.exp2.f32(float); float @llvm.minimum.f32(float, float); float @llvm.canonicalize.f32(float); float @llvm.roundeven.f32(float)
<4 x float> @llvm.masked.load.v4f32.p0(ptr, i32, <4 x i1>, <4 x float>); <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr>, i32, <4 x i1>, <4 x float>)
<4 x float> @llvm.masked.expandload.v4f32(ptr, <4 x i1>, <4 x float>); <4 x float> @llvm.vp.load.v4f32.p0(ptr, <4 x i1>, i32)
void @llvm.masked.store.v4f32.p0(<4 x float>, ptr, i32, <4 x i1>); void @llvm.masked.scatter.v4f32.v4p0(<4 x float>, <4 x ptr>, i32, <4 x i1>)
void @llvm.masked.compressstore.v4f32(<4 x float>, ptr, <4 x i1>); void @llvm.vp.store.v4f32.p0(<4 x float>, ptr, <4 x i1>, i32)
void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1); void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1); void @llvm.memset.p0.i64(ptr, i8, i64, i1)
void @llvm.prefetch.p0(ptr, i32, i32, i32)
"""


@pytest.mark.parametrize("declaration", [d.strip() for d in re.split(r";|\n", DECLARATIONS.strip())])
def test_the_table_says_what_llvm_says(declaration):
    """LLVM adds its own attributes to the declaration of an intrinsic: ``memory(none)``, ``memory(argmem: read)``, ..."""
    said = re.search(r"memory\(([^)]*)\)", str(llvm.parse_assembly("declare " + declaration)))
    memory = said.group(1) if said else "anything"
    want = Effect.PURE if memory == "none" else Effect.READ if "write" not in memory and memory.endswith("read") else Effect.OPAQUE
    assert llvm_effect(re.search(r"@([\w.]+)", declaration).group(1)) is want


def test_what_the_table_lacks_is_what_the_call_says():
    for op, effect in (("call_llvm_intrin", Effect.OPAQUE), ("call_llvm_pure_intrin", Effect.PURE)):
        call = tir.Call(op, (tir.StringImm("llvm.aarch64.crc32b"), tir.const(0, "uint32")), tir.const(0, "int32").dtype)
        assert tir.effect(call) is effect
