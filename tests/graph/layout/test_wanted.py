# SPDX-License-Identifier: Apache-2.0
"""What goes to convolutions in blocks of channels comes into blocks before it is enlarged and joined, not after."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.graph.layout.block_channels import block_channels
from roundel.ir import graph, tir
from roundel.ops import make
from roundel.target import Target

from ..functions import function
from ..running import agree

RNG = np.random.default_rng(3)
LANES = Target.host().lanes("float32")


def _conv(bb, x, out):
    kernel = RNG.standard_normal((out, x.sinfo.shape[1].value, 1, 1)).astype("float32") * 0.2
    return bb.emit(make("nn.conv2d", x, graph.Constant.of(kernel)))


def _enlarged(bb, x, side):
    n, c = x.sinfo.shape[:2]
    return bb.emit(make("image.resize", x, graph.ShapeExpr((n, c, tir.index_const(side), tir.index_const(side)))))


def _pyramid(bb, large, small):
    """As decoders of segmentation have it: maps of several sizes, enlarged, joined and mixed."""
    return _conv(bb, bb.emit(make("concat", graph.Tuple((large, _enlarged(bb, small, 12))), axis=1)), LANES)


def _reduced(bb, large, small):
    return _conv(bb, bb.emit(make("concat", graph.Tuple((_enlarged(bb, large, 3), small)), axis=1)), LANES)


def _used_elsewhere(bb, large, small):
    joined = bb.emit(make("concat", graph.Tuple((large, _enlarged(bb, small, 12))), axis=1))
    return graph.Tuple((_conv(bb, joined, LANES), bb.emit(make("permute_dims", joined, axes=(0, 2, 3, 1)))))


BODIES = {"pyramid": _pyramid, "reduced": _reduced, "used elsewhere": _used_elsewhere}


def _module(name, channels=2 * LANES):
    return function([graph.TensorInfo((1, channels, n, n), "float32") for n in (12, 3)], BODIES[name])


def _calls(mod, op):
    return [b.value for block in block_channels(mod)["main"].body.blocks for b in block.bindings
            if isinstance(b.value, graph.Call) and getattr(b.value.op, "name", "") == op]


@pytest.mark.parametrize("channels", [2 * LANES, LANES + 1])
@pytest.mark.parametrize("name", BODIES)
def test_results_stay(name, channels):
    shapes = [(1, channels, n, n) for n in (12, 3)]
    agree(_module(name, channels), [RNG.standard_normal(s).astype("float32") for s in shapes], rtol=1e-3)


def test_what_is_enlarged_comes_into_blocks_before():
    (resized,) = _calls(_module("pyramid"), "image.resize")
    assert resized.args[0].sinfo.ndim == 5 and len(_calls(_module("pyramid"), "permute_dims")) == 3  # two into blocks, the result back


@pytest.mark.parametrize("name", ["reduced", "used elsewhere"])
def test_what_shrinks_or_is_used_otherwise_stays_as_it_is(name):
    (resized,) = _calls(_module(name), "image.resize")
    assert resized.args[0].sinfo.ndim == 4
