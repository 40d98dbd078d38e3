# SPDX-License-Identifier: Apache-2.0
"""Five seconds of the soak: eight threads run, load, replace and close five models."""

from __future__ import annotations

from . import soak


def test_short_form(capfd):
    assert list(soak.attack(500, seed=0)) == []
    assert "'loads'" in capfd.readouterr().err
