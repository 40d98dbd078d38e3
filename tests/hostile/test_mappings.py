# SPDX-License-Identifier: Apache-2.0
"""Random programs on instructions, the short form."""

from __future__ import annotations

from .mappings import attack


def test_mappings_are_those_that_trying_everything_finds():
    assert not list(attack(30, 1))
