# SPDX-License-Identifier: Apache-2.0
"""A sample of operators through code generation; OPCHECK_COMPILED=1 does it in the other tests of this folder too."""

from __future__ import annotations

import numpy as np
import opcheck as checker
import pytest
from opcheck import T, opcheck

N = {"n": 3}
INDEX = T(values=np.array([[0, 3], [1, -1]]), dtype="int64")
CASES = [
    ("add", (T("n", 1, 5), T(7, 1)), {}),
    ("nn.gelu", (T("n", 9, dtype="float16"),), {}),
    ("power", (T("n", 4, dtype="int32"), T(4, dtype="int32", low=0)), {}),
    ("sum", (T("n", 5, 4),), {"axis": (0, 2)}),
    ("argmax", (T("n", 9),), {"axis": 1}),
    ("matmul", (T("n", 5, 7), T(7, 3)), {}),
    ("nn.conv2d", (T("n", 4, 7, 6), T(6, 2, 3, 3)), {"groups": 2, "padding": 1, "strides": 2}),
    ("nn.conv2d_transpose", (T("n", 4, 5, 6), T(4, 3, 3, 3)), {"strides": 2, "padding": 1}),
    ("nn.avg_pool2d", (T("n", 3, 7, 8),), {"pool_size": 3, "strides": 2, "padding": 1, "ceil_mode": True}),
    ("nn.layer_norm", (T("n", 5, 7), T(7), T(7)), {}),
    ("nn.softmax", (T("n", 5, 7),), {}),
    ("reshape", (T("n", 4, 6), (-1, 8)), {}),
    ("concat", ((T("n", 4), T("n", 3)),), {"axis": 1}),
    ("split", (T("n", 7),), {"indices_or_sections": 3, "axis": 1}),
    ("nn.pad", (T("n", 5), (1, 2, 3, 0)), {"pad_mode": "reflect"}),
    ("nn.pad", (T("n", 40), (1, -1, 3, 20)), {"pad_mode": "symmetric"}),
    ("nn.pad", (T("n", 40), (0, 2, -3, 41)), {"pad_mode": "edge"}),
    ("take", (T(4, "n"), INDEX), {"axis": 0}),
    ("scatter_nd", (T(4, "n"), T(values=np.array([[0], [3], [0]]), dtype="int64"), T(3, "n")), {"reduction": "add"}),
    ("cumsum", (T("n", 4, 3),), {"axis": 1}),
    ("topk", (T("n", 9), 3), {}),
    ("image.resize", (T(1, 2, 5, 4), (1, 2, 7, 9)), {"method": "cubic"}),
    ("quantize", (T("n", 4, 3), T(4, low=0.01, high=0.1), T(4, dtype="uint8")), {"axis": 1, "out_dtype": "uint8"}),
]


@pytest.mark.parametrize("name, operands, attrs", CASES, ids=[c[0] for c in CASES])
def test_compiled(name, operands, attrs, monkeypatch):
    monkeypatch.setattr(checker, "COMPILED", True)
    opcheck(name, *operands, dims=N, **attrs)


@pytest.mark.parametrize("name, operands, attrs", [
    ("nn.batch_norm", (T("n", 4, 5), T(4), T(4), T(4), T(4, low=0.5)), {"training": True}),
    ("masked_fill", (T("n", 3), T(3, dtype="bool"), 7.5), {}),
    ("nn.pad", (T("n", 5), (1, 2, 3, 0)), {"pad_mode": "symmetric"}),
], ids=lambda x: x if isinstance(x, str) else "")
def test_models_of_one_operator(name, operands, attrs, monkeypatch):
    """As users compile it; OPCHECK_SCHEDULED=1 does it in the other tests of this folder too."""
    monkeypatch.setattr(checker, "SCHEDULED", True)
    opcheck(name, *operands, dims=N, **attrs)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_rows_with_nan_and_infinity(monkeypatch):
    """The largest number is found across vectors and lanes; a NaN anywhere makes its row NaN, and only that."""
    monkeypatch.setattr(checker, "COMPILED", True)
    rng = np.random.default_rng(0)
    for size in (1, 7, 131):
        x = rng.uniform(-90.0, 90.0, (size + 6, size))
        x[np.arange(size), np.arange(size)] = np.nan
        x[size:] = [[np.nan], [-np.inf], [np.inf], [-3e38], [3e38], [-0.0]]
        x[size + 1, 0], x[size + 2, size // 2] = 2.0, 1.0
        for name in ("nn.softmax", "nn.log_softmax"):
            opcheck(name, T(values=x, dtype="float32"))
            opcheck(name, T(values=x.T.copy(), dtype="float32"), axis=0)
        opcheck("reduce_log_sum_exp", T(values=x, dtype="float32"), axis=1)


@pytest.mark.parametrize("shape, axis", [((3, 5, 130), 1), (("n", 33), 0), ((5, 197), 1)])
def test_reductions_along_any_axis(shape, axis, monkeypatch):
    """Tails of columns and of rows, rows in registers, stages that share a loop with the reduction that takes them in."""
    monkeypatch.setattr(checker, "COMPILED", True)
    for name in ("nn.softmax", "variance", "argmin"):
        opcheck(name, T(*shape), dims={"n": 37}, axis=axis)
