# SPDX-License-Identifier: Apache-2.0
"""Where copies stand and how large they are, what partial results and tiles look like."""

from __future__ import annotations

import pytest

from roundel.ir import structural_equal
from roundel.ir.errors import ScheduleError
from roundel.schedule import HandleError, Schedule
from roundel.script import tir as T

from .programs import check


@T.prim_func
def three_in_a_row(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32"), D: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.sblock("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] + T.float32(1)
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi] * T.float32(2)
    for i in range(16):
        with T.sblock("D"):
            vi = T.axis.spatial(16, i)
            D[vi] = B[vi] + C[vi]


def names(sch: Schedule) -> list[str]:
    """The blocks under the root, in order."""
    return [sch.get(b).name for b in sch.get_child_blocks(sch.get_block("root"))]


def test_a_copy_stands_right_before_its_reader():
    sch = Schedule(three_in_a_row)
    sch.cache_read("D", 0, "local")
    sch.cache_write("C", 0, "local")
    sch.cache_write("D", 0, "local")
    assert names(sch) == ["B", "C", "B_local", "C_local", "D", "D_local"]
    check(sch, three_in_a_row)


@T.prim_func
def in_tiles(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32")):
    for i, j in T.grid(4, 4):
        with T.sblock("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 8:vi * 8 + 8, vj * 8:vj * 8 + 8])
            T.writes(B[vi * 8:vi * 8 + 8, vj * 8:vj * 8 + 8])
            for x, y in T.grid(8, 8):
                with T.sblock("B"):
                    vx = T.axis.spatial(32, vi * 8 + x)
                    vy = T.axis.spatial(32, vj * 8 + y)
                    B[vx, vy] = A[vx, vy] * T.float32(2)


def test_a_copy_in_a_block_is_of_the_size_of_what_the_block_touches():
    sch = Schedule(in_tiles)
    sch.cache_read("B", 0, "local")
    sch.cache_write("B", 0, "local")
    inside = sch.get(sch.get_block("tile"))
    assert [tuple(n.value for n in b.shape) for b in inside.alloc_buffers] == [(8, 8), (8, 8)]
    check(sch, in_tiles)


@T.prim_func
def threads(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for i, j in T.grid(64, 64):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)


def test_memory_that_threads_share_is_filled_by_all_of_them():
    sch = Schedule(threads)
    copy = sch.cache_read("B", 0, "shared")
    i, j = sch.get_loops("B")
    outer, thread = sch.split(i, [None, 8])
    sch.bind(outer, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    step, _ = sch.split(j, [None, 4])
    sch.compute_at(copy, step)
    assert [sch.get(x).extent.value for x in sch.get_loops(copy)[3:]] == [8, 4]
    check(sch, threads)


@T.prim_func
def turned(A: T.Buffer((10, 6), "float32"), C: T.Buffer((10, 6), "float32")):
    B = T.sblock_alloc_buffer((10, 6), "float32")
    for i, j in T.grid(10, 6):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(10, 6):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[9 - vi, vj]


def test_what_is_read_from_the_end_is_made_row_by_row():
    sch = Schedule(turned)
    sch.compute_at("B", sch.get_loops("C")[0])
    assert [sch.get(x).extent.value for x in sch.get_loops("B")] == [10, 6]
    check(sch, turned)


@T.prim_func
def total(A: T.Buffer((32,), "float32"), B: T.Buffer((), "float32")):
    for k in range(32):
        with T.sblock("B"):
            vk = T.axis.reduce(32, k)
            with T.init():
                B[()] = T.float32(0)
            B[()] = B[()] + A[vk]


def test_a_partial_result_of_one_value_has_no_init():
    sch = Schedule(total)
    part = sch.rfactor(sch.get_loops("B")[0], 0)
    assert sch.get(part).init is None
    check(sch, total)
    sch = Schedule(total)
    outer, _ = sch.split(sch.get_loops("B")[0], [None, 8])
    assert sch.get(sch.rfactor(outer, 0)).init is not None
    check(sch, total)


def test_indices_in_a_whole_tile_are_plain():
    sch = Schedule(threads)
    tile = sch.blockize(sch.get_loops("B")[1])
    assert sch.get(tile).body.body.block.body.indices[1].name == "vj_i"
    check(sch, threads)


def test_references_show_where_handles_point_now():
    sch = Schedule(threads)
    i, j = sch.get_loops("B")
    before = sch.get_sref(i)
    sch.parallel(i)
    assert sch.get_sref(i).stmt is sch.get(i) and sch.get_sref(i).stmt is not before.stmt
    sch.fuse(i, j)
    with pytest.raises(HandleError, match="no longer there"):
        sch.get_sref(j)
    with pytest.raises(IndexError):
        sch.get(j)
    assert issubclass(HandleError, ScheduleError)


def test_loops_around_come_first_in_values():
    sch = Schedule(turned)
    sch.compute_at("B", sch.get_loops("C")[1], preserve_unit_loops=True)
    again = Schedule(turned)
    sch.trace.apply_to_schedule(again)
    assert structural_equal(again.func, sch.func)
    assert "j + ax1" in sch.func.script()


@pytest.mark.parametrize(("thread", "scope"), [("blockIdx.x", "wmma.matrix_a"), ("blockIdx.x", "shared"), ("threadIdx.y", "wmma.accumulator")])
def test_threads_that_do_not_share_a_memory_each_have_their_own_copy(thread, scope):
    """The blocks of a grid, and the warps of a block, each hold their own tiles of registers."""
    sch = Schedule(threads)
    outer, _, _ = sch.split(sch.get_loops("B")[0], [None, 4, 2])
    sch.bind(outer, thread)
    copy = sch.cache_read("B", 0, scope)
    sch.compute_at(copy, outer)
    sch.cache_read("B", 0, scope)
    check(sch, threads)


def test_a_tile_is_a_loop_in_the_words_of_earlier_versions():
    sch = Schedule(threads)
    i, j = sch.get_loops("B")
    (i, ii), (j, ji) = sch.split(i, [None, 8]), sch.split(j, [None, 8])
    sch.reorder(i, j, ii, ji)
    assert sch.get(sch.blockize(loop=ii)).name == "B_o"
