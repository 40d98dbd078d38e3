# SPDX-License-Identifier: Apache-2.0
"""Small graphs that the fuzzers found to be compiled wrongly or not at all, against ONNX's reference."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper as h
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import roundel as rd
from roundel.embed.onnx.conformance import run

F, L = np.float32, np.int64


def array(*shape, dtype=F):
    return (np.arange(int(np.prod(shape)), dtype="f8").reshape(shape) % 7 - 3).astype(dtype)


def node(op, inputs, output, **attributes):
    return h.make_node(op, inputs.split(), [output], **attributes)


CASES = {
    "a product of one number by one": ([node("MatMul", "x k", "y")], [array(2, 1, 1)], {"k": array(2, 1, 1)}),
    "one number from a convolution": ([node("Conv", "x w", "c"), node("Div", "c k", "d"), node("Round", "d", "y")], [array(1, 1, 1, 1)],
                                      {"w": array(1, 1, 1, 1), "k": F(0.3)}),
    "a comparison of no elements": ([node("Equal", "k x", "y")], [array(0, dtype=L)], {"k": L([])}),
    "division of float64 by a power of two": ([node("Div", "x k", "y")], [array(3, 4, dtype="f8")], {"k": np.float64(4)}),
    "scattering one constant": ([node("ScatterElements", "x i u", "y", reduction="add")], [array(3, dtype=L)], {"i": L([0]), "u": L([-2])}),
    "channels counted at run time": (
        [node("NonZero", "x", "n"), node("Cast", "n", "f", to=1), node("Unsqueeze", "f a", "g"), node("Transpose", "g", "h", perm=[0, 2, 1]),
         node("Conv", "h w", "y")], [np.asarray([1, 0, 1], L)], {"a": L([0]), "w": array(2, 2, 1)}),
}


@pytest.mark.parametrize("name", CASES)
def test_against_the_reference(name):
    nodes, inputs, constants = CASES[name]
    infos = [h.make_tensor_value_info("x" + "yz"[k - 1] * (k > 0), h.np_dtype_to_tensor_dtype(x.dtype), x.shape) for k, x in enumerate(inputs)]
    graph = h.make_graph(nodes, "g", infos, [h.make_empty_tensor_value_info("y")], [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)])
    want = ReferenceEvaluator(model).run(None, {i.name: x for i, x in zip(infos, inputs, strict=True)})
    for g, w in zip(run(model, inputs), want, strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5)


def test_names_that_are_no_text():
    graph = h.make_graph([node("Relu", "x", "y")], "g", [h.make_tensor_value_info("x", 1, [2])], [h.make_empty_tensor_value_info("y")])
    data = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)]).SerializeToString().replace(b"Relu", b"Re\xffu")
    with pytest.raises(rd.RoundelError, match="not text"):
        rd.compile(data)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("op", ["Conv", "MaxPool", "AveragePool"])
def test_automatic_pads_of_sizes_known_when_the_model_runs(op, mode):
    extra = {} if op == "Conv" else {"kernel_shape": [3, 2]}
    nodes = [node(op, "x w" if op == "Conv" else "x", "y", auto_pad=mode, strides=[2, 3], **extra)]

    def model(shape):
        graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", 1, shape)], [h.make_empty_tensor_value_info("y")],
                             [numpy_helper.from_array(array(4, 2, 3, 2), "w")])
        return h.make_model(graph, opset_imports=[h.make_opsetid("", 21)])

    f = rd.compile(model(["n", 2, "a", "b"]))
    for shape in ((1, 2, 7, 5), (2, 2, 4, 9), (1, 2, 1, 1)):
        x = array(*shape)
        np.testing.assert_allclose(f(x), run(model(shape), [x])[0], rtol=1e-5, atol=1e-5)


def test_squeeze_without_axes_refuses_a_size_that_it_would_drop():
    graph = h.make_graph([node("Squeeze", "x", "y")], "g", [h.make_tensor_value_info("x", 1, ["n", 1, "m"])], [h.make_empty_tensor_value_info("y")])
    f = rd.compile(h.make_model(graph, opset_imports=[h.make_opsetid("", 21)]))
    for shape in ((3, 1, 2), (0, 1, 5)):
        np.testing.assert_array_equal(f(array(*shape)), array(*shape)[:, 0])
    for shape, k in (((1, 1, 2), 0), ((3, 1, 1), 2)):
        with pytest.raises(rd.RoundelError, match=f"squeeze without axes where dimension {k} is 1"):
            f(array(*shape))
