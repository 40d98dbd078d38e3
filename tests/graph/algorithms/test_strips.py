# SPDX-License-Identifier: Apache-2.0
"""The first layers of a network strip by strip: which layers, that results are equal, and that memory is smaller."""

import numpy as np
import pytest

from roundel.graph.algorithms.strips import COUNTS, Window, best_end, chains, strips
from roundel.interp import interpret
from roundel.ir import graph
from roundel.ir.choice import Choices
from roundel.ir.errors import OptionError
from roundel.ops import make
from roundel.target import Target

from ..functions import calls, function

RNG = np.random.default_rng(5)
BOARD = Target("cortex-m4")


def net(seed, size=37):
    """Layers at random over a picture, the larger ones first; what follows them has no rows."""
    rng = np.random.default_rng(seed)
    weight = lambda *shape: graph.Constant.of(rng.standard_normal(shape).astype(np.float32))
    last_channels = bool(seed % 2)

    def body(bb, x):
        emit = lambda *a, **k: bb.emit(make(*a, **k))
        y, channels = emit("multiply", x, np.float32(0.5)), 3
        y = emit("permute_dims", y, axes=(0, 3, 1, 2)) if last_channels else y
        for k in range(4):
            taps, stride, dilation = int(rng.integers(1, 4)), int(rng.integers(1, 3)) if k < 3 else 2, int(rng.integers(1, 3))
            pads = [int(n) for n in rng.integers(0, taps, 4)]
            if rng.random() < 0.3:
                y = emit("nn.max_pool2d", y, pool_size=(taps + 1, 2), strides=(stride, 1), padding=pads, dilation=(dilation, 1))
                continue
            y = emit("nn.conv2d", y, weight(4, channels, taps, 2), strides=(stride, 1), padding=pads, dilation=(dilation, 1))
            y, channels = emit("nn.relu", emit("add", y, weight(4, 1, 1))), 4
        return emit("mean", y, axis=(2, 3))

    return function([graph.TensorInfo((2, size, 9, 3) if last_channels else (2, 3, size, 9), "float32")], body)


def divided(mod, **choices):
    return strips(mod.replace(attrs=mod.attrs | {"target": BOARD}, choices=Choices.of(choices or None)))


@pytest.mark.parametrize("seed", range(12))
def test_strips_give_the_same_numbers(seed):
    mod = net(seed)
    x = RNG.standard_normal(tuple(int(n) for n in mod["main"].params[0].sinfo.shape)).astype(np.float32)
    want, tried = interpret(mod)["main"](x), 0
    ((chain, site),) = chains(mod["main"])
    for name, count in COUNTS.items():
        if best_end(chain, count):
            made = divided(mod, **{site: name})
            assert calls(made).count("strided_slice") == count and "concat" in calls(made)
            np.testing.assert_array_equal(interpret(made)["main"](x), want)
            tried += 1
    assert tried or seed not in (0, 1, 2)


def test_nothing_is_divided_unless_it_is_asked_for_nor_on_machines_with_memory():
    mod = net(0)
    assert calls(divided(mod)) == calls(mod)
    with pytest.raises(OptionError, match="strips2 is asked for on a machine with a system"):
        strips(mod.replace(attrs=mod.attrs | {"target": Target("x86-64")}, choices=Choices.of({"*": "strips2"})))


def test_a_model_without_such_layers_is_told():
    dense = function([graph.TensorInfo((1, 8), "float32")], lambda bb, x: bb.emit(make("matmul", x, graph.Constant.of(np.ones((8, 8), np.float32)))))
    with pytest.raises(OptionError, match="does not begin with layers that can be divided"):
        divided(dense, **{"*": "strips4"})


def test_what_cannot_be_divided_says_why():
    made = divided(net(0, size=8), **{"*": "strips8"})
    with pytest.raises(OptionError, match="too few rows"):
        made.choices.check()


def test_a_chain_ends_where_a_result_is_read_twice():
    def body(bb, x):
        emit = lambda *a, **k: bb.emit(make(*a, **k))
        w = graph.Constant.of(np.ones((3, 3, 3, 3), np.float32))
        y = emit("nn.conv2d", emit("nn.conv2d", x, w, padding=1), w, padding=1)
        return emit("add", emit("nn.conv2d", y, w, padding=1), y)

    ((chain, _),) = chains(function([graph.TensorInfo((1, 3, 64, 64), "float32")], body)["main"])
    assert [s.call.op.name for s in chain] == ["nn.conv2d"] * 2


def test_rows_that_a_window_needs():
    window = Window(height=48, taps=3, stride=2, dilation=1, before=1, behind=1)
    assert window.needed((0, 4)) == ((0, 8), (1, 0))
    assert window.needed((4, 8)) == ((7, 16), (0, 0))
    assert Window(10, 3, 1, 2, 2, 2).needed((8, 10)) == ((6, 10), (0, 2))
