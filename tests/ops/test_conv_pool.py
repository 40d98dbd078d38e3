# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pooling: geometry, groups, layouts, types."""

from __future__ import annotations

import numpy as np
import pytest
from opcheck import T, opcheck

from roundel.ir import graph
from roundel.ir.errors import RoundelError, TypeInferenceError
from roundel.ops import make

N = {"n": 2}


@pytest.mark.parametrize(
    "data, weight, attrs",
    [
        (("n", 3, 7, 8), (4, 3, 3, 3), {"padding": 1}),
        (("n", 3, 7, 8), (4, 3, 3, 2), {"strides": (2, 1), "padding": (1, 0, 2, 1)}),
        (("n", 4, 9, 8), (6, 2, 3, 3), {"groups": 2, "dilation": (2, 1)}),
        (("n", 4, 5, 6), (4, 1, 3, 3), {"groups": 4, "padding": 1}),
        (("n", 4, 5, 6), (8, 1, 3, 3), {"groups": 4, "padding": (1, 1)}),
        (("n", 4, 5, 6), (3, 4, 1, 1), {"strides": 2}),
        (("n", 4, 9, 11), (6, 2, 3, 3), {"groups": 2, "strides": (1, 2), "padding": (1, 2, 0, 1), "dilation": (1, 2)}),
        (("n", 2, 8, 13), (2, 2, 2, 4), {"strides": 3, "padding": 1}),
    ],
)
def test_conv2d(data, weight, attrs):
    opcheck("nn.conv2d", T(*data), T(*weight), dims=N, **attrs)


def test_symbolic_space_and_other_ranks():
    opcheck("nn.conv2d", T(1, 3, "h", "w"), T(4, 3, 3, 3), dims={"h": 7, "w": 6}, padding=1, strides=2)
    opcheck("nn.conv1d", T("n", 3, 11), T(4, 3, 5), dims=N, strides=2, padding=(2, 1), dilation=2)
    opcheck("nn.conv3d", T("n", 2, 4, 5, 3), T(4, 2, 2, 3, 1), dims=N, padding=(1, 0, 0, 0, 1, 0))
    opcheck("nn.conv3d", T(1, 2, 5, 5, 7), T(3, 2, 3, 3, 3), strides=2, padding=1)


def test_layouts_and_types():
    opcheck("nn.conv2d", T(2, 7, 8, 3), T(3, 3, 3, 4), data_layout="NHWC", kernel_layout="HWIO", padding=1)
    opcheck(
        "nn.conv2d",
        T(2, 2, 7, 8, 4),
        T(2, 2, 3, 3, 4, 8),
        data_layout="NCHW4c",
        kernel_layout="OIHW4i8o",
        out_layout="NCHW8c",
        padding=1,
    )
    opcheck(
        "nn.conv2d",
        T(2, 2, 5, 6, 4),
        T(2, 1, 3, 3, 1, 4),
        data_layout="NCHW4c",
        kernel_layout="OIHW1i4o",
        groups=8,
        padding=1,
    )
    opcheck("nn.conv2d", T(2, 3, 7, 8), T(2, 3, 3, 3, 4), kernel_layout="OIHW4o", out_layout="NCHW4c")
    opcheck("nn.conv2d", T(2, 3, 6, 6, dtype="float16"), T(4, 3, 3, 3, dtype="float16"))
    opcheck("nn.conv2d", T(2, 3, 6, 6, dtype="int8", high=30), T(4, 3, 3, 3, dtype="int8", high=30), out_dtype="int32")


@pytest.mark.parametrize(
    "attrs",
    [
        {},
        {"strides": 2},
        {"strides": (2, 3), "padding": (1, 0, 0, 2), "output_padding": (1, 0)},
        {"dilation": 2, "padding": 1},
        {"groups": 2, "strides": 2, "padding": 1},
        {"padding": (3, 3)},
    ],
)
def test_conv_transpose(attrs):
    opcheck("nn.conv2d_transpose", T("n", 4, 5, 6), T(4, 3, 3, 3), dims=N, **attrs)


