# SPDX-License-Identifier: Apache-2.0
"""Linear layers of awkward sizes, the short form (``tests/strategy/test_choose.py`` schedules more of them)."""

from .linear_layers import LAYERS, attack


def test_layers_are_scheduled_and_lowered():
    assert len(LAYERS) > 800
    assert list(attack(12, 0)) == []
