# SPDX-License-Identifier: Apache-2.0
"""Strings: what moves and compares them is native and can be shipped, what looks into them is Python and says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from roundel import api
from roundel.ir.errors import BuildError, CallError, RunError
from roundel.runtime import text


def _model(nodes: list[onnx.NodeProto], inputs: list[tuple], outputs: list[tuple], weights: dict[str, list[str]] | None = None) -> onnx.ModelProto:
    infos = [[helper.make_tensor_value_info(*i) for i in group] for group in (inputs, outputs)]
    consts = [helper.make_tensor(n, TensorProto.STRING, [len(v)], [s.encode() for s in v]) for n, v in (weights or {}).items()]
    graph = helper.make_graph(nodes, "text", *infos, consts)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 4)], ir_version=10)


def test_a_label_model_is_native_and_ships_its_strings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encode = helper.make_node("LabelEncoder", ["x"], ["k"], domain="ai.onnx.ml", keys_strings=["no", "yes", "später"], values_int64s=[0, 1, 2], default_int64=0)
    pick = helper.make_node("Gather", ["names", "k"], ["y"])
    proto = _model([encode, pick], [("x", TensorProto.STRING, ["n"])], [("y", TensorProto.STRING, ["n"])], {"names": ["Nein", "Ja", "Später"]})
    words = np.array(["yes", "später", "?"], object)
    model = api.compile(proto)
    assert model(words).tolist() == ["Ja", "Später", "Nein"]
    saved = model.save(tmp_path / "labels.so")
    monkeypatch.setattr(text, "_strings", {0: ""})  # as in another process
    assert api.load(saved)(words).tolist() == ["Ja", "Später", "Nein"]
    with pytest.raises(CallError, match="strings"):
        model(np.zeros(3, np.float32))


def test_operators_in_python_are_not_shipped(tmp_path: Path) -> None:
    split = helper.make_node("StringSplit", ["x"], ["y", "n"], delimiter=",")
    proto = _model([split], [("x", TensorProto.STRING, ["n"])], [("y", TensorProto.STRING, None), ("n", TensorProto.INT64, None)])
    model = api.compile(proto)
    words, counts = model(np.array(["a,b", "c"], object))
    assert words.tolist() == [["a", "b"], ["c", ""]] and counts.tolist() == [2, 1]
    with pytest.raises(BuildError, match="StringSplit"):
        model.save(tmp_path / "split.so")


def test_numbers_in_text() -> None:
    there = helper.make_node("Cast", ["x"], ["t"], to=TensorProto.STRING)
    back = helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT)
    model = api.compile(_model([there, back], [("x", TensorProto.FLOAT, [4])], [("y", TensorProto.FLOAT, [4]), ("t", TensorProto.STRING, [4])]))
    x = np.array([1.5, -0.25, np.nan, -np.inf], np.float32)
    y, t = model(x)
    np.testing.assert_array_equal(y, x)
    assert t.tolist() == ["1.5", "-0.25", "NaN", "-INF"]


@pytest.mark.parametrize(("words", "to", "wrong"), [
    (["1.5", "abc"], TensorProto.FLOAT, "'abc' is no number"),
    (["1_0"], TensorProto.DOUBLE, "'1_0' is no number"),
    (["7", "true"], TensorProto.INT32, "'true' is no integer"),
    (["99999999999999999999"], TensorProto.INT64, "'99999999999999999999' is no integer of 64 bits"),
    (["inf"], TensorProto.INT64, "'inf' is no integer")])
def test_strings_that_are_no_numbers(words: list[str], to: int, wrong: str) -> None:
    proto = _model([helper.make_node("Cast", ["x"], ["y"], to=to, name="read")], [("x", TensorProto.STRING, ["n"])], [("y", to, ["n"])])
    with pytest.raises(RunError, match=f"(?s)'read' .Cast.*{wrong}"):
        api.compile(proto)(np.array(words, object))
