# SPDX-License-Identifier: Apache-2.0
"""``help`` of a public function reads as a page: an argument a line, each described, no line wider than a screen."""

from __future__ import annotations

import inspect
import pydoc

import pytest

import roundel as rd
from roundel.ir.signatures import readable

FUNCTIONS = {name: getattr(rd, name) for name in rd.__all__ if inspect.isfunction(getattr(rd, name))} | {"tune": type(rd.tune).__call__}
LONG = [name for name, function in FUNCTIONS.items() if len(inspect.signature(function).parameters) > 5]


def test_one_argument_a_line():
    @readable
    def function(a: int, /, bbbb: str | None = None, *rest: float, key: tuple[str, list[int]] = ("x, y", [1, 2]), other: bool = False, **named: bool) -> None:
        """An example."""

    assert str(inspect.signature(function)) == """(
    a: int,
    /,
    bbbb: str | None = None,
    *rest: float,
    key: tuple[str, list[int]] = ('x, y', [1, 2]),
    other: bool = False,
    **named: bool,
) -> None"""
    assert inspect.signature(function).bind(1, key=2).arguments == {"a": 1, "key": 2}


@pytest.mark.parametrize("name", LONG)
def test_help_is_a_page(name):
    lines = pydoc.plain(pydoc.render_doc(FUNCTIONS[name])).splitlines()
    assert max(map(len, lines)) <= 110, max(lines, key=len)
    assert not any("'Any'" in line or "| None'" in line for line in lines)


@pytest.mark.parametrize("name", ["compile", "tune", "build", "load"])
def test_help_tells_of_each_argument(name):
    text = FUNCTIONS[name].__doc__
    assert not [p for p in inspect.signature(FUNCTIONS[name]).parameters if p != "self" and f"``{p}``" not in text]
