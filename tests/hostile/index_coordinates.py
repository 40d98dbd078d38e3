# SPDX-License-Identifier: Apache-2.0
"""Positions that are computed from numbers (coordinates, offsets, sizes), which may be infinite, NaN or huge, for ``indices``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .index_models import Rng, model, node
from .index_subjects import Case, Subject, Unprescribed, data, draw

_STRANGE = np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e20, 2.0**31, -(2.0**31), 2.0**63, 1e-40, -0.0])


def _unprescribed() -> Any:
    raise Unprescribed


def numbers(rng: Rng, *shape: int, scale: float = 1.0) -> np.ndarray:
    """Numbers about 0, most of the time with some that are strange."""
    out = data(rng, *shape) * np.float32(scale)
    if out.size and rng.random() < 0.7:
        for _ in range(int(rng.choice([1, 1, 3]))):
            out.reshape(-1)[rng.integers(out.size)] = rng.choice(_STRANGE)
    return out


def _grid(rng: Rng) -> Case:
    n, c, h, w, p, q = (int(v) for v in rng.integers(1, 7, 6))
    return (data(rng, n, c, h, w), numbers(rng, n, p, q, 2)), _unprescribed


def _deformed(rng: Rng) -> Case:
    n, h, w = (int(v) for v in rng.integers(1, 8, 3))
    return (data(rng, n, 2, h, w), data(rng, 3, 2, 2, 2), numbers(rng, n, 8, h + 1, w + 1, scale=3)), _unprescribed


def _regions(rng: Rng) -> Case:
    n, c, h, w, k = (int(v) for v in rng.integers(1, 6, 5))
    return (data(rng, n, c, h, w), numbers(rng, k, 4, scale=4), rng.integers(0, n, k)), _unprescribed


def _pooled(rng: Rng) -> Case:
    n, c, h, w, k = (int(v) for v in rng.integers(1, 6, 5))
    where = numbers(rng, k, 4, scale=4)
    return (data(rng, n, c, h, w), np.concatenate([rng.integers(0, n, (k, 1)).astype(np.float32), where], 1)), _unprescribed


def _sized(rng: Rng) -> Case:
    h, w = (int(v) for v in rng.integers(1, 8, 2))  # empty pictures: see ``sizes``
    return (data(rng, 1, 2, h, w), np.array([1, 2, *rng.choice([0, 1, 2, 5, 13, -1, -(2**63), 2**62], 2)])), _unprescribed


def _boxes(rng: Rng) -> Case:
    n, most = int(rng.integers(0, 30)), draw(rng, (1,), 40)
    return (numbers(rng, 1, n, 4), numbers(rng, 1, 2, n), most, numbers(rng, 1), numbers(rng, 1)), _unprescribed


def _padded(rng: Rng) -> Case:
    n = int(rng.integers(1, 9))
    x, pads = data(rng, n), rng.choice([0, 1, 2, 3, -1, -2, -20, -(2**63)], 2)

    def reference() -> Any:
        low, high = (int(p) for p in pads)
        first, behind = max(-low, 0), n - max(-high, 0)
        if first > behind:  # more is taken away than there is
            raise IndexError
        return np.pad(x[first:behind], (max(low, 0), max(high, 0)))

    return (x, pads), reference


def _spectrum(rng: Rng) -> Case:
    return (data(rng, 1, int(rng.integers(0, 60)), 1),), _unprescribed


def subjects() -> list[Subject]:
    """Models of ONNX, most of which say of coordinates outside only that nothing else may happen."""
    from onnx import numpy_helper

    constant = lambda name, value: numpy_helper.from_array(np.asarray(value), name)
    sampled = lambda mode, border: model([node("GridSample", "x g", mode=mode, padding_mode=border)], "x:f:n,c,h,w g:f:n,p,q,2", opset=20)
    grids = [Subject(f"GridSample {mode} {border}", sampled(mode, border), _grid)
             for mode in ("linear", "nearest", "cubic") for border in ("zeros", "border", "reflection")]
    resizes = [Subject(f"Resize {mode}", model([node("Resize", "x - - s", mode=mode)], "x:f:1,2,h,w s:i:4", opset=19), _sized)
               for mode in ("nearest", "linear", "cubic")]
    regions = [Subject(f"RoiAlign coordinates, {ratio} samples", model([node("RoiAlign", "x r i", sampling_ratio=ratio, output_height=2, output_width=2)],
                                                                      "x:f:n,c,h,w r:f:k,4 i:i:k"), _regions) for ratio in (0, 2)]
    return [
        *grids, *resizes, *regions,
        Subject("MaxRoiPool coordinates", model([node("MaxRoiPool", "x r", pooled_shape=[2, 2])], "x:f:n,c,h,w r:f:k,5"), _pooled),
        Subject("DeformConv", model([node("DeformConv", "x w o", kernel_shape=[2, 2], pads=[1, 1, 1, 1])],
                                    "x:f:n,2,h,w w:f:3,2,2,2 o:f:n,8,p,q", opset=19), _deformed),
        Subject("NonMaxSuppression", model([node("NonMaxSuppression", "b s m t u", "z"), node("Cast", "z", to=1)],
                                           "b:f:1,n,4 s:f:1,2,n m:i:1 t:f:1 u:f:1"), _boxes),
        Subject("Pad", model([node("Pad", "x p")], "x:f:n p:i:2"), _padded),
        Subject("STFT", model([node("STFT", "x f - l")], "x:f:1,n,1", [constant("f", 4), constant("l", 16)]), _spectrum),
    ]
