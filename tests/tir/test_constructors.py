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


def test_statements_take_numbers_of_the_type_that_their_place_asks_for():
    i, a = tir.Var("i", INT32), tir.decl_buffer((4,), "float16", name="A")
    loop = tir.For(i, 0, 4, tir.ForKind.SERIAL, tir.BufferStore(a, 1, [i]))
    assert loop.extent.dtype == "int32" and loop.body.value.dtype == "float16" and "for i in range" in loop.script()
    assert tir.BufferStore(a, 0.5, [0]).indices[0].dtype == "int64" and tir.Range(0, i).min.dtype == "int32"
    assert tir.Let(i, 3, tir.Evaluate(i)).value.dtype == "int32" and tir.If(True, tir.Evaluate(0)).condition.dtype == "bool"


def test_a_name_is_a_text():
    with pytest.raises(TypeError, match=r"text for a name, not 1: Var\("):
        tir.Var(1, "int32")


X = {kind: tir.Var("x", kind) for kind in ("float32", "int32", "bool")}


@pytest.mark.parametrize("name, kind", [("exp", "int32"), ("sqrt", "bool"), ("ldexp", "int32"), ("popcount", "float32"), ("clz", "bool"),
                                        ("bitwise_and", "float32"), ("shift_left", "bool"), ("sign", "bool"), ("pow", "bool")])
def test_intrinsics_refuse_what_no_machine_has_them_for(name, kind):
    with pytest.raises(TypeError, match=f"{name} is of .*not of {kind}"):
        getattr(T, name)(*[X[kind]] * tir.intrin.REGISTRY[name].arity)
    with pytest.raises(TypeError, match="~ is of integers and bools, not of float32"):
        ~X["float32"]


def test_a_whole_number_is_a_floating_point_number_where_one_is_asked_for():
    assert T.exp(0).args[0].dtype == "float32" and T.popcount(3).args[0].dtype == "int64"


@pytest.mark.parametrize("cuts", [(1, 2), (2, 1), (-1,)])
def test_axis_separators_cut_the_dimensions(cuts):
    with pytest.raises(ValueError, match="do not cut 1 dimensions"):
        tir.decl_buffer((4,), axis_separators=cuts)
    assert tir.decl_buffer((4, 8), axis_separators=(1,)).axis_separators == (1,)


def test_conditions_are_of_bools():
    x = tir.Var("x", "int32")
    assert tir.all(x < 1, True) is (x < 1)
    for join in (tir.all, tir.any):
        with pytest.raises(TypeError, match=r"x is no condition but of type int32: compare it with something, tir.NE\(x, 0\)"):
            join(x < 1, x)


def test_whole_numbers_are_round():
    x = tir.Var("x", "int32")
    assert all(getattr(tir, name)(x) is x for name in ("floor", "ceil", "trunc", "round", "nearbyint"))
    assert tir.truncmod(x, 1).value == 0
