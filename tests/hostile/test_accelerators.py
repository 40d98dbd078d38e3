# SPDX-License-Identifier: Apache-2.0
"""Layers on simulated accelerators, the short form."""

from __future__ import annotations

import numpy as np
import pytest

from .accelerators import CHIPS, tried


@pytest.mark.parametrize("name", CHIPS)
def test_a_layer_is_right_and_near_the_roofline(name):
    wrong, ratio = tried(name, (64, 64, 14, 3, 1), np.random.default_rng(0))
    assert wrong == 0 and ratio < 1.5


@pytest.mark.parametrize("name", CHIPS)
def test_a_layer_that_fills_no_tiles_is_right(name):
    assert tried(name, (7, 70, 5, 3, 2), np.random.default_rng(1))[0] == 0
