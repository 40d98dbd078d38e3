# SPDX-License-Identifier: Apache-2.0
"""Shapes that depend on data, in one artifact: several values of the same inputs against the ONNX reference."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import roundel as rd
from roundel.ir.errors import RunError

RNG = np.random.default_rng(2)
_TYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "bool": TensorProto.BOOL}


def _model(inputs, nodes, outputs=("out",), constants=(), opset=18):
    infos = [helper.make_tensor_value_info(n, _TYPES[d], s) for n, d, s in inputs]
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name=o) for o in outputs], list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def _agree(model, *cases):
    compiled, reference = rd.compile(model), ReferenceEvaluator(model)
    names = [i.name for i in model.graph.input]
    for case in cases:
        want = reference.run(None, dict(zip(names, case, strict=True)))
        got = compiled(*case)
        for g, w in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
            assert g.shape == np.shape(w) and g.dtype == w.dtype
            np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


def _x(*shape):
    return RNG.standard_normal(shape).astype("float32")


def _ints(*values):
    return np.array(values, "int64")


X = ("x", "float32", ["n", 4])


def test_reshape_and_expand():
    shape = ("s", "int64", [2])
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"]), helper.make_node("Relu", ["y"], ["out"])]
    _agree(_model([X, shape], nodes), (_x(6, 4), _ints(-1, 3)), (_x(6, 4), _ints(0, -1)), (_x(3, 4), _ints(2, 6)), (_x(0, 4), _ints(0, 4)))
    nodes = [helper.make_node("Expand", ["x", "s"], ["out"])]
    _agree(_model([("x", "float32", [1, 4]), shape], nodes), (_x(1, 4), _ints(3, 4)), (_x(1, 4), _ints(1, 1)), (_x(1, 4), _ints(0, 1)))


@pytest.mark.parametrize("step", [1, 2, -1])
def test_slice(step):
    bounds = [("a", "int64", [1]), ("b", "int64", [1])]
    steps = helper.make_node("Constant", [], ["k"], value_ints=[step])
    axes = helper.make_node("Constant", [], ["axes"], value_ints=[0])
    nodes = [steps, axes, helper.make_node("Slice", ["x", "a", "b", "axes", "k"], ["y"]), helper.make_node("Exp", ["y"], ["out"])]
    cases = [(0, 5), (2, -1), (-3, 100), (5, 2), (-1, -100), (3, 3), (2**62, 1), (-(2**62), 2**62)]
    _agree(_model([X, *bounds], nodes), *((_x(7, 4), _ints(a), _ints(b)) for a, b in cases))


def test_slice_with_steps_that_the_run_tells():
    bounds = [(name, "int64", [2]) for name in ("a", "b", "s")]
    axes = helper.make_node("Constant", [], ["axes"], value_ints=[1, 0])
    nodes = [axes, helper.make_node("Slice", ["x", "a", "b", "axes", "s"], ["out"])]
    ranges = [(0, 5, 1), (2, -1, 2), (-3, 100, 3), (5, 2, -2), (-1, -100, -1), (3, 3, -1), (1, 100, 2**40), (-(2**62), 2**62, 1)]
    model = _model([X, *bounds], nodes)
    _agree(model, *((_x(7, 4), *(_ints(p, q) for p, q in zip(one, other))) for one, other in zip(ranges, ranges[3:] + ranges[:3])))
    with pytest.raises(rd.RoundelError, match="step"):
        rd.compile(model)(_x(7, 4), _ints(0, 0), _ints(4, 7), _ints(1, 0))


def test_tile_pad_topk_constant():
    nodes = [helper.make_node("Tile", ["x", "r"], ["out"])]
    _agree(_model([X, ("r", "int64", [2])], nodes), (_x(2, 4), _ints(2, 3)), (_x(2, 4), _ints(0, 1)))
    nodes = [helper.make_node("Pad", ["x", "p"], ["out"])]
    _agree(_model([X, ("p", "int64", [4])], nodes), (_x(2, 4), _ints(0, 1, 2, 3)), (_x(2, 4), _ints(0, 0, 0, 0)))
    nodes = [helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=1)]
    _agree(_model([X, ("k", "int64", [1])], nodes, ("v", "i")), (_x(3, 4), _ints(2)), (_x(3, 4), _ints(4)), (_x(3, 4), _ints(0)))
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["c"]), helper.make_node("Add", ["c", "x"], ["out"])]
    _agree(_model([("x", "float32", [4]), ("s", "int64", [2])], nodes), (_x(4), _ints(3, 4)), (_x(4), _ints(0, 4)))


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pads_that_the_run_finds_negative_crop(mode):
    model = _model([("x", "float32", ("a", "b")), ("p", "int64", (4,))], [helper.make_node("Pad", ["x", "p"], ["out"], mode=mode)])
    model.opset_import[0].version = 19
    ours, theirs = rd.compile(model), onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = _x(3, 4)
    for pads in ((1, 1, 0, 2), (-1, 0, 0, 0), (0, -1, -1, 1), (0, 0, -1, -2), (-1, 1, 1, -1), (1, 1, -1, 2)):
        np.testing.assert_array_equal(ours(x, _ints(*pads)), theirs.run(None, {"x": x, "p": _ints(*pads)})[0])
    for pads in ((-4, 0, 0, 0), (-2, 0, -2, 0), (-(2**63), 0, 0, 0), (-(2**63), 0, 2**63 - 1, 0), (0, 2**62, 0, 2**62)):
        with pytest.raises(RunError):
            ours(x, _ints(*pads))


@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_range(dtype):
    nodes = [helper.make_node("Range", ["a", "b", "c"], ["out"])]
    cases = [(0, 5, 1), (1, 10, 3), (10, 1, -2), (5, 5, 1), (7, 3, 1)]
    _agree(_model([(n, dtype, []) for n in "abc"], nodes), *(tuple(np.array(v, dtype) for v in c) for c in cases))


def test_nonzero_and_compress():
    nodes = [helper.make_node("NonZero", ["x"], ["out"])]
    _agree(_model([X], nodes), *((x * (x > t),) for x in (_x(3, 4), _x(5, 4)) for t in (-9, 0, 9)))
    for axis in ({}, {"axis": 0}, {"axis": -1}):
        nodes = [helper.make_node("Compress", ["x", "c"], ["out"], **axis)]
        size = {None: 5, 0: 3, -1: 4}[axis.get("axis")]
        marks = [RNG.random(size) < p for p in (0, 0.5, 1)]
        _agree(_model([("x", "float32", [3, 4]), ("c", "bool", [size])], nodes), *((_x(3, 4), m) for m in marks))


@pytest.mark.parametrize("attributes", [{}, {"axis": 0}, {"axis": 1}])
def test_unique(attributes):
    outputs = ["y", "i", "inv", "counts"]
    nodes = [helper.make_node("Unique", ["x"], outputs, **attributes)]
    _agree(_model([X], nodes, outputs), *((RNG.integers(0, 2, (n, 4)).astype("float32"),) for n in (1, 4, 9)))


def test_what_follows_is_compiled_for_every_size():
    nodes = [
        helper.make_node("NonZero", ["x"], ["at"]), helper.make_node("Transpose", ["at"], ["rows"]),
        helper.make_node("GatherND", ["x", "rows"], ["v"]), helper.make_node("Softmax", ["v"], ["p"]),
        helper.make_node("Shape", ["p"], ["n"]), helper.make_node("ConstantOfShape", ["n"], ["zeros"]),
        helper.make_node("Add", ["p", "zeros"], ["out"]),
    ]
    _agree(_model([X], nodes), *((x * (RNG.random(x.shape) < 0.5),) for x in (_x(3, 4), _x(9, 4), _x(1, 4))))


def test_a_size_that_cannot_be_is_an_error():
    model = rd.compile(_model([X, ("k", "int64", [1])], [helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=1)], ("v", "i")))
    with pytest.raises(Exception, match=r"k is 5, at most 4"):
        model(_x(2, 4), _ints(5))


def test_counts_that_broadcast_where_one_of_them_is_1():
    """The number of positive and of negative numbers; one is 1, or both are the same."""
    def numbers(op):
        return [helper.make_node(op, ["x", "zero"], [f"b{op}"]), helper.make_node("Compress", ["x", f"b{op}"], [f"c{op}"])]

    zero = helper.make_node("Constant", [], ["zero"], value_float=0.0)
    three = helper.make_node("Constant", [], ["three"], value_floats=[1.0, 2, 3])
    twice = [three, helper.make_node("Concat", ["cGreater", "cGreater", "three"], ["d"], axis=0)]
    both = [zero, *numbers("Greater"), *numbers("Less")]
    model = _model([("x", "float32", ["n"])], [*both, helper.make_node("Add", ["cGreater", "cLess"], ["out"])])
    _agree(model, *((np.array(v, "f"),) for v in ((1, 2, 3, -1), (5, -1, -2), (1, -1), (1, 2, -1, -2), (3,), (-2,), (0, 0))))
    model = _model([("x", "float32", ["n"])], [*both[:3], *twice, helper.make_node("Sub", ["d", "cGreater"], ["out"])])
    _agree(model, (np.array([7, -1], "f"),))
    with pytest.raises(rd.RoundelError, match="broadcast"):
        rd.compile(model)(np.array([7, 8], "f"))


def test_a_count_of_one_is_repeated():
    nodes = [helper.make_node("NonZero", ["m"], ["at"]), helper.make_node("Add", ["at", "k"], ["sum"]), helper.make_node("Less", ["sum", "at"], ["out"])]
    model = _model([("m", "bool", [5]), ("k", "int64", [2, 5])], nodes, ("sum", "out"))
    k = np.arange(10).reshape(2, 5)
    _agree(model, (np.ones(5, bool), k), (np.eye(1, 5, 3, dtype=bool)[0], k))
    with pytest.raises(rd.RoundelError, match="broadcast"):
        rd.compile(model)(np.array([True, True, False, False, False]), k)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("given", ["scales", "sizes"])
def test_resize_to_what_the_run_tells(mode, given):
    x, four = ("x", "float32", [1, 2, "h", "w"]), ("s", "float32" if given == "scales" else "int64", [4])
    names = ["x", "", "s"] if given == "scales" else ["x", "", "", "s"]
    modes = [{}, {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}]
    for attrs in modes if given == "scales" else [*modes, {"coordinate_transformation_mode": "align_corners"}]:  # ONNX Runtime rounds others' sizes
        model = _model([x, four], [helper.make_node("Resize", names, ["out"], mode=mode, **attrs)])
        cases = [(1, 1, 2, 2), (1, 1, 0.5, 1.3), (1, 1, 2.6, 0.7)] if given == "scales" else [(1, 2, 7, 3), (1, 2, 1, 1), (1, 2, 4, 5)]
        session = onnxruntime.InferenceSession(model.SerializeToString())
        compiled = rd.compile(model)
        for case in cases:
            feeds = {"x": _x(1, 2, 4, 5), "s": np.array(case, four[1])}
            np.testing.assert_allclose(compiled(*feeds.values()), session.run(None, feeds)[0], rtol=1e-4, atol=1e-5)


def test_resize_by_scales_of_some_axes():
    model = _model([("x", "float32", [2, "h", 3]), ("s", "float32", [1])], [helper.make_node("Resize", ["x", "", "s"], ["out"], mode="linear", axes=[1])])
    _agree(model, (_x(2, 5, 3), np.array([1.7], "float32")), (_x(2, 4, 3), np.array([0.5], "float32")))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 0, -1, -0.0])
@pytest.mark.parametrize("operator", ["Resize", "Upsample"])
def test_scales_that_are_none(operator, wrong):
    names = ["x", "", "s"] if operator == "Resize" else ["x", "s"]
    inputs, opset = [("x", "float32", ["n", "h"]), ("s", "float32", [2])], 13 if operator == "Resize" else 9
    node, scales = helper.make_node(operator, names, ["out"], name="/it", mode="nearest"), np.array([1, wrong], "float32")
    run = rd.compile(_model(inputs, [node], opset=opset))
    assert run(_x(2, 3), np.array([1, 2], "float32")).shape == (2, 6)
    with pytest.raises(rd.RoundelError, match=f"{operator} /it: scales are finite and greater than 0, which does not hold"):
        run(_x(2, 3), scales)
    with pytest.raises(rd.RoundelError, match="/it.*they must be finite and greater than 0"):
        rd.compile(_model(inputs[:1], [node], constants=[numpy_helper.from_array(scales, "s")], opset=opset))
