# SPDX-License-Identifier: Apache-2.0
"""Messages for those who call with something odd: a short form of the attack."""

import pytest

import roundel as rd
from roundel.ir import escape

from . import errors


def test_short_form():
    assert list(errors.attack(len(errors.CALLS) * 6, seed=1)) == []


@pytest.mark.parametrize(("given", "text"), [
    (3, "3"), ("word", "'word'"), ([1, 2], "[1, 2]"), (errors.Odd(), "an Odd"), ([errors.Odd()], "a list of 1"), (errors.Odd, "the class Odd"),
    (print, "a function"), (rd.ir.tir.const(15, "int64"), "15")])
def test_what_was_given_is_shown_in_words(given, text):
    assert escape.value(given) == text


def test_the_attack_finds_what_it_looks_for():
    def told(x):
        raise rd.RoundelError(f"this cannot be {x!r}")

    assert "an object in the message" in errors.problem(told, {"x": errors.Odd})
    assert "of the inside" in errors.problem(rd.ir.escape.short_name, {"text": lambda: 3})
