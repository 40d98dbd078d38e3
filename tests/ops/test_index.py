# SPDX-License-Identifier: Apache-2.0
"""Padding, slicing, gathers, scatters, creation."""

from __future__ import annotations

import numpy as np
import pytest
from opcheck import T, opcheck

from roundel import te
from roundel.ir import graph
from roundel.ir.errors import TypeInferenceError
from roundel.ops import make

N = {"n": 4}


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap", "circular"])
def test_pad(mode):
    opcheck("nn.pad", T("n", 5), (1, 2, 3, 0), dims=N, pad_mode=mode)
    opcheck("nn.pad", T("n", 5), (0, 0, -1, 2), dims=N, pad_mode=mode)
    opcheck("nn.pad", T("n", 5), (3, 3, 4, 4), dims=N, pad_mode=mode)
    opcheck("nn.pad", T(3, 5, dtype="int32"), (1, 0, 1, 1), 7 if mode == "constant" else None, pad_mode=mode)


def test_values_of_one_element():
    opcheck("nn.pad", T("n", 5), (1, 0, 0, 2), T(1), dims=N)
    opcheck("full", lambda n: (n, 3), T(1, 1), dims=N)


def test_pad_by_symbolic_widths():
    opcheck("nn.pad", T("n", 5), lambda n: (n, 1, 0, n), dims=N)


@pytest.mark.parametrize(
    "begin, end, stride",
    [(1, 3, 1), (-3, -1, 1), (0, 100, 2), (-1, -100, -1), (3, 0, -2), (2, 2, 1), (100, 200, 1), (1, 2**40, 1)],
)
def test_strided_slice(begin, end, stride):
    opcheck("strided_slice", T("n", 5), (1,), (begin,), (end,), (stride,), dims=N)
    opcheck("strided_slice", T("n", 5), (0,), (begin,), (end,), (stride,), dims=N)


def test_slices_with_symbolic_bounds_and_inbound():
    opcheck("strided_slice", T("n", 9), (0, -1), lambda n: (1, n - 2), lambda n: (n, n + 3), dims=N)
    opcheck("strided_slice", T("n", 5), (0,), lambda n: (n - 1,), (-1,), (-1,), dims=N, assume_inbound=True)
    n = te.size_var("n")
    x = graph.Var("x", graph.TensorInfo((n, 8), "float32"))
    assert make("strided_slice", x, (1,), (2,), (6,)).sinfo.shape[1].value == 4


def test_take_and_gathers():
    i = lambda *dims, top=4, dtype="int64": T(values=np.random.default_rng(1).integers(-top, top, dims), dtype=dtype)
    opcheck("take", T("n", 5), i(3, 2), dims=N, axis=0)
    opcheck("take", T(2, 4, 3), i(2, dtype="int32"), axis=1)
    opcheck("take", T(2, 4), i(3))
    opcheck("take", T(4, 5), T(values=np.array([-7, 9, 2]), dtype="int64"), axis=0, mode="wrap")
    opcheck("take", T(4, 5), T(values=np.array([-7, 9, 2]), dtype="int64"), axis=0, mode="clip")
    opcheck("take", T(4, 5), T(values=np.array(-2), dtype="int64"), axis=1)
    opcheck("gather_elements", T("n", 5), i(3, 5), dims=N, axis=0)
    opcheck("gather_elements", T(3, 4), i(2, 6), axis=-1)
    opcheck("gather_nd", T("n", 5, 3), i(3, 2, 2), dims=N)
    opcheck("gather_nd", T(2, 4, 5), i(2, 3, 1), batch_dims=1)
    opcheck("gather_nd", T(4, 5), i(2))


@pytest.mark.parametrize("reduction", ["update", "add", "mul", "max", "min"])
def test_scatters(reduction):
    index = lambda *dims, top=4: T(values=np.random.default_rng(1).integers(-top, top, dims), dtype="int64")
    opcheck("scatter_elements", T("n", 5), index(3, 5), T(3, 5), dims=N, reduction=reduction)
    opcheck("scatter_elements", T(3, 4), index(2, 3), T(2, 3), axis=1, reduction=reduction)
    opcheck("scatter_elements", T(4), index(6), T(6), reduction=reduction)
    opcheck("scatter_nd", T("n", 4, 3), index(5, 2), T(5, 3), dims=N, reduction=reduction)
    opcheck("scatter_nd", T(4, 4), index(2, 3, 2), T(2, 3), reduction=reduction)


def test_one_hot():
    opcheck("one_hot", T("n", dtype="int32", low=0, high=1), 1.0, 0.0, dims=N, depth=5)
    opcheck("one_hot", T(2, 3, dtype="int64", low=0, high=1), 3, -1, depth=6, axis=1)


def test_creation():
    opcheck("full", lambda n: (n, 3), 2.5, dims=N, dtype="float16")
    opcheck("full_like", T("n", 3), 2, dims=N)
    opcheck("zeros", lambda n: (n, 3), dims=N)
    opcheck("ones", (2, 0), dtype="int8")
    opcheck("ones_like", T("n", 3, dtype="int32"), dims=N)
    opcheck("arange", lambda n: n, dims=N)
    opcheck("arange", 2, lambda n: n * 2 + 1, 3, dims=N)
    opcheck("arange", lambda n: n, 0, -2, dims=N, dtype="int32")
    opcheck("arange", 0.5, 3.1, 0.25)
    opcheck("arange", 5, 2, 1)
    opcheck("eye", lambda n: n, 5, 1, dims=N)
    opcheck("eye", 3)


def test_misuse():
    n = te.size_var("n")
    x, f = graph.Var("x", graph.TensorInfo((n, 4), "float32")), graph.Var("f", graph.TensorInfo((2,), "float32"))
    i = graph.Var("i", graph.TensorInfo((2, 2), "int64"))
    for call, message in (
        (lambda: make("take", x, f), "have to be integers"),
        (lambda: make("nn.pad", x, (1, 1)), "2 widths are given for 2 dimensions"),
        (lambda: make("scatter_elements", x, i, x), "do not have the shape"),
        (lambda: make("arange", 0, 5, 0), "step is 0"),
    ):
        with pytest.raises(TypeInferenceError, match=message):
            call()
