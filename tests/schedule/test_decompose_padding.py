# SPDX-License-Identifier: Apache-2.0
"""decompose_padding: the fill, the copy of the inside, and where the fill may stand."""

from __future__ import annotations

import pytest

from roundel.ir import structural_equal
from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule
from roundel.script import tir as T

from .programs import check


@T.prim_func
def padded(x: T.Buffer((12,), "float32"), y: T.Buffer((16, 3), "float32")):
    P = T.sblock_alloc_buffer((18,), "float32")
    for i in range(18):
        with T.sblock("P"):
            vi = T.axis.spatial(18, i)
            P[vi] = T.if_then_else(3 <= vi and vi < 15, x[vi - 3], T.float32(0))
    for i, k in T.grid(16, 3):
        with T.sblock("Y"):
            vi, vk = T.axis.remap("SS", [i, k])
            y[vi, vk] = P[vi + vk]


@T.prim_func
def padded_decomposed(x: T.Buffer((12,), "float32"), y: T.Buffer((16, 3), "float32")):
    P = T.sblock_alloc_buffer((18,), "float32")
    for i in range(18):
        with T.sblock("P_pad_const"):
            vi = T.axis.spatial(18, i)
            P[vi] = T.float32(0)
    for i in range(12):
        with T.sblock("P"):
            vi = T.axis.spatial(12, i)
            P[vi + 3] = x[vi]
    for i, k in T.grid(16, 3):
        with T.sblock("Y"):
            vi, vk = T.axis.remap("SS", [i, k])
            y[vi, vk] = P[vi + vk]


def test_the_copy_runs_over_the_inside_alone():
    sch = Schedule(padded)
    fill = sch.decompose_padding("P", sch.get_loops("P")[0])
    assert sch.get(fill).name == "P_pad_const"
    assert structural_equal(sch.func.with_attr("global_symbol", "padded_decomposed"), padded_decomposed)
    check(sch, padded)


@pytest.mark.parametrize("lifted", [False, True])
def test_tiles_of_padding_keep_a_condition(lifted):
    sch = Schedule(padded)
    outer, _ = sch.split(sch.get_loops("Y")[0], [None, 5])
    sch.compute_at("P", outer)
    sch.decompose_padding("P", outer if lifted else sch.get_loops("P")[1])
    assert "T.where" in sch.func.script()
    check(sch, padded)
    again = Schedule(padded)
    sch.trace.apply_to_schedule(again)
    assert structural_equal(again.func, sch.func)


@T.prim_func
def uses_the_row_before(x: T.Buffer((4, 6), "float32"), y: T.Buffer((4, 8), "float32")):
    P = T.sblock_alloc_buffer((8,), "float32")
    for i in range(8):
        with T.sblock("start"):
            vi = T.axis.spatial(8, i)
            P[vi] = T.float32(5)
    for r in range(4):
        for i in range(8):
            with T.sblock("Y"):
                vr, vi = T.axis.remap("SS", [r, i])
                y[vr, vi] = P[vi]
        for i in range(8):
            with T.sblock("P"):
                vr, vi = T.axis.remap("OS", [r, i])
                P[vi] = T.if_then_else(1 <= vi and vi < 7, x[vr, vi - 1], T.float32(0))


@T.prim_func
def nothing_padded(x: T.Buffer((8,), "float32"), P: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("P"):
            vi = T.axis.spatial(8, i)
            P[vi] = T.if_then_else(0 <= vi and vi < 8, x[vi], T.float32(0))


@T.prim_func
def a_row_for_each(x: T.Buffer((4, 6), "float32"), y: T.Buffer((4, 8), "float32")):
    P = T.sblock_alloc_buffer((4, 8), "float32")
    for r in range(4):
        for i in range(8):
            with T.sblock("Y"):
                vr, vi = T.axis.remap("SS", [r, i])
                y[vr, vi] = P[T.max(vr - 1, 0), vi]
        for i in range(8):
            with T.sblock("P"):
                vr, vi = T.axis.remap("SS", [r, i])
                P[vr, vi] = T.if_then_else(1 <= vi and vi < 7, x[vr, vi - 1], T.float32(0))


def test_what_is_refused():
    for func, why in ((nothing_padded, "always holds"), (a_row_for_each, "before it would be padded")):
        sch = Schedule(func)
        loop = sch.get_loops("P")[0]
        assert not sch.can_decompose_padding("P", loop)
        with pytest.raises(ScheduleError, match=why):
            sch.decompose_padding("P", loop)
    sch = Schedule(uses_the_row_before)
    with pytest.raises(ScheduleError, match="no padding"):
        sch.decompose_padding("P", sch.get_loops("P")[0])
