# SPDX-License-Identifier: Apache-2.0
"""What calls of operators are expected to take is what strategy says of the programs that they lead to."""

from __future__ import annotations

import pytest

from roundel.builder import operator_program, shared_programs
from roundel.graph.expectations import Expectations, stand_in
from roundel.ops import make
from roundel.strategy import choose
from roundel.strategy.expected import Setting
from roundel.target import Target

TARGET = Target("znver5")


def product(rows=256, columns=512):
    return make("matmul", stand_in("x", (rows, 768)), stand_in("w", (768, columns)))


def test_it_is_what_the_best_sketch_expects():
    call = product()
    best = next(a for a in choose(operator_program(call).func, TARGET) if a.fits)
    assert Expectations(Setting(TARGET, 0)).cycles(call) == best.expected


@pytest.mark.parametrize("constant_bytes", [0, TARGET.l2_bytes, 4 * TARGET.l3_bytes])
def test_constants_that_others_push_out_of_the_caches_have_to_be_read_again(constant_bytes):
    warm = Expectations(Setting(TARGET, 0)).cycles(product(8), [1])
    cold = Expectations(Setting(TARGET, constant_bytes)).cycles(product(8), [1])
    assert cold > 1.3 * warm if constant_bytes > TARGET.l3_bytes else cold == warm


def test_slow_memory_makes_constants_dearer():
    slow = TARGET.with_(dram_gbs=TARGET.dram_gbs / 4, all_dram_gbs=TARGET.all_dram_gbs / 4)
    assert Expectations(Setting(slow)).cycles(product(8), [1]) > 2 * Expectations(Setting(TARGET)).cycles(product(8), [1])


def test_equal_calls_are_asked_about_once(monkeypatch):
    asked = []
    monkeypatch.setattr("roundel.graph.expectations.expected", lambda *args: asked.append(args) or 1.0)
    expectations = Expectations(Setting(TARGET))
    for call, constants in ((product(), [1]), (product(), [1]), (product(), []), (product(128), [1])):
        expectations.cycles(call, constants)
    assert len(asked) == 3


def test_the_pass_that_asks_and_the_one_that_legalizes_share_a_program():
    with shared_programs():
        assert operator_program(product()).func is operator_program(product()).func
    assert operator_program(product()).func is not operator_program(product()).func
