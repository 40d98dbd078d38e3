# SPDX-License-Identifier: Apache-2.0
"""A short run of the fuzzers."""

from __future__ import annotations

import pytest

from .graphs import check_file, check_graph


@pytest.mark.parametrize("seed", range(12))
def test_graphs(seed):
    check_graph(seed)


def test_files():
    for seed in range(60):
        check_file(seed)
