# SPDX-License-Identifier: Apache-2.0
"""The short form of the attack on tuning: each fault once."""

import pytest

from .tuning import FAULTS, attack


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_a_session_survives(fault):
    assert not list(attack(1, seed=1, faults=(fault,)))
