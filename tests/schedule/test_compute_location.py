# SPDX-License-Identifier: Apache-2.0
"""compute_at, reverse_compute_at, inlining, caches and decompose_reduction on programs with tails."""

from __future__ import annotations

import pytest

from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule

from .programs import check, conv2d, elementwise, matmul, matmul_relu, softmax_like


@pytest.mark.parametrize("shape", [(12, 32, 8), (13, 17, 11), (1, 1, 1), (5, 3, 1)])
def test_register_tile_matmul(shape):
    func = matmul(*shape)
    sch = Schedule(func)
    block = sch.get_block("C")
    write = sch.cache_write(block, 0, "local")
    pack = sch.cache_read(block, 1, "global")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 6])
    j0, j1, j2 = sch.split(j, [None, 2, 4])
    k0, k1 = sch.split(k, [None, 4])
    sch.reorder(j0, i0, j1, k0, k1, i1, j2)
    sch.reverse_compute_at(write, j1)
    sch.compute_at(pack, j0)
    sch.decompose_reduction(block, k0)
    sch.vectorize(j2)
    sch.unroll(i1)
    sch.parallel(j0)
    check(sch, func)
    assert [b.name for b in map(sch.get, sch.get_child_blocks(sch.get_block("root")))] == [
        "B_global",
        "C_init",
        "C_update",
        "C_local",
    ]


def test_balanced_split_gives_siblings_that_are_scheduled_alike():
    func = matmul(16, 8, 5)
    sch = Schedule(func)
    i, j, k = sch.get_loops(sch.get_block("C"))
    made = sch.split(i, [None, 6], mode="balanced")
    assert [sch.get(x).extent.value for x in made] == [1, 6, 2, 5]
    for name, (outer, rows) in zip(("C", "C_1"), (made[:2], made[2:])):
        block = sch.get_block(name)
        write = sch.cache_write(block, 0, "local")
        _, _, j, k = sch.get_loops(block)
        j0, j1 = sch.split(j, [None, 4])
        sch.reorder(outer, j0, k, rows, j1)
        sch.reverse_compute_at(write, j0)
        sch.decompose_reduction(block, k)
        sch.vectorize(j1)
    check(sch, func)


def test_conv2d_with_padding_computed_per_tile():
    for stride in (1, 2):
        func = conv2d(stride=stride)
        sch = Schedule(func)
        conv, pad = sch.get_block("Y"), sch.get_block("P")
        oc, y, x, *reduce = sch.get_loops(conv)
        y0, y1 = sch.split(y, [None, 4])
        x0, x1 = sch.split(x, [None, 3])
        sch.reorder(y0, x0, oc, y1, x1, *reduce)
        sch.compute_at(pad, x0)
        check(sch, func)


def test_conv2d_with_inlined_padding():
    func = conv2d()
    sch = Schedule(func)
    sch.compute_inline(sch.get_block("P"))
    check(sch, func)
    assert len(sch.get_child_blocks(sch.get_block("root"))) == 1


def test_epilogue_goes_into_the_write_back():
    func = matmul_relu()
    sch = Schedule(func)
    block = sch.get_block("C")
    sch.compute_inline(sch.get_block("E"))
    write = sch.cache_write(block, 0, "local")
    sch.reverse_compute_inline(sch.get_block("F"))
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 4])
    sch.reorder(i0, k, i1, j)
    sch.reverse_compute_at(write, i0)
    check(sch, func)


def test_reverse_compute_at_a_row_needs_the_whole_sum():
    func = softmax_like()
    sch = Schedule(func)
    i, k = sch.get_loops(sch.get_block("S"))
    with pytest.raises(ScheduleError, match="still reducing over"):
        sch.reverse_compute_at(sch.get_block("C"), k)
    sch.reverse_compute_at(sch.get_block("C"), i)
    check(sch, func)


def test_compute_at_makes_a_sum_per_row():
    func = softmax_like()
    sch = Schedule(func)
    i, _ = sch.get_loops(sch.get_block("C"))
    sch.compute_at(sch.get_block("S"), i)
    check(sch, func)
    with pytest.raises(ScheduleError, match="already under"):
        sch.compute_at(sch.get_block("C"), i)


def test_errors_show_the_block_and_leave_the_schedule():
    sch = Schedule(elementwise())
    before = sch.mod
    i, _ = sch.get_loops(sch.get_block("B"))
    with pytest.raises(ScheduleError, match="output") as error:
        sch.compute_inline(sch.get_block("C"))
    assert 'T.sblock("C")' in str(error.value)
    sch.compute_inline(sch.get_block("B"))
    with pytest.raises(ScheduleError, match="no longer there"):
        sch.split(i, [None, 2])
    assert before is not sch.mod
    check(sch, elementwise())


def test_a_reduction_loop_is_not_parallel():
    sch = Schedule(matmul())
    i, j, k = sch.get_loops(sch.get_block("C"))
    for make in (sch.parallel, sch.vectorize):
        with pytest.raises(ScheduleError, match="reduce"):
            make(k)
    sch.parallel(sch.fuse(i, j))
    check(sch, matmul())


def test_decompose_inside_a_reduction_loop_is_refused():
    sch = Schedule(matmul())
    i, j, k = sch.get_loops(sch.get_block("C"))
    sch.reorder(k, i, j)
    with pytest.raises(ScheduleError, match="reduces"):
        sch.decompose_reduction(sch.get_block("C"), i)
    sch.decompose_reduction(sch.get_block("C"), k)
    check(sch, matmul())
