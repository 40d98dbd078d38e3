# SPDX-License-Identifier: Apache-2.0
"""Sizes that have to agree: compared when the model runs, with an error that names the node and both; impossible attributes are refused."""

import numpy as np
import pytest
from onnx import helper

import roundel as rd


def model(op, shapes, domain="", result=1, **attrs):
    inputs = [helper.make_tensor_value_info(f"i{k}", 6 if name == "lengths" else 1, dims) for k, (name, dims) in enumerate(shapes.items())]
    out = helper.make_empty_tensor_value_info("y")
    out.type.tensor_type.elem_type = result
    node = helper.make_node(op, [i.name for i in inputs], ["y"], name="/it", domain=domain, **attrs)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], "g", inputs, [out]), opset_imports=opsets, ir_version=10)


def ones(*shape):
    return np.ones(shape, np.float32)


def test_the_error_names_the_node_the_operands_and_both_sizes():
    compiled = rd.compile(model("MatMul", {"a": ["m", "k"], "b": ["l", "n"]}))
    with pytest.raises(rd.RoundelError, match=r"MatMul /it: dimension 1 of operand 1 \(i0\) is 3 and dimension 0 of operand 2 \(i1\) is 2, they must be equal"):
        compiled(ones(2, 3), ones(2, 4))


def test_lengths_of_sequences_are_in_the_time_that_there_is():
    compiled = rd.compile(model("GRU", {"x": ["t", "b", 3], "w": [1, 6, 3], "r": [1, 6, 2], "b": [1, 12], "lengths": ["b"]}, hidden_size=2))
    given = ones(4, 2, 3), ones(1, 6, 3), ones(1, 6, 2), ones(1, 12)
    assert compiled(*given, np.array([4, 0], np.int32)).shape == (4, 1, 2, 2)
    for lengths in ([5, 1], [1, -1]):
        with pytest.raises(rd.RoundelError, match="GRU /it"):
            compiled(*given, np.array(lengths, np.int32))


def test_an_axis_without_elements_has_no_largest():
    compiled = rd.compile(model("ArgMax", {"x": ["n", 2]}, result=7))
    assert compiled(ones(3, 2)).tolist() == [[0, 0]]
    with pytest.raises(rd.RoundelError, match="ArgMax /it: the axis must have at least one element"):
        compiled(ones(0, 2))


@pytest.mark.parametrize(("op", "shapes", "attrs"), [
    ("Conv", {"x": [1, 4, 9, 9], "w": [4, 4, 3, 3]}, {"strides": [0, 0]}),
    ("Conv", {"x": [1, 4, 9, 9], "w": [4, 4, 3, 3]}, {"strides": [-1, -1]}),
    ("Conv", {"x": [1, 4, 9, 9], "w": [4, 4, 3, 3]}, {"dilations": [0, 1]}),
    ("Conv", {"x": [1, 4, 9, 9], "w": [4, 4, 3, 3]}, {"strides": [1]}),
    ("Conv", {"x": [1, 4, 9, 9], "w": [4, 4, 3, 3], "b": [1]}, {}),
    ("Conv", {"x": [1, 4, 9, 9], "w": [4, 4, 3, 3]}, {"group": 0}),
    ("Conv", {"x": [1, 4, 9, 9], "w": ["o", 4, "h", "w"]}, {}),
    ("ConvTranspose", {"x": [1, 4, 9, 9], "w": [4, 4, "h", "w"]}, {}),
    ("MaxPool", {"x": [1, 4, 9, 9]}, {"kernel_shape": [0, 0]}),
    ("SpaceToDepth", {"x": [1, 4, 8, 8]}, {"blocksize": 0}),
    ("DepthToSpace", {"x": [1, 5, 8, 8]}, {"blocksize": 2}),
    ("GRU", {"x": [3, 2, 4], "w": [1, 12, 4], "r": [1, 12, 4]}, {"hidden_size": 2**40}),
])
def test_what_is_impossible_is_refused_at_import(op, shapes, attrs):
    with pytest.raises(rd.RoundelError, match="/it") as refused:
        rd.compile(model(op, shapes, **attrs))
    assert "Var(" not in str(refused.value) and "object has no attribute" not in str(refused.value)


def test_indices_of_a_scatter_are_no_longer_than_the_data():
    proto = model("ScatterElements", {"x": ["a", "b"], "indices": ["c", "d"], "updates": ["c", "d"]}, axis=0)
    proto.graph.input[1].type.tensor_type.elem_type = 7
    compiled = rd.compile(proto)
    assert compiled(ones(3, 2), np.zeros((1, 2), np.int64), ones(1, 2)).shape == (3, 2)
    with pytest.raises(rd.RoundelError, match="ScatterElements /it: dimension 1 of the indices"):
        compiled(ones(3, 2), np.zeros((1, 3), np.int64), ones(1, 3))


def test_weights_of_trees_belong_to_nodes_that_there_are():
    tree = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
            "nodes_values": [0.5, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0],
            "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0], "n_targets": 1}

    def compile_with(**changed):
        proto = model("TreeEnsembleRegressor", {"x": ["n", 1]}, "ai.onnx.ml", **tree | changed)
        proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
        return rd.compile(proto)

    assert compile_with()(ones(1, 1)).tolist() == [[2.0]]
    for wrong, text in (({"target_nodeids": [1, 9]}, "weights belong to nodes that there are not"), ({"nodes_values": [0.5]}, "differ in length")):
        with pytest.raises(rd.RoundelError, match=text):
            compile_with(**wrong)
