# SPDX-License-Identifier: Apache-2.0
"""Operands whose neighbours lie side by side are laid out in panels by generic schedules that are to be measured: constants, and others that are read often."""

from __future__ import annotations

import numpy as np

import roundel as rd
from roundel import te
from roundel.ir import IRModule
from roundel.ir.digest import structural_digest
from roundel.strategy.generic.generic import generic
from roundel.strategy.pack_constants import relayout
from roundel.strategy.program import Program
from roundel.target import Target


def test_panels_of_constants():
    m, n, inner = 13, 43, 19
    a, b, k = te.placeholder((m, inner), "float32", "A"), te.placeholder((inner, n), "float32", "B"), te.reduce_axis((0, inner), "k")
    func = te.create_prim_func([a, b, te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "Y")]).with_attr("global_symbol", "main")
    target = Target("x86-64-v3")
    (of_data,), (sketch,) = generic(Program(func, target)), generic(Program(func, target, (1,)))
    assert 2 not in of_data.tables[0].columns["turned"]
    (table,) = sketch.tables
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((m, inner)).astype("float32"), rng.standard_normal((inner, n)).astype("float32")
    for row in rng.choice(np.flatnonzero(table.columns["turned"] == 2), 2, replace=False).tolist():
        applied = sketch.schedule(table.decisions(row))
        shape = [s.value for s in applied.func.buffer_params[1].shape]
        assert len(shape) == 3
        out = np.full((m, n), np.nan, dtype="float32")
        made = applied.func.replace(attrs=applied.func.attrs.without("constant_params"))
        rd.build(IRModule({"main": made}), target=target)["main"](x, relayout(w, applied.layouts[1], shape), out)
        np.testing.assert_allclose(out, x @ w, rtol=1e-5, atol=1e-4)


def test_panels_of_data_that_are_read_often():
    c, h, w, d = 6, 5, 37, 9
    a, b, k = te.placeholder((c, h, w), "float32", "A"), te.placeholder((c, h, w + d - 1), "float32", "B"), te.reduce_axis((0, c), "k")
    y = te.compute((d, h, w), lambda x, i, j: te.sum(a[k, i, j] * b[k, i, j + x], axis=k), "Y")
    func = te.create_prim_func([a, b, y]).with_attr("global_symbol", "main")
    target = Target("x86-64-v3")
    (sketch,) = generic(Program(func, target))
    (table,) = sketch.tables
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((c, h, w)).astype("float32"), rng.standard_normal((c, h, w + d - 1)).astype("float32")
    want = np.einsum("chw,chwx->xhw", x, np.lib.stride_tricks.sliding_window_view(y, d, 2))
    for row in rng.choice(np.flatnonzero(table.columns["turned"] == 3), 2, replace=False).tolist():
        applied = sketch.schedule(table.decisions(row))
        assert applied.func.script().count("sblock_alloc_buffer") == 1 + sketch.schedule({**table.decisions(row), "turned": 0}).func.script().count(
            "sblock_alloc_buffer")
        out = np.full((d, h, w), np.nan, dtype="float32")
        rd.build(IRModule({"main": applied.func}), target=target)["main"](x, y, out)
        np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


def test_tiles_may_be_whole_axes():
    a, b, k = te.placeholder((8, 64), "float32", "A"), te.placeholder((8, 9, 64), "float32", "B"), te.reduce_axis((0, 8), "k")
    func = te.create_prim_func([a, b, te.compute((9, 64), lambda i, j: te.sum(a[k, j] * b[k, i, j], axis=k), "Y")])
    (sketch,) = generic(Program(func, Target("znver4")))
    (table,) = sketch.tables
    assert 9 in table.columns["rows"] and 11 not in table.columns["rows"]


def test_no_two_candidates_are_one_program():
    x, k = te.placeholder((24, 48), "float32", "X"), te.reduce_axis((0, 48), "k")
    func = te.create_prim_func([x, te.compute((24,), lambda i: te.max(x[i, k], axis=k), "Y")])
    (sketch,) = generic(Program(func, Target("x86-64-v3")))
    (table,) = sketch.tables
    made = [structural_digest(sketch.schedule(table.decisions(row)).func) for row in range(len(table))]
    assert len(made) == len(set(made)) > 4
