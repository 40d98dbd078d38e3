# SPDX-License-Identifier: Apache-2.0
"""Some attributes with absurd numbers; ``python -m tests.hostile attributes`` tries as many as one likes."""

from .attributes import attack


def test_absurd_attributes_are_imported_or_refused_in_seconds():
    assert not list(attack(120, seed=3))
