# SPDX-License-Identifier: Apache-2.0
"""The regions found in block bodies are those that a person would declare."""

import pytest

from roundel import te
from roundel.arith import Analyzer, block_access, same_region
from roundel.ir import Visitor, on, tir
from roundel.script import tir as T


def blocks(func):
    """The blocks of a function by name."""
    out = {}

    class Find(Visitor):
        @on(tir.Block)
        def _block(self, b):
            out[b.name] = b
            self.generic(b)

    Find().visit(func.body)
    return out


def check(block, buffer_map=()):
    an = Analyzer()
    for got, declared in zip(block_access(block, buffer_map), (block.reads, block.writes), strict=True):
        assert [r.buffer.name for r in got] == [r.buffer.name for r in declared]
        for a, b in zip(got, declared, strict=True):
            assert same_region(a.region, b.region, an), (a, b)


@T.prim_func
def matmul(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")):
    for i, j, k in T.grid(32, 128, 128):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi * 4 : vi * 4 + 4, vk], B[vj, vk])
            T.writes(C[vi * 4 : vi * 4 + 4, vj])
            with T.init():
                for ii in range(4):
                    C[vi * 4 + ii, vj] = 0.0
            for ii in range(4):
                C[vi * 4 + ii, vj] = C[vi * 4 + ii, vj] + A[vi * 4 + ii, vk] * B[vj, vk]


@T.prim_func
def nested(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("outer"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16])
            T.writes(B[vj * 16 : vj * 16 + 16, vi * 16 : vi * 16 + 16])
            buf = T.alloc_buffer((16, 16), "float32")
            for x, y in T.grid(16, 16):
                with T.block("load"):
                    vx, vy = T.axis.remap("SS", [x, y])
                    T.reads(A[vi * 16 + vx, vj * 16 + vy])
                    T.writes(buf[vx, vy])
                    buf[vx, vy] = A[vi * 16 + vx, vj * 16 + vy]
            for x, y in T.grid(16, 16):
                with T.block("store"):
                    vx, vy = T.axis.remap("SS", [x, y])
                    T.reads(buf[vy, vx])
                    T.writes(B[vj * 16 + vx, vi * 16 + vy])
                    B[vj * 16 + vx, vi * 16 + vy] = buf[vy, vx]


@T.prim_func
def conditional(a: T.handle, b: T.handle, idx: T.Buffer((32,), "int32")):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n, 16), "float32")
    for i in range(n):
        with T.block("pad"):
            vi = T.axis.spatial(n, i)
            T.reads(A[vi - 1 : vi + 3], idx[0:4])
            T.writes(B[vi, 0:16])
            for j in range(16):
                B[vi, j] = T.if_then_else(j < 4, A[vi + j - 1] + T.Cast("float32", idx[j]), 0.0)
    for i in range(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            T.reads(A[0:n], idx[0:4])
            T.writes(B[vi, 3])
            for j in range(4):
                B[vi, 3] = A[idx[j]]


@T.prim_func
def opaque(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(4):
        with T.block("call"):
            vi = T.axis.spatial(4, i)
            T.reads(B[vi], A[0:64, 0:64])
            T.writes(A[0:64, 0:64])
            T.evaluate(T.call_extern("int32", "f", B[vi], A.data))


@T.prim_func
def vectors(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for i in range(16):
        with T.block("v"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi, vi * 4 : vi * 4 + 4])
            T.writes(B[vi, vi * 4 : vi * 4 + 4])
            B[vi, T.Ramp(vi * 4, 1, 4)] = A[vi, T.Ramp(vi * 4, 1, 4)]


@T.prim_func
def view(A: T.Buffer((8, 64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("w"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vi * 16 + 2, vj * 16 : vj * 16 + 16])
            T.writes(B[vi, vj * 16 : vj * 16 + 16])
            W = T.match_buffer(
                A[vi, vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16], (16, 16), "float32", offset_factor=1
            )
            for x in range(16):
                B[vi, vj * 16 + x] = W[2, x]


@pytest.mark.parametrize(
    "func, name",
    [
        (matmul, "C"),
        (nested, "outer"),
        (nested, "load"),
        (nested, "store"),
        (conditional, "pad"),
        (conditional, "gather"),
        (opaque, "call"),
        (vectors, "v"),
        (view, "w"),
    ],
)
def test_regions_are_the_declared_ones(func, name):
    check(blocks(func)[name], [b for b in func.buffer_params])


def test_undeclared_inner_blocks_are_looked_into():
    outer = blocks(nested)["outer"]

    def strip(s):
        if isinstance(s, tir.BlockRealize):
            return s.replace(block=s.block.replace(reads=(), writes=()))
        if isinstance(s, tir.Seq):
            return s.replace(stmts=tuple(map(strip, s.stmts)))
        return s.replace(body=strip(s.body)) if isinstance(s, tir.For) else s

    check(outer.replace(body=strip(outer.body)))


def test_numbers_of_elements_are_those_of_a_script():
    """Whatever the type of the variables: what is computed equals what is written."""

    @T.prim_func
    def rows(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32"), n: T.int32):
        for i in range(n):
            with T.sblock("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi, 0] + A[vi, 3]

    block = blocks(rows)["B"]
    assert [r.extent.dtype for region in (*block.reads, *block.writes) for r in region.region] == ["int64"] * 3


def test_an_index_that_is_no_integer_bounds_nothing():
    A, B = te.placeholder((5, 5), name="A"), te.placeholder((5,), name="B")
    block = blocks(te.create_prim_func([A, B, te.compute((5,), lambda i: A[i, B[i]] + A[i, 0], name="C")]))["C"]
    assert str(next(r for r in block.reads if r.buffer.name == "A")) == "A[v_i, 0:5]"
