# SPDX-License-Identifier: Apache-2.0
"""Reductions along other axes than the columns: those of few iterations are written out, so that no branch ends them."""

from __future__ import annotations

import pytest

from roundel import te
from roundel.ir import tir
from roundel.ir.visit import statements
from roundel.strategy.choose import choose
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
