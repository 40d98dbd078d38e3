# SPDX-License-Identifier: Apache-2.0
"""A short run of the fuzzers."""

from __future__ import annotations

import pytest

from .files import check_file
from .graphs import check_graph, check_symbolic


@pytest.mark.parametrize("seed", range(8))
def test_graphs(seed):
    check_graph(seed)


@pytest.mark.parametrize("seed", [18, *range(100, 103)])
def test_symbolic_sizes(seed):
    check_symbolic(seed)


def test_files():
    for seed in range(1, 120):
        check_file(seed)
