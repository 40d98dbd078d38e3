# SPDX-License-Identifier: Apache-2.0
"""Tiles at the edge of a symbolic number of rows: no conditions in the innermost loop, the right results, nothing read outside."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.interp import interpret
from roundel.ir import IRModule, tir
from roundel.ir.dtype import INT64
from roundel.ir.visit import walk
from roundel.lower import lower
from roundel.schedule import Schedule
from roundel.script import tir as T
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target

SIX = {"sketch": "contraction", "rows": 6}


def _product(inner, columns, batched=False, decisions=None):
    m = tir.Var("m", INT64, True)
    lead = (2,) if batched else ()
    a, b = te.placeholder((*lead, m, inner), "float32", "A"), te.placeholder((inner, columns), "float32", "B")
    k = te.reduce_axis((0, inner), "k")
    c = te.compute((*lead, m, columns), lambda *i: te.sum(a[(*i[:-1], k.var)] * b[k.var, i[-1]], axis=[k]), "C")
    d = te.compute((*lead, m, columns), lambda *i: c[i] + 1.0, "D")
    func = te.create_prim_func([a, b, d]).with_attr("global_symbol", "main").with_attr("decisions", decisions or {})
    return IRModule({"main": schedule_program(func, Target.host())[0]}).replace(attrs={"target": Target.host()})


@pytest.mark.parametrize("inner, columns, batched", [(24, 96, False), (7, 40, False), (16, 48, True)])
def test_every_number_of_rows(inner, columns, batched):
    run = rd.build(_product(inner, columns, batched), threads=1)
    rng = np.random.default_rng(0)
    b = rng.standard_normal((inner, columns)).astype(np.float32)
    for rows in (1, 2, 7, 8, 9, 17, 31):
        a = rng.standard_normal(((2, rows) if batched else (rows,)) + (inner,)).astype(np.float32)
        out = np.full((*a.shape[:-1], columns), np.nan, np.float32)
        run["main"](a, b, out)
        np.testing.assert_allclose(out, a @ b + 1, rtol=1e-5, atol=1e-5)


def test_the_innermost_loop_asks_nothing():
    text = lower(_product(24, 96, decisions=SIX)).script()
    inner = [block for block in text.split("for k_0 in")[1:]]
    assert len(inner) == 5  # whole tiles, and four heights of the last one
    for part in inner:
        until_store = part.split("D[")[0]
        assert "if " not in until_store.rsplit("if ", 1)[0]


def test_the_last_tile_is_as_high_as_it_must_be():
    """Of one row, no six are computed."""
    tiles = [n.buffer for n in walk(lower(_product(24, 96, decisions=SIX))["main_task"].body) if type(n) is tir.Allocate and n.buffer.name == "C"]
    heights = [b.shape[0].value for b in tiles]
    assert heights == [6, 6, 3, 2, 1]


def test_every_number_of_rows_and_columns():
    m, n = (tir.Var(name, INT64, True) for name in "mn")
    a, b = te.placeholder((2, m, 6), "float32", "A"), te.placeholder((2, 6, n), "float32", "B")
    k = te.reduce_axis((0, 6), "k")
    c = te.compute((2, m, n), lambda h, i, j: te.sum(a[h, i, k.var] * b[h, k.var, j], axis=k), "C")
    d = te.compute((2, m, n), lambda h, i, j: c[h, i, j] * 2.0, "D")
    func = te.create_prim_func([a, b, d]).with_attr("global_symbol", "main")
    run = rd.build(IRModule({"main": schedule_program(func, Target.host())[0]}), threads=1)
    rng = np.random.default_rng(0)
    for rows, columns in [(1, 1), (3, 17), (14, 32), (15, 33), (29, 5), (2, 48)]:
        x, y = rng.standard_normal((2, rows, 6)).astype(np.float32), rng.standard_normal((2, 6, columns)).astype(np.float32)
        out = np.full((2, rows, columns), np.nan, np.float32)
        run["main"](x, y, out)
        np.testing.assert_allclose(out, x @ y * 2, rtol=1e-5, atol=1e-5)


def test_tiles_of_a_size_of_at_most_one_have_their_memory():
    """Tiles are allocated whole where the size itself bounds what else is read of them."""
    n = tir.Var("n", INT64, True)
    few = tir.Min(n, tir.index_const(1))
    a, b = te.placeholder((1, few), "float32", "A"), te.placeholder((1, 2), "float32", "B")
    spread = te.compute((1, few), lambda i, j: a[i, j] * 2.0, "S")
    k = te.reduce_axis((0, 1), "k")
    c = te.compute((2, few), lambda i, j: te.sum(spread[k.var, j] * b[k.var, i], axis=[k]), "C")
    func = te.create_prim_func([a, b, c]).with_attr("global_symbol", "main")
    lowered = lower(IRModule({"main": schedule_program(func, Target.host())[0]}).replace(attrs={"target": Target.host()}))
    tiles = [s.buffer for _, f in lowered.items() for s in walk(f.body) if type(s) is tir.Allocate and s.buffer.name.endswith("local")]
    assert tiles and all(d is not few for t in tiles for d in t.shape)


def test_tiles_beyond_the_edge_are_none():
    """In a loop that is cut at its own edge, inside of one over blocks of tiles."""
    m = tir.Var("m", INT64, True)
    a = te.placeholder((m,), "float32", "A")
    twice = te.compute((m,), lambda i: a[i] * 2.0, "L")
    sch = Schedule(te.create_prim_func([a, te.compute((m,), lambda i: twice[i] + 1.0, "C")]).with_attr("global_symbol", "main"))
    blocks, inside = sch.split(sch.get_loops(sch.get_block("C"))[0], [None, 16])
    block = sch.get_block("L")
    sch.compute_at(block, blocks)
    sch.set_scope(block, 0, "local")
    tiles, rows = sch.split(sch.get_loops(block)[-1], [None, 4])
    sch.unroll(rows)
    for loop in (tiles, inside):
        sch.annotate(loop, "edge", True)
    text = lower(IRModule({"main": sch.func})).script()
    assert "(m + 3) // 4" in text  # not all tiles of the last block
    run = rd.build(sch.func, threads=1)
    for n in (1, 4, 15, 16, 17, 30):
        x, out = np.arange(n, dtype=np.float32), np.full(n, np.nan, np.float32)
        run["main"](x, out)
        np.testing.assert_array_equal(out, 2 * x + 1)


@T.prim_func
def chosen_rows(f: T.handle, a: T.handle, c: T.handle):
    n = T.int64()
    F = T.match_buffer(f, (n,), "float32")
    A = T.match_buffer(a, (n, 4), "float32")
    C = T.match_buffer(c, (n, 4), "float32")
    D = T.alloc_buffer((n, 4), "float32", scope="local")
    for io in range((n + 7) // 8):
        for i in T.unroll(8):
            for j in T.vectorized(4):
                if io * 8 + i < n:
                    D[io * 8 + i, j] = T.float32(0)
        for i in T.unroll(8):
            for j in T.vectorized(4):
                if io * 8 + i < n and F[io * 8 + i] > T.float32(0):
                    D[io * 8 + i, j] = A[io * 8 + i, j]
        for i in T.unroll(8):
            for j in T.vectorized(4):
                if io * 8 + i < n:
                    C[io * 8 + i, j] = D[io * 8 + i, j]


@pytest.mark.parametrize("n", [1, 8, 13])
def test_a_guard_that_loads_is_not_asked_of_rows_beyond_the_end(n):
    rng, c = np.random.default_rng(0), np.full((n, 4), np.nan, np.float32)
    f, a = rng.standard_normal(n).astype(np.float32), rng.standard_normal((n, 4)).astype(np.float32)
    interpret(lower(IRModule({"main": chosen_rows})))["main"](f, a, c, n)
    np.testing.assert_array_equal(c, np.where(f[:, None] > 0, a, 0))
