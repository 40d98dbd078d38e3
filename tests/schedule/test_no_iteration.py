# SPDX-License-Identifier: Apache-2.0
"""Loops that may have no iteration: what they would store is not stored for sure, and nothing is made of a loop that never runs."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.interp import run_prim_func
from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule
from roundel.script import tir as T


@T.prim_func
def never(V: T.Buffer((4,), "int32"), B: T.Buffer((4, 3), "int32")):
    for i in range(4):
        for _t in range(0):
            for j in range(3):
                with T.sblock("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = V[vi]


@T.prim_func
def triangle(V: T.Buffer((4,), "int32"), B: T.Buffer((4, 3), "int32")):
    for i in range(4):
        for _t in range(i):
            for j in range(3):
                with T.sblock("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = V[vi]


@T.prim_func
def memory(V: T.Buffer((4,), "int32"), B: T.Buffer((4, 3), "int32")):
    for i in range(4):
        for _t in range(T.Cast("int64", V[i]) % 2):
            for j in range(3):
                with T.sblock("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = V[vi]


@T.prim_func
def inside(V: T.Buffer((4,), "int32"), B: T.Buffer((4, 3), "int32")):
    for i in range(4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            for _t in range(vi):
                for j in range(3):
                    B[vi, j] = V[vi]


@T.prim_func
def partly(V: T.Buffer((4,), "int32"), B: T.Buffer((4, 3), "int32")):
    for i in range(1, 2):
        with T.sblock("B"):
            vi = T.axis.scan(2, i)
            for j in range(T.if_then_else(vi < 1, 3, 1)):
                B[0, j] = V[vi]


IDLE = [never, triangle, memory, inside, partly]
"""A row of B is stored as often as a loop runs that is part of no index: never, for some rows. Or fewer elements of it than there could be."""


def run(func):
    arrays = [np.array([2, 3, 4, 5], "int32"), np.arange(12, dtype="int32").reshape(4, 3)]
    run_prim_func(func, arrays)
    return arrays[1]


@pytest.mark.parametrize("func", IDLE)
@pytest.mark.parametrize("primitive", ["cache_write", "write_at"])
def test_elements_that_no_iteration_stores_are_not_copied_back(func, primitive):
    sch = Schedule(func)
    want = run(sch.func)
    try:
        if primitive == "cache_write":
            sch.cache_write("B", 0, "local")
        else:
            sch.write_at(sch.get_loops("B")[0], "B", 0, "local")
    except ScheduleError:
        return
    np.testing.assert_array_equal(run(sch.func), want)


def test_a_loop_that_runs_as_often_as_a_size_says_stores_everything():
    @T.prim_func
    def often(b: T.handle, v: T.handle):
        n = T.int64(is_size_var=True)
        _v = T.match_buffer(v, (n,), "int32")
        B = T.match_buffer(b, (4,), "int32")
        for i, _t in T.grid(4, n):
            with T.sblock("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = vi * 2

    sch = Schedule(often)
    sch.write_at(sch.get_loops("B")[0], "B", 0, "local")


@pytest.mark.parametrize("cut", [
    lambda sch, loop: sch.split(loop, [None, 4], mode="balanced"),
    lambda sch, loop: sch.split(loop, [None, 0], mode="balanced"),
    lambda sch, loop: sch.split(loop, [None, -2]),
    lambda sch, loop: sch.loop_partition(loop, [0, None]),
    lambda sch, loop: sch.merge(loop),
    lambda sch, loop: sch.merge(loop, loop),
    lambda sch, loop: sch.merge(),
])  # fmt: skip
def test_what_cuts_or_merges_no_iterations_is_refused(cut):
    sch = Schedule(never)
    before = sch.mod.script()
    with pytest.raises(ScheduleError):
        cut(sch, sch.get_loops("B")[1])
    assert sch.mod.script() == before


def test_a_block_does_not_move_to_where_a_condition_says_whether_it_runs():
    @T.prim_func
    def maybe(V: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
        if V[0] > 100:
            for i in range(4):
                with T.sblock("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = V[vi]
        for i in range(4):
            with T.sblock("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi] + 1

    sch = Schedule(maybe)
    with pytest.raises(ScheduleError, match="runs under a condition"):
        sch.reverse_compute_at("C", sch.get_loops("B")[0])


def test_a_moved_block_does_not_say_itself_what_is_needed_of_it():
    @T.prim_func
    def asks(V: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
        B = T.sblock_alloc_buffer((4,), "int32")
        for i in range(4):
            with T.sblock("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = V[vi]
        for i in range(4):
            with T.sblock("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[T.Cast("int64", B[vi]) % 4]

    sch = Schedule(asks)
    with pytest.raises(ScheduleError, match="what it stores tells"):
        sch.compute_at("B", sch.get_loops("C")[0])


def test_inits_that_run_for_some_results_only_stay():
    """The sum starts at its first iteration alone, which is that of one result."""

    @T.prim_func
    def once(V: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
        for i in range(4):
            with T.sblock("C"):
                vk = T.axis.reduce(4, i)
                vi = T.axis.spatial(4, (i + 1) % 4)
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + V[vk]

    sch = Schedule(once)
    with pytest.raises(ScheduleError, match="no init"):
        sch.decompose_reduction("C", sch.get_loops("C")[0])


def test_a_loop_that_may_not_run_says_nothing_of_what_stands_beside_it():
    """In the last row of the triangle there is no iteration, but the block beside it has one: the row that a split adds has none of both."""

    @T.prim_func
    def beside(V: T.Buffer((5,), "int32"), B: T.Buffer((5, 5), "int32"), C: T.Buffer((6,), "int32")):
        for i in range(5):
            for j in range(5 - i):
                with T.sblock("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = V[vi]
            with T.sblock("C"):
                vi = T.axis.spatial(5, i)
                C[0] = C[0] + V[0]

    def results(func):
        arrays = [np.arange(5, dtype="int32") + 1, np.zeros((5, 5), "int32"), np.zeros(6, "int32")]
        run_prim_func(func, arrays)
        return arrays

    sch = Schedule(beside)
    sch.split(sch.get_loops("B")[0], [3, None])
    for got, want in zip(results(sch.func), results(beside), strict=True):
        np.testing.assert_array_equal(got, want)
