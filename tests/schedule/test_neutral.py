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


def blocks_of_sums(reach=2) -> Schedule:
    """Sums over blocks of rows of a triangle, and their sums."""
    sch = Schedule(triangular(reach=reach))
    block = sch.get_block("C")
    k = sch.get_loops(block)[2]
    outer, _ = sch.split(k, [None, 4])
    part = sch.rfactor(outer, 0)
    i, j, blocks = sch.get_loops(block)
    rows, inside = sch.split(i, [None, 5])
    sch.reorder(rows, blocks, inside, j)
    sch.compute_at(part, blocks)
    sch.decompose_reduction(block, blocks)
    sch.drop_neutral(block, blocks)
    return sch


@pytest.mark.parametrize("reach", [0, 2, -4, 9])
def test_blocks_of_sums_over_a_triangle(reach):
    sch = blocks_of_sums(reach)
    blocks = sch.get_loops(sch.get_block("C_update"))[1]
    sch.compute_at(sch.get_block("E"), blocks)
    sch.drop_unused(blocks)
    check(sch, triangular(reach=reach))
    assert sch.func.script().count("T.where") >= 3  # of the triangle, its sums, theirs
    lower(IRModule({"main": sch.func}))


def test_what_is_used_after_a_loop_is_made():
    sch = Schedule(triangular())
    with pytest.raises(ScheduleError, match="used after it"):
        sch.drop_unused(sch.get_loops(sch.get_block("E"))[0])
    sch = blocks_of_sums()
    rows = sch.get_loops(sch.get_block("C_update"))[0]
    with pytest.raises(ScheduleError, match="used after it"):
        sch.drop_unused(rows)  # all rows are
