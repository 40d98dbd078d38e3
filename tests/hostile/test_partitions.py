# SPDX-License-Identifier: Apache-2.0
"""A short form of the attack on partitions."""

from .partitions import attack


def test_random_graphs_are_what_they_were_after_partition_and_inlining():
    assert not list(attack(60, 0))
