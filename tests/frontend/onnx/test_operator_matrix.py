# SPDX-License-Identifier: Apache-2.0
"""Operators x element types x sizes against ONNX's reference: all of them interpreted, a sample compiled (see operator_matrix)."""

from __future__ import annotations

import warnings

import pytest

from . import operator_matrix as matrix


@pytest.mark.parametrize("part", range(4))
def test_interpreted(part: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdicts = {(op, t): matrix.check(op, case, t, compiled=False) for op, case in list(matrix.CASES.items())[part::4] for t in case.types}
    assert not {k: v for k, v in verdicts.items() if v not in ("ok", "-")}
    assert sum(v == "ok" for v in verdicts.values()) > 100


def test_casts() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = matrix.casts(compiled=False)
    assert not {k: v for k, v in found.items() if v not in ("ok", "-")}


@pytest.mark.parametrize(("op", "dtype"), [("Div", "int8"), ("Mod", "int64"), ("Round", "float16"), ("Max", "float32"), ("ReduceProd", "bfloat16"),
                                           ("Where", "uint16")])
def test_compiled(op: str, dtype: str) -> None:
    assert matrix.check(op, matrix.CASES[op], dtype, compiled=True) == "ok"
