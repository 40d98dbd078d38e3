# SPDX-License-Identifier: Apache-2.0
"""Convolutions of extreme pictures, by every algorithm: short form of the attack."""

from __future__ import annotations

import numpy as np
import pytest

from . import convolutions


@pytest.mark.parametrize("seed", [0, 1])
def test_attack(seed):
    assert list(convolutions.attack(48, seed)) == []


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_a_pixel_that_is_not_finite_stays_in_its_windows(tile, value):
    rng = np.random.default_rng(0)
    kernel = rng.standard_normal((32, 32, 3, 3)).astype(np.float32)
    convolution = convolutions.compiled((1, 32, 13, 18), kernel, None, 1, tile)
    data = rng.standard_normal((1, 32, 13, 18)).astype(np.float32)
    clean = convolution.run[1](data)
    data[0, 3, 6, 9] = value
    for run in convolution.run.values():
        got = run(data)
        reached = np.zeros(got.shape, bool)
        reached[:, :, 5:8, 8:11] = True
        assert not np.isfinite(got[reached]).all()
        np.testing.assert_allclose(got[~reached], clean[~reached], rtol=0, atol=1e-4)


@pytest.mark.parametrize("tile", [2, 4])
def test_pixels_beside_an_outlier_are_as_precise_as_without(tile):
    rng = np.random.default_rng(0)
    kernel = rng.standard_normal((64, 64, 3, 3)).astype(np.float32)
    convolution = convolutions.compiled((1, 64, 16, 16), kernel, None, 1, tile)
    data = rng.standard_normal((1, 64, 16, 16)).astype(np.float32)
    data[0, 0, 6, 6] = 1e7
    _, expected, _ = convolutions.reference(convolution, data)
    errors = np.abs(np.asarray(convolution.run[1](data)).transpose(0, 2, 3, 1) - expected)
    errors[:, 5:8, 5:8] = 0
    assert errors.max() < 1e-3


@pytest.mark.parametrize("tile", [2, 4])
def test_a_blank_area_is_exactly_zero(tile):
    rng = np.random.default_rng(0)
    kernel = rng.standard_normal((32, 32, 3, 3)).astype(np.float32)
    convolution = convolutions.compiled((1, 32, 19, 17), kernel, None, 1, tile)
    data = rng.standard_normal((1, 32, 19, 17)).astype(np.float32)
    data[:, :, 4:11, 3:15] = 0
    assert not convolution.run[1](data)[:, :, 5:10, 4:14].any()


@pytest.mark.parametrize("tile", [2, 4])
def test_results_that_are_not_finite_are_those_of_a_plain_sum(tile):
    """Infinities of either sign, where they meet weights of either sign and zeros, and windows that overflow or nearly do."""
    rng = np.random.default_rng(0)
    kernel = rng.standard_normal((32, 16, 3, 3)).astype(np.float32) * (rng.random((32, 16, 3, 3)) < 0.8)
    convolution = convolutions.compiled((1, 16, 18, 21), kernel.astype(np.float32), None, 1, tile)
    data = rng.standard_normal((1, 16, 18, 21)).astype(np.float32)
    data[0, 3, 4, 5], data[0, 7, 5, 6], data[0, 1, 12, 13], data[0, 2, 15, 2] = np.inf, -np.inf, np.inf, np.nan
    data[0, 4, 10, 2], data[0, 4, 10, 4] = 3e38, 3e38
    _, expected, _ = convolutions.reference(convolution, data)
    special = ~np.isfinite(expected)
    assert special.any() and np.isinf(expected).any() and np.isnan(expected).any()
    for run in convolution.run.values():
        got = np.asarray(run(data)).transpose(0, 2, 3, 1).astype(np.float64)
        np.testing.assert_array_equal(got[special], expected[special])
        far = np.abs(expected) < 1e30
        np.testing.assert_allclose(got[far], expected[far], rtol=1e-3, atol=1e-3)
