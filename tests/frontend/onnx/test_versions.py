# SPDX-License-Identifier: Apache-2.0
"""Operators as older opset versions define them."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import pytest
from onnx import helper as h

from roundel.embed.onnx.conformance import run
from roundel.frontend.onnx import from_onnx, ops, registry  # noqa: F401  (fills the table)
from roundel.ir.errors import ModelError


def test_every_version_from_opset_7_on_is_known():
    versions = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        versions.setdefault((schema.domain, schema.name), {})[schema.since_version] = schema
    for (domain, name), found in versions.items():
        first, last = {"": (7, onnx.defs.onnx_opset_version()), "ai.onnx.ml": (1, 5)}.get(domain, (1, 0))
        for opset in range(first, last + 1):
            schema = found.get(max((v for v in found if v <= opset), default=None))
            expands = schema is None or schema.deprecated or schema.has_function or schema.has_context_dependent_function
            assert expands or registry.find(domain, name, opset), f"{name} of opset {opset}"


def result(op, opset, x, outputs=1, **attributes):
    names = [f"y{k}" for k in range(outputs)]
    info = [h.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)]
    graph = h.make_graph([h.make_node(op, ["x"], names, **attributes)], "g", info, [onnx.ValueInfoProto(name=n) for n in names])
    return run(h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=6), [x])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_hardmax_sees_a_matrix_before_opset_13(axis):
    x = np.random.default_rng(axis).standard_normal((3, 4, 5)).astype(np.float32)
    flat = x.reshape(int(np.prod(x.shape[:axis])), -1)
    expected = (np.arange(flat.shape[1]) == flat.argmax(1)[:, None]).reshape(x.shape)
    np.testing.assert_array_equal(result("Hardmax", 11, x, axis=axis)[0], expected)


def test_top_k_of_an_attribute():
    x = np.random.default_rng(0).standard_normal((3, 7)).astype(np.float32)
    values, places = result("TopK", 9, x, 2, k=3, axis=-1)
    np.testing.assert_array_equal(places, np.argsort(-x, 1)[:, :3])
    np.testing.assert_array_equal(values, np.take_along_axis(x, places, 1))


def relu(**domains):
    value = [h.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy"]
    graph = h.make_graph([h.make_node("Relu", ["x"], ["y"])], "g", value[:1], value[1:])
    return h.make_model(graph, opset_imports=[h.make_opsetid(d.replace("_", ".") if d != "onnx" else "", v) for d, v in domains.items()])


@pytest.mark.parametrize("domains", [{"onnx": registry.NEWEST[""] + 1}, {"onnx": 20, "ai_onnx_ml": 99}])
def test_an_operator_set_newer_than_any_known_one_is_told(domains):
    with pytest.warns(UserWarning, match=r"the newest that is known is \d+; operators are taken to be as there"):
        from_onnx(relu(**domains))


@pytest.mark.parametrize("domains", [{"onnx": registry.NEWEST[""]}, {"onnx": 13, "ai_onnx_ml": 5, "com_acme": 77}])
def test_of_known_operator_sets_nothing_is_said(domains):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_onnx(relu(**domains))


def test_the_newest_operator_sets_are_those_of_the_onnx_package():
    """Fails when a newer package has newer operators: follow them, then raise the number."""
    assert registry.NEWEST[""] == onnx.defs.onnx_opset_version()
    assert registry.NEWEST["ai.onnx.ml"] == max(s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.domain == "ai.onnx.ml")


@pytest.mark.parametrize("domains", [{}, {"onnx": 0}, {"onnx": -1}, {"onnx": 20, "ai_onnx_ml": 0}])
def test_a_version_that_is_none_is_refused(domains):
    model = relu(**(domains or {"onnx": 20}))
    if not domains:
        del model.opset_import[:]
    with pytest.raises(ModelError, match="opset_import: (there is no version|the model says of no version)"):
        from_onnx(model)


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Pow", "Greater", "Less"])
@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_operands_are_aligned_by_an_attribute_before_opset_7(operator, axis):
    """Square operands, so that another alignment would not be told by the sizes."""
    x, y = np.array([[1, 2], [3, 5]], np.float32), np.array([2, 3], np.float32)
    info = [h.make_tensor_value_info(n, onnx.TensorProto.FLOAT, a.shape) for n, a in (("x", x), ("y", y))]
    node = h.make_node(operator, ["x", "y"], ["z"], broadcast=1, **({} if axis is None else {"axis": axis}))
    model = h.make_model(h.make_graph([node], "g", info, [onnx.ValueInfoProto(name="z")]), opset_imports=[h.make_opsetid("", 6)], ir_version=3)
    f = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power, "Greater": np.greater, "Less": np.less}[operator]
    np.testing.assert_allclose(run(model, [x, y])[0], f(x, y[:, None] if axis == 0 else y), rtol=1e-6)


def test_operands_of_wrong_kinds_are_told_without_words_of_python():
    """Two pads for a tensor that needs four."""
    info = [h.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2, 3]) for n in "xy"]
    pads = onnx.numpy_helper.from_array(np.array([0, 1]), "pads")
    model = h.make_model(h.make_graph([h.make_node("Pad", ["x", "pads"], ["y"])], "g", info[:1], info[1:], [pads]), opset_imports=[h.make_opsetid("", 20)])
    with pytest.raises(ModelError, match="Pad.*: its operands or attributes are not what the operator takes\\n.*its inputs are float32 of 2 dimensions"):
        from_onnx(model)
