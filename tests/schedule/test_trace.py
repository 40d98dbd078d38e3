# SPDX-License-Identifier: Apache-2.0
"""Traces: Python text, JSON, replay, changed decisions; forks; sampling."""

from __future__ import annotations

import pytest

from roundel.ir import IRModule, structural_equal
from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule, Trace
from roundel.schedule.sampling import tiles

from .programs import check, elementwise, matmul, matmul_relu


def sketch(sch: Schedule) -> None:
    block = sch.get_block("C")
    write = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, 2, 8))
    j0, j1 = sch.split(j, [None, sch.sample_categorical([4, 8], [0.5, 0.5])])
    sch.reorder(i0, j0, k, i1, j1)
    sch.reverse_compute_at(write, j0)
    sch.decompose_reduction(block, k)
    sch.transform_layout(block, ("read", 1), lambda a, b: (b, a))
    sch.vectorize(j1)


def test_replay_json_and_python_give_the_same_program():
    func = matmul()
    sch = Schedule(func, seed=7)
    sketch(sch)
    again, read, text = Schedule(func), Schedule(func), Schedule(func)
    sch.trace.apply_to(again)
    Trace.from_json(sch.trace.as_json()).apply_to(read)
    space: dict = {}
    exec(str(sch.trace), space)
    space["apply"](text)
    for other in (again, read, text):
        assert structural_equal(other.mod, sch.mod)
        assert str(other.trace) == str(sch.trace)


def test_changed_decisions():
    func = matmul_relu(12, 16, 8)
    sch = Schedule(func, seed=1)
    i, j, _k = sch.get_loops(sch.get_block("C"))
    sch.split(i, sch.sample_perfect_tile(i, 2, 12))
    sch.split(j, [None, sch.sample_categorical([4, 8], [0.5, 0.5])])
    for tile in ([3, 4], [12, 1]):
        for choice in (0, 1):
            new = Schedule(func)
            sch.trace.with_decision(0, tile).with_decision(1, choice).apply_to(new)
            loops = [new.get(x).extent.value for x in new.get_loops(new.get_block("C"))]
            assert loops[:4] == [*tile, 16 // (4, 8)[choice], (4, 8)[choice]]
    with pytest.raises(ScheduleError, match="not a position"):
        sch.trace.with_decision(1, 5).apply_to(Schedule(func))


def test_forks_are_independent():
    sch = Schedule(matmul())
    i, _j, _k = sch.get_loops(sch.get_block("C"))
    other = sch.fork()
    _i0, i1 = other.split(i, [None, 4])
    assert sch.get(i).extent.value == 13 and len(sch.trace) == 2 and len(other.trace) == 3
    with pytest.raises(ScheduleError, match="another schedule"):
        sch.unroll(i1)
    sch.unroll(i)


def test_compute_location_is_a_decision():
    func = elementwise()
    seen = set()
    for seed in range(12):
        sch = Schedule(func, seed=seed)
        sch.compute_at("B", sch.sample_compute_location("B"))
        check(sch, func)
        seen.add(next(iter(sch.trace.decisions.values())))
    assert seen == {-2, -1, 0, 1}


def test_perfect_tiles():
    assert sorted(tiles(12, 2, 4)) == [[3, 4], [4, 3], [6, 2], [12, 1]]
    sch = Schedule(matmul(12, 8, 8))
    i, *_ = sch.get_loops(sch.get_block("C"))
    for _ in range(20):
        made = [sch.get(x).value for x in sch.sample_perfect_tile(i, 3, 3)]
        assert made[0] * made[1] * made[2] == 12 and made[2] <= 3


def test_several_functions():
    sch = Schedule(IRModule({"a": matmul(), "b": elementwise()}))
    with pytest.raises(ScheduleError, match="which function"):
        sch.get_block("C")
    first = sch.get_block("C", "a")
    sch.work_on("b")
    sch.compute_inline("B")
    sch.unroll(sch.get_loops(first)[0])
    assert "T.unroll(13)" in sch.mod["a"].script()
    sch.trace.apply_to(Schedule(IRModule({"a": matmul(), "b": elementwise()})))


def test_handles_show_what_they_stand_for():
    sch = Schedule(matmul())
    block = sch.get_block("C")
    loop = sch.get_loops(block)[0]
    assert 'with T.sblock("C"' in repr(block) and "for i, j, k in T.grid(13, 17, 11)" in repr(loop)
    outer, _ = sch.split(loop, [None, 4])
    assert "for i_0, i_1, j, k in T.grid(4, 4, 17, 11)" in repr(outer)
    assert repr(loop) == "loop that is no longer there: split into i_0, i_1"
    assert repr(next(iter(sch.trace)).outputs[0]) == repr(block)


def test_what_only_looks_and_is_not_used_is_left_out():
    sch = Schedule(matmul_relu())
    sch.get_block("E")
    loops = sch.get_loops("C")
    sch.sample_perfect_tile(loops[1], 2, 8)
    sch.split(loops[0], sch.sample_perfect_tile(loops[0], 2, 8))
    sch.enter_postproc()
    sch.unroll(loops[2])
    kinds = [i.kind for i in sch.trace.simplified()]
    assert kinds == ["get_block", "get_loops", "sample_perfect_tile", "split", "enter_postproc", "unroll"]
    assert [i.kind for i in sch.trace.simplified(remove_postproc=True)] == kinds[:4]
    again = Schedule(matmul_relu())
    sch.trace.simplified().apply_to_schedule(again)
    assert again.func.script() == sch.func.script()
    other = sch.trace.with_decision(1, [2, 6], remove_postproc=True)
    assert len(other) == len(sch.trace) - 2 and Trace(sch.trace.insts, {sch.trace.insts[-3]: None})
