# SPDX-License-Identifier: Apache-2.0
"""What one analysis of accesses says about the order of iterations: which primitives it lets through, and which not."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.interp import run_prim_func
from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule
from roundel.script import tir as T
from roundel.strategy import schedule_program
from roundel.target import Target

from .programs import check, matmul, results

RUN_AT_ONCE = ("parallel", "vectorize", "bind")


@T.prim_func
def scan(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(15):
        with T.sblock("B"):
            vi = T.axis.spatial(15, i)
            T.reads(B[vi], A[vi])
            T.writes(B[vi + 1])
            B[vi + 1] = B[vi] + A[vi]


@T.prim_func
def race(A: T.Buffer((64, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(64, 8):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            B[vk] = B[vk] + A[vi, vk]


@T.prim_func
def skewed(A: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(7, 7):
        with T.sblock("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj + 1])
            T.writes(A[vi + 1, vj])
            A[vi + 1, vj] = A[vi, vj + 1] + T.float32(1)


@T.prim_func
def alternating(A: T.Buffer((4, 6), "float32"), B: T.Buffer((4,), "float32")):
    for i, k0, k1 in T.grid(4, 2, 3):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(6, k0 * 3 + k1)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = A[vi, vk] - B[vi]


@T.prim_func
def rows(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32"), D: T.Buffer((8,), "float32")):
    row = T.sblock_alloc_buffer((8,), "float32")
    for i in range(4):
        for j in range(8):
            with T.sblock("row"):
                vi, vj = T.axis.remap("SS", [i, j])
                row[vj] = A[vi, vj] * T.float32(2)
        for j in range(8):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = row[7 - vj]
    for j in range(8):
        with T.sblock("D"):
            vj = T.axis.spatial(8, j)
            D[vj] = row[vj]


@T.prim_func
def digits(A: T.Buffer((60,), "float32"), B: T.Buffer((3, 4, 5), "float32")):
    for f in range(60):
        with T.sblock("B"):
            v = T.axis.spatial(60, f)
            B[v // 20, v // 5 % 4, v % 5] = A[v]


@T.prim_func
def in_tiles(A: T.Buffer((2, 4, 9), "float32"), B: T.Buffer((2, 36), "float32")):
    for f, k in T.grid(8, 16):
        with T.sblock("B"):
            a, t = T.axis.spatial(2, f // 4), T.axis.spatial(4, f % 4)
            v = T.axis.spatial(9, k)
            T.where(k < 9)
            B[a, t * 9 + v] = A[a, t, v]


@T.prim_func
def beyond_tiles(A: T.Buffer((2, 4, 9), "float32"), B: T.Buffer((2, 36), "float32")):
    for f, k in T.grid(8, 12):
        with T.sblock("B"):
            a, t = T.axis.spatial(2, f // 4), T.axis.spatial(4, f % 4)
            v = T.axis.spatial(12, k)
            T.where(f % 4 * 9 + k < 36)
            B[a, t * 9 + v] = A[a, t, v]


def at_once(func, name: str, which: int) -> Schedule:
    """One of the loops of the only block run at once."""
    sch = Schedule(func)
    loop = sch.get_loops(sch.get_child_blocks(sch.get_block("root"))[0])[which]
    getattr(sch, name)(loop, *(("threadIdx.x",) if name == "bind" else ()))
    return sch


@pytest.mark.parametrize("name", RUN_AT_ONCE)
@pytest.mark.parametrize(("func", "which"), [(scan, 0), (race, 0), (skewed, 0), (rows, 0), (beyond_tiles, 0)])
def test_iterations_that_meet_do_not_run_at_once(name, func, which):
    """Axes that are declared spatial are not believed."""
    with pytest.raises(ScheduleError, match="the same in different iterations"):
        at_once(func, name, which)


@pytest.mark.parametrize("name", RUN_AT_ONCE)
def test_iterations_that_touch_different_elements_run_at_once(name):
    check(at_once(digits, name, 0), digits)


@pytest.mark.parametrize("name", RUN_AT_ONCE)
def test_a_condition_keeps_iterations_apart(name):
    check(at_once(in_tiles, name, 0), in_tiles)


def test_loops_change_places_where_nothing_between_them_depends_on_the_order():
    sch = Schedule(skewed)
    with pytest.raises(ScheduleError, match="order would change"):
        sch.reorder(*reversed(sch.get_loops("A")))
    sch = Schedule(race)
    sch.reorder(*reversed(sch.get_loops("B")))  # each element still has its terms in order
    check(sch, race)


def test_updates_that_do_not_commute_keep_their_order():
    sch = Schedule(alternating)
    i, k0, k1 = sch.get_loops("B")
    sch.reorder(k0, k1, i)
    check(sch, alternating)
    with pytest.raises(ScheduleError, match="order would change"):
        sch.reorder(k1, k0)


def test_a_buffer_may_serve_each_iteration_alone_unless_it_is_read_later():
    sch = Schedule(rows)
    with pytest.raises(ScheduleError, match="row"):
        sch.parallel(sch.get_loops("C")[0])


@pytest.mark.parametrize("wanted", ["parallel", "reorder"])
def test_sums_may_come_in_any_order_but_not_at_once(wanted):
    func = matmul()
    sch = Schedule(func)
    i, j, k = sch.get_loops("C")
    if wanted == "reorder":
        sch.reorder(k, j, i)
        return check(sch, func)
    with pytest.raises(ScheduleError, match="not spatial"):
        sch.parallel(k)


def test_merged_loops_have_what_they_use_ready():
    @T.prim_func
    def shifted(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.sblock_alloc_buffer((9,), "float32")
        for i in range(9):
            with T.sblock("B"):
                vi = T.axis.spatial(9, i)
                B[vi] = A[vi % 8] * T.float32(2)
        for i in range(9):
            with T.sblock("C"):
                vi = T.axis.spatial(9, i)
                T.where(i < 8)
                C[vi] = B[vi + 1]

    sch = Schedule(shifted)
    with pytest.raises(ScheduleError, match="order would change"):
        sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])


def test_the_order_of_loops_is_kept_in_the_interpreter_too():
    """A loop bound to threads whose iterations share registers runs as if each had its own."""

    @T.prim_func
    def registers(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        r = T.sblock_alloc_buffer((1,), "float32", scope="local")
        for i in T.thread_binding(4, thread="threadIdx.x"):
            with T.sblock("r"):
                vi = T.axis.spatial(4, i)
                r[0] = A[vi] * T.float32(2)
            with T.sblock("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = r[0]

    a, b = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    run_prim_func(registers, [a, b])
    assert (b == 2 * a).all()


def test_there_are_only_the_thread_axes_that_there_are():
    sch = Schedule(digits)
    with pytest.raises(ScheduleError, match="no thread axis"):
        sch.bind(sch.get_loops("B")[0], "threadIdx.q")


def test_a_program_whose_axes_are_not_what_they_say_is_left_as_it_is():
    """``schedule_program`` tries its rules, and none of them may change what the program computes."""
    func, _ = schedule_program(scan, Target("znver4"), ())
    got, want = (results(f) for f in (func, scan))
    assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))
    assert "vectorized" not in func.script() and "parallel" not in func.script()
