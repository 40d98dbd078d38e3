# SPDX-License-Identifier: Apache-2.0
"""tensorize by hand: loops in any order, operands stored either way, sizes that are no whole number of tiles, symbolic rows."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.interp import interpret, run_prim_func
from roundel.intrinsics import TensorIntrin
from roundel.ir import Var
from roundel.ir.dtype import INT64
from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule
from roundel.script import tir as T

RNG = np.random.default_rng(0)
DOT, MATRIX = "dot_16x4_u8i8i32", "neon.smmla.product_2x2x8_i8i8i32"


def product(m, n, k, order, types=("uint8", "int8", "int32")):
    """C[i, j] += A * B; ``order``: for each operand N, stored as in mathematics, or T, transposed."""
    total = types[2]
    a = te.placeholder((m, k) if order[0] == "N" else (k, m), types[0], "A")
    b = te.placeholder((k, n) if order[1] == "N" else (n, k), types[1], "B")
    r = te.reduce_axis((0, k), "r")
    left = lambda i: a[i, r] if order[0] == "N" else a[r, i]
    right = lambda j: b[r, j] if order[1] == "N" else b[j, r]
    c = te.compute((m, n), lambda i, j: te.sum(left(i).astype(total) * right(j).astype(total), axis=r), "C")
    return te.create_prim_func([a, b, c]).with_attr("global_symbol", "main")


def tiled(func, sizes, inner, padding=None):
    """Tiles of these sizes of rows, columns and sums, their loops in the order ``inner`` (letters of i, j, k with a size above 1), tensorized."""
    sch = Schedule(func)
    block = sch.get_block("C")
    if padding:
        sch.pad_einsum(block, padding)
    pairs = [sch.split(loop, [None, n]) for loop, n in zip(sch.get_loops(block), sizes, strict=True)]
    outer = [p[0] for p in pairs]
    inside = {name: p[1] for name, p, n in zip("ijk", pairs, sizes, strict=True)}
    units = [loop for name, loop in inside.items() if name not in inner]
    sch.reorder(*outer[:2], *units, outer[2], *(inside[x] for x in inner))
    sch.decompose_reduction(block, outer[2])
    return sch, inside[inner[0]]


def agrees(sch, order, m, n, k, compiled=True, types=("uint8", "int8", "int32")):
    low = lambda t: np.iinfo(t).min
    a = RNG.integers(low(types[0]), np.iinfo(types[0]).max, (m, k), endpoint=True).astype(types[0])
    b = RNG.integers(low(types[1]), np.iinfo(types[1]).max, (k, n), endpoint=True).astype(types[1])
    x = np.ascontiguousarray(a if order[0] == "N" else a.T)
    y = np.ascontiguousarray(b if order[1] == "N" else b.T)
    for run in (interpret(sch.mod), *([rd.build(sch.mod, threads=1)] if compiled else [])):
        out = np.full((m, n), -1, np.int32)
        run["main"](x, y, out)
        np.testing.assert_array_equal(out, a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize("order", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize("inner", ["jk", "kj"])
def test_operands_stored_either_way_and_loops_in_any_order(order, inner):
    sch, loop = tiled(product(6, 32, 8, order), (1, 16, 4), inner)
    sch.tensorize(loop, DOT)
    assert "dot_accumulate" in sch.mod.script()
    agrees(sch, order, 6, 32, 8)


@pytest.mark.parametrize("inner", ["".join(p) for p in permutations("ijk")])
def test_all_orders_of_three_loops(inner):
    types = ("int8", "int8", "int32")
    sch, loop = tiled(product(4, 6, 16, "NT", types), (2, 2, 8), inner)
    sch.tensorize(loop, MATRIX)
    agrees(sch, "NT", 4, 6, 16, compiled=False, types=types)


@pytest.mark.parametrize("order", ["NN", "NT", "TN", "TT"])
def test_sizes_that_are_no_whole_tiles_are_padded(order):
    sch, loop = tiled(product(7, 60, 62, order), (1, 16, 4), "jk", padding=[1, 16, 4])
    sch.tensorize(loop, DOT)
    agrees(sch, order, 7, 60, 62)


def test_symbolic_rows():
    m = Var("m", INT64, True)
    sch, loop = tiled(product(m, 60, 62, "NN"), (1, 16, 4), "jk", padding=[1, 16, 4])
    sch.tensorize(loop, DOT)
    for rows in (1, 2, 17, 70):
        agrees(sch, "NN", rows, 60, 62)


def test_operands_with_axes_between_the_tile():
    """A layout in which another axis lies between those of the tile."""
    a, b, r = te.placeholder((4, 2, 3), "uint8", "A"), te.placeholder((3, 16, 2, 4), "int8", "B"), te.reduce_axis((0, 4), "r")
    c = te.compute((2, 3, 16), lambda g, h, j: te.sum(a[r, g, h].astype("int32") * b[h, j, g, r].astype("int32"), axis=r), "C")
    func = te.create_prim_func([a, b, c]).with_attr("global_symbol", "main")
    sch = Schedule(func)
    block = sch.get_block("C")
    j = sch.get_loops(block)[2]
    sch.decompose_reduction(block, j)
    sch.tensorize(j, DOT)
    x, y = RNG.integers(0, 255, (4, 2, 3)).astype(np.uint8), RNG.integers(-128, 127, (3, 16, 2, 4)).astype(np.int8)
    for run in (interpret(sch.mod), rd.build(sch.mod, threads=1)):
        out = np.zeros((2, 3, 16), np.int32)
        run["main"](x, y, out)
        np.testing.assert_array_equal(out, np.einsum("rgh,hjgr->ghj", x.astype(np.int32), y.astype(np.int32)))


def test_what_is_not_the_instruction_is_refused():
    sch, loop = tiled(product(4, 32, 8, "NN"), (1, 8, 4), "jk")
    with pytest.raises(ScheduleError, match="runs 8 times, and the instruction's 16 times"):
        sch.tensorize(loop, DOT)
    sch, loop = tiled(product(4, 32, 8, "NN", ("int8", "int8", "int32")), (1, 16, 4), "kj")
    with pytest.raises(ScheduleError, match="its computation differs"):
        sch.tensorize(loop, DOT)


def test_operands_of_an_instruction_share_no_memory_that_is_stored():
    @T.prim_func
    def moved(A: T.Buffer((20,), "float32"), C: T.Buffer((20,), "float32")):
        for i in range(4):
            for j in range(2, 6):
                with T.sblock("u"):
                    vi = T.axis.spatial(16, i * 4 + j - 2)
                    C[vi] = A[vi] * T.float32(2)

    @T.prim_func
    def shifted(C: T.Buffer((20,), "float32")):
        for i, j in T.grid(4, 4):
            with T.sblock("u"):
                vi = T.axis.spatial(16, i * 4 + j)
                C[vi] = C[vi + 1] * T.float32(2)

    @T.prim_func
    def doubled(a: T.handle, c: T.handle):
        A = T.match_buffer(a, (4,), "float32", offset_factor=1)
        C = T.match_buffer(c, (4,), "float32", offset_factor=1)
        with T.sblock("root"):
            T.reads(A[0:4])
            T.writes(C[0:4])
            for i in range(4):
                with T.sblock("u"):
                    vi = T.axis.spatial(4, i)
                    C[vi] = A[vi] * T.float32(2)

    TensorIntrin.register("test.double4_by_loops", doubled, doubled)
    sch = Schedule(shifted)
    with pytest.raises(ScheduleError, match="memory of another operand"):
        sch.tensorize(sch.get_loops("u")[1], "test.double4_by_loops")
    sch = Schedule(moved)
    sch.tensorize(sch.get_loops("u")[1], "test.double4_by_loops")
    arrays = [np.arange(20, dtype="float32"), np.zeros(20, "float32")]
    run_prim_func(sch.func, arrays)
    np.testing.assert_array_equal(arrays[1][:16], 2 * arrays[0][:16])
