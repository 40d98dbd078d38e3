# SPDX-License-Identifier: Apache-2.0
"""Sketches: decisions left open, closed forms of features equal what concrete programs say, for random candidates."""

from __future__ import annotations

import time

import numpy as np
import pytest

from roundel.ir import structural_equal, substitute, tir
from roundel.ir.errors import ScheduleError
from roundel.schedule import OPEN, Schedule, Trace, sketches
from roundel.script import parse

from .counting import Count
from .programs import check, conv2d, elementwise, matmul, softmax_like


def tile_matmul(sch: Schedule) -> None:
    block = sch.get_block("C")
    write = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    i0, i1, i2 = sch.split(i, sch.sample_perfect_tile(i, 3, 6))
    j0, j1 = sch.split(j, [None, sch.sample_categorical([2, 4, 8], [0.5, 0.3, 0.2])])
    k0, k1 = sch.split(k, [None, sch.sample_categorical([2, 3], [0.5, 0.5])])
    sch.reorder(i0, j0, i1, k0, k1, i2, j1)
    sch.reverse_compute_at(write, i1)
    panel = sch.cache_read(block, 0, "local")
    sch.compute_at(panel, k0)
    sch.decompose_reduction(block, k0)
    sch.unroll(i2)
    sch.vectorize(j1)
    sch.parallel(sch.fuse(i0, j0))


def tile_conv(sch: Schedule) -> None:
    block = sch.get_block("Y")
    o, y, x, c, *_window = sch.get_loops(block)
    o0, o1 = sch.split(o, sch.sample_perfect_tile(o, 2, 8))
    x0, x1 = sch.split(x, sch.sample_perfect_tile(x, 2, 8))
    c0, c1 = sch.split(c, [None, sch.sample_categorical([1, 2, 3], [1, 1, 1])])
    sch.reorder(o0, y, x0, c0, c1, x1, o1)
    sch.compute_at("P", x0)
    sch.parallel(o0)
    sch.unroll(x1)
    sch.vectorize(o1)


def tile_rows(sch: Schedule) -> None:
    i, k = sch.get_loops(sch.get_block("S"))
    i0, i1 = sch.split(i, [None, sch.sample_categorical([2, 4], [0.5, 0.5])])
    sch.split(k, sch.sample_perfect_tile(k, 2, 9))
    sch.reverse_compute_at("C", i0)
    sch.unroll(i1)


CASES = {
    "matmul": (lambda: matmul(12, 16, 7), tile_matmul),
    "conv2d": (lambda: conv2d(3, 4, 8, 4), tile_conv),
    "conv2d strided": (lambda: conv2d(3, 5, 12, 4, 2), tile_conv),
    "reduction": (lambda: softmax_like(6, 9), tile_rows),
}


def same(a, b, k=None) -> None:
    """Two evaluated sets of features agree (row k of the first), whatever loops of one iteration there are."""
    pick = lambda v: int(np.asarray(v if k is None or np.ndim(v) == 0 else v[k]))
    assert [s.name for s in a.stages] == [s.name for s in b.stages]
    assert pick(a.flops) == pick(b.flops)
    for s, t in zip(a.stages, b.stages):
        for feature in ("issued", "useful", "parallel", "lanes", "registers"):
            assert pick(getattr(s, feature)) == pick(getattr(t, feature)), (s.name, feature)
        for capacity in (0, 64, 256, 1024, 1 << 20):
            assert pick(s.traffic(capacity)) == pick(t.traffic(capacity)), (s.name, "traffic", capacity)


@pytest.mark.parametrize("case", CASES)
def test_closed_forms_equal_the_concrete_program(case):
    make, rule = CASES[case]
    func = make()
    (sketch,) = sketches(func, rule)
    rows = sketch.sample(4, seed=3)
    found = sketch.evaluate(rows)
    for k in range(4):
        sch = sketch.schedule(sketch.choices(rows, k))
        check(sch, func)
        concrete = sch.features().evaluate({})
        same(found, concrete, k)
        # the open program with values put in for its variables is a program too, with the same features
        at = {v: tir.index_const(int(c[k])) for v, c in sketch.columns(rows).items()}
        put_in = Schedule(substitute(sketch.mod["main"], at))
        check(put_in, func)
        if k == 0:
            counts = Count(sch.func)
            for s in concrete.stages:
                assert counts.issued[s.name] == s.issued and counts.useful[s.name] <= s.useful
                assert counts.useful[s.name] == s.useful or s.useful == s.issued
                for t in s.touches:
                    for depth, size in enumerate(t.bytes):
                        assert counts.touched[s.name, t.buffer, depth] * 4 == size, (s.name, t.buffer.name, depth)


def test_columns_of_candidates_take_milliseconds():
    (sketch,) = sketches(matmul(768, 768, 768), tile_matmul)
    rows = sketch.sample(100_000, seed=0)
    sketch.evaluate({n: c[:1] for n, c in rows.items()})
    start = time.process_time()
    found = sketch.evaluate(rows)
    assert time.process_time() - start < 1.0
    update = found["C_update"]
    assert update.traffic(1 << 15).shape == (100_000,) and found.flops.max() == 2 * 768**3


def test_open_programs_print_and_replay():
    func = matmul(12, 16, 7)
    (sketch,) = sketches(func, tile_matmul)
    assert sketch.size == len(sketch.space["i_tile"]) * 3 * 2 and list(sketch.space) == ["i_tile", "choice", "choice1"]
    assert structural_equal(parse(sketch.mod.script()), sketch.mod)
    assert "decision='open'" in str(sketch.trace)
    again = Schedule(func)
    Trace.from_json(sketch.trace.as_json()).apply_to(again)
    assert structural_equal(again.mod, sketch.mod) and len(again.decisions) == 3
    chosen = sketch.schedule({"i_tile": [2, 3, 2], "choice": 1, "choice1": 0})
    assert not chosen.decisions and "T.vectorized(4)" in chosen.mod.script()
    assert all(len(c) == sketch.size for c in sketch.all().values())
    with pytest.raises(ScheduleError, match="2 decisions for a trace with 3"):
        sketch.trace.with_decisions([0, 1])


def test_one_decision_may_stay_open():
    sch = Schedule(elementwise(12, 7))
    i, j = sch.get_loops("C")
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, 2, 8, decision=OPEN))
    j0, j1 = sch.split(j, [None, sch.sample_categorical([2, 4], [0.5, 0.5], decision=1)])
    sch.reorder(i0, j0, i1, j1)
    assert [d.name for d in sch.decisions] == ["i_tile"] and sorted(d.domain[:, 1].tolist() for d in sch.decisions) == [[1, 2, 3, 4, 6]]
    assert sch.features().evaluate({sch.decisions[0].variables[0]: 3, sch.decisions[0].variables[1]: 4})["C"].useful == 12 * 7
    with pytest.raises(ScheduleError, match="structure"):
        sch.sample_compute_location("B", decision=OPEN)


def test_places_are_sketches_of_their_own():
    func = elementwise(12, 8)

    def rule(sch: Schedule) -> None:
        i, _ = sch.get_loops("C")
        sch.split(i, sch.sample_perfect_tile(i, 2, 4))
        sch.compute_at("B", sch.sample_compute_location("B"))

    found = list(sketches(func, rule))
    assert len(found) == 5 and len({s.mod.script() for s in found}) == 5
    for s in found:
        check(s.schedule([[4, 3]]), func)
