# SPDX-License-Identifier: Apache-2.0
"""Simplification, bounds, remainders and proofs against evaluation at all points of a small domain."""

import numpy as np
from arith_brute import ENV, SIZE, bind_all, conditions, evaluate, indices
from hypothesis import given, settings

from roundel.arith import Analyzer
from roundel.ir import tir

FAST = settings(max_examples=300, deadline=None)


def analyzer() -> Analyzer:
    an = Analyzer()
    bind_all(an)
    return an


@FAST
@given(indices)
def test_index_expressions_keep_their_values(e):
    an = analyzer()
    new = an.simplify(e)
    assert np.array_equal(np.broadcast_to(evaluate(e, ENV), 1728), np.broadcast_to(evaluate(new, ENV), 1728)), (e, new)


@FAST
@given(indices)
def test_simplified_is_stable(e):
    once = analyzer().simplify(e)
    twice = analyzer().simplify(once)
    assert twice is once or analyzer().simplify(twice) is twice


@FAST
@given(indices)
def test_bounds_and_remainders_hold(e):
    an = analyzer()
    values = np.broadcast_to(evaluate(e, ENV), 1728)
    low, high = an.bounds(e)
    assert low <= values.min() and values.max() <= high
    coeff, base = an.modular(e)
    assert np.all((values - base) % coeff == 0) if coeff else np.all(values == base)


@FAST
@given(conditions)
def test_conditions_keep_their_values(c):
    new = analyzer().simplify(c)
    assert np.array_equal(
        np.broadcast_to(evaluate(c, ENV), 1728).astype(bool), np.broadcast_to(evaluate(new, ENV), 1728).astype(bool)
    ), (c, new)


@FAST
@given(conditions)
def test_what_is_proved_holds(c):
    an = analyzer()
    if an.prove(c):
        assert np.all(evaluate(c, ENV))
    if an.prove(tir.Not(c)):
        assert not np.any(evaluate(c, ENV))


@FAST
@given(conditions, indices, conditions)
def test_under_a_constraint(given_condition, e, c):
    an = analyzer()
    holds = np.broadcast_to(evaluate(given_condition, ENV), 1728).astype(bool)
    env = {v: a[holds] for v, a in ENV.items()}
    count = int(holds.sum())
    if not count:
        return
    with an.constraint(given_condition):
        new, decided = an.simplify(e), an.simplify(c)
        low, high = an.bounds(e)
    values = np.broadcast_to(evaluate(e, env), count)
    assert np.array_equal(values, np.broadcast_to(evaluate(new, env), count)), (given_condition, e, new)
    assert low <= values.min() and values.max() <= high
    assert np.array_equal(
        np.broadcast_to(evaluate(c, env), count).astype(bool),
        np.broadcast_to(evaluate(decided, env), count).astype(bool),
    )


def test_quotients_of_a_size_that_is_not_known():
    """``n * (c // n)`` is not 0, nor c (this was a bug)."""
    n = ENV[SIZE][ENV[SIZE] > 0]
    for c in (1, 4, 47):
        quotient = tir.floordiv(tir.index_const(c), SIZE)
        for e in (quotient * SIZE + SIZE, (quotient + 1) * SIZE * 3 - SIZE):
            assert np.array_equal(evaluate(analyzer().simplify(e), {SIZE: n}), evaluate(e, {SIZE: n}))


def test_quotients_by_zero_stay():
    """Where an extent is 0 nothing runs, but its program is simplified all the same."""
    for rule in (tir.floordiv, tir.floormod):
        inner = rule(SIZE, tir.index_const(0))
        for e in (inner, rule(inner, tir.index_const(2)), rule(inner + 3, tir.index_const(2))):
            assert analyzer().simplify(e) is analyzer().simplify(analyzer().simplify(e))


def test_remainders_by_zero_are_not_joined():
    """``4 * (n // 4 % 0) + n % 4`` (this was a bug)."""
    outer = tir.floormod(tir.floordiv(SIZE, tir.index_const(4)), tir.index_const(0))
    e = outer * 4 + tir.floormod(SIZE, tir.index_const(4))
    assert analyzer().simplify(e) is analyzer().simplify(analyzer().simplify(e))
