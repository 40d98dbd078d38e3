# SPDX-License-Identifier: Apache-2.0
"""A short form of the attack on gradients."""

import pytest

from .gradients import attack


def test_gradients_of_random_functions_are_those_of_pytorch():
    pytest.importorskip("torch")
    assert list(attack(2, 1400)) == []
