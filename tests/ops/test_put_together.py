# SPDX-License-Identifier: Apache-2.0
"""Operators that are a few others: vectors spread over grids, places by index tensors, buckets, windows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from opcheck import T, opcheck

from roundel.ir import graph
from roundel.ir.errors import TypeInferenceError
from roundel.ops import make

N = {"n": 4}
RNG = np.random.default_rng(3)


def _numbers(*shape, top=4, dtype="int64"):
    return T(values=RNG.integers(-top, top, shape), dtype=dtype)


def test_outer_products_and_grids():
    opcheck("outer", T("n"), T(3), dims=N)
    for indexing in ("ij", "xy"):
        opcheck("meshgrid", (T("n"), T(3), T(1)), dims=N, indexing=indexing)
        opcheck("meshgrid", (T(5, dtype="int32"), T(2, dtype="int32")), indexing=indexing)


def test_places_by_index_tensors():
    opcheck("index_tensor", T(4, 4, 3), (_numbers(2, 1), _numbers(3)))
    opcheck("index_tensor", T(4, "n"), (_numbers(5, dtype="int32"),), dims=N)
    for accumulate in (False, True):
        opcheck("index_put", T(4, 4, 3), (_numbers(2, 1), _numbers(2)), T(3), accumulate=accumulate)
        opcheck("index_put", T(4, "n"), (T(values=[1, -1], dtype="int64"),), T(2, "n"), dims=N, accumulate=accumulate)


@pytest.mark.parametrize("begin, end, step", [(0, 4, 1), (1, -1, 2), (-3, 100, 1), (2, 2, 1), (0, 4, 3)])
def test_a_part_put_into_a_copy(begin, end, step):
    count = len(range(4)[begin:end:step])
    opcheck("slice_scatter", T(4, 3), T(count, 3), begin, end, step)
    opcheck("slice_scatter", T("n", 4), T("n", count), begin, end, step, dims=N, axis=-1)


def test_values_by_mask_and_buckets():
    opcheck("masked_fill", T("n", 3), T(3, dtype="bool"), 7.5, dims=N)
    edges = np.float32([-1, 0, 0, 1])
    for right in (False, True):
        x = T(values=np.float32([[-2, -1, 0.5], [0, np.nan, np.inf]]))
        wanted = torch.bucketize(torch.from_numpy(x.values), torch.from_numpy(edges), right=right).numpy()
        opcheck("bucketize", x, T(values=edges), right=right, expected=wanted)
        opcheck("bucketize", T("n", dtype="int32"), T(values=[-3, 0, 2], dtype="int32"), dims=N, right=right, out_int32=True)


def test_pixels_from_channels():
    x = RNG.standard_normal((2, 18, 3, 5), dtype=np.float32)
    opcheck("nn.pixel_shuffle", T(values=x), upscale_factor=3, expected=F.pixel_shuffle(torch.from_numpy(x), 3).numpy())
    opcheck("nn.pixel_shuffle", T(8, "n", 3), dims=N, upscale_factor=2)


def test_ones_like_windows_and_counts():
    for k in (0, 1, -2):
        opcheck("eye_like", T("n", 3), k, dims=N)
    opcheck("eye_like", T(3, 5), dtype="int32")
    for size, periodic in ((9, True), (9, False), (1, False), (1, True)):
        opcheck("hamming_window", size, periodic, expected=torch.hamming_window(size, periodic).numpy())
    opcheck("hamming_window", 6, True, 0.5, 0.5, dtype="float64", tolerance=1e-12)
    opcheck("size", T("n", 3), dims=N)
    opcheck("size", T())


def test_logarithms_of_sums_do_not_overflow():
    opcheck("log_add_exp", T("n", 3), T(3), dims=N)
    inf = np.inf
    x, y = np.float32([1000, -1000, inf, -inf, inf, 3, np.nan]), np.float32([999, -1000, inf, -inf, -inf, -inf, 1])
    with np.errstate(invalid="ignore"):  # NumPy says so of infinity and its negative
        expected = np.logaddexp(x, y)
    opcheck("log_add_exp", T(values=x), T(values=y), expected=expected)


def test_samples_of_distributions():
    prob = np.float32([[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]])
    opcheck("multinomial_from_uniform", T(values=prob), T(values=np.float32([[0.1], [0.6], [0.999], [0.49]])),
            T(values=[[0], [1], [0], [0]], dtype="int64"), expected=np.array([[0], [2], [2], [1]]))
    opcheck("multinomial_from_uniform", T(values=prob), T(values=np.float32([[0.3], [0.0]])), dtype="int32")


def test_what_does_not_go_together():
    x = graph.Var("x", graph.TensorInfo((4, 3), "float32"))
    with pytest.raises(TypeInferenceError, match=r"shape \(2, 3\) of the part"):
        make("slice_scatter", x, x, 0, 2)
    with pytest.raises(TypeInferenceError, match="step has to be"):
        make("slice_scatter", x, x, 0, 2, -1)
    with pytest.raises(TypeInferenceError, match="shape is not known"):
        make("outer", graph.Var("y", graph.TensorInfo(None, "float32", 1)), graph.Var("z", graph.TensorInfo((3,), "float32")))
