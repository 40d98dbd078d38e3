# SPDX-License-Identifier: Apache-2.0
"""The record of choices: what is asked for is taken where it can be had, and what nobody gets is an error that says why."""

from __future__ import annotations

import pytest

from roundel.ir.choice import Choice, Choices, Choosing
from roundel.ir.errors import OptionError
from roundel.ir.module import IRModule

WAYS = {"direct": 9.0, "winograd2": 5.0, "winograd4": "its kernels are 1x1, not 3x3"}


def _made(asked, sites=("/a/Conv", "/b/Conv")):
    choosing = Choosing(Choices.of(asked))
    for site in sites:
        choosing.decide(site, "conv2d", WAYS, "winograd2")
    return choosing.choices()


def _taken(asked):
    return {c.site: c.taken for c in _made(asked).made}


def test_without_wishes_the_preferred_one_is_taken():
    made = _made(None)
    made.check()
    assert made.made[0] == Choice("/a/Conv", "conv2d", "winograd2", made.made[0].alternatives)
    assert made.made[0].possible == {"direct": 9.0, "winograd2": 5.0}


@pytest.mark.parametrize("asked, a, b", [
    ({"/a/Conv": "direct"}, "direct", "winograd2"),
    ({"/*": "direct"}, "direct", "direct"),
    ({"/*": "direct", "/b/Conv": "winograd2"}, "direct", "winograd2"),  # a name goes before a pattern
    ({"/b/Conv": "winograd2", "/*": "direct"}, "direct", "winograd2"),
    ({"/?/Conv": ["direct"]}, "direct", "direct"),
])
def test_names_and_patterns(asked, a, b):
    assert _taken(asked) == {"/a/Conv": a, "/b/Conv": b}
    _made(asked).check()


def test_a_name_with_the_signs_of_patterns_is_a_name():
    assert _made({"conv[0]": "direct"}, ["conv[0]", "conv0"]).made[0].taken == "direct"


@pytest.mark.parametrize("asked, parts", [
    ({"/c/Conv": "direct"}, ["/c/Conv", "/a/Conv"]),
    ({"layer*": "direct"}, ["layer*", "/a/Conv, /b/Conv"]),
    ({"/a/Conv": "fft"}, ["/a/Conv", "no algorithm 'fft'", "direct, winograd2, winograd4"]),
    ({"/a/Conv": "winograd4"}, ["/a/Conv", "winograd4 cannot be had", "1x1, not 3x3", "may be direct, winograd2"]),
    ({"*": "winograd4"}, ["'*'", "cannot be had"]),
    ({"/a/Conv": ["direct", "winograd2"]}, ["/a/Conv", "both winograd2 and direct"]),
])
def test_what_nobody_gets_is_an_error(asked, parts):
    with pytest.raises(OptionError) as error:
        _made(asked).check()
    assert all(part in str(error.value) for part in parts), error.value


@pytest.mark.parametrize("given", [["direct"], {"/a": 4}, {4: "direct"}, {"/a": [4]}, "direct"])
def test_what_is_no_choice(given):
    with pytest.raises(OptionError, match="cannot be"):
        Choices.of(given)


def test_a_module_keeps_its_choices_and_is_equal_without():
    mod = IRModule({}).replace(choices=_made(None))
    assert mod.with_functions({"f": None}).choices is mod.choices and mod.script() == IRModule({}).script()


def test_equal_choices_are_kept_once():
    assert len(_made(None, ["/a", "/a"]).made) == 1
