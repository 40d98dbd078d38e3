# SPDX-License-Identifier: Apache-2.0
"""Positions of extremes, scans, sorting; resizing and sampling."""

from __future__ import annotations

import numpy as np
import opcheck as opcheck_module
import pytest
from opcheck import T, opcheck

N = {"n": 5}
TIES = [[3.0, 1.0, 3.0, np.nan, 1.0], [-np.inf, -np.inf, 0.0, 0.0, -1.0], [np.inf, 2.0, np.inf, 2.0, -0.0]]


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_arg(name):
    opcheck(name, T("n", 4, 3), dims=N, axis=1)
    opcheck(name, T("n", 4, 3), dims=N, axis=0, keepdims=True)
    opcheck(name, T("n", 4), dims=N)
    opcheck(name, T(values=TIES), axis=1)
    opcheck(name, T(3, 9, dtype="int8"), axis=-1)
    opcheck(name, T(3, 9, dtype="float16"), axis=-1)
    opcheck(name, T(values=[[-np.inf, -np.inf], [np.inf, np.inf]]), axis=1)


def test_scans():
    for name in ("cumsum", "cumprod"):
        opcheck(name, T("n", 4, 3), dims=N, axis=1)
        opcheck(name, T("n", 4), dims=N, axis=0, exclusive=True)
        opcheck(name, T("n", 4), dims=N)
        opcheck(name, T(3, 4, dtype="int32"), axis=-1, dtype="int64")
    opcheck("cumsum", T(40, dtype="float16"), axis=0)


EDGES = [[-np.inf, -200.0, 3.0, np.inf, 1.0, np.nan, 5.0], [1.0, 1.0, 0.0, 1.0, 700.0, -700.0, 700.0], [-np.inf] * 7]


@pytest.mark.parametrize("name", ["cummax", "cummin", "logcumsumexp"])
def test_running_values(name):
    opcheck(name, T("n", 4, 3), dims=N, axis=1)
    opcheck(name, T("n", 4), dims=N, axis=0)
    opcheck(name, T(3, 37))
    opcheck(name, T(values=EDGES), axis=1)
    opcheck(name, T(3, 9, dtype="float16"))
    if name != "logcumsumexp":
        opcheck(name, T(5, 17, dtype="int8"), axis=0)
        opcheck(name, T(5, 17, dtype="bool"))


@pytest.mark.parametrize("descending", [False, True])
def test_sort(descending):
    opcheck("sort", T("n", 4), dims=N, axis=0, descending=descending)
    opcheck("sort", T(3, 11), descending=descending)
    opcheck("argsort", T(values=TIES), descending=descending)
    opcheck("argsort", T(2, 40, 2, dtype="int8"), axis=1, descending=descending, dtype="int64")
    opcheck("sort", T(2, 1), descending=descending)
    opcheck("sort", T(2, 0), descending=descending)


@pytest.mark.parametrize("n", [2, 3, 64, 67, 129])
def test_merges(n, monkeypatch):
    """Pairs of whole runs and what is left over, in order of place where elements are equal; NaN is the largest."""
    monkeypatch.setattr(opcheck_module, "COMPILED", True)
    x = np.random.default_rng(n).integers(0, 9, (3, n)).astype("float32")
    x[1, ::5] = np.nan
    for descending in (False, True):
        opcheck("argsort", T(values=x), descending=descending, dtype="int64")
        opcheck("argsort", T(2, "n", dtype="uint8"), dims={"n": n}, descending=descending)


