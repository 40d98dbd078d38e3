# SPDX-License-Identifier: Apache-2.0
"""``roundel check``: all problems of a model in one report."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper
from typer.testing import CliRunner

from roundel.cli.app import app


def _report(folder: Path, nodes: list[onnx.NodeProto], outputs: list[str], weights: list[onnx.TensorProto] = []) -> tuple[int, str]:  # noqa: B006
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    ys = [helper.make_tensor_value_info(o, TensorProto.FLOAT, [None, None]) for o in outputs]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], ys, weights), opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.acme", 1)])
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    result = CliRunner().invoke(app, ["check", str(path)])
    return result.exit_code, result.output


def test_everything_is_listed(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Foo", ["x"], ["a"], name="foo1", domain="com.acme"),
        helper.make_node("Foo", ["x"], ["b"], name="foo2", domain="com.acme"),
        helper.make_node("Pad", ["x", "widths"], ["c"], name="pad", mode="sideways"),
        helper.make_node("Relu", ["c"], ["d"], name="after_pad"),
        helper.make_node("MatMul", ["x", "w"], ["e"], name="product"),
        helper.make_node("Relu", ["nothing"], ["f"], name="undefined"),
        helper.make_node("Add", ["a", "x"], ["g"], name="after_foo"),
    ]
    weights = [helper.make_tensor("widths", TensorProto.INT64, [4], [0, 1, 0, 1]), helper.make_tensor("w", TensorProto.FLOAT, [3, 2], [0.0] * 6)]
    code, text = _report(tmp_path, nodes, ["a", "b", "d", "e", "f", "g"], weights)
    assert code == 1
    assert "com.acme::Foo (opset 1), 2 nodes: foo1, foo2" in text
    assert "'mode' is 'sideways'" in text and "1 time: pad" in text
    assert "MatMul:" in text and "product" in text and "undefined" in text and "'nothing'" in text
    assert "ONNX's own checks object" in text


def test_a_good_and_an_unreadable_model(tmp_path: Path) -> None:
    code, text = _report(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], ["y"])
    assert code == 0 and "no problems" in text
    (tmp_path / "broken.onnx").write_bytes(b"\x08\x01rubbish")
    result = CliRunner().invoke(app, ["check", str(tmp_path / "broken.onnx")])
    assert result.exit_code == 2 and "not an ONNX model" in result.output


def test_nodes_that_are_not_valid(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Gemm", ["x"], ["a"], name="gemm"),
        helper.make_node("LSTM", ["x", "x", "x"], ["b"], name="lstm"),
        helper.make_node("Unsqueeze", ["x", "two"], ["c"], name="deeper"),
        helper.make_node("Conv", ["c", "w"], ["d"], name="conv", auto_pad="SOMETIMES"),
    ]
    weights = [helper.make_tensor("two", TensorProto.INT64, [2], [0, 1]), helper.make_tensor("w", TensorProto.FLOAT, [1, 1, 1, 1], [0.0])]
    code, text = _report(tmp_path, nodes, ["a", "b", "d"], weights)
    text = " ".join(text.split())
    assert code == 1
    assert "1 input where the operator takes at least 2" in text
    assert "float32 of 2 dimensions" in text
    assert "'auto_pad' is 'SOMETIMES'" in text
