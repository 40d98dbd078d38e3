# SPDX-License-Identifier: Apache-2.0
"""Another sketch takes a program from a rule where it is expected to be much faster, and is not looked for where it cannot be."""

from __future__ import annotations

import importlib

import pytest
from benchmarks.programs import PROGRAMS
from benchmarks.random_layers import convolution_nd

from roundel import driver, te
from roundel.frontend.onnx import from_onnx
from roundel.strategy import rules
from roundel.strategy.choose import choose
from roundel.strategy.contest import Champion, is_promising
from roundel.strategy.cost import expected_cycles
from roundel.strategy.generic.generic import generic
from roundel.strategy.program import Program
from roundel.strategy.schedule_module import schedule_module, schedule_program
from roundel.strategy.sketch import Sketch, rule
from roundel.strategy.statements import statements
from roundel.target import Target

FIXED = Target("x86-64-v4")
CHOOSE = importlib.import_module("roundel.strategy.choose")  # the package has a function of this name


def pixels(n, channels, outputs):
    """A convolution of 1 x 1: few operations for each pixel that is read and written."""
    x, w, c = te.placeholder((n, channels), "float32", "X"), te.placeholder((channels, outputs), "float32", "W"), te.reduce_axis((0, channels), "c")
    return te.create_prim_func([x, w, te.compute((n, outputs), lambda i, j: te.sum(x[i, c] * w[c, j], axis=c), "Y")])


@pytest.fixture
def asked(monkeypatch):
    """How often candidates of the generic sketch were looked for, and how often it was scheduled."""
    found = {"sketches": 0, "schedules": 0}
    schedule = Sketch.schedule

    def looked_for(program):
        found["sketches"] += 1
        return generic(program)

    looked_for.__name__ = "generic"

    def scheduled(sketch, choice=None):
        found["schedules"] += sketch.name == "generic"
        return schedule(sketch, choice)

    monkeypatch.setattr(rules, "RULES", [rule(looked_for) if r is generic else r for r in rules.RULES])
    monkeypatch.setattr(Sketch, "schedule", scheduled)
    return found


@pytest.mark.parametrize(("name", "first"), [("product_of_rows", "rows"), ("max_plus", "columns"), ("correlation_volume", "windows")])
def test_a_generic_schedule_takes_what_a_rule_schedules_badly(name, first, asked):
    program = PROGRAMS[name].func()
    assert next(r for r in CHOOSE.rules_in_order() if r.name == first)(Program(program, FIXED))
    assert schedule_program(program, FIXED)[0].attrs["scheduled"] == "generic" and asked == {"sketches": 1, "schedules": 1}


def test_no_candidates_are_looked_for_where_memory_is_the_limit(asked):
    assert schedule_program(pixels(112 * 112, 32, 16), FIXED)[0].attrs["scheduled"] == "contraction"
    assert asked == {"sketches": 0, "schedules": 0}


def test_a_sketch_is_not_scheduled_where_it_expects_no_gain(monkeypatch, asked):
    func = pixels(97, 64, 97)
    best = schedule_program(func, FIXED, pins={"sketch": "generic"})[0]
    (sketch,) = generic(Program(func, FIXED))
    assert is_promising(sketch, Champion("fallback", func), expected_cycles(func, FIXED, cores=1), FIXED)  # not scheduled at all
    monkeypatch.setattr(CHOOSE, "is_contested", lambda *_: True)
    monkeypatch.setattr("roundel.strategy.contest.expected_cycles", lambda *_, **__: sketch.expected(sketch.best()))
    asked.update(sketches=0, schedules=0)
    assert schedule_program(func, FIXED)[0].attrs["scheduled"] != best.attrs["scheduled"] and asked == {"sketches": 1, "schedules": 0}


def test_a_rule_takes_what_the_rule_before_it_schedules_badly(monkeypatch):
    """The order of the rules decides only between those of which about the same time is expected."""
    monkeypatch.setattr(rules, "RULES", sorted(rules.RULES, key=lambda r: r.name != "columns"))
    found = list(choose(pixels(97, 640, 97), FIXED))
    taken, beaten = next(a for a in found if a.fits), next(a for a in found if a.name == "columns")
    assert taken.name in ("contraction", "windows") and beaten.why_not == f"sketch {taken.name} is expected to be faster"


def dilated(dilation, size=32, channels=64):
    """A convolution of 3 x 3 with a border of zeros as wide as the dilation."""
    x, w = te.placeholder((size, size, channels), "float32", "X"), te.placeholder((3, 3, channels, 64), "float32", "W")
    inside = lambda *i: te.logical_and(*(te.logical_and(k >= dilation, k < size + dilation) for k in i))
    padded = (size + 2 * dilation, size + 2 * dilation, channels)
    p = te.compute(padded, lambda i, j, c: te.if_then_else(inside(i, j), x[i - dilation, j - dilation, c], 0.0), "P")
    h, v, c = te.reduce_axis((0, 3), "h"), te.reduce_axis((0, 3), "v"), te.reduce_axis((0, channels), "c")
    y = te.compute((size, size, 64), lambda i, j, o: te.sum(p[i + h * dilation, j + v * dilation, c] * w[h, v, c, o], axis=[c, h, v]), "Y")
    return te.create_prim_func([x, w, y])


def test_rows_so_short_that_their_sums_wait_for_each_other_go_to_a_nest_that_leaves_out_the_padding(tmp_path):
    """Three dimensions, stride 2, rows of two results: the register tile of a rule is along one axis, and has two sums."""
    path = tmp_path / "layer.onnx"
    convolution_nd(96, 8, (6, 5, 4), (3, 3, 3), 2).save(path)
    mod = driver.prepare(from_onnx(path.read_bytes()), target=Target("znver4"), pipeline=driver.DEFAULT[: driver.DEFAULT.index(schedule_module) + 1])
    assert "generic_padding" in {f.attrs.get("scheduled") for f in mod.functions.values()}


@pytest.mark.parametrize("dilation", (1, 6, 12, 24))
def test_a_dilated_convolution_stays_with_the_rule_that_leaves_out_the_padding(dilation):
    assert schedule_program(dilated(dilation, channels=512), FIXED, (1,))[0].attrs["scheduled"] == "contraction"


@pytest.mark.parametrize(("dilation", "share"), [(1, (31 + 32 + 31) ** 2 / 96**2), (12, (20 + 32 + 20) ** 2 / 96**2), (24, (8 + 32 + 8) ** 2 / 96**2)])
def test_what_reads_padding_alone_is_not_expected_to_take_time(dilation, share):
    (product,) = (s for s in statements(next(iter(rules.contraction(Program(dilated(dilation), FIXED, (1,))))).schedule().func, FIXED, {}) if s.accumulates)
    assert product.share == pytest.approx(share, rel=0.05)  # rows of the last tile beyond the picture count too
