# SPDX-License-Identifier: Apache-2.0
"""One small model of each kind that wants much; ``python -m tests.hostile bombs`` tries as many as one likes."""

from .bomb_models import KINDS
from .bombs import attack


def test_each_kind_is_refused_or_right():
    assert not list(attack(len(KINDS), seed=7))
