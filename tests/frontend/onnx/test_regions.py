# SPDX-License-Identifier: Apache-2.0
"""Pooling of regions against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

from .single_node import check

pytest.importorskip("onnxruntime")


def test_max_roi_pool() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 3, 9, 8)).astype(np.float32)
    rois = np.array([[0, 1, 2, 12, 14], [1, 0, 0, 3, 3], [1, 5, 5, 4, 4], [0, 20, 20, 30, 30]], np.float32)
    check("MaxRoiPool", x, rois, pooled_shape=[3, 2], spatial_scale=0.5)
