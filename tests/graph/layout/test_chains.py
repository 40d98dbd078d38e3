# SPDX-License-Identifier: Apache-2.0
"""Layouts of chains of convolutions: found as a whole, with the expected time of the whole and its conversions, had as asked for."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.builder import BlockBuilder
from roundel.driver import DEFAULT, compile_module, prepare
from roundel.graph.layout.chains import Convolution
from roundel.interp import interpret
from roundel.ir import graph
from roundel.ir.errors import OptionError
from roundel.ir.node import Span
from roundel.ops import make
from roundel.strategy import schedule_module
from roundel.target import Target

TARGET = Target("x86-64-v4")
PIPELINE = DEFAULT[: DEFAULT.index(schedule_module)]


def network(*convolutions, size=12, turned=False):
    """Convolutions, given by channels of data and result, size of kernel and groups, one after another with a ReLU each; ``turned``: the
    channels are last between them, as a normalisation wants them."""
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo((1, convolutions[0][0], size, size), "float32"))
    draw = np.random.default_rng(0)
    with bb.function("main", [x]):
        with bb.dataflow():
            y = x
            for k, (channels, outer, kernel, groups) in enumerate(convolutions):
                bb.span = Span(f"Conv /{k}", name=f"/{k}")
                weight = draw.standard_normal((outer, channels // groups, kernel, kernel)).astype(np.float32) / channels
                y = bb.emit(make("nn.conv2d", y, graph.Constant.of(weight), padding=kernel // 2, groups=groups))
                bb.span = None
                y = bb.emit(make("nn.relu", y))
                if turned:
                    y = bb.emit(make("permute_dims", bb.emit(make("nn.softmax", bb.emit(make("permute_dims", y, axes=(0, 2, 3, 1))), axis=-1)),
                                     axes=(0, 3, 1, 2)))
            y = bb.emit_output(y)
        bb.emit_func_output(y)
    return bb.get()


def layouts(mod, choices=None):
    made = prepare(mod, target=TARGET, pipeline=PIPELINE, choices=choices).choices.made
    return {c.site: c for c in made if c.kind == "layout"}


def test_long_chains_are_in_blocks_without_asking():
    found = layouts(network(*[(64, 64, 3, 1)] * 4))
    assert {c.taken for c in found.values()} == {"NCHW16c"} and set(found["/0"].possible) == {"NCHW16c", "NCHW32c", "NCHW"}
    assert set(found["/0"].possible.values()) == {None}


def test_a_chain_is_looked_at_once_however_long_it_is(monkeypatch):
    looked, known = [], Convolution.is_known
    monkeypatch.setattr(Convolution, "is_known", property(lambda one: looked.append(one) or known.__get__(one)))
    layouts(network(*[(16, 16, 3, 1)] * 12))
    assert len(looked) <= 2 * 12


def test_a_convolution_by_itself_is_compared_with_its_conversions():
    found = layouts(network((32, 32, 1, 1), (32, 32, 1, 1), turned=True))
    assert all(found["/0"].possible.values()) and found["/0"].taken == "NCHW16c"
    alone = layouts(network((32, 32, 1, 1)))["/0"].possible
    both = layouts(network((32, 32, 1, 1), (32, 32, 1, 1)))["/0"].possible
    assert alone["NCHW"] < both["NCHW"] and both["NCHW16c"] < 2 * alone["NCHW16c"]  # one conversion in and one out, for both together


@pytest.mark.parametrize("channels, kernel, taken", [((8, 48), 1, "NCHW"), ((64, 96), 3, "NCHW16c")])
def test_a_convolution_that_is_alone_is_in_blocks_where_that_is_worth_converting(channels, kernel, taken):
    """Nothing beside it takes the conversions in; where something does, and in chains, blocks are what is usual."""
    alone, followed = (layouts(network((*channels, kernel, 1), size=28, turned=t))["/0"] for t in (False, True))
    assert alone.taken == taken and followed.taken == "NCHW16c"
    assert (alone.possible["NCHW"] < alone.possible["NCHW16c"]) == (taken == "NCHW")
    assert layouts(network((*channels, 1, 1), (channels[1], 8, 1, 1), size=28))["/0"].taken == "NCHW16c"


@pytest.mark.parametrize("wanted", [{"*": "NCHW"}, {"*": "NCHW32c"}, {"/1": "NCHW32c"}, {"/1": "NCHW"}, {"/0": "NCHW", "/2": "NCHW32c"}])
def test_layouts_are_had_as_asked_for_and_right(wanted):
    mod = network((32, 64, 3, 1), (64, 64, 3, 1), (64, 64, 1, 1))
    found = layouts(mod, wanted)
    for pattern, name in wanted.items():
        assert all(c.taken == name for site, c in found.items() if pattern in ("*", site))
    x = np.random.default_rng(1).standard_normal((1, 32, 12, 12)).astype(np.float32)
    got, want = compile_module(mod, choices=wanted).load()["main"](x), interpret(mod)["main"](x)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def test_depthwise_convolutions_follow_their_data():
    mod = network((32, 32, 1, 1), (32, 32, 3, 32))
    assert set(layouts(mod)["/1"].possible) == {"NCHW16c", "NCHW"}
    x = np.random.default_rng(1).standard_normal((1, 32, 12, 12)).astype(np.float32)
    for wanted in ({"/0": "NCHW32c"}, {"/1": "NCHW"}, {"/0": "NCHW"}):
        np.testing.assert_allclose(compile_module(mod, choices=wanted).load()["main"](x), interpret(mod)["main"](x), rtol=1e-3, atol=1e-4)


def test_winograd_needs_blocks_of_a_vector():
    with pytest.raises(OptionError, match="blocks of 32 channels"):
        layouts(network((64, 64, 3, 1)), {"/0": ["NCHW32c", "winograd4"]})
