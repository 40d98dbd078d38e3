# SPDX-License-Identifier: Apache-2.0
"""Long attacks say how far they are and go on where they ended."""

from roundel.driver import prepare
from tests.fuzz.tensor_programs import draw

from . import linear_layers, schedules, targets
from .__main__ import findings
from .attempts import EVERY, attempts


def test_a_line_after_every_hundred(capsys):
    assert list(attempts(range(2 * EVERY + 1))) == [*range(2 * EVERY + 1)]
    said = capsys.readouterr().err.splitlines()
    assert [line.split(" done")[0] for line in said] == [f"{EVERY} attempts", f"{2 * EVERY} attempts"]


def test_the_rest_is_what_the_whole_would_have_made(monkeypatch):
    def made(start):
        given = []
        monkeypatch.setattr(schedules, "draw", lambda of: given.append(of) or draw(0))
        monkeypatch.setattr(schedules, "problems", lambda drawn, run: [])
        list(findings(schedules.attack, 12, 40, None, start))
        return given

    assert made(5) == made(0)[5:] == [*range(45, 52)]


def test_layers_after_a_start_are_the_same(monkeypatch):
    def made(start):
        given = []
        monkeypatch.setattr(linear_layers, "prepare", lambda mod, target: given.append((str(target), mod.script())) or prepare(mod, target=target))
        assert list(findings(linear_layers.attack, 4, 3, None, start)) == []
        return given

    assert made(2) == made(0)[2:]


def test_attempts_with_a_seed_of_their_own_can_be_left_out():
    assert list(findings(targets.attack, 30, 0, None, 28)) == []
