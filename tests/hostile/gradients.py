# SPDX-License-Identifier: Apache-2.0
"""Gradients of random functions against PyTorch's: `python -m tests.hostile gradients --count 500`."""

from collections.abc import Iterator

from tests.graph.gradient.random_graphs import findings


def attack(count: int, seed: int) -> Iterator[str]:
    """One function of 5 to 14 random steps a time."""
    for k in range(count):
        yield from findings(seed + k, 5 + (seed + k) % 10)
