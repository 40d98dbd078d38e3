# SPDX-License-Identifier: Apache-2.0
"""The page of operators is what the command prints."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from roundel.cli.report import page


def test_the_page_of_operators_is_up_to_date() -> None:
    text = (Path(__file__).parents[2] / "docs" / "operators.md").read_text()
    if f"Of onnx {onnx.__version__}." not in text:
        pytest.skip("the page was made with another version of onnx")
    lines = set(text.splitlines())
    missing = [line for line in page().splitlines() if line not in lines]
    assert not missing, "run `roundel report ops --markdown > docs/operators.md`"
