# SPDX-License-Identifier: Apache-2.0
"""The short form of the attack on the cache."""

from .cache import attack


def test_caches_under_attack():
    assert not list(attack(50, seed=1))
