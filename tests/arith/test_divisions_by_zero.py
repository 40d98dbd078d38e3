# SPDX-License-Identifier: Apache-2.0
"""``simplify`` leaves divisions by the constant 0 as they are, wherever they stand, and takes nothing but numbers and expressions."""

from __future__ import annotations

from itertools import product

import pytest

from roundel.arith import Analyzer
from roundel.ir import Var, tir, walk
from roundel.ir.dtype import INT64
from roundel.ir.errors import ArithError

DIVISIONS = (tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod)
a, b = Var("a", INT64), Var("b", INT64)


@pytest.mark.parametrize(("inner", "outer"), list(product(DIVISIONS, DIVISIONS)))
@pytest.mark.parametrize("by", [tir.index_const(3), tir.index_const(0), b, b % 11, tir.floordiv(b, 2) * 4])
def test_a_division_by_zero_stays(inner: type, outer: type, by: tir.Expr):
    by_zero = inner(a, tir.index_const(0))
    for e in (outer(by_zero, by), outer(by_zero + 7, by), outer(b + by_zero * 6, by), outer(by, by_zero)):
        Analyzer().simplify(e)  # raises nothing
    assert any(type(n) is inner for n in walk(Analyzer().simplify(by_zero)))


@pytest.mark.parametrize("what", ["abc", None, 2.5, float("nan"), float("inf"), object(), [1], b"x"])
def test_only_numbers_and_expressions_are_simplified(what: object):
    with pytest.raises(ArithError, match="an index is an integer or an expression"):
        Analyzer().simplify(what)
