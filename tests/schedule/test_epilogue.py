# SPDX-License-Identifier: Apache-2.0
"""fuse_reduction_epilogue: what is added becomes the start of the sum, anything else is refused."""

from __future__ import annotations

import pytest

from roundel import te
from roundel.ir import structural_equal, tir
from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule

from .programs import check


def product(end, *, also=False):
    """A @ B.T and what ``end`` makes of an element and its bias."""
    a, b, bias = te.placeholder((6, 8), name="A"), te.placeholder((5, 8), name="B"), te.placeholder((5,), name="bias")
    k = te.reduce_axis((0, 8), "k")
    c = te.compute((6, 5), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), "C")
    d = te.compute((6, 5), lambda i, j: end(c[i, j], bias[j]), "D")
    return te.create_prim_func([a, b, bias, d, *([te.compute((6, 5), lambda i, j: c[i, j] * 2.0, "E")] if also else [])])


@pytest.mark.parametrize("end", [lambda c, b: c + b, lambda c, b: b * 3.0 + c])
def test_a_bias_becomes_the_start_of_the_sum(end):
    func = product(end)
    sch = Schedule(func)
    sch.fuse_reduction_epilogue("C", "D")
    (block,) = sch.get_child_blocks(sch.get_block("root"))
    assert sch.get(block).writes[0].buffer.name == "D" and not sch.func.root_block.alloc_buffers
    check(sch, func)
    again = Schedule(func)
    sch.trace.apply_to_schedule(again)
    assert structural_equal(again.func, sch.func)


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (lambda c, b: tir.max_(c + b, 0.0), "every partial sum"),
        (lambda c, b: tir.min_(tir.max_(c, -5.0), 5.0), "every partial sum"),
        (lambda c, b: c * b, "every partial sum"),
        (lambda c, b: c + c, "does not depend on it"),
    ],
)
def test_what_is_done_to_the_whole_sum_is_refused(end, why):
    with pytest.raises(ScheduleError, match=why):
        Schedule(product(end)).fuse_reduction_epilogue("C", "D")


def test_a_sum_that_others_read_is_kept():
    with pytest.raises(ScheduleError, match="block E also touches C"):
        Schedule(product(lambda c, b: c + b, also=True)).fuse_reduction_epilogue("C", "D")
