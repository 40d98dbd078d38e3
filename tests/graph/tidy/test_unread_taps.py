# SPDX-License-Identifier: Apache-2.0
"""Taps that meet only padding are cut off, those that read anything anywhere stay, and results are the same."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.graph.tidy.simplify import simplify
from roundel.ir import Var, graph
from roundel.ir.dtype import INT64
from roundel.ops import make

from ..functions import function, same_results

RNG = np.random.default_rng(0)


def convolution(space, kernel, groups=1, **attrs):
    weight = RNG.standard_normal((8, 4 // groups, *kernel)).astype("float32")
    name = f"nn.conv{len(space)}d"
    return function([graph.TensorInfo((1, 4, *space), "float32")], lambda bb, x: make(name, x, graph.Constant.of(weight), groups=groups, **attrs))


def kernel_of(mod):
    calls = [b.value for block in mod["main"].body.blocks for b in block.bindings if isinstance(b.value, graph.Call)]
    (call,) = (c for c in calls if c.op.name.startswith("nn.conv"))
    return tuple(call.args[1].data.shape[2:]), call.attrs["padding"]


@pytest.mark.parametrize(("space", "kernel", "attrs", "left"), [
    ((7, 9), (3, 3), {"dilation": 9, "padding": 9}, ((1, 1), (0, 0, 0, 0))),
    ((7, 9), (3, 3), {"dilation": 8, "padding": 8}, ((1, 3), (0, 8, 0, 8))),
    ((7, 9), (5, 3), {"dilation": (4, 1), "padding": (8, 1)}, ((3, 3), (4, 1, 4, 1))),
    ((7,), (3,), {"dilation": 8, "padding": (8, 9)}, ((1,), (0, 1))),
    ((3, 4, 5), (3, 3, 3), {"dilation": 4, "padding": 4, "groups": 2}, ((1, 1, 3), (0, 0, 4, 0, 0, 4))),
    ((7, 9), (3, 3), {"dilation": 10, "padding": 10, "strides": 3}, ((1, 1), (0, 0, 0, 0))),
])
def test_taps_that_only_read_padding_are_cut_off(space, kernel, attrs, left):
    mod = convolution(space, kernel, **attrs)
    made = simplify(mod)
    assert kernel_of(made) == left
    same_results(mod, made, RNG.standard_normal((1, 4, *space)).astype("float32"))


@pytest.mark.parametrize(("space", "kernel", "attrs"), [
    ((7, 9), (3, 3), {"dilation": 6, "padding": 6}),
    ((7, 9), (3, 3), {"padding": 1}),
    ((2, 2), (3, 3), {"padding": 4}),  # every tap reads somewhere
    ((Var("h", INT64, True), Var("w", INT64, True)), (3, 3), {"dilation": 9, "padding": 9}),
    ((7, 9), (3, 3), {"dilation": 12, "padding": 10}),  # the data would have to be cut
])
def test_others_stay(space, kernel, attrs):
    mod = convolution(space, kernel, **attrs)
    assert kernel_of(simplify(mod)) == kernel_of(mod)
