# SPDX-License-Identifier: Apache-2.0
"""Hand-written schedules as strategies: what a template with knobs or an open trace offers, that every choice computes the same."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule, Trace, sketches
from roundel.strategy import Program, choose, from_open, rule, template
from roundel.target import Target

TARGET = Target.host()


def product(m=12, n=32, k=20):
    a, b, r = te.placeholder((m, k), "float32", "A"), te.placeholder((k, n), "float32", "B"), te.reduce_axis((0, k), "k")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), "C")]).with_attr("global_symbol", "mm")


def tiled(sch, target):
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, sch.knob("rows", [4, 2, 3])])
    j0, j1 = sch.split(j, [None, sch.knob("columns", [8, 16])])
    sch.reorder(i0, j0, k, i1, j1)
    sch.decompose_reduction(block, k)
    sch.vectorize(j1)
    sch.parallel(i0)


def right(func, m=12, n=32, k=20):
    rng = np.random.default_rng(0)
    a, b, out = rng.standard_normal((m, k)).astype("float32"), rng.standard_normal((k, n)).astype("float32"), np.full((m, n), np.nan, "float32")
    rd.build(func)(a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-5)


def test_knobs_are_recorded_and_replayed_by_position():
    sch = Schedule(product())
    tiled(sch, TARGET)
    assert "sch.knob(name='rows', values=[4, 2, 3], decision=0)" in str(sch.trace)
    other = Schedule(product())
    Trace.from_json(sch.trace.as_json()).with_decisions([2, 1]).apply_to(other)
    assert "T.vectorized(16)" in other.func.script() and "i_0 * 3 + i_1" in other.func.script()
    with pytest.raises(ScheduleError, match="decision 3 is not a position among the 3 values of knob 'rows'"):
        Schedule(product()).perform("knob", {}, {"name": "rows", "values": [4, 2, 3]}, 3)


def test_a_template_offers_every_combination_of_its_knobs():
    (found,) = choose(product(), TARGET, rules=[template(tiled)])
    assert found.fits and found.sketch.space == {"rows": [2, 3, 4], "columns": [8, 16]}
    assert found.choice == {"rows": 4, "columns": 8}  # the first values, as nothing is expected of any
    for k in range(len(found.sketch.candidates)):
        applied = found.sketch.schedule(found.sketch.candidates.decisions(k))
        assert applied.decisions == found.sketch.candidates.decisions(k)
        right(applied.func)


def test_expected_cycles_choose_the_values():
    wide = template(tiled, cycles=lambda program, columns: 1000.0 / columns["columns"] + columns["rows"])
    (found,) = choose(product(), TARGET, rules=[wide])
    assert found.choice == {"rows": 2, "columns": 16} and found.expected == 1000 / 16 + 2


def test_knobs_are_pinned_by_name():
    (found,) = choose(product(), TARGET, pins={"rows": 3}, rules=[template(tiled)])
    assert found.choice == {"rows": 3, "columns": 8} and "i_0 * 3 + i_1" in found.applied.func.script()
    with pytest.raises(ScheduleError, match="sketch tiled cannot have rows=5\n.*rows can be 2 to 4"):
        list(choose(product(), TARGET, pins={"sketch": "tiled", "rows": 5}, rules=[template(tiled)]))


def test_a_template_leaves_other_programs_to_others():
    x = te.placeholder((4,), "float32", "X")
    other = te.create_prim_func([x, te.compute((4,), lambda i: x[i] + 1.0, "Y")])
    (found,) = choose(other, TARGET, rules=[template(tiled)])
    assert not found.fits and not found.was_dropped

    @template
    def never(sch, target):
        return False

    (found,) = choose(product(), TARGET, rules=[never])
    assert not found.fits


def test_open_traces_are_sketches_too():
    """Decisions that a trace leaves open, whose features are closed forms, are the decisions of the sketch."""
    def steps(sch):
        i, j, k = sch.get_loops(sch.get_block("C"))
        i0, i1 = sch.split(i, sch.sample_perfect_tile(i, n=2, max_innermost_factor=4))
        j0, j1 = sch.split(j, [None, sch.knob("width", [8, 16])])
        sch.reorder(i0, j0, k, i1, j1)
        sch.vectorize(j1)

    def cycles(opened, rows):
        return 1.0 / opened.evaluate(rows)["C"].lanes

    @rule
    def opened(program: Program):
        yield from (from_open("opened", program, s, cycles) for s in sketches(program.func, steps))

    (found,) = choose(product(), TARGET, rules=[opened])
    assert found.sketch.space == {"i_tile_0": [3, 4, 6, 12], "i_tile_1": [1, 2, 3, 4], "width": [8, 16]} and len(found.sketch.candidates) == 8
    assert found.choice["width"] == 16
    for k in (0, 3, 7):
        applied = found.sketch.schedule(found.sketch.candidates.decisions(k))
        assert f"T.vectorized({found.sketch.candidates.decisions(k)['width']})" in applied.func.script()
        right(applied.func)
    (pinned,) = choose(product(), TARGET, pins={"i_tile_1": 3, "width": 8}, rules=[opened])
    assert pinned.choice == {"i_tile_0": 4, "i_tile_1": 3, "width": 8}