def test_conv_transpose_of_other_ranks():
    opcheck("nn.conv1d_transpose", T("n", 4, 5), T(4, 3, 4), dims=N, strides=3, padding=1)
    opcheck("nn.conv3d_transpose", T("n", 2, 3, 3, 2), T(2, 3, 2, 2, 2), dims=N, strides=2)
    opcheck("nn.conv2d_transpose", T(1, 4, "h", 6), T(4, 3, 3, 3), dims={"h": 5}, strides=2, padding=1)


POOLS = [
    {"pool_size": 2, "strides": 2},
    {"pool_size": (3, 2), "strides": (2, 1), "padding": (1, 1, 1, 0)},
    {"pool_size": 3, "strides": 2, "ceil_mode": True},
    {"pool_size": 3, "strides": 2, "padding": 1, "ceil_mode": True},
    {"pool_size": 2, "strides": 3, "ceil_mode": True, "padding": 1},
    {"pool_size": 2, "dilation": 2, "strides": 1, "padding": (1, 1)},
]


@pytest.mark.parametrize("attrs", POOLS)
@pytest.mark.parametrize("how", ["max", "avg", "lp"])
def test_pools(how, attrs):
    opcheck(f"nn.{how}_pool2d", T("n", 3, 7, 8), dims=N, **attrs)
    opcheck(f"nn.{how}_pool2d", T(1, 3, "h", 8), dims={"h": 6}, **attrs)
    if how == "avg":
        opcheck("nn.avg_pool2d", T("n", 3, 7, 8), dims=N, count_include_pad=True, **attrs)


def test_pools_of_other_ranks_layouts_and_types():
    opcheck("nn.max_pool1d", T("n", 3, 9), dims=N, pool_size=3, strides=2, padding=1)
    opcheck("nn.avg_pool3d", T("n", 2, 4, 5, 3), dims=N, pool_size=2, strides=2, padding=1)
    opcheck("nn.max_pool2d", T(2, 7, 8, 3), pool_size=3, strides=2, layout="NHWC")
    opcheck("nn.avg_pool2d", T(2, 2, 7, 8, 4), pool_size=3, strides=2, padding=1, layout="NCHW4c")
    opcheck("nn.max_pool2d", T(2, 3, 6, 6, dtype="int8", high=30), pool_size=3, strides=2, padding=1)
    opcheck("nn.avg_pool2d", T(2, 3, 6, 6, dtype="float16"), pool_size=3, strides=2, padding=1)
    opcheck("nn.max_pool2d", T(values=np.array([[[[1.0, np.nan], [-np.inf, 2.0]]]])), pool_size=2)
    opcheck("nn.lp_pool2d", T(2, 3, 6, 6), pool_size=3, p=3)


@pytest.mark.parametrize("how", ["max", "avg"])
def test_adaptive_pools(how):
    opcheck(f"nn.adaptive_{how}_pool2d", T("n", 3, 7, 8), dims=N, output_size=(3, 4))
    opcheck(f"nn.adaptive_{how}_pool2d", T("n", 3, "h", 8), dims={"n": 2, "h": 5}, output_size=1)
    opcheck(f"nn.adaptive_{how}_pool2d", T(2, 3, "h", 8), dims={"h": 5}, output_size=(3, None))
    opcheck(f"nn.adaptive_{how}_pool1d", T(2, 3, 4), output_size=7)


def test_misuse():
    x, w = (
        graph.Var("x", graph.TensorInfo((1, 3, 5, 5), "float32")),
        graph.Var("w", graph.TensorInfo((4, 2, 3, 3), "float32")),
    )
    with pytest.raises(TypeInferenceError, match="3 channels are not 1 groups of 2"):
        make("nn.conv2d", x, w)
    with pytest.raises(TypeInferenceError, match="is for 5 dimensions"):
        make("nn.conv2d", x, w, data_layout="NCHW4c")
    with pytest.raises(RoundelError, match="not a layout"):
        make("nn.max_pool2d", x, layout="NCHWc")
