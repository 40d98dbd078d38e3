# SPDX-License-Identifier: Apache-2.0
"""Flat programs as C, the short form."""

from fuzz.tensor_programs import draw
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target

from .flat_c import _unequal, attack


def test_c_is_what_llvm_and_the_interpreter_are():
    assert list(attack(4, 3)) == []


def test_lanes_are_picked_from_other_lanes():
    """What is picked from several vectors side by side has another array than those (seed 21 found it)."""
    drawn = draw(21000068)
    made, layouts = schedule_program(drawn.func, Target("x86-64-v3"), drawn.constants)
    assert list(_unequal([("three turns", drawn, made, layouts)])) == []
