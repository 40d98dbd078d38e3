# SPDX-License-Identifier: Apache-2.0
"""drop_neutral: iterations of a reduction that meet nothing but its neutral element."""

from __future__ import annotations

import pytest

from roundel import te
from roundel.ir import PrimFunc, tir
from roundel.ir.errors import ScheduleError
from roundel.ir.module import IRModule
from roundel.lower import lower
from roundel.schedule import Schedule

from .programs import check


def triangular(n=21, m=10, reach=2, *, fill=0.0, below=True) -> PrimFunc:
    """Sums over ``k`` of a triangle of A times B, and the largest elements of the triangle."""
    a, b = te.placeholder((n, n), "float32", "A"), te.placeholder((n, m), "float32", "B")
    k = te.reduce_axis((0, n), "k")
    condition = lambda r, i: r <= i + reach if below else i + reach < r
    e = te.compute((n, n), lambda r, i: te.select(condition(r, i), a[r, i], tir.const(fill, "float32")), "E")
    if fill:
        c = te.compute((n,), lambda i: te.max_number(e[k, i], axis=k), "C")
        return te.create_prim_func([a, c])
    c = te.compute((n, m), lambda i, j: te.sum(e[k, i] * b[k, j], axis=k), "C")
    return te.create_prim_func([a, b, c])


@pytest.mark.parametrize(("reach", "tile", "step", "granule"), [(0, 4, 1, 1), (2, 4, 1, 6), (-3, 5, 3, 6), (40, 4, 1, 1), (-40, 8, 1, 1), (1, 1, 7, 7)])
def test_sums_over_a_triangle(reach, tile, step, granule):
    func = triangular(reach=reach)
    sch = Schedule(func)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    rows, inside = sch.split(i, [None, tile])
    outer, inner = sch.split(k, [None, step])
    sch.reorder(rows, outer, inner, inside, j)
    sch.decompose_reduction(block, outer)
    try:
        sch.drop_neutral(block, outer, granule)
    except ScheduleError:
        assert reach == 40  # every row sees all
    sch.compute_at(sch.get_block("E"), rows)  # only what is needed of it
    check(sch, func)
    lower(IRModule({"main": sch.func}))


def test_largest_of_a_triangle():
    func = triangular(fill=float("-inf"))
    sch = Schedule(func)
    block = sch.get_block("C")
    i, k = sch.get_loops(block)
    sch.decompose_reduction(block, k)
    sch.drop_neutral(block, k)
    sch.parallel(i)
    check(sch, func)
    assert "T.where(k < i + 3)" in sch.func.script()


def test_what_is_refused():
    sch = Schedule(triangular())
    block = sch.get_block("C")
    with pytest.raises(ScheduleError, match="init"):
        sch.drop_neutral(block, sch.get_loops(block)[2])
    sch = Schedule(triangular(fill=1.0, n=5))
    block = sch.get_block("C")
    _, k = sch.get_loops(block)
    sch.decompose_reduction(block, k)
    with pytest.raises(ScheduleError, match="neutral"):
        sch.drop_neutral(block, k)
    sch = Schedule(triangular(below=False))
    block = sch.get_block("C")
    _, j, k = sch.get_loops(block)
    sch.decompose_reduction(block, k)
    for loop in (k, j):
        with pytest.raises(ScheduleError, match="neutral|only reduce"):
            sch.drop_neutral(block, loop)
