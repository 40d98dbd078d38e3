# SPDX-License-Identifier: Apache-2.0
"""Operators that a user supplies: a composition, a tensor expression, a NumPy function."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import roundel as rd
from roundel import te
from roundel.frontend.onnx import operator
from roundel.ir.errors import ModelError, UnsupportedError


def model(op: str, n: int = 5):
    node = helper.make_node(op, ["x"], ["y"], domain="com.acme", scale=3.0)
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [n, 2]) for name in "xy"]
    graph = helper.make_graph([node], "g", info[:1], info[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.acme", 1)])


X = np.arange(10, dtype="f").reshape(5, 2) - 4


def test_composition():
    @operator("com.acme", "Composed")
    def composed(node, x):
        return node.make("nn.relu", node.make("multiply", x, np.float32(node.attr("scale"))))

    np.testing.assert_allclose(rd.compile(model("Composed"))(X), np.maximum(X * 3, 0))


def test_tensor_expression():
    @operator("com.acme", "Expressed")
    def expressed(node, x):
        return node.te(lambda v: te.compute(v.shape, lambda i, j: v(i, j) * v(i, j), "squares"), x)

    np.testing.assert_allclose(rd.compile(model("Expressed"))(X), X * X)


def test_numpy():
    @operator("com.acme", "Called")
    def called(node, x):
        return node.numpy(lambda v: np.sort(v, axis=0)[::-1], [x], [(x.sinfo.shape, x.sinfo.dtype)])

    np.testing.assert_array_equal(rd.compile(model("Called"))(X), np.sort(X, axis=0)[::-1])

    @operator("com.acme", "Wrong")
    def wrong(node, x):
        return node.numpy(lambda v: v[:1], [x], [(x.sinfo.shape, x.sinfo.dtype)])

    with pytest.raises(ValueError, match="gave shape"):
        rd.compile(model("Wrong"))(X)


def several(op: str, outputs: int):
    node = helper.make_node(op, ["x", ""], [f"y{k}" for k in range(outputs)], domain="com.acme", name="node", k=3)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "m"])
    graph = helper.make_graph([node], "g", [x], [helper.make_tensor_value_info(f"y{k}", TensorProto.FLOAT, None) for k in range(outputs)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.acme", 1)])


def test_several_outputs_of_any_size():
    @operator("com.acme", "Halves")
    def halves(node, x, absent):
        positive = node.make("nn.relu", x)
        return positive, node.make("subtract", x, positive)

    @operator("com.acme", "Both")
    def both(node, x, absent):
        by = node.attr("k")
        return node.te(lambda v: (te.compute(v.shape, lambda i, j: v[i, j] * by, "a"), te.compute(v.shape, lambda i, j: v[i, j] + by, "b")), x)

    @operator("com.acme", "Sums")
    def sums(node, x, absent):
        n, m = x.sinfo.shape
        return node.numpy(lambda a: (a.sum(1), np.concatenate([a, a])), [x], [((n,), "float32"), ((2 * n, m), "float32")])

    @operator("com.acme", "Fixed")
    def fixed(node, x, absent):
        return np.ones((2, 2), "f"), x

    want = {"Halves": lambda v: (np.maximum(v, 0), np.minimum(v, 0)), "Both": lambda v: (v * 3, v + 3),
            "Sums": lambda v: (v.sum(1), np.concatenate([v, v])), "Fixed": lambda v: (np.ones((2, 2), "f"), v)}
    for name, expected in want.items():
        f = rd.compile(several(name, 2))
        for x in (X, X[:3, :1]):
            for a, b in zip(f(x), expected(x), strict=True):
                np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("result", [None, object(), 3.0])
def test_results_that_are_none(result):
    operator("com.acme", "Nonsense")(lambda node, x, absent: result)
    with pytest.raises(ModelError, match=r"node 'node' \(Nonsense\): the function that was supplied for it gave"):
        rd.compile(several("Nonsense", 2))


def test_an_operator_that_changed_is_not_taken_from_the_cache(tmp_path):
    (tmp_path / "m.onnx").write_bytes(model("Changing").SerializeToString())
    for factor in (2, 3):
        operator("com.acme", "Changing")(lambda node, x, by=np.float32(factor): node.make("multiply", x, by))
        np.testing.assert_array_equal(rd.compile(tmp_path / "m.onnx")(X), X * factor)


def test_unknown_operators_are_listed():
    with pytest.raises(UnsupportedError, match=r"com\.acme::Nothing"):
        rd.compile(model("Nothing"))
