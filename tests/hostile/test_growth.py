# SPDX-License-Identifier: Apache-2.0
"""Models that have many of something compile in time that grows as they do; ``python -m tests.hostile growth --count 2000`` measures it."""

import pytest

from .growth import compiled
from .wide_models import KINDS

SECONDS = 10  # of processor time, several times what is needed


@pytest.mark.parametrize("kind", ["concat", "concat_inputs", "symbols", "split", "split_concat", "split_rows", "branches", "names"])
def test_thousands_take_seconds(kind):
    assert compiled(kind, 1000) < SECONDS


def test_all_kinds_give_right_results():
    for kind in KINDS:
        compiled(kind, 80)
