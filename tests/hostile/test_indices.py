# SPDX-License-Identifier: Apache-2.0
"""The short form of the attack on indices."""

from .indices import attack


def test_indices_out_of_range_are_errors_and_nothing_outside_is_touched():
    assert not list(attack(600, 20))
