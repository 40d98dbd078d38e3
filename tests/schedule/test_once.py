# SPDX-License-Identifier: Apache-2.0
"""run_once: what iterations of a loop share is made in the first of them."""

from __future__ import annotations

import pytest

from roundel import te
from roundel.ir.errors import ScheduleError
from roundel.ir.module import IRModule
from roundel.lower import lower
from roundel.schedule import Schedule

from .programs import check


def widened(n=9, m=13, depth=10):
    """A product with a matrix of float16."""
    a, b = te.placeholder((n, depth), "float32", "A"), te.placeholder((depth, m), "float16", "B")
    k = te.reduce_axis((0, depth), "k")
    wide = te.compute((depth, m), lambda i, j: te.cast(b[i, j], "float32"), "wide")
    return te.create_prim_func([a, b, te.compute((n, m), lambda i, j: te.sum(a[i, k] * wide[k, j], axis=k), "C")])


@pytest.mark.parametrize(("rows", "columns", "unrolled"), [(3, 4, False), (2, 13, True), (4, 5, True), (9, 1, False)])
def test_in_the_first_tile_of_rows(rows, columns, unrolled):
    func = widened()
    sch = Schedule(func)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    tiles, row = sch.split(i, [None, rows])
    panels, column = sch.split(j, [None, columns])
    sch.reorder(panels, tiles, k, row, column)
    wide = sch.get_block("wide")
    sch.compute_at(wide, k)
    sch.decompose_reduction(block, k)
    sch.run_once(wide, tiles)
    assert f"{sch.get(tiles).loop_var.name} == 0" in sch.func.script()
    if unrolled:
        sch.unroll(panels)
    check(sch, func)
    flat = lower(IRModule({"main": sch.func}))["main"].script()
    assert 13 % columns or f"{sch.get(tiles).loop_var.name} == 0" not in flat  # the first tile is cut off


def test_refused():
    sch = Schedule(widened())
    block, wide = sch.get_block("C"), sch.get_block("wide")
    i, j, k = sch.get_loops(block)
    with pytest.raises(ScheduleError, match="not around"):
        sch.run_once(wide, i)
    with pytest.raises(ScheduleError, match="not complete"):
        sch.run_once(block, i)
    sch.compute_at(wide, k)
    with pytest.raises(ScheduleError, match="differs between"):
        sch.run_once(wide, j)
    sch.run_once(wide, i)
    with pytest.raises(ScheduleError):  # iterations keep their order now
        sch.parallel(i)
    other = Schedule(widened())
    i, j, k = other.get_loops(other.get_block("C"))
    other.compute_at(other.get_block("wide"), k)
    other.parallel(i)
    with pytest.raises(ScheduleError, match="one after another"):
        other.run_once(other.get_block("wide"), i)
