# SPDX-License-Identifier: Apache-2.0
"""What the constructors that people call refuse, where passes may go on."""

from __future__ import annotations

import pytest

from roundel import tir
from roundel.ir.dtype import INT32
from roundel.ir.errors import ConstantError
from roundel.script import tir as T


@pytest.mark.parametrize("divide", [tir.floordiv, tir.floormod, tir.truncdiv, tir.truncmod])
def test_a_division_by_the_constant_zero_is_an_error(divide):
    for a in (tir.const(5, "int32"), tir.Var("x", INT32)):
        with pytest.raises(ConstantError, match="divides by zero"):
            divide(a, 0)
    assert divide(tir.const(7, "int32"), 7).value in (0, 1)


def test_a_let_takes_no_value_of_another_type():
    x = tir.Var("x", INT32)
    assert T.Let(x + 1, where={x: 2}).script() == "T.Add(T.int32(2), T.int32(1))"
    with pytest.raises(TypeError, match="int64"):
        T.Let(x + 1, where={x: tir.const(2, "int64")})


def test_everything_is_found_by_its_name():
    for name in ("For", "BufferLoad", "exp", "if_then_else", "decl_buffer", "vscale", "tvm_access_ptr", "analysis", "stmt_functor"):
        assert getattr(tir, name) is not None
    with pytest.raises(AttributeError):
        tir.nothing_of_this_name


def test_conditions_are_joined():
    x = tir.Var("x", INT32)
    assert tir.all(x > 1, x < 5, True).script() == "x > 1 and x < 5" and tir.any(x > 1, False).script() == "x > 1"
    for join in (tir.all, tir.any):
        with pytest.raises(ValueError, match="one at least"):
            join()
    assert tir.multiply(x, 2).script() == "x * 2" and tir.indexdiv(x, 2).script() == "x // 2"
