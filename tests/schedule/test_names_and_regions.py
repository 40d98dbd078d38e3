# SPDX-License-Identifier: Apache-2.0
"""What a buffer is called and said to be touched: views of one memory under several names, regions that a view or the user tells."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.interp import run_prim_func
from roundel.ir import IRModule
from roundel.ir.errors import ScheduleError
from roundel.passes.well_formed import well_formed
from roundel.schedule import Schedule
from roundel.script import tir as T


@T.prim_func
def sums_beside_a_view(A: T.Buffer((4, 3), "int32"), W: T.Buffer((4,), "int32")):
    for i in range(2):
        with T.sblock("outer"):
            _vo = T.axis.spatial(2, i)
            view = T.match_buffer(W[0:4], (4,), "int32")
            for j in range(4):
                W[(j + 1) % 4] = A[j, 0]
                for k in range(3):
                    with T.sblock("sum"):
                        vj, vk = T.axis.remap("SR", [j, k])
                        with T.init():
                            view[vj] = 0
                        view[vj] = view[vj] + A[vj, vk]


@T.prim_func
def condition_through_a_view(A: T.Buffer((4, 3), "int32"), W: T.Buffer((4,), "int32")):
    for i in range(1):
        with T.sblock("outer"):
            _vo = T.axis.spatial(1, i)
            view = T.match_buffer(W[0:4], (4,), "int32")
            for j in range(4):
                for _t in range(T.Cast("int64", view[1]) % 3):
                    with T.sblock("store"):
                        vj = T.axis.spatial(4, j)
                        W[vj] = A[vj, 0] + 1


def run(func):
    arrays = [np.arange(12, dtype="int32").reshape(4, 3), np.array([2, 1, 3, 4], "int32")]
    run_prim_func(func, arrays)
    return arrays[1]


@pytest.mark.parametrize(("func", "change"), [
    (sums_beside_a_view, lambda sch: sch.decompose_reduction("sum", sch.get_loops("sum")[0])),
    (condition_through_a_view, lambda sch: sch.split(sch.get_loops("store")[1], [None, 2])),
    (condition_through_a_view, lambda sch: sch.reorder(*sch.get_loops("store")[::-1])),
])  # fmt: skip
def test_one_memory_under_two_names(func, change):
    sch = Schedule(func)
    with pytest.raises(ScheduleError):
        change(sch)
    np.testing.assert_array_equal(run(sch.func), run(func))


def test_a_loop_that_a_view_tells_reads_what_the_view_is_of():
    @T.prim_func
    def told(V: T.Buffer((4,), "int32"), Z: T.Buffer((4,), "int32")):
        for i in range(4):
            with T.sblock("outer"):
                vi = T.axis.spatial(4, i)
                view = T.match_buffer(V[vi], (1,), "int32")
                for j in range(T.Cast("int64", view[0]) % 4):
                    with T.sblock("store"):
                        vj = T.axis.spatial(4, j)
                        Z[vj] = V[vj] + 1

    sch = Schedule(told)
    assert not well_formed(sch.mod)
    sch.loop_partition(sch.get_loops("outer")[0], [1, None])
    assert not well_formed(sch.mod)
    assert "view" not in str(sch.get(sch.get_block("outer")).reads)


@pytest.mark.parametrize("change", [
    lambda sch: sch.transform_layout("B", ("read", 0), lambda i, j: (j, i)),
    lambda sch: sch.transform_layout("B", ("read", 0), lambda i, j: (i // 2, j, i % 2)),
    lambda sch: sch.rfactor(sch.get_loops("B")[1], 1),
])  # fmt: skip
def test_a_region_that_was_told_holds_for_the_buffer_it_was_told_of(change):
    @T.prim_func
    def rows(A: T.Buffer((4, 6), "int32"), B: T.Buffer((4,), "int32")):
        T0 = T.sblock_alloc_buffer((4, 6), "int32")
        for i, j in T.grid(4, 6):
            with T.sblock("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                T0[vi, vj] = A[vi, vj] * 2
        for i, k in T.grid(4, 6):
            with T.sblock("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + T0[vi, vk]

    sch = Schedule(rows)
    sch.annotate_buffer_access("B", 0, "read", lambda i, k: [(i, i + 1), (0, 6)])
    sch.annotate_buffer_access("B", 0, "write", lambda i, k: [(i, i + 1)])
    change(sch)
    assert not well_formed(IRModule({"main": sch.func}))
    a, want, got = np.arange(24, dtype="int32").reshape(4, 6), np.zeros(4, "int32"), np.zeros(4, "int32")
    run_prim_func(rows, [a, want])
    run_prim_func(sch.func, [a, got])
    np.testing.assert_array_equal(got, want)


def test_an_init_that_depends_on_what_is_reduced_over_stays():
    @T.prim_func
    def moving(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4,), "int32")):
        for i, k in T.grid(4, 2):
            with T.sblock("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[(vi + vk) % 4] = 0
                B[vi] = B[vi] + A[vi, vk]

    sch = Schedule(moving)
    with pytest.raises(ScheduleError, match="depends on what it reduces over"):
        sch.decompose_reduction("B", sch.get_loops("B")[1])
