# SPDX-License-Identifier: Apache-2.0
"""skip_zeros: what a border of zeros gives is not added."""

from __future__ import annotations

import pytest

from roundel import te
from roundel.ir import tir
from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule

from .programs import check, matmul


def _correlation(n: int = 9, k: int = 4) -> tir.PrimFunc:
    a, b, r = te.placeholder((n,), "float32", "A"), te.placeholder((k,), "float32", "B"), te.reduce_axis((0, k), "r")
    padded = te.compute((n + k,), lambda i: te.if_then_else(te.logical_and(i >= 2, i < n + 2), a[i - 2], tir.const(0.0, "float32")), "padded")
    return te.create_prim_func([a, b, te.compute((n + 1,), lambda i: te.sum(padded[i + r.var] * b[r.var], axis=r), "C")])


def test_terms_of_the_border_are_left_out():
    func = _correlation()
    sch = Schedule(func)
    sch.compute_inline(sch.get_block("padded"))
    block = sch.get_block("C")
    i, r = sch.get_loops(block)
    sch.split(i, [None, 4])
    sch.decompose_reduction(block, r)
    sch.skip_zeros(block)
    assert "if_then_else" not in sch.func.script() and "T.where" in sch.func.script()
    check(sch, func)


@pytest.mark.parametrize("least", [True, False])
def test_maxima_and_minima(least: bool):
    n, k = 9, 3
    a, r = te.placeholder((n,), "int32", "A"), te.reduce_axis((0, k), "r")
    fill = te.highest("int32") if least else te.lowest("int32")
    padded = te.compute((n + 2,), lambda i: te.if_then_else(te.logical_and(i >= 1, i < n + 1), a[i - 1], fill), "padded")
    over = te.min if least else te.max
    func = te.create_prim_func([a, te.compute((n,), lambda i: over(padded[i + r.var], axis=r), "C")])
    sch = Schedule(func)
    sch.compute_inline(sch.get_block("padded"))
    block = sch.get_block("C")
    sch.decompose_reduction(block, sch.get_loops(block)[1])
    sch.skip_zeros(block)
    assert "if_then_else" not in sch.func.script()
    check(sch, func)


def test_refused():
    sch = Schedule(matmul())
    block = sch.get_block("C")
    with pytest.raises(ScheduleError, match="init"):
        sch.skip_zeros(block)
    init = sch.decompose_reduction(block, sch.get_loops(block)[2])
    with pytest.raises(ScheduleError, match="border of zeros"):
        sch.skip_zeros(block)
    with pytest.raises(ScheduleError, match="sum up"):
        sch.skip_zeros(init)
