# SPDX-License-Identifier: Apache-2.0
"""Axes are within the rank, as the standard has it: every operator that takes one refuses others and names the node; so do attributes of few values."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import roundel as rd
from roundel.frontend.onnx import from_onnx

X, I = np.ones((2, 3, 4), np.float32), np.zeros((2, 3, 4), np.int64)
NAMES = ("axis", "axes", "batch_axis", "time_axis", "scan_input_axes", "scan_output_axes")
# what comes before the axis in the standard's list of inputs; the axes that are possible where they are not [-3, 2]
INPUTS = {
    "Gather": (X, I), "GatherElements": (X, I), "ScatterElements": (X, I, X), "Scatter": (X, I, X), "Concat": (X, X), "Compress": (X, np.ones(2, bool)),
    "LayerNormalization": (X, X[0, 0]), "RMSNormalization": (X, X[0, 0]), "QuantizeLinear": (X, X[0, 0]), "DequantizeLinear": (I.astype(np.uint8), X[0, 0]),
    "OneHot": (I, np.int64(3), np.array([0, 1], np.float32)), "ReverseSequence": (X, np.array([1, 1, 1])), "TopK": (X, np.array([1])),
    "CenterCropPad": (X, np.array([1])), "TensorScatter": (X, X), "Resize": (X, None, None, np.array([4])),
}
POSSIBLE = {"Flatten": (-3, 3), "OneHot": (-4, 3)}
LISTS = ("MeanVarianceNormalization", "CenterCropPad", "Resize")
WITH_GRAPHS = {"Scan", "ConcatFromSequence"}
AS_INPUT = {
    "CumSum": ((X,), (-3, 2)), "Squeeze": ((X[:1],), (-3, 2)), "Unsqueeze": ((X,), (-4, 3)), "ReduceSum": ((X,), (-3, 2)), "ReduceMax": ((X,), (-3, 2)),
    "Slice": ((X, np.array([0]), np.array([1])), (-3, 2)), "Pad": ((X, np.array([0, 1]), None), (-3, 2)), "DFT": ((X[..., :2], None), (-3, 2)),
}


def model(op, arrays, outputs=1, **attrs):
    names = ["" if a is None else f"x{k}" for k, a in enumerate(arrays)]
    weights = [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in list(zip(names, arrays, strict=True))[1:] if n]
    first = helper.make_tensor_value_info("x0", helper.np_dtype_to_tensor_dtype(arrays[0].dtype), arrays[0].shape)
    outs = [f"y{k}" for k in range(outputs)]
    node = helper.make_node(op, names, outs, name="/it", **attrs)
    version = 9 if op == "Scatter" else 24 if op in ("RMSNormalization", "TensorScatter") else 20
    graph = helper.make_graph([node], "g", [first], [helper.make_empty_tensor_value_info(o) for o in outs], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=10)


def operators_with_axes():
    newest = {s.name: s for s in onnx.defs.get_all_schemas() if s.domain == ""}
    return [(name, a) for name, s in sorted(newest.items()) for a in NAMES if a in s.attributes and name not in WITH_GRAPHS]


@pytest.mark.parametrize(("op", "attribute"), operators_with_axes())
def test_an_attribute_beyond_the_rank_is_refused(op, attribute):
    low, high = POSSIBLE.get(op, (-3, 2))
    for axis in (low - 1, high + 1, 100, -100):
        given = {attribute: [axis] if op in LISTS else axis}
        place = "" if op == "CenterCropPad" else "/it.*"  # it is a function: a node of its body is named
        with pytest.raises(rd.RoundelError, match=rf"{place}axis {axis} is out of range"):
            from_onnx(model(op, INPUTS.get(op, (X,)), 2 if op == "TopK" else 1, **given))


@pytest.mark.parametrize("op", AS_INPUT)
def test_an_input_beyond_the_rank_is_refused(op):
    arrays, (low, high) = AS_INPUT[op]
    for axis in (low - 1, high + 1):
        with pytest.raises(rd.RoundelError, match=rf"/it.*axis {axis} is out of range"):
            from_onnx(model(op, (*arrays, np.asarray(axis if op == "DFT" else [axis]))))


@pytest.mark.parametrize("perm", [[-1, 0, 1], [0, 0, 1], [0, 1], [0, 1, 3]])
def test_a_permutation_has_each_dimension_once(perm):
    with pytest.raises(rd.RoundelError, match=r"/it.*perm is .* each of the 3 dimensions once"):
        from_onnx(model("Transpose", (X,), perm=perm))


@pytest.mark.parametrize(("op", "attrs"), [("LpNormalization", {"p": 7}), ("LpNormalization", {"p": 0}), ("Gelu", {"approximate": "erf"})])
def test_attributes_of_few_values_have_one_of_them(op, attrs):
    with pytest.raises(rd.RoundelError, match="/it.*(it must be|not none or tanh)"):
        from_onnx(model(op, (X,), **attrs))


@pytest.mark.parametrize("given", [{"sizes": [1, 0]}, {"sizes": [1, 3]}, {"sizes": [3, -1]}, {"sizes": [1, 1, 0]}, {"num_outputs": 3}])
def test_parts_of_a_split_are_the_whole(given):
    sizes = (np.array(given.pop("sizes")),) if "sizes" in given else ()
    with pytest.raises(rd.RoundelError, match="/it"):
        from_onnx(model("Split", (X, *sizes), 2, axis=0 if sizes else 1, **given))


def numbers(op, inputs, outputs, opset=20, **attrs):
    infos = [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs]
    outs = [helper.make_tensor_value_info(n, t, None) for n, t in outputs]
    node = helper.make_node(op, [i.name for i in infos], [o.name for o in outs], name="/it", **attrs)
    return rd.compile(helper.make_model(helper.make_graph([node], "g", infos, outs), opset_imports=[helper.make_opsetid("", opset)], ir_version=10))


@pytest.mark.parametrize("opset", (2, 13))
def test_a_dimension_is_cut_into_equal_parts_before_the_last_could_be_smaller(opset):
    run = numbers("Split", [("x", 1, ["n"])], [(n, 1) for n in "abc"], opset)
    assert [v.tolist() for v in run(np.arange(6, dtype=np.float32))] == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(rd.RoundelError, match="Split /it: the dimension does not divide into 3 equal parts, the remainder is not zero: 1 and 0"):
        run(np.arange(7, dtype=np.float32))
    with pytest.raises(rd.RoundelError, match="/it.*does not divide into 3 equal parts"):
        numbers("Split", [("x", 1, [7])], [(n, 1) for n in "abc"], opset)


def test_parts_that_the_run_tells_are_the_whole():
    run = numbers("Split", [("x", 1, ["n"]), ("sizes", 7, [2])], [("a", 1), ("b", 1)])
    x = np.arange(5, dtype=np.float32)
    assert [v.tolist() for v in run(x, np.array([2, 3]))] == [[0, 1], [2, 3, 4]]
    for sizes in ([2, 2], [3, 3], [9, 0], [2**62, 2**62], [-1, 6], [6, -1]):
        with pytest.raises(rd.RoundelError, match="Split /it"):
            run(x, np.array(sizes))


FAR = [(0, 5, 2), (5, 0, -2), (5, 0, 1), (0, 5, -1), (4, 4, 3), (5, 0, -(2**63)), (0, -(2**63), -(2**63)), (1, -(2**63), -(2**63)), (-(2**62), 2**62, 2**61),
       (-(2**62), 2**62 + 1, 2**61), (2**63 - 1, -(2**63), -(2**62)), (-(2**63), 2**63 - 1, 2**63 - 1), (0, 5, 2**63 - 1), (-(2**63), 2 - 2**63, 1),
       (2 - 2**63, -(2**63), -1)]


def test_ranges_of_far_limits_have_all_their_elements():
    run = numbers("Range", [(n, TensorProto.INT64, []) for n in "abc"], [("y", TensorProto.INT64)])
    for limits in FAR:
        assert run(*(np.array(v, np.int64) for v in limits)).tolist() == list(range(*limits)), limits
    with pytest.raises(rd.RoundelError, match="Range /it: the step of the range is 0"):
        run(*(np.array(v, np.int64) for v in (0, 5, 0)))


@pytest.mark.parametrize("limits", [(0, 1, 0), (0, np.nan, 1), (0, 1, np.nan), (np.nan, 1, 1), (0, np.inf, 1)])
def test_ranges_of_numbers_end(limits):
    run = numbers("Range", [(n, TensorProto.FLOAT, []) for n in "abc"], [("y", TensorProto.FLOAT)])
    with pytest.raises(rd.RoundelError, match="Range /it"):
        run(*(np.array(v, np.float32) for v in limits))


@pytest.mark.parametrize(("op", "data"), [("QuantizeLinear", np.array([0.4, 3.0, -7.0], np.float32)), ("DequantizeLinear", np.array([0, 7, 255], np.uint8))])
def test_one_scale_for_all_has_no_axis(op, data):
    """As a list of one, it goes with tensors of any rank; quantisers of biases write it so, and leave the axis at 1."""
    scale = np.array([0.5], np.float32)
    made = rd.interpret(from_onnx(model(op, (data, scale))))(data)
    np.testing.assert_array_equal(made, np.clip(np.round(data / scale), 0, 255) if op == "QuantizeLinear" else data * scale)
