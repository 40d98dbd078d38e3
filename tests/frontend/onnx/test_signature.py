# SPDX-License-Identifier: Apache-2.0
"""Nodes are called as the standard has it, and models compute what they declare; what is not so is told (more of it: tests/hostile/signatures.py)."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, numpy_helper
from onnx import helper as h

from roundel.embed.onnx.conformance import run
from roundel.frontend.onnx import from_onnx
from roundel.ir.errors import ModelError, UnsupportedError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def tensor(name, kind=TensorProto.FLOAT, shape=(2, 3)):
    return h.make_tensor_value_info(name, kind, shape)


def model(*nodes, opset=17, output=None, weights=(), functions=(), inputs=None):
    graph = h.make_graph(nodes, "g", inputs or [tensor("x")], [output or onnx.ValueInfoProto(name="y")], [numpy_helper.from_array(a, n) for n, a in weights])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", opset), h.make_opsetid("own", 1)], functions=functions)


def node(kind, inputs=("x",), outputs=("y",), domain="", **attributes):
    return h.make_node(kind, inputs, outputs, name="here", domain=domain, **attributes)


def branch(name):
    return h.make_graph([h.make_node("Relu", ["x"], [name])], name, [], [tensor(name)])


TRUE = ("on", np.array(True))


@pytest.mark.parametrize(("made", "message"), [
    (model(node("Softmax", axis="1")), "'here' .Softmax.*'axis' is a string where the operator takes an integer"),
    (model(node("LeakyRelu", alpha="0.1")), "'alpha' is a string where the operator takes a float"),
    (model(node("LeakyRelu", alpha=numpy_helper.from_array(np.float32(1)))), "'alpha' is a tensor"),
    (model(node("Clip", min=1.0, max=2.0), opset=11), "no attribute 'max' in opset 11"),
    (model(node("Transpose", perms=[1, 0])), "(?s)no attribute 'perms'.*its attributes are perm"),
    (model(node("DepthToSpace", blocksize=1, mode="ROW")), "'mode' is 'ROW', not DCR or CRD"),
    (model(node("Relu", ["x", "x"])), "'here'.*it has 2 inputs, and Relu takes at most 1"),
    (model(node("Add", ["x", ""])), "its input 'B' is missing"),
    (model(node("Relu", ["x"], ["y", "z"])), "it has 2 outputs, and Relu gives at most 1"),
    (model(node("If", ["on"], ["y", "z"], then_branch=branch("a"), else_branch=branch("b")), weights=[TRUE]), "2 outputs, and If gives at most 1"),
    (model(node("Reshape", ["x", "shape"]), weights=[("shape", np.array([3, 2], np.float32))]), "'shape' holds floats where the operator takes integers"),
    (model(node("Relu"), inputs=[tensor("x", TensorProto.STRING)]), "'X' holds strings"),
    (model(node("Relu"), output=tensor("y", TensorProto.INT64)), "output 'y' is declared to hold int64, and it holds float32"),
    (model(node("Add", ["x", "w"]), weights=[("w", X)], inputs=[tensor("x"), tensor("w", shape=(9, 9))]), "(?s)'w' has another shape than the input.*9, 9"),
    (model(node("Add", ["x", "w"]), weights=[("w", X)], inputs=[tensor("x"), tensor("w", TensorProto.INT8)]), "'w' is declared to hold int8"),
    (model(node("Slice", ["x", "from", "to"]), weights=[("from", np.array([0, 0])), ("to", np.array([1]))]), "2 starts, 1 ends, 2 axes and 2 steps"),
    (model(node("Slice", starts=[0], ends=[1, 2]), opset=9), "1 starts, 2 ends, 1 axes"),
    (model(node("Reshape", ["x", "shape"]), weights=[("shape", np.array([[3, 2]]))]), "the new shape must be a tensor of one dimension, not of 2"),
    (model(node("Resize", ["x", "", "by", "to"]), weights=[("by", np.ones(2, np.float32)), ("to", np.array([4, 6]))]), "both scales and sizes are given"),
])
def test_refused(made, message):
    with pytest.raises(ModelError, match=message):
        from_onnx(made)


def test_an_attribute_that_is_given_twice():
    made = model(node("Softmax", axis=0))
    made.graph.node[0].attribute.append(AttributeProto(name="axis", type=AttributeProto.INT, i=1))
    with pytest.raises(ModelError, match="'axis' is given twice"):
        from_onnx(made)


def test_what_can_mean_one_thing_only_is_read_so():
    """Whole numbers for floats, and what another version of the operator has and the converter reads."""
    np.testing.assert_array_equal(run(model(node("LeakyRelu", alpha=2)), [-X])[0], -2 * X)
    np.testing.assert_array_equal(run(model(node("ReduceMax", axes=[1]), opset=18), [X])[0], [[2], [5]])


def own(name="F", overload="", **changes):
    made = h.make_function("own", name, ["a"], ["b"], [h.make_node("Relu", ["a"], ["b"])], [h.make_opsetid("", 17)])
    made.overload = overload
    return made


def test_calls_of_functions_of_the_model():
    call = lambda inputs=("x",), outputs=("y",), **attributes: node("F", inputs, outputs, domain="own", **attributes)
    for wrong, message in ((call(["x", "x"]), "takes at most 1"), (call(outputs=["y", "z"]), "gives at most 1"), (call(alpha=1.0), "no attribute 'alpha'")):
        with pytest.raises(ModelError, match=message):
            from_onnx(model(wrong, functions=[own()]))
    with pytest.raises(ModelError, match="'F' of domain 'own' is defined twice"):
        from_onnx(model(call(), functions=[own(), own()]))
    with pytest.raises(UnsupportedError, match="(?s)'F' of domain 'own' has overloads.*'', 'v2'"):
        from_onnx(model(call(), functions=[own(), own(overload="v2")]))


def test_a_shape_that_is_declared_and_not_computed_is_told():
    with pytest.warns(UserWarning, match=r"output 'y' is declared with shape \[5, n\], its shape is \[2, 3\]"):
        from_onnx(model(node("Relu"), output=tensor("y", shape=(5, "n"))))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_onnx(model(node("Relu"), output=tensor("y", shape=(-1, "n"))))


def test_results_between_nodes_that_are_not_as_declared_are_told():
    made = model(node("Relu", outputs=["between"]), node("Neg", ["between"]))
    made.graph.value_info.append(tensor("between", shape=(2, "n")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_onnx(made)
    made.graph.value_info[0].CopyFrom(tensor("between", shape=(3, 3)))
    with pytest.warns(UserWarning, match=r"value_info.*'between' is \[2, 3\], not \[3, 3\]; what is computed"):
        from_onnx(made)
    made.graph.value_info[0].CopyFrom(tensor("between", TensorProto.INT64))
    with pytest.warns(UserWarning, match="'between' is float32, not int64"):
        from_onnx(made)


def test_an_operator_that_the_declared_opset_does_not_have_any_more_is_told():
    made = model(node("Upsample", ["x", "by"]), opset=13, weights=[("by", np.array([1, 2], np.float32))])
    with pytest.warns(UserWarning, match="'here'.*opset 10 removed the operator Upsample.*opset 13"):
        np.testing.assert_array_equal(run(made, [X])[0], X.repeat(2, 1))


@pytest.mark.parametrize("ratio", [np.nan, 1.0, 1.5, -0.1])
def test_ratios_of_dropout_that_cannot_be(ratio):
    with pytest.raises(ModelError, match="'here' .Dropout.*the ratio is"):
        from_onnx(model(node("Dropout", ["x", "ratio"]), weights=[("ratio", np.float32(ratio))]))
    with pytest.raises(ModelError, match="'here' .Dropout.*the ratio is"):
        from_onnx(model(node("Dropout", ratio=ratio), opset=10))
    given = model(node("Dropout", ["x", "ratio"]), inputs=[tensor("x"), tensor("ratio", shape=())])
    with pytest.raises(RuntimeError, match="here.*the ratio must be at least 0 and less than 1"):
        run(given, [X, np.float32(ratio)])


def test_dropout_in_training_drops_and_scales():
    x = np.ones((100, 100), np.float32)
    made = model(node("Dropout", ["x", "ratio", "on"], ["y", "mask"]), weights=[("ratio", np.float32(0.25))],
                 inputs=[tensor("x", shape=x.shape), tensor("on", TensorProto.BOOL, ())])
    made.graph.output.append(onnx.ValueInfoProto(name="mask"))
    y, mask = run(made, [x, np.array(True)])
    np.testing.assert_allclose(y, np.where(mask, 1 / 0.75, 0), rtol=1e-6)
    assert 0.72 < mask.mean() < 0.78
    y, mask = run(made, [x, np.array(False)])
    assert mask.all() and (y == x).all()
