# SPDX-License-Identifier: Apache-2.0
"""Bounds and remainders of casts, bit operations, truncating division, narrow and scalable things, by hand; the attack on all forms is in tests/hostile."""

import itertools

import pytest

from roundel.arith import Analyzer
from roundel.arith.modular import meet, normal
from roundel.ir import tir
from roundel.ir.dtype import INT64, DType
from roundel.ir.tir import Range, Var

A, B = Var("a", INT64), Var("b", INT64)


def call(op, *args):
    return tir.Call(op, args, args[0].dtype)


def analyzer(**ranges):
    an = Analyzer()
    for v in (A, B):
        if v.name in ranges:
            low, high = ranges[v.name]
            an.bind(v, Range(tir.index_const(low), tir.index_const(high - low + 1)))
    return an


@pytest.mark.parametrize(
    "e, ranges, expected",
    [
        (tir.truncdiv(A, B), {"a": (-11, 6), "b": (3, 7)}, (-3, 2)),
        (tir.truncdiv(A, B), {"a": (-11, 6), "b": (-3, 0)}, (-6, 11)),
        (call("shift_right", A, B), {"a": (-9, 20), "b": (1, 3)}, (-5, 10)),
        (call("bitwise_or", A, B), {"a": (1, 5), "b": (2, 9)}, (2, 15)),
        (call("bitwise_xor", A, B), {"a": (1, 5), "b": (2, 9)}, (0, 15)),
        (call("bitwise_not", A), {"a": (-2, 9)}, (-10, 1)),
        (tir.Cast(DType("int32"), tir.Cast(DType("float32"), A % 9)), {}, (0, 8)),
        (tir.Cast(DType("int32"), tir.Cast(DType("float16"), A)), {"a": (0, 4000)}, (-(1 << 31), (1 << 31) - 1)),
        (tir.Cast(DType("int32"), tir.lt(A, 5)), {"a": (7, 9)}, (0, 0)),
        (tir.Add(tir.Ramp(A, tir.index_const(3), 4), tir.Broadcast(B, 4)), {"a": (0, 4), "b": (1, 2)}, (1, 15)),
    ],
)
def test_bounds(e, ranges, expected):
    assert analyzer(**ranges).bounds(e) == expected


def test_narrow_variables_are_bounded_by_their_type():
    assert Analyzer().bounds(Var("x", DType("int8"))) == (-128, 127)
    assert Analyzer().bounds(Var("x", DType("uint16"))) == (0, 65535)


@pytest.mark.parametrize(
    "e, expected",
    [
        (call("bitwise_and", A * 12 + 3, tir.index_const(7)), (4, 3)),
        (call("bitwise_and", A * 12, B), (4, 0)),
        (call("shift_left", A * 3 + 1, tir.index_const(2)), (4, 0)),
        (call("shift_right", A * 12 + 6, tir.index_const(1)), (6, 3)),
        (tir.truncmod(A * 6 + 1, 4), (2, 1)),
        (tir.Cast(DType("int32"), tir.Cast(DType("float64"), (A % 9) * 5 + 2)), (5, 2)),
    ],
)
def test_remainders(e, expected):
    assert Analyzer().modular(e) == expected


def test_remainders_toward_zero_tell_of_the_dividend():
    an = Analyzer()
    with an.constraint(tir.eq(tir.truncmod(A, 6), -2)):
        assert an.modular(A + 1) == (6, 5)


def test_known_remainders_meet():
    an = Analyzer()
    with an.constraint(tir.eq(A % 4, 3)), an.constraint(tir.eq(A % 7, 2)):
        assert an.modular(A) == (28, 23)


def test_the_meet_of_two_sets():
    def holds(value, m):
        return (value - m[1]) % m[0] == 0 if m[0] else value == m[1]

    for m, n, r, s in itertools.product(range(6), range(6), range(-2, 6), range(-2, 6)):
        a, b = normal(m, r), normal(n, s)
        both = [v for v in range(-60, 60) if holds(v, a) and holds(v, b)]
        found = meet(a, b)
        assert both == ([] if found is None else [v for v in range(-60, 60) if holds(v, found)]), (a, b)


def test_equality_of_indices_of_different_widths():
    x = Var("x", DType("int32"))
    assert Analyzer().prove_equal(tir.Cast(INT64, x) * 4 + 1, x * 4 + 1)
    assert not Analyzer().prove_equal(tir.Cast(INT64, x) * 4, x * 4 + 1)


@pytest.mark.parametrize("times, more, expected", [(3, 0, 2), (3, 1, 3), (1, 0, 0), (2, 5, 6)])
def test_a_loop_over_so_many_times_a_size_is_divided_by_it(times, more, expected):
    """Panels of columns times blocks of so many rows as only the run tells: which panel it is has a bound. The size is one at least where it divides."""
    n, i = Var("n", INT64, size=True), Var("i", INT64)
    for divisor in (n, (n + 5) // 6):
        an = Analyzer()
        an.bind(i, Range(tir.index_const(0), divisor * times + more))
        assert an.bounds(i // divisor) == (0, expected)
        assert all(k // d <= expected for size in range(1, 40) for d in [size if divisor is n else (size + 5) // 6] for k in range(d * times + more))
