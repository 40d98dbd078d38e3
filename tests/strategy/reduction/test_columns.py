# SPDX-License-Identifier: Apache-2.0
"""Reductions along other axes than the columns: those of few iterations are written out, so that no branch ends them."""

from __future__ import annotations

import math

import pytest

from roundel import te
from roundel.ir import IRModule, tir
from roundel.ir.visit import statements, walk
from roundel.lower import lower
from roundel.strategy.choose import choose
from roundel.strategy.schedule_module import schedule_program
from roundel.strategy.statements import UNROLLED
from roundel.strategy.statements import statements as read_off
from roundel.target import Target


@pytest.mark.parametrize(("rows", "written"), [(2, True), (15, True), (16, True), (17, False), (100, False)])
def test_a_sum_of_few_rows_is_written_out(rows, written):
    x, k = te.placeholder((rows, 999), "float32", "X"), te.reduce_axis((0, rows), "k")
    func = te.create_prim_func([x, te.compute((999,), lambda j: te.sum(x[k.var, j], axis=[k]), "Y")])
    made = next(a.applied.func for a in choose(func, Target("znver5"), pins={"sketch": "columns"}) if a.fits)
    loops = [n for n in statements(made.body) if type(n) is tir.For and type(n.extent) is tir.IntImm and n.kind is not tir.ForKind.VECTORIZED]
    assert [n.kind is tir.ForKind.UNROLLED for n in loops if n.extent.value == rows] == [written]


@pytest.mark.parametrize(("rows", "threads"), [(15, True), (2, False)])
def test_columns_are_shared_out_by_what_they_take_with_the_caches(rows, threads):
    """Of 15 rows of 15990 numbers the additions alone would not pay for a parallel region."""
    x, k = te.placeholder((rows, 15990), "float32", "X"), te.reduce_axis((0, rows), "k")
    func = te.create_prim_func([x, te.compute((15990,), lambda j: te.sum(x[k.var, j], axis=[k]), "Y")])
    made = next(a.applied.func for a in choose(func, Target("sapphirerapids"), pins={"sketch": "columns"}) if a.fits)
    assert any(type(n) is tir.For and n.kind is tir.ForKind.PARALLEL for n in statements(made.body)) == threads


@pytest.mark.parametrize("width", [31, 20, 16, 12])
def test_rows_of_what_a_stage_keeps_begin_at_whole_vectors(width):
    """The last vector of a row, stored with a mask, must not reach into the next row: whoever loads that would wait for the store."""
    x, k = te.placeholder((40, 6, width), "float32", "X"), te.reduce_axis((0, 40), "k")
    half = te.compute((40, 6, width), lambda i, j, c: te.exp(x[i, j, c]), "H")
    func = te.create_prim_func([x, te.compute((6, width), lambda j, c: te.sum(half[k.var, j, c], axis=[k]), "Y")])
    pinned = func.with_attr("decisions", {"sketch": "columns", "vectors": 2 if width > 16 else 1}).with_attr("global_symbol", "main")
    mod = IRModule({"main": schedule_program(pinned, Target("znver4"))[0]}).replace(attrs={"target": Target("znver4")})
    kept = [n.buffer for f in lower(mod).functions.values() for n in walk(f.body) if type(n) is tir.Allocate and n.buffer.scope == "global"]
    assert kept and all(b.strides[-2].value % 16 == 0 if b.strides else b.shape[-1].value % 16 == 0 for b in kept), [(b.shape, b.strides) for b in kept]


def _log_sums(n: int) -> tir.PrimFunc:
    a, b, k = te.placeholder((n, n), "float32", "A"), te.placeholder((n, n), "float32", "B"), te.reduce_axis((0, n), "k")
    return te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.sum(te.exp(a[i, k.var] + b[k.var, j]), axis=[k]), "Y")])


@pytest.mark.parametrize("cpu", ["znver4", "x86-64-v3", "neoverse-v1"])
@pytest.mark.parametrize("rows", [12, 16, 128, 144])
def test_what_is_written_out_is_not_more_code_than_stays_near_a_core(rows, cpu):
    """Of a sum of sums both loops are short, and an exponential is a dozen instructions for each vector: a product of logarithms was 138 KB of code."""
    target = Target(cpu)
    made = next(a.applied.func for a in choose(_log_sums(rows), target, pins={"sketch": "columns"}) if a.fits)
    vectors = [math.prod(x.extent for x in s.loops if x.kind == UNROLLED) for s in read_off(made, target, {}) if s.operations]
    assert max(vectors) <= 64
