# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators against NumPy: all types they accept, broadcasting, symbolic dimensions, special values."""

from __future__ import annotations

import numpy as np
import pytest
from opcheck import T, opcheck

from roundel.ir.errors import TypeInferenceError
from roundel.ir.op import all_ops
from roundel.ops import make
from roundel.ops.elementwise import Elementwise

DTYPES = {
    "float": ["float32", "float16", "bfloat16"],
    "int": ["int32", "uint8"],
    "bool": ["bool"],
    "bits": ["int64", "bool"],
    "number": ["float32", "bfloat16", "int8", "int64"],
    "any": ["float32", "bool"],
}
OPS = {n: o for n, o in all_ops().items() if isinstance(o, Elementwise)}
RANGES = {
    "acosh": (1, 4),
    "atanh": (-0.9, 0.9),
    "asin": (-1, 1),
    "acos": (-1, 1),
    "log": (0.1, 5),
    "log2": (0.1, 5),
    "log10": (0.1, 5),
    "log1p": (-0.9, 5),
    "sqrt": (0, 5),
    "rsqrt": (0.1, 5),
    "reciprocal": (0.2, 3),
}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -0.5, -3.0, np.inf, -np.inf, np.nan, 1e-30, 1e30, 88.0, -88.0]


@pytest.mark.parametrize("name, dtype", [(n, d) for n, o in OPS.items() for d in DTYPES[o.accepts]])
def test_against_numpy(name, dtype):
    low, high = RANGES.get(name, (-2, 2))
    if len(OPS[name].operands) == 1:
        opcheck(name, T("n", 1, 5, dtype=dtype, low=low, high=high), dims={"n": 3})
        return
    second = (
        (1, 3)
        if name in ("divide", "floor_divide", "mod", "floor_mod", "power", "left_shift", "right_shift")
        else (low, high)
    )
    opcheck(name, T("n", 1, 5, dtype=dtype), T(7, 1, dtype=dtype, low=second[0], high=second[1]), dims={"n": 3})


@pytest.mark.parametrize(
    "name", [n for n, o in OPS.items() if o.accepts in ("float", "number") and len(o.operands) == 1]
)
def test_special_values(name):
    opcheck(name, T(values=SPECIAL), tolerance=1e-4)


@pytest.mark.parametrize("name", ["maximum", "minimum", "add", "divide", "less", "equal", "floor_mod", "mod"])
def test_special_pairs(name):
    a, b = np.meshgrid(SPECIAL, SPECIAL)
    opcheck(name, T(values=a), T(values=b), tolerance=1e-5)


@pytest.mark.parametrize("name", ["divide", "floor_divide", "mod", "floor_mod"])
def test_signs_of_integer_division(name):
    a, b = np.meshgrid([-7, -6, -1, 0, 1, 6, 7], [-3, -2, -1, 1, 2, 3])
    opcheck(name, T(dtype="int32", values=a), T(dtype="int32", values=b))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "int8"])
def test_integer_powers_wrap(dtype):
    a, b = np.meshgrid([-3, -2, -1, 0, 1, 2, 3, 10], [-2, -1, 0, 1, 2, 3, 7, 31, 65])
    if dtype == "uint8":
        a, b = np.abs(a), np.abs(b)
    opcheck("power", T(dtype=dtype, values=a), T(dtype=dtype, values=b))


def test_shifts_beyond_the_width():
    for dtype in ("uint8", "int32"):
        a, b = np.meshgrid(
            [1, 3, 100] + [-5] * (dtype == "int32"), [0, 1, 7, 8, 31, 32, 40] + [-1, -9] * (dtype == "int32")
        )
        opcheck("left_shift", T(dtype=dtype, values=a), T(dtype=dtype, values=b))
        opcheck("right_shift", T(dtype=dtype, values=a), T(dtype=dtype, values=b))


def test_empty_and_scalar():
    opcheck("add", T(0, 3), T(3))
    opcheck("exp", T())
    opcheck("multiply", T(), T(2, 2))


def test_dimensions_that_do_not_broadcast_are_explained():
    from roundel import te
    from roundel.ir import graph

    n = te.size_var("n")
    a, b = graph.Var("a", graph.TensorInfo((2, n), "float32")), graph.Var("b", graph.TensorInfo((2, 3), "float32"))
    with pytest.raises(
        TypeInferenceError, match=r"n and 3 .* do not broadcast[\s\S]*x1: float32 \(2, n\)[\s\S]*match_cast"
    ):
        make("add", a, b)
    with pytest.raises(TypeInferenceError, match="different types"):
        make("add", a, graph.Var("c", graph.TensorInfo((2, n), "float64")))
    assert make("add", a, 1.5).sinfo == a.sinfo
    assert make("add", a, graph.Var("u", graph.TensorInfo(dtype="float32", ndim=2))).sinfo == graph.TensorInfo(
        None, "float32", 2
    )


def test_select_family():
    opcheck("where", T(3, 1, dtype="bool"), T("n", 1, 5), T(5), dims={"n": 2})
    opcheck("clip", T(values=SPECIAL), -1.0, 1.0)
    opcheck("clip", T(9, dtype="int8", low=-30, high=30), -1e9, 5)
    opcheck("nn.prelu", T(2, "c", 3), T("c"), dims={"c": 4})
    opcheck("nn.prelu", T(2, 3), T(1), axis=-1)


@pytest.mark.parametrize(
    "source, to",
    [
        ("float32", "int8"),
        ("float32", "uint8"),
        ("float32", "int64"),
        ("float32", "int32"),
        ("int32", "int8"),
        ("int64", "float16"),
        ("float32", "bfloat16"),
        ("float32", "bool"),
        ("bool", "float32"),
        ("float16", "uint16"),
    ],
)
def test_astype(source, to):
    values = (
        [0.0, 1.9, -1.9, 300.5, -300.5, 3e9, -3e9, 1e20, np.nan, np.inf, -np.inf]
        if source.startswith("float")
        else [0, 1, -1, 127, 300, -300]
    )
    with np.errstate(all="ignore"):
        opcheck("astype", T(dtype=source, values=values), dtype=to)
