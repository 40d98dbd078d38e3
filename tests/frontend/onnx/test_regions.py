# SPDX-License-Identifier: Apache-2.0
"""Pooling of regions against ONNX Runtime."""

from __future__ import annotations

import time

import numpy as np
import pytest

import roundel as rd

from .single_node import check, model

pytest.importorskip("onnxruntime")


def test_max_roi_pool() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 3, 9, 8)).astype(np.float32)
    rois = np.array([[0, 1, 2, 12, 14], [1, 0, 0, 3, 3], [1, 5, 5, 4, 4], [0, 20, 20, 30, 30]], np.float32)
    check("MaxRoiPool", x, rois, pooled_shape=[3, 2], spatial_scale=0.5)


@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
def test_regions_larger_than_the_image_count_samples_outside_as_zero(coordinates: str) -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((1, 2, 5, 7)).astype(np.float32)
    low = rng.uniform(-300, 10, (30, 2))
    rois = np.concatenate([low, low + rng.uniform(0, 400, (30, 2))], 1).astype(np.float32)
    check("RoiAlign", x, rois, np.zeros(30, np.int64), output_height=2, output_width=3, sampling_ratio=0, coordinate_transformation_mode=coordinates)


@pytest.mark.parametrize("ratio", [0, 2])
def test_regions_that_end_before_they_begin(ratio: int) -> None:
    x = np.random.default_rng(5).random((1, 2, 5, 7), np.float32)
    rois = np.array([[3, 3, 1, 1], [4, 2.5, 0, 1], [2, 2, 2, 2], [1, 1, 3, 3]], np.float32)
    check("RoiAlign", x, rois, np.zeros(4, np.int64), output_height=2, output_width=3, sampling_ratio=ratio)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("region", [[0, 0, 1e9, 1e9], [0, 0, np.inf, 4], [-np.inf, 0, np.inf, np.inf], [np.nan] * 4, [-3e38, -3e38, 3e38, 3e38]])
def test_what_a_region_costs_follows_from_the_image(region: list[float], mode: str) -> None:
    arrays = np.ones((1, 1, 3, 3), np.float32), np.array([region], np.float32), np.zeros(1, np.int64)
    run = rd.compile(model("RoiAlign", arrays, sampling_ratio=0, mode=mode))
    start = time.perf_counter()
    run(*arrays)
    assert time.perf_counter() - start < 1
