# SPDX-License-Identifier: Apache-2.0
"""Arrays of constants: what is copied in blocks is what NumPy copies at once."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.ir.constants import in_order

CASES = [((1031, 517), (1, 0)), ((65, 3, 1500), (2, 0, 1)), ((7, 300, 130), (0, 2, 1)), ((700, 600), (0, 1)), ((5, 3), (1, 0))]


@pytest.mark.parametrize(("shape", "axes"), CASES)
def test_a_copy_in_blocks_is_the_whole_array(shape, axes):
    array = np.random.default_rng(0).standard_normal(shape, np.float32).transpose(axes)
    for given in (array, array[::-1], array[..., 1:-1]):
        made = in_order(given)
        assert made.flags.c_contiguous and made.dtype == given.dtype and np.array_equal(made, given)
