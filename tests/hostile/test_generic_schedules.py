# SPDX-License-Identifier: Apache-2.0
"""Some random schedules; ``python -m tests.hostile generic_schedules`` makes as many as one likes."""

from .generic_schedules import attack


def test_random_generic_schedules_compute_the_same():
    assert not list(attack(12, seed=5))