def test_topk():
    opcheck("topk", T("n", 9), 3, dims=N, dtype="int64")
    opcheck("topk", T("n", 9), lambda n: n - 1, dims=N, axis=0, largest=False)
    opcheck("topk", T(values=TIES), 2, ret_type="indices")
    opcheck("topk", T(3, 4, dtype="int32"), 4, ret_type="values")


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool", "uint64"])
def test_few_of_many(dtype, largest, monkeypatch):
    """Selected rather than sorted: ties across blocks, NaN, infinities, sizes that are known late."""
    monkeypatch.setattr(opcheck_module, "COMPILED", True)
    opcheck("topk", T(2, 133, dtype=dtype), 7, largest=largest)
    opcheck("topk", T("n", 37, dtype=dtype), 1, dims={"n": 2}, largest=largest, dtype="int64")
    opcheck("topk", T(1, "n", dtype=dtype), 3, dims={"n": 71}, largest=largest)
    opcheck("topk", T(1, "n", dtype=dtype), 3, dims={"n": 5}, largest=largest)
    if dtype.startswith("float"):
        x = np.random.default_rng(0).uniform(-2, 2, (5, 90))
        x[0, ::2], x[1], x[2, 40:], x[3, :9], x[4, 33:] = np.nan, np.nan, np.inf, np.nan, -np.inf
        opcheck("topk", T(values=x, dtype=dtype), 6, largest=largest)


MODES = [
    "half_pixel",
    "pytorch_half_pixel",
    "asymmetric",
    "align_corners",
    "half_pixel_symmetric",
    "tf_crop_and_resize",
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", ["nearest", "linear", "cubic"])
def test_resize(method, mode):
    more = (
        {"roi": (0, 0, 0.1, -0.2, 1, 1, 0.8, 1.1), "extrapolation_value": 7.0} if mode == "tf_crop_and_resize" else {}
    )
    for size in ((7, 9), (3, 2), (1, 4), (10, 8)):
        opcheck(
            "image.resize", T(1, 2, 5, 4), (1, 2, *size), method=method, coordinate_transformation_mode=mode, **more
        )
    opcheck(
        "image.resize",
        T("n", 2, 5, 4),
        lambda n: (n, 2, 10, 8),
        dims=N,
        method=method,
        coordinate_transformation_mode=mode,
        **more,
    )
    opcheck(
        "image.resize",
        T(1, 1, "n", 4),
        lambda n: (1, 1, n * 2, 4),
        dims=N,
        method=method,
        coordinate_transformation_mode=mode,
        **more,
    )


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "round"])
def test_nearest_rounding(rounding):
    for mode in ("half_pixel", "asymmetric", "align_corners", "tf_half_pixel_for_nn"):
        for size in (4, 7, 8, 2, 12):
            opcheck(
                "image.resize",
                T(1, 4),
                (1, size),
                method="nearest",
                coordinate_transformation_mode=mode,
                rounding_method=rounding,
            )
    opcheck("image.resize", T(1, 4), (1, 6), scales=(1.0, 1.7), method="nearest", rounding_method=rounding)


def test_resize_options():
    opcheck("image.resize", T(1, 1, 5, 4), (1, 1, 9, 7), method="cubic", cubic_exclude=True, cubic_alpha=-0.5)
    opcheck("image.resize", T(1, 1, 5, 4), (1, 1, 12, 9), scales=(1.0, 1.0, 2.4, 2.3), method="linear")
    opcheck("image.resize", T(1, 1, 5, 4, dtype="uint8", high=60), (1, 1, 9, 7), method="linear", tolerance=1)
    opcheck("image.resize", T(2, 5, 4, 3, dtype="float16"), (2, 9, 7, 3), method="linear")
    opcheck("image.resize2d", T(2, 3, 5, 4), (9, 7))
    opcheck(
        "image.resize2d",
        T(2, 5, 4, 3),
        (10, 8),
        layout="NHWC",
        method="nearest_neighbor",
        coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
    )


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic"])
def test_grid_sample(method, padding):
    for corners in (True, False):
        opcheck(
            "image.grid_sample",
            T("n", 2, 5, 4),
            T("n", 2, 3, 6, low=-1.4, high=1.4),
            dims={"n": 2},
            method=method,
            padding_mode=padding,
            align_corners=corners,
            tolerance=2e-4,
        )
    if method != "bicubic":
        opcheck(
            "image.grid_sample",
            T(1, 2, 3, 5, 4),
            T(1, 3, 2, 3, 6, low=-1.4, high=1.4),
            method=method,
            padding_mode=padding,
            tolerance=2e-4,
        )
