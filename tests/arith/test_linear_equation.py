# SPDX-License-Identifier: Apache-2.0
"""Linear forms in variables, bounds of conditions, what is deduced of one variable, common subexpressions, touched domains."""

import numpy as np
import pytest
from arith_brute import evaluate, grid
from hypothesis import given, settings
from hypothesis import strategies as st

from roundel.arith import Interval, deduce_bound, detect_clip_bound, detect_common_subexpr, detect_linear_equation, domain_touched
from roundel.arith.analyzer import Analyzer
from roundel.ir import decl_buffer, tir
from roundel.ir.dtype import INT64, DType
from roundel.ir.tir import Var, const

A, B, C = (Var(n, INT64) for n in "abc")


@pytest.mark.parametrize(
    "e, variables, expected",
    [
        (A * 5 - B * 2 + 9, [A], [const(5), const(9) - B * 2]),
        (A * (C + 2) + A * 3 + B, [A, B], [C + 5, const(1), const(0)]),
        (C * 4, [A], [const(0), C * 4]),
        (C * 4, [], [C * 4]),
        ((A + B) * (A - B), [A], None),
        (A // 2 + B, [A], None),
        (A * B, [A, B], None),
    ],
)
def test_linear_equations(e, variables, expected):
    found = detect_linear_equation(e, variables)
    assert (found is None) == (expected is None)
    assert expected is None or all(Analyzer().prove_equal(x, y) for x, y in zip(found, expected, strict=True)), found


def test_a_coefficient_that_the_type_does_not_hold():
    u = Var("u", DType("uint8"))
    assert detect_linear_equation(tir.const(90, "uint8") - u, [u])[0].value == -1


@pytest.mark.parametrize(
    "condition, variables, expected",
    [
        (tir.logical_and(A * 3 < B, A - 4 > 0), [A], [const(5), (B - 1) // 3]),
        (tir.logical_and(tir.min_(A, B) > 6, B <= 9), [A, B], [const(7), None, const(7), const(9)]),
        (tir.eq(A, 4), [A, B], [const(4), const(4), None, None]),
        (tir.logical_and(A < B, A > 0), [A, B], None),
        (tir.ne(A, 3), [A], None),
    ],
)
def test_clip_bounds(condition, variables, expected):
    found = detect_clip_bound(condition, variables)
    assert (found is None) == (expected is None)
    for x, y in zip(found or (), expected or (), strict=True):
        assert (x is None and y is None) or Analyzer().prove_equal(x, y), found


@pytest.mark.parametrize(
    "condition, low, high",
    [
        (A // 6 > 4, 30, None),
        (A // -6 >= 2, None, -12),
        (A * -4 + 3 > 20, None, -5),
        ((A + 5) // 3 // 2 <= 7, None, 42),
        (tir.eq(A * 3, 12), 4, 4),
    ],
)
def test_bounds_of_one_variable(condition, low, high):
    found = deduce_bound(A, condition)
    assert [None if x is None else Analyzer().value(x) for x in (found.min, found.max)] == [low, high]


def test_a_symbolic_coefficient_needs_a_sign():
    assert deduce_bound(A, A * B <= C) is None
    found = deduce_bound(A, A * B <= C, {B: Interval(const(2), const(5))})
    assert found.min is None and found.max is C // B


@pytest.mark.parametrize("condition", [A % 4 < 2, tir.min_(A, 3) < 2, A * A < 9, B < 3, tir.eq(A * 2, 7), tir.ne(A, 2), tir.eq(A * 2, B)])
def test_what_is_not_deduced(condition):
    assert deduce_bound(A, condition) is None


_term = st.builds(lambda k, d: (A // d) * k, st.integers(-5, 5).filter(bool), st.integers(-4, 4).filter(bool))
_comparison = st.builds(
    lambda op, t, m, c: op(t + B * m + c, const(0)),
    st.sampled_from([tir.LT, tir.LE, tir.GT, tir.GE, tir.EQ]),
    _term,
    st.integers(-3, 3),
    st.integers(-20, 20),
)


@settings(max_examples=200, deadline=None)
@given(_comparison)
def test_within_the_interval_the_condition_holds(condition):
    found = deduce_bound(A, condition, {}, {B: Interval(const(-2), const(3))})
    if found is None:
        return
    env = grid({A: range(-60, 61), B: range(-2, 4)})
    inside = np.ones(len(env[A]), dtype=bool)
    if found.min is not None:
        inside &= env[A] >= found.min.value
    if found.max is not None:
        inside &= env[A] <= found.max.value
    assert np.broadcast_to(evaluate(condition, env), inside.shape)[inside].all()


def test_common_subexpressions():
    shared = (A + B) // 3
    assert detect_common_subexpr(shared * C + shared) == {shared: 2}
    assert detect_common_subexpr((A + B) * shared) == {A + B: 2}
    assert detect_common_subexpr(A + A * 3) == {}


def test_the_domain_that_a_statement_touches():
    n = Var("n", INT64, True)
    buffer, other = decl_buffer((n, 64), "float32", "X"), decl_buffer((4,), "float32", "Y")
    loop = tir.For(A, const(0), n, tir.ForKind.SERIAL, tir.BufferStore(buffer, buffer[A - 2, const(7)], (A, const(3))))
    loads, stores, both = (domain_touched(loop, buffer, *which) for which in ((True, False), (False, True), (True, True)))
    an = Analyzer()
    for box, first, extent in ((loads, -2, n), (stores, 0, n), (both, -2, n + 2)):
        assert an.prove_equal(box[0].min, first) and an.prove_equal(box[0].extent, extent)
    assert (both[1].min.value, both[1].extent.value) == (3, 5)
    assert domain_touched(loop, other) is None
