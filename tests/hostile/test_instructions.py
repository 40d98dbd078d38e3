# SPDX-License-Identifier: Apache-2.0
"""Instructions on extreme operands, the short form: in the interpreter and on this processor."""

from __future__ import annotations

from .instructions import attack


def test_instructions_compute_what_they_say(monkeypatch):
    monkeypatch.setattr("tests.hostile.instructions.EMULATED", ())
    assert not list(attack(10, 1))
