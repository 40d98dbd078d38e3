# SPDX-License-Identifier: Apache-2.0
"""What constants, operators of bits and masks of vectors may be, and what is said otherwise."""

from __future__ import annotations

import math

import pytest

from roundel.ir import structural_equal, structural_hash, structural_mismatch, tir
from roundel.ir.dtype import BOOL, INT32
from roundel.ir.errors import ConstantError, ScriptError
from roundel.ir.tir.ops import exact_const
from roundel.script import parse


@pytest.mark.parametrize("dtype, largest", [("float16", 65504.0), ("float32", 3.4028235e38)])
def test_a_number_beyond_its_type_is_an_error_and_a_conversion_gives_infinity(dtype, largest):
    for sign in (1, -1):
        assert exact_const(sign * largest, dtype).value == sign * largest
        with pytest.raises(ConstantError, match="out of the range"):
            exact_const(sign * largest * 1.001, dtype)
        with pytest.raises(ScriptError, match="out of the range"):
            program(f"T.evaluate(T.{dtype}({sign * largest * 1.001}))")
        assert tir.cast(tir.const(sign * largest * 2, "float64"), dtype).value == sign * math.inf
    assert math.isnan(tir.const(math.nan, dtype).value)


def test_operators_of_bits_are_of_integers_and_fold():
    a, b = tir.const(112, "int32"), tir.const(138, "int32")
    assert [(a & b).value, (a | b).value, (a ^ b).value, (a >> 4).value, (a << 28).value] == [0, 250, 250, 7, 0]
    for operator in (lambda x, y: x & y, lambda x, y: x << y, lambda x, y: y | x):
        with pytest.raises(TypeError, match="integers"):
            operator(tir.const(1.5, "float32"), tir.Var("x", INT32))


@pytest.mark.parametrize("bits", [-1, 32])
def test_a_shift_is_by_fewer_bits_than_there_are(bits):
    x = tir.Var("x", INT32)
    for shift in (lambda: x << bits, lambda: x >> bits):
        with pytest.raises(ConstantError, match="cannot be shifted"):
            shift()


def test_a_mask_has_a_truth_value_for_each_lane():
    buffer, index = tir.decl_buffer((24,), "int32"), tir.Ramp(tir.IntImm(0, "int32"), tir.IntImm(1, "int32"), 4)
    value = tir.Broadcast(tir.IntImm(1, "int32"), 4)
    assert tir.BufferStore(buffer, value, (index,), tir.Broadcast(tir.IntImm(1, BOOL), 4)).predicate is not None
    for mask, why in [(tir.Broadcast(tir.IntImm(1, BOOL), 8), "8 lanes"), (value, "boolean"), (tir.Broadcast(tir.IntImm(1, BOOL), -4), "scalable")]:
        with pytest.raises(TypeError, match=why):
            tir.BufferStore(buffer, value, (index,), mask)
        with pytest.raises(TypeError, match=why):
            tir.BufferLoad(buffer, (index,), mask)


def test_index_maps_of_other_integers():
    mapping = tir.IndexMap.from_func(lambda i: (i // 4, i % 4), index_dtype="int32")
    assert [(e.value, e.dtype) for e in mapping.map_indices([42])] == [(10, "int32"), (2, "int32")]


# ---- equality


def program(body):
    return parse(f'@T.prim_func\ndef f(A: T.Buffer((4,), "float32")):\n    {body}\n')


def test_statements_that_do_nothing_are_equal():
    a, b = program("pass"), program("T.evaluate(0)")
    assert structural_equal(a, b) and structural_equal(b, a) and structural_hash(a) == structural_hash(b)
    assert not structural_equal(a, program("T.evaluate(1)"))


def test_an_offset_of_nothing_is_none():
    assert tir.decl_buffer((4,), elem_offset=0).elem_offset is None


@pytest.mark.parametrize("left, right, path", [
    ("A[0] = 1.0", "A[0] = 2.0", ".body.value"),
    ("A[0] = 1.0\n    A[1] = 2.0", "A[0] = 1.0\n    A[1] = 2.0\n    A[2] = 2.0", ".body.stmts[2]"),
    ("A[0] = 1.0\n    A[1] = 2.0", "A[0] = 1.0\n    A[1] = 3.0\n    A[2] = 2.0", ".body.stmts[1].value"),
])
def test_the_first_difference_is_named(left, right, path):
    a, b = program(left), program(right)
    assert structural_mismatch(a, a) is None
    assert structural_mismatch(a, b)[0] == structural_mismatch(b, a)[0] == path
