# SPDX-License-Identifier: Apache-2.0
"""Dilated convolutions run by Winograd's algorithm, phase by phase."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.driver import DEFAULT, compile_module, prepare
from roundel.graph.layout.block_channels import block_channels
from roundel.graph.layout.phases import Axis
from roundel.interp import interpret
from roundel.ir import Var, graph
from roundel.ir.dtype import INT64
from roundel.ops import make
from roundel.target import Target

from ..functions import function

RNG = np.random.default_rng(0)
TARGET = Target("x86-64-v3")
N = Var("n", INT64, True)


def convolution(shape, outer, **attrs):
    weight = RNG.standard_normal((outer, shape[1], 3, 3)).astype("float32") / 8

    def body(bb, x):
        return bb.emit(make("nn.relu", bb.emit(make("nn.conv2d", x, graph.Constant.of(weight), **attrs))))

    return function([graph.TensorInfo(shape, "float32")], body)


@pytest.mark.parametrize("algorithm", ["winograd2", "winograd4"])
@pytest.mark.parametrize(("shape", "attrs"), [
    ((1, 8, 12, 8), {"dilation": 2, "padding": 2}),
    ((2, 8, 13, 11), {"dilation": (2, 3), "padding": (1, 4, 2, 5)}),  # phases of several sizes, padding that is no multiple of the dilation
    ((1, 16, 17, 10), {"dilation": (1, 4), "padding": (1, 4)}),
    ((1, 8, 9, 11), {"dilation": 3}),
    ((N, 8, 7, 9), {"dilation": 2, "padding": 2}),
])
def test_results_are_those_of_the_dilated_convolution(shape, attrs, algorithm):
    mod = convolution(shape, 16, **attrs)
    built = compile_module(mod, target=TARGET, choices={"*": algorithm})
    x = RNG.standard_normal([3 if n is N else n for n in shape]).astype("float32")
    np.testing.assert_allclose(built.load()["main"](x), interpret(mod)["main"](x), rtol=1e-4, atol=1e-4)


def chosen(shape, outer, dilation):
    mod = convolution(shape, outer, dilation=dilation, padding=dilation)
    made = prepare(mod, target=Target("znver5"), pipeline=DEFAULT[: DEFAULT.index(block_channels) + 1])
    (choice,) = (c for c in made.choices.made if c.kind == "algorithm")
    return choice.taken


@pytest.mark.parametrize(("channels", "size", "dilation", "taken"), [
    (256, 32, 2, "winograd4"),
    (512, 32, 4, "winograd4"),
    (256, 28, 12, "direct"),  # phases of three pixels fill no tiles
    (256, 28, 24, "direct"),  # four in five products are with padding, which the direct way leaves out
])
def test_phases_compete_with_the_direct_way(channels, size, dilation, taken):
    assert chosen((1, channels, size, size), channels, dilation) == taken


@pytest.mark.parametrize(("axis", "padding", "inside"), [
    (Axis(size=12, result=12, dilation=2, kernel=3, before=2, after=2), (1, 1), (10 + 12 + 10) / 36),
    (Axis(size=7, result=3, dilation=2, kernel=3, before=0, after=0), (0, 0), 1.0),
    (Axis(size=28, result=28, dilation=24, kernel=3, before=24, after=24), (1, 1), (4 + 28 + 4) / 84),
])
def test_axes(axis, padding, inside):
    assert axis.padding == padding
    assert axis.inside == pytest.approx(inside)
