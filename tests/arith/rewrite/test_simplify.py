# SPDX-License-Identifier: Apache-2.0
"""What rewriting makes of expressions: the order of operands stays, and what is written too complicated is undone."""

import pytest

from roundel.arith import Analyzer
from roundel.ir import decl_buffer, tir
from roundel.ir.dtype import INT64, DType
from roundel.ir.errors import ArithError
from roundel.ir.tir import Broadcast, Var, const

A, B, K = (Var(n, INT64) for n in "abk")
DIV, MOD, MIN, MAX, SELECT = tir.truncdiv, tir.truncmod, tir.min_, tir.max_, tir.select
F = decl_buffer((8,), "float32", "F")[A]
W = decl_buffer((8,), "int8", "W")[A]


def ramp(base, stride, lanes):
    return tir.Ramp(base, const(stride), lanes)


def rewritten(e, *facts):
    an = Analyzer()
    with an.constraint(tir.logical_and(*facts)):
        return an.rewrite_simplify(e)


@pytest.mark.parametrize(
    "e, expected",
    [
        ((B - A) + A, B),
        (K - (A + K), const(0) - A),
        (B + 3 + A + 4, B + A + 7),
        (B * K + B * 5, (K + 5) * B),
        (MIN(B, A - 6) + 6, MIN(B + 6, A)),
        (MAX(A, K) + MIN(K, A), A + K),
        (A - MIN(B, A), MAX(A - B, 0)),
        (B - DIV(B, 7) * 7, MOD(B, 7)),
        (B * 3 - (B + K) // 4 * 12, ((B + K) % 4 - K) * 3),
        (DIV(B, 6) * 6 + MOD(B, 6), B),
    ],
)
def test_sums(e, expected):
    assert rewritten(e) is expected, rewritten(e)


@pytest.mark.parametrize(
    "e, facts, expected",
    [
        ((A - A % 14) // 14, (), A // 14),
        ((A * 6 + 20) // 12, (), (A * 6 + 20) // 12),
        ((A * 6 + 17) // 12, (), A // 2 + 1),
        (DIV(A * 6 + B, 3), (A >= 0, B >= 0), A * 2 + DIV(B, 3)),
        (DIV(A * 6 + B, 3), (), DIV(A * 6 + B, 3)),
        (MOD(A * 6 + B, -3), (A >= 0, B >= 0), MOD(B, 3)),
        ((A * 16 + B) % 64, (B >= 0, B < 16), A % 4 * 16 + B),
        ((A + (K - A) % 5) % 5, (tir.eq(K % 5, 0),), const(0)),
        (MIN(A * 9, B) // 3, (), MIN(A * 3, B // 3)),
    ],
)
def test_quotients_and_remainders(e, facts, expected):
    assert rewritten(e, *facts) is expected, rewritten(e, *facts)


@pytest.mark.parametrize(
    "e, expected",
    [
        (MIN(MAX(K, A), MAX(B, K)), MAX(MIN(A, B), K)),
        (MAX(A - K, B - K), MAX(A, B) - K),
        (MIN(A * -5, const(-20)), MAX(A, 4) * -5),
        (MIN(MIN(MIN(A, B), K), B), MIN(MIN(A, B), K)),
        (MAX((A + 6) // 7 * 7, A), (A + 6) // 7 * 7),
        (SELECT(A < B, A, K) + SELECT(A < B, 1, B), SELECT(A < B, A + 1, K + B)),
        (SELECT(A < B, K, K), K),
    ],
)
def test_extrema_and_choices(e, expected):
    assert rewritten(e) is expected, rewritten(e)


@pytest.mark.parametrize(
    "c, expected",
    [
        (A - 2 < B - 1, A <= B),
        (A + 9 < B + 4, A + 5 < B),
        (A * 5 >= 11, const(3) <= A),
        (A * -5 < 11, const(-3) < A),
        (A // 6 * 6 < A, const(0) < A % 6),
        (A // 6 * 6 >= A, tir.eq(A % 6, 0)),
        (DIV(A, 5) < 0, A < -4),
        (tir.logical_and(tir.eq(A // 9, 2), tir.eq(A % 9, 4)), tir.eq(A, 22)),
        (tir.logical_and(tir.eq(A // 9, 2), A % 9 < 5), tir.logical_and(const(18) <= A, A < 23)),
        (tir.logical_and(A < 30, A % 6 < 2), tir.logical_and(A < 26, A % 6 < 2)),
        (tir.eq(A * B, 0), tir.logical_or(tir.eq(A, 0), tir.eq(B, 0))),
        (MAX(A, 3) < 9, A < 9),
        (tir.logical_or(A < B, B < A), tir.ne(A, B)),
    ],
)
def test_conditions(c, expected):
    assert rewritten(c) is expected, rewritten(c)


@pytest.mark.parametrize(
    "e, expected",
    [
        (Broadcast(B, 4) + ramp(A, 2, 4), ramp(B + A, 2, 4)),
        (ramp(A * 6, 1, 3) // 6, Broadcast(A, 3)),
        (ramp(A * 6 + 11, 5, 3) % 6, ramp(const(5), 5, 3) % 6),
        (MIN(MIN(ramp(A, 1, 2), Broadcast(B, 2)), Broadcast(K, 2)), MIN(ramp(A, 1, 2), Broadcast(MIN(B, K), 2))),
    ],
)
def test_vectors(e, expected):
    assert rewritten(e) is expected, rewritten(e)


def test_truncated_quotients_of_ramps_need_a_sign():
    """Lanes on both sides of zero are not the quotient of the first lane and even steps."""
    e = DIV(ramp(A, 4, 4), 2)
    assert rewritten(e) is e
    assert rewritten(e, A >= 0) is ramp(DIV(A, 2), 2, 4)


def test_data_wraps_and_floats_may_be_nan():
    assert rewritten(F - F) is F - F
    assert rewritten(tir.lt(W + 1, W + 2)) is tir.lt(W + 1, W + 2)
    assert rewritten(W - W) is const(0, "int8")


def test_constants_keep_their_exact_value():
    """The sum of two constants of an index that its type does not hold stays a sum: it does not wrap."""
    x = Var("x", DType("uint8"))
    both = tir.Add(const(200, "uint8"), const(100, "uint8"))
    assert rewritten(tir.lt(x, both)) is not const(False)


@pytest.mark.parametrize("divide", [tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod])
def test_division_by_zero_is_an_error(divide):
    for e in (divide(A, const(0)), divide(ramp(A, 1, 2), Broadcast(const(0), 2))):
        with pytest.raises(ArithError, match="division by zero"):
            rewritten(e)


def test_facts_decide():
    assert rewritten(MIN(A, B), A < B) is A
    assert rewritten(A <= B, tir.eq(A, B)) is const(True)
    assert rewritten(tir.ne(A, B), A >= B) is (B < A)


def test_stable():
    for e in (MIN(A, B) + MAX(A, K) + A, (A * 7 + B) // 4 % 9 - K, tir.logical_and(A < B, tir.logical_or(K < A, B <= 3))):
        once = rewritten(e)
        assert rewritten(once) is once


def test_scalable_vectors_have_no_last_lane():
    """Of -4 lanes (four times what the machine has) it is not known that all have one quotient."""
    e = tir.FloorDiv(ramp(A * 8 + 1, 1, -4), Broadcast(const(8), -4))
    assert rewritten(e) is e
    assert rewritten(tir.FloorDiv(ramp(A, 8, -4), Broadcast(const(4), -4))) is ramp(A // 4, 2, -4)
