# SPDX-License-Identifier: Apache-2.0
"""Padding goes into the convolution or pooling behind it where that gives the same, and stays where it does not."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.graph.tidy.dead_code import eliminate_dead_code
from roundel.graph.tidy.simplify import simplify
from roundel.ir import Var, graph, tir
from roundel.ir.dtype import INT64
from roundel.ops import make

from ..functions import calls, function, same_results

RNG = np.random.default_rng(0)
SHAPE = (2, 4, 7, 9)


def padded(bb, x, width, value=0.0, **attrs):
    widths = graph.ShapeExpr(tuple(tir.as_index(n) for n in width))
    fill = {} if value is None else {"pad_value": graph.Constant.of(np.asarray(value, x.sinfo.dtype.numpy))}
    return bb.emit(make("nn.pad", x, widths, **fill, **attrs))


def around(op, width, value=0.0, shape=SHAPE, dtype="float32", weights=(), pad=None, **attrs):
    def body(bb, x):
        return make(op, padded(bb, x, width, value, **(pad or {})), *weights, **attrs)

    return function([graph.TensorInfo(shape, dtype)], body)


def convolution(width, value=0.0, shape=SHAPE, kernel=(3, 3), channels=None, pad=None, **attrs):
    weight = RNG.standard_normal((8, channels or shape[1], *kernel)).astype("float32")
    return around(f"nn.conv{len(kernel)}d", width, value, shape, weights=(graph.Constant.of(weight),), pad=pad, **attrs)


def folds(mod, shape=SHAPE, dtype="float32"):
    """Whether the padding is gone; results are compared either way, with infinities and NaN among the data."""
    out = eliminate_dead_code(simplify(mod))
    for special in (None, np.nan, np.inf) if dtype == "float32" else (None,):
        data = (RNG.standard_normal(shape) * 9).astype(dtype)
        if special is not None:
            data[(0,) * len(shape)] = special
        same_results(mod, out, data, rtol=1e-5, atol=1e-5)
    return "nn.pad" not in calls(out)


@pytest.mark.parametrize(("width", "attrs"), [
    ((0, 0, 0, 0, 0, 1, 0, 1), {"strides": 2}),  # "same" of TensorFlow
    ((0, 0, 0, 0, 1, 2, 3, 0), {"padding": 1}),
    ((0, 0, 0, 0, 1, 0, 0, 1), {"padding": (0, 2, 1, 0), "dilation": 2}),
    ((0, 0, 0, 0, 0, 0, 5, 5), {"strides": (2, 3)}),
])
def test_zeros_go_into_convolutions(width, attrs):
    assert folds(convolution(width, **attrs))
    assert folds(convolution(width, value=None, **attrs))


def test_convolutions_of_one_and_three_axes_and_groups():
    assert folds(convolution((0, 0, 0, 0, 2, 1), shape=(2, 4, 9), kernel=(3,)), (2, 4, 9))
    assert folds(convolution((0, 0, 0, 0, 1, 0, 0, 1, 1, 1), shape=(1, 4, 3, 4, 5), kernel=(2, 3, 3)), (1, 4, 3, 4, 5))
    assert folds(convolution((0, 0, 0, 0, 0, 1, 0, 1), channels=1, groups=4))


def test_other_layouts():
    shape, weight = (2, 7, 9, 4), graph.Constant.of(RNG.standard_normal((3, 3, 4, 8)).astype("float32"))
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    assert folds(around("nn.conv2d", (0, 0, 0, 1, 1, 0, 0, 0), shape=shape, weights=(weight,), **layouts), shape)
    assert folds(around("nn.max_pool2d", (0, 0, 0, 1, 1, 0, 0, 0), -np.inf, shape, pool_size=3, layout="NHWC"), shape)
    assert not folds(around("nn.max_pool2d", (0, 0, 1, 0, 0, 0, 0, 1), -np.inf, shape, pool_size=3, layout="NHWC"), shape)


@pytest.mark.parametrize(("width", "more"), [
    ((0, 0, 0, 0, 0, 1, 0, 1), {"value": 1.0}),
    ((0, 0, 0, 0, -1, 1, 0, 1), {}),  # crops
    ((0, 1, 0, 0, 0, 1, 0, 1), {}),  # the batch grows
    ((0, 0, 0, 0, 1, 1, 1, 1), {"pad": {"pad_mode": "reflect"}}),
])
def test_what_no_convolution_does_stays(width, more):
    assert not folds(convolution(width, **more))


def test_channels_that_are_padded_stay():
    weight = graph.Constant.of(RNG.standard_normal((8, 6, 3, 3)).astype("float32"))
    assert not folds(around("nn.conv2d", (0, 0, 1, 1, 0, 1, 0, 1), weights=(weight,)))


def test_sizes_that_depend_on_the_call_stay():
    n = Var("n", INT64, True)
    mod = convolution((0, 0, 0, 0, 0, n, 0, 1), shape=(n, 4, 7, 9))
    assert "nn.pad" in calls(simplify(mod))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_the_lowest_value_goes_into_maxima(dtype):
    lowest = -np.inf if dtype == "float32" else -128
    assert folds(around("nn.max_pool2d", (0, 0, 0, 0, 0, 1, 2, 1), lowest, dtype=dtype, pool_size=3, strides=2), dtype=dtype)
    assert folds(around("nn.max_pool2d", (0, 0, 0, 0, 0, 1, 2, 1), lowest, dtype=dtype, pool_size=2, padding=1, dilation=2), dtype=dtype)
    assert not folds(around("nn.max_pool2d", (0, 0, 0, 0, 0, 1, 2, 1), 0, dtype=dtype, pool_size=3, strides=2), dtype=dtype)
    assert not folds(around("nn.max_pool2d", (0, 0, 0, 0, 0, 1, 2, 1), lowest, dtype=dtype, pool_size=3, strides=2, ceil_mode=True), dtype=dtype)


@pytest.mark.parametrize(("attrs", "does"), [
    ({}, True),
    ({"padding": 1, "count_include_pad": True}, True),
    ({"padding": 1}, False),  # some of the zeros counted, some not
    ({"ceil_mode": True}, False),
])
def test_zeros_go_into_averages_that_count_them(attrs, does):
    assert folds(around("nn.avg_pool2d", (0, 0, 0, 0, 0, 1, 2, 1), pool_size=3, strides=2, **attrs)) is does
    assert not folds(around("nn.avg_pool2d", (0, 0, 0, 0, 0, 1, 2, 1), 1.0, pool_size=3, strides=2, **attrs))


def test_a_padding_with_several_readers_goes_into_each():
    weights = [graph.Constant.of(RNG.standard_normal((8, 4, 3, 3)).astype("float32")) for _ in range(2)]

    def body(bb, x):
        y = padded(bb, x, (0, 0, 0, 0, 1, 1, 1, 1))
        return make("add", *(bb.emit(make("nn.conv2d", y, w)) for w in weights))

    assert folds(function([graph.TensorInfo(SHAPE, "float32")], body))
