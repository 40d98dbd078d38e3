# SPDX-License-Identifier: Apache-2.0
"""The short form of the attack on sizes."""

from .sizes import attack


def test_sizes_that_do_not_agree_are_errors_and_nothing_outside_is_touched():
    assert not list(attack(160, 1))
