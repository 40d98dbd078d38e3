# SPDX-License-Identifier: Apache-2.0
"""A model's page, and the page of operators, which is what the command prints."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

from roundel.cli.report import app, page
from roundel.reports.page import report_in


def test_the_page_of_operators_is_up_to_date() -> None:
    text = (Path(__file__).parents[2] / "docs" / "operators.md").read_text()
    if f"for onnx {onnx.__version__}." not in text:
        pytest.skip("the page was made with another version of onnx")
    lines = set(text.splitlines())
    missing = [line for line in page().splitlines() if line not in lines]
    assert not missing, "run `roundel report ops --markdown > docs/operators.md`"


def test_a_models_page(tmp_path: Path) -> None:
    """The model is the first argument, as for other commands, or an option comes before it."""
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ("n", 4)) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    model, out, both = (str(tmp_path / name) for name in ("m.onnx", "a.html", "b.html"))
    assert CliRunner().invoke(app, [model, "-o", out, "--seconds", "0", "--dim", "n=3"]).output.strip().splitlines()[-1] == out
    assert CliRunner().invoke(app, ["--against", out, "-o", both, out, "--json"]).exit_code == 0
    assert report_in(Path(both))["sizes"] == {"n": 3}
