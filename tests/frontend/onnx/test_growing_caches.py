# SPDX-License-Identifier: Apache-2.0
"""Decoders as exporters write them, with past and present keys and values: what is passed back grows in place."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import roundel as rd

RNG = np.random.default_rng(3)
LAYERS, HEADS, GROUPS, WIDTH = 2, 4, 2, 8
HIDDEN = HEADS * WIDTH


class _Decoder:
    """ONNX nodes and weights of a small decoder with groups of heads."""

    def __init__(self):
        self.nodes, self.weights, self.count = [], [], 0

    def op(self, kind, *inputs, out=None, **attributes):
        self.count += 1
        out = out or f"v{self.count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], **attributes))
        return out

    def const(self, array):
        self.weights.append(numpy_helper.from_array(array, f"c{len(self.weights)}"))
        return self.weights[-1].name

    def heads(self, x, count):
        weight = self.const((RNG.standard_normal((HIDDEN, count * WIDTH)) * 0.2).astype("float32"))
        split = self.op("Reshape", self.op("MatMul", x, weight), self.const(np.array([0, -1, count, WIDTH])))
        return self.op("Transpose", split, perm=[0, 2, 1, 3])

    def repeated(self, x):
        wide = self.op("Unsqueeze", x, self.const(np.array([2])))
        wide = self.op("Expand", wide, self.const(np.array([1, 1, HEADS // GROUPS, 1, 1])))
        return self.op("Reshape", wide, self.const(np.array([0, HEADS, -1, WIDTH])))

    def layer(self, x, k):
        q, new = self.heads(x, HEADS), {part: self.heads(x, GROUPS) for part in ("key", "value")}
        grown = {p: self.op("Concat", f"past.{k}.{p}", n, out=f"present.{k}.{p}", axis=2) for p, n in new.items()}
        turned = self.op("Transpose", self.repeated(grown["key"]), perm=[0, 1, 3, 2])
        weights = self.op("Softmax", self.op("Mul", self.op("MatMul", q, turned), self.const(np.float32(WIDTH**-0.5))), axis=-1)
        mixed = self.op("Transpose", self.op("MatMul", weights, self.repeated(grown["value"])), perm=[0, 2, 1, 3])
        return self.op("Add", x, self.op("Reshape", mixed, self.const(np.array([0, -1, HIDDEN]))))


def _model():
    made, x = _Decoder(), "x"
    for k in range(LAYERS):
        x = made.layer(x, k)
    made.op("Identity", x, out="y")
    info = lambda name, *shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    names = [f"{k}.{p}" for k in range(LAYERS) for p in ("key", "value")]
    inputs = [info("x", "batch", "seq", HIDDEN), *(info(f"past.{n}", "batch", GROUPS, "past", WIDTH) for n in names)]
    outputs = [info("y", "batch", "seq", HIDDEN), *(info(f"present.{n}", "batch", GROUPS, "past + seq", WIDTH) for n in names)]
    graph = helper.make_graph(made.nodes, "decoder", inputs, outputs, made.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("hot", [None, [{"seq": 1}]])
def test_text_is_generated_without_copying_what_was(hot):
    model = _model()
    ours = rd.compile(model, hot=hot) if hot else rd.compile(model)
    theirs = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [i.name for i in theirs.get_inputs()]
    past = want = [np.zeros((2, GROUPS, 0, WIDTH), "float32")] * (2 * LAYERS)
    moved = 0
    for seq in (7, *[1] * 40, 5, 1):
        x = RNG.standard_normal((2, seq, HIDDEN)).astype("float32")
        expected = theirs.run(None, dict(zip(names, [x, *want], strict=True)))
        got = ours(x, *past)
        for g, w in zip(got, expected, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)
        moved += got[1].ctypes.data != past[0].ctypes.data
        past, want = list(got[1:]), expected[1:]
    assert moved == 1


def test_keys_and_values_in_one_cache():
    """Attention of com.microsoft stacks them."""
    weights = [(RNG.standard_normal(s) * 0.2).astype("float32") for s in ((HIDDEN, 3 * HIDDEN), (3 * HIDDEN,))]
    node = helper.make_node("Attention", ["x", "w", "b", "", "past"], ["y", "present"], domain="com.microsoft", num_heads=HEADS, unidirectional=1)
    info = lambda name, *shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    inputs = [info("x", "batch", "seq", HIDDEN), info("past", 2, "batch", HEADS, "past", WIDTH)]
    outputs = [info("y", "batch", "seq", HIDDEN), info("present", 2, "batch", HEADS, "after", WIDTH)]
    graph = helper.make_graph([node], "attention", inputs, outputs, [numpy_helper.from_array(w, n) for n, w in zip("wb", weights, strict=True)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
    ours, theirs = rd.compile(model), onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    past = want = np.zeros((2, 2, HEADS, 0, WIDTH), "float32")
    moved = 0
    for seq in (5, 1, 1, 3, 1):
        x = RNG.standard_normal((2, seq, HIDDEN)).astype("float32")
        (y, got), (expected, want) = ours(x, past), theirs.run(None, {"x": x, "past": want})
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        moved += got.ctypes.data != past.ctypes.data
        past = got
    assert moved == 1
