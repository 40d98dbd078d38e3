# SPDX-License-Identifier: Apache-2.0
"""A schedule takes the default's place only where it is surely faster."""

import numpy as np
import pytest

from roundel.tune.verdict import combined, is_faster, upper_bound

RNG = np.random.default_rng(0)


def test_the_bound_is_above_the_median_as_often_as_it_says():
    held = [upper_bound(RNG.normal(1, 0.1, 30).tolist()) >= 1 for _ in range(2000)]
    assert 0.93 <= np.mean(held) <= 1


def test_few_rounds_prove_nothing():
    assert upper_bound([0.5, 0.5]) == float("inf") and not is_faster([0.5] * 4)
    assert is_faster([0.5] * 5)


@pytest.mark.parametrize("ratio, faster", [(1.0, False), (0.999, False), (0.97, True), (1.05, False)])
def test_a_gain_must_be_large_enough(ratio, faster):
    assert is_faster((ratio * RNG.normal(1, 0.01, 40)).tolist()) == faster


def test_noise_alone_wins_rarely():
    assert sum(is_faster(RNG.normal(1, 0.05, 40).tolist()) for _ in range(500)) <= 10


def test_cases_count_by_weight_and_time():
    assert combined([[0.5, 1.0], [1.0, 1.0]], [1, 3], [2.0, 2.0]) == [0.875, 1.0]
