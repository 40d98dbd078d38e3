# SPDX-License-Identifier: Apache-2.0
"""Another sketch takes a program from a rule where it is expected to be much faster, and is not looked for where it cannot be."""

from __future__ import annotations

import importlib

import pytest
from benchmarks.programs import PROGRAMS

from roundel import te
from roundel.strategy import rules
from roundel.strategy.choose import choose
from roundel.strategy.contest import is_promising
from roundel.strategy.cost import expected_cycles
from roundel.strategy.generic.generic import generic
from roundel.strategy.program import Program
from roundel.strategy.schedule_module import schedule_program
from roundel.strategy.sketch import Sketch, rule
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
    assert is_promising(sketch, expected_cycles(func, FIXED, cores=1))  # not scheduled at all
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
