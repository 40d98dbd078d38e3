# SPDX-License-Identifier: Apache-2.0
"""Convolutions over one axis are computed as those over two."""

import numpy as np
import pytest

from roundel.driver import DEFAULT, prepare
from roundel.graph.layout.lift_conv1d import lift_conv1d
from roundel.ir import Var, graph, tir
from roundel.ir.dtype import INT64
from roundel.ops import make
from roundel.strategy.roofline import program_cost
from roundel.strategy.schedule_module import schedule_module
from roundel.target import Target

from ..functions import calls, function
from ..running import agree

RNG = np.random.default_rng(0)
N, W = Var("n", INT64, True), Var("w", INT64, True)


def _x(*shape):
    return RNG.standard_normal(shape).astype("float32")


def _const(*shape):
    return graph.Constant.of(_x(*shape) / 8)


def _chain(bb, x):
    """Convolutions with strides, dilation and groups, with bias, pooling and a sum between them; one result is needed as it is."""
    emit = lambda *a, **k: bb.emit(make(*a, **k))
    y = emit("nn.relu", emit("add", emit("nn.conv1d", x, _const(32, 5, 3), padding=(2, 1)), _const(1, 32, 1)))
    z = emit("nn.conv1d", y, _const(32, 1, 5), groups=32, padding=2)
    s = emit("add", emit("multiply", z, _const(32, 1)), y)
    p = emit("nn.max_pool1d", s, pool_size=3, strides=2, padding=1)
    out = emit("nn.conv1d", p, _const(16, 32, 3), strides=2, dilation=2, padding=(2, 2))
    return graph.Tuple((out, emit("sum", y, axis=2), emit("nn.avg_pool1d", out, pool_size=2)))


@pytest.mark.parametrize("shape, sizes", [((2, 5, 13), (2, 13)), ((N, 5, W), (3, 40))])
def test_a_chain(shape, sizes):
    mod = function([graph.TensorInfo(shape, "float32")], _chain)
    names = calls(lift_conv1d(mod))
    assert not any(name.endswith("1d") for name in names) and names.count("nn.conv2d") == 3
    agree(mod, (_x(sizes[0], 5, sizes[1]),))


def test_computed_weights_and_other_layouts_stay():
    def body(bb, x, w):
        y = bb.emit(make("nn.conv1d", x, w))
        return bb.emit(make("nn.conv1d", y, _const(2, 6, 4), data_layout="NWC"))

    mod = function([graph.TensorInfo((2, 5, 8), "float32"), graph.TensorInfo((4, 5, 3), "float32")], body)
    assert calls(lift_conv1d(mod)) == ["nn.conv1d", "nn.conv1d"]


@pytest.mark.parametrize("shape, sizes", [((2, 6, 13), (2, 13)), ((N, 6, W), (3, 17))])
@pytest.mark.parametrize("attrs", [{"strides": 10, "padding": 5}, {"strides": 3, "padding": (0, 2), "output_padding": 2}, {"strides": 2, "dilation": 3},
                                   {"strides": 2, "groups": 2}, {}], ids=str)
def test_transposed_convolutions(shape, sizes, attrs):
    def body(bb, x):
        return bb.emit(make("nn.relu", bb.emit(make("nn.conv1d_transpose", x, _const(6, 4, 11), **attrs))))

    mod = function([graph.TensorInfo(shape, "float32")], body)
    assert "nn.conv2d_transpose" in calls(lift_conv1d(mod))
    agree(mod, (_x(sizes[0], 6, sizes[1]),))


def test_a_transposed_convolution_with_a_stride_multiplies_no_zeros_between_its_data():
    """Its phases are channels of a plain convolution, as for pictures; over one axis, each result took as many products as the stride is long."""
    mod = function([graph.TensorInfo((1, 64, 50), "float32")], lambda bb, x: bb.emit(make("nn.conv1d_transpose", x, _const(64, 32, 20), strides=10)))
    done = prepare(mod, target=Target("znver4"), pipeline=DEFAULT[: DEFAULT.index(schedule_module)])
    assert sum(program_cost(f).flops for f in done.functions.values() if isinstance(f, tir.PrimFunc)) < 1.5 * 2 * 64 * 32 * 20 * 50
