# SPDX-License-Identifier: Apache-2.0
"""The short form of the attack on saved files."""

from __future__ import annotations

from .files import attack


def test_damaged_files_are_refused_or_right() -> None:
    assert list(attack(60, 0)) == []
