# SPDX-License-Identifier: Apache-2.0
"""How much work the passes do for models of two kinds, in calls of functions: no busy machine changes that number.

Each bound is what was counted when it was set. Whoever makes the compiler do less lowers it; whoever needs more than a tenth more says in the
commit what that buys.
"""

import cProfile
import pstats

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from roundel.driver import prepare
from roundel.frontend.onnx import from_onnx
from roundel.target import Target

RNG = np.random.default_rng(0)


class Model:
    """An ONNX model under construction."""

    def __init__(self, shape):
        self.shape, self.nodes, self.weights = shape, [], []

    def weight(self, *shape):
        self.weights.append(numpy_helper.from_array(RNG.standard_normal(shape, np.float32) / np.float32(shape[-1] ** 0.5), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def constant(self, value):
        self.weights.append(numpy_helper.from_array(np.asarray(value), f"c{len(self.weights)}"))
        return self.weights[-1].name

    def __call__(self, op, *inputs, **attrs):
        self.nodes.append(helper.make_node(op, inputs, [f"t{len(self.nodes)}"], **attrs))
        return self.nodes[-1].output[0]

    def proto(self):
        given = (("x", self.shape), (self.nodes[-1].output[0], None))
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in given]
        graph = helper.make_graph(self.nodes, "g", ends[:1], ends[1:], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def residual_network():
    """Two residual blocks, the second of half the size, and a classifier."""
    m = Model((1, 64, 28, 28))
    x, channels = "x", 64
    for out, stride in ((64, 1), (128, 2)):
        y = m("Relu", m("Conv", x, m.weight(out, channels, 3, 3), m.weight(out), pads=[1] * 4, strides=[stride] * 2))
        y = m("Conv", y, m.weight(out, out, 3, 3), m.weight(out), pads=[1] * 4)
        skip = x if stride == 1 else m("Conv", x, m.weight(out, channels, 1, 1), m.weight(out), strides=[stride] * 2)
        x, channels = m("Relu", m("Add", y, skip)), out
    m("Gemm", m("Flatten", m("GlobalAveragePool", x)), m.weight(1000, channels), m.weight(1000), transB=1)
    return m.proto()


def transformer():
    """Two equal blocks: attention with four heads, and two products with a GELU between them."""
    rows, width, heads = 32, 64, 4
    m = Model((1, rows, width))
    split, joined = (m.constant(np.array(s)) for s in ((1, rows, heads, width // heads), (1, rows, width)))
    x = "x"
    for _ in range(2):
        normal = m("LayerNormalization", x, m.weight(width), m.weight(width))
        q, k, v = (m("Transpose", m("Reshape", m("Add", m("MatMul", normal, m.weight(width, width)), m.weight(width)), split), perm=perm)
                   for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = m("Softmax", m("Mul", m("MatMul", q, k), m.constant(np.float32(0.25))), axis=-1)
        seen = m("Reshape", m("Transpose", m("MatMul", scores, v), perm=[0, 2, 1, 3]), joined)
        x = m("Add", x, m("MatMul", seen, m.weight(width, width)))
        wide = m("MatMul", m("LayerNormalization", x, m.weight(width), m.weight(width)), m.weight(width, 4 * width))
        error = m("Erf", m("Div", wide, m.constant(np.float32(2**0.5))))
        half = m("Mul", m("Mul", wide, m("Add", error, m.constant(np.float32(1)))), m.constant(np.float32(0.5)))
        x = m("Add", x, m("MatMul", half, m.weight(4 * width, width)))
    return m.proto()


def calls(model):
    mod, profile = from_onnx(model), cProfile.Profile()
    profile.runcall(prepare, mod, target=Target("znver5"))
    return pstats.Stats(profile).total_calls


@pytest.mark.parametrize(("model", "bound"), [(residual_network, 3_100_000), (transformer, 1_345_000)], ids=["residual network", "transformer"])
def test_work_does_not_grow_unnoticed(model, bound):
    proto = model()
    calls(proto)  # imports and tables
    assert calls(proto) < 1.1 * bound


def test_a_model_of_floats_loads_no_table_of_instructions(monkeypatch):
    """Rules ask first what costs nothing: whether the machine and the types are theirs."""
    loaded = []
    monkeypatch.setattr("roundel.intrinsics.registry.load", lambda: loaded.append(1))
    prepare(from_onnx(transformer()), target=Target("znver5"))
    assert not loaded
