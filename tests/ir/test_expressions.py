# SPDX-License-Identifier: Apache-2.0
"""Constants fit their types, operands meet in one type, and nodes show as script."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel.ir import IRModule, tir
from roundel.ir.dtype import INT64, DType
from roundel.ir.errors import ConstantError, RoundelError
from roundel.ir.tir import const
from roundel.script import parse
from roundel.script import tir as T

INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (4, 8, 16, 32, 64)] + ["bool"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_fit_their_type(dtype):
    low, high = DType(dtype).limits
    assert (const(low, dtype).value, const(high, dtype).value) == (low, high)
    for value in (low - 1, high + 1, 1 << 70):
        with pytest.raises(ConstantError, match="out of the range"):
            tir.IntImm(value, dtype)


def test_scripts_do_not_take_constants_that_are_out_of_range():
    for text in ("T.int32(2147483648)", "T.int8(-129)", "T.uint8(256)", "T.uint64(-1)"):
        with pytest.raises(RoundelError, match="out of the range"):
            parse(f"@T.prim_func\ndef f():\n    T.evaluate({text})")


def test_floating_point_constants_have_floating_point_types():
    with pytest.raises(ConstantError):
        tir.FloatImm(1.0, "int32")


@pytest.mark.parametrize(
    "a, b, together",
    [
        ("uint32", "int8", "uint32"),
        ("uint8", "int32", "int32"),
        ("uint32", "int32", "uint32"),
        ("int32", "int64", "int64"),
        ("bool", "int8", "int8"),
        ("int64", "float16", "float16"),
        ("float16", "bfloat16", "float32"),
        ("float64", "float32", "float64"),
    ],
)
def test_operands_meet_as_in_c(a, b, together):
    for x, y in ((a, b), (b, a)):
        assert (tir.Var("x", DType(x)) + tir.Var("y", DType(y))).dtype == together


def test_pointers_have_no_arithmetic():
    with pytest.raises(TypeError, match="handle"):
        tir.Var("p", DType("handle")) + 1


def test_numbers_in_text_are_no_indices():
    with pytest.raises(TypeError, match="not the text"):
        tir.as_index("1")


@pytest.mark.parametrize("value", [-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1])
@pytest.mark.parametrize("condition", ["T.min_value('int32') + x == 0", "x + T.max_value('int32') > 0", "x * 2 >= x + 1", "0 - x > 0"])
def test_indices_are_exact_where_they_are_narrow(value, condition):
    """Interpreter and compiled code at the ends of int32."""
    text = f'@T.prim_func\ndef f(x: T.int32, B: T.Buffer((1,), "int32")):\n    if {condition}:\n        B[0] = 1\n    else:\n        B[0] = 2'
    found = []
    for run in (rd.interpret, rd.build):
        out = np.zeros(1, "int32")
        run(parse(text))["f"](value, out)
        found.append(int(out[0]))
    low, high = -(2**31), 2**31 - 1
    expected = eval(condition.replace("T.min_value('int32')", str(low)).replace("T.max_value('int32')", str(high)), {"x": value})
    assert found == [1 if expected else 2] * 2


def test_nodes_show_as_script():
    x = tir.Var("x", INT64)
    f = parse('@T.prim_func\ndef f(A: T.Buffer((4,), "float32")):\n    A[0] = 1.0')
    assert [str(n) for n in (x, x + 1, tir.And(x < 3, x > 1), T.float32(0.5))] == ["x", "x + 1", "x < 3 and x > 1", "T.float32(0.5)"]
    assert str(f) == repr(f) == f.script(imports=False).rstrip()
    assert str(IRModule({"f": f})).startswith("@I.ir_module")
    assert "Var(" not in repr([x + 1, f.body, f.params, tir.Range.of(4)])
