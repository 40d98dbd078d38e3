# SPDX-License-Identifier: Apache-2.0
"""A short run of the fuzzers. What comes of a case is part of the test: a case that is empty or refused has tested nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from .files import check_file
from .graphs import check_graph, check_symbolic


@pytest.mark.parametrize("seed", range(8))
def test_graphs(seed):
    assert check_graph(seed) == "right"


@pytest.mark.parametrize("seed", [18, 100, 101])
def test_symbolic_sizes(seed):
    assert check_symbolic(seed) == "right"


def test_symbolic_sizes_that_have_to_be_known():
    assert check_symbolic(102) == "refused"


def test_files():
    """Most changes break a file; those that do not must be imported still."""
    outcomes = Counter(check_file(seed) for seed in range(1, 200))
    assert set(outcomes) == {"refused", "imported", "compiled"}
    assert outcomes["imported"] >= 15 and outcomes["compiled"] >= 2, outcomes
