# SPDX-License-Identifier: Apache-2.0
"""Register tiles of widths that vectors do not divide stay in registers and give the right results."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.build.build import lowered
from roundel.interp import interpret
from roundel.ir import IRModule, tir
from roundel.ir.visit import walk
from roundel.schedule import Schedule
from roundel.script import tir as T
from roundel.strategy.choose import attempt
from roundel.strategy.rules import contraction, rows
from roundel.target import Target


@T.prim_func
def product(A: T.Buffer((7, 9), "float32"), B: T.Buffer((9, 24), "float32"), C: T.Buffer((7, 24), "float32")):
    for i, j, k in T.grid(7, 24, 9):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def _scheduled(rows: int, lanes: int, func: tir.PrimFunc = product):
    sch = Schedule(func)
    block = sch.get_block("C")
    out = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, rows])
    j0, j1 = sch.split(j, [None, lanes])
    sch.reorder(i0, k, i1, j0, j1)
    sch.reverse_compute_at(out, i0)
    sch.unroll(i1)
    sch.unroll(j0)
    sch.vectorize(j1)
    init = sch.decompose_reduction(block, k)
    for b in (init, out):
        r, c = sch.get_loops(b)[1:3] if b is out else (sch.get_loops(b)[1], sch.get_loops(b)[2])
        sch.unroll(r)
        if b is out:
            c0, c1 = sch.split(c, [None, lanes])
            sch.unroll(c0)
            sch.vectorize(c1)
    return sch.func


@pytest.mark.parametrize("lanes", [16, 10])
def test_no_masks_on_registers(lanes):
    func = _scheduled(7, lanes)
    flat = next(f for _, f in lowered(IRModule({"f": func})).items() if isinstance(f, tir.PrimFunc))
    tiles = [n for n in walk(flat.body) if type(n) in (tir.BufferLoad, tir.BufferStore) and n.buffer.scope == "local"]
    assert tiles and all(n.predicate is None for n in tiles)
    assert not any(type(n) is tir.Select for n in walk(flat.body))  # a masked load gives zeros where it reads nothing
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype("float32") for s in ((7, 9), (9, 24)))
    c = np.full((7, 24), np.nan, "float32")
    rd.build(func)(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-6)


@T.prim_func
def row_sums(a: T.handle, b: T.handle):
    m, n = T.int64(), T.int64()
    A = T.match_buffer(a, (m, n), "float32")
    B = T.match_buffer(b, (m,), "float32")
    for i, k in T.grid(m, n):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


def test_partial_sums_stay_in_registers():
    """The last vectors of a row are added to them under a mask; a masked store would keep them in memory."""
    func = attempt(rows, row_sums, Target.host()).applied.func
    flat = [f for _, f in lowered(IRModule({"f": func})).items() if isinstance(f, tir.PrimFunc)]
    partial = [n for f in flat for n in walk(f.body) if type(n) is tir.BufferStore and n.buffer.scope == "local" and n.value.dtype.lanes > 1]
    assert any(type(n.value) is tir.Select for n in partial) and all(n.predicate is None for n in partial)
    for shape in ((3, 1), (2, 67), (1, 300)):
        a, b = np.random.default_rng(0).standard_normal(shape).astype("float32"), np.full(shape[:1], np.nan, "float32")
        rd.build(func)(a, b)
        np.testing.assert_allclose(b, a.sum(1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("columns, masks", [(24, True), (32, False)])
def test_padding_is_read_without_a_mask(columns, masks):
    """An operand that is as wide as whole vectors has something to be read beyond the last column of the result."""
    a, b, k = te.placeholder((7, 9), "float32", "A"), te.placeholder((9, columns), "float32", "B"), te.reduce_axis((0, 9), "k")
    func = te.create_prim_func([a, b, te.compute((7, 24), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "C")])
    flat = [f for _, f in lowered(IRModule({"f": _scheduled(7, 16, func)})).items() if isinstance(f, tir.PrimFunc)]
    loads = [n for f in flat for n in walk(f.body) if type(n) is tir.BufferLoad and n.buffer.name == "B"]
    assert loads and any(n.predicate is not None for n in loads) == masks


@pytest.mark.parametrize("width", [10, 21, 16])
def test_windows_of_vectors_that_are_not_full_stay_in_registers(width):
    """The elements of a row that a step of a convolution reads begin at zero, wherever the window is."""
    x, w = te.placeholder((3, 6, width + 2), "float32", "X"), te.placeholder((20, 3, 3, 3), "float32", "W")
    c, h, v = (te.reduce_axis((0, 3), n) for n in "chv")
    func = te.create_prim_func([x, w, te.compute((20, 4, width), lambda o, i, j: te.sum(x[c, i + h, j + v] * w[o, c, h, v], axis=[c, h, v]), "Y")])
    sch = attempt(contraction, func.with_attr("decisions", {"inner": 3, "unroll": 1, "rows": 4}), Target.host()).applied.schedule
    flat = [f for _, f in lowered(IRModule({"f": sch.func})).items() if isinstance(f, tir.PrimFunc)]
    tiles = [n for f in flat for n in walk(f.body) if type(n) is tir.Allocate]
    assert tiles and all(n.buffer.scope == "local" and "not_registers" not in n.annotations for n in tiles)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((3, 6, width + 2)).astype("float32"), rng.standard_normal((20, 3, 3, 3)).astype("float32")
    out = np.full((20, 4, width), np.nan, "float32")
    rd.build(sch.func)(a, b, out)
    windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3), axis=(1, 2))
    np.testing.assert_allclose(out, np.einsum("cijhv,ochv->oij", windows, b), rtol=1e-4, atol=1e-4)


@T.prim_func
def two_stages(A: T.Buffer((3, 5), "float32"), C: T.Buffer((5, 3), "float32")):
    for i in range(3):
        B, D = T.alloc_buffer((5,), "float32", scope="local"), T.alloc_buffer((5,), "float32", scope="local")
        for j in range(5):
            B[j] = A[i, j] * T.float32(2)
        for j in T.vectorized(8):
            if j < 5:
                D[j] = T.exp(B[j])
        for j in range(5):
            C[j, i] = D[j]


def test_local_memory_is_not_read_beyond_its_end():
    """Whole vectors of one buffer are computed from another one, which has no more elements than are stored to it."""
    flat = lowered(IRModule({"main": two_stages}))
    a, c = np.linspace(-1, 1, 15, dtype="float32").reshape(3, 5), np.full((5, 3), np.nan, "float32")
    interpret(flat)["main"](a, c)
    np.testing.assert_allclose(c, np.exp(a * 2).T, rtol=1e-6)


@T.prim_func
def chosen_elements(F: T.Buffer((5,), "float32"), A: T.Buffer((3, 5), "float32"), C: T.Buffer((5, 3), "float32")):
    for i in range(3):
        D = T.alloc_buffer((5,), "float32", scope="local")
        for j in range(5):
            D[j] = T.float32(0)
        for j in T.vectorized(8):
            if j < 5 and F[j] > T.float32(0):
                D[j] = A[i, j]
        for j in range(5):
            C[j, i] = D[j]


def test_a_guard_that_loads_is_not_asked_beyond_the_end():
    """What keeps the lanes within bounds goes away; the other part of the guard loads an element of each lane."""
    flat = lowered(IRModule({"main": chosen_elements}))
    a, f, c = np.linspace(-1, 1, 15, dtype="float32").reshape(3, 5), np.float32([1, -1, 2, 0, 3]), np.full((5, 3), np.nan, "float32")
    interpret(flat)["main"](f, a, c)
    np.testing.assert_array_equal(c, np.where(f > 0, a, 0).T)


@T.prim_func
def triangle(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (8, 16), "float32")
    B = T.match_buffer(b, (16,), "float32")
    row = T.alloc_buffer((8, 16), "float32", scope="local")
    total = T.alloc_buffer((16,), "float32", scope="local")
    for j in T.vectorized(16):
        with T.block("init"):
            vj = T.axis.spatial(16, j)
            total[vj] = T.float32(0)
    for k in T.serial(4):
        for k1 in T.unroll(2):
            for j in T.vectorized(16):
                with T.block("row"):
                    vk, vj = T.axis.spatial(8, k * 2 + k1), T.axis.spatial(16, j)
                    row[vk, vj] = A[vk, vj]
            for j in T.vectorized(16):
                with T.block("sum"):
                    vj, vk = T.axis.spatial(16, j), T.axis.reduce(8, k * 2 + k1)
                    total[vj] = total[vj] + T.if_then_else(vk <= vj, row[vk, vj], T.float32(0))
    for j in T.vectorized(16):
        with T.block("out"):
            vj = T.axis.spatial(16, j)
            B[vj] = total[vj]


def test_what_a_condition_leaves_out_of_a_register_is_zero():
    """A masked load gives zeros that count: without its mask, a product with a triangle summed all of the square."""
    a, b = np.arange(1, 129, dtype="float32").reshape(8, 16), np.full(16, np.nan, "float32")
    rd.build(triangle)(a, b)
    np.testing.assert_array_equal(b, np.where(np.arange(8)[:, None] <= np.arange(16), a, 0).sum(0))
    assert all(n.predicate is None for f in lowered(IRModule({"f": triangle})).functions.values() for n in walk(f.body)
               if type(n) in (tir.BufferLoad, tir.BufferStore) and n.buffer.scope == "local")
