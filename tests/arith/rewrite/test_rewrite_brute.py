# SPDX-License-Identifier: Apache-2.0
"""Rewriting against evaluation at all points of a small domain, with and without facts."""

import numpy as np
from arith_brute import ENV, bind_all, conditions, evaluate, indices
from hypothesis import given, settings

from roundel.arith import Analyzer
from roundel.ir.errors import ArithError

FAST = settings(max_examples=300, deadline=None)
POINTS = 1728


def at_all_points(e, env=ENV, count=POINTS):
    return np.broadcast_to(evaluate(e, env), count)


@FAST
@given(indices)
def test_expressions_keep_their_values_whatever_the_variables(e):
    new = Analyzer().rewrite_simplify(e)
    assert np.array_equal(at_all_points(e), at_all_points(new)), (e, new)


@FAST
@given(indices)
def test_expressions_keep_their_values_where_bounds_are_known(e):
    an = Analyzer()
    bind_all(an)
    new = an.rewrite_simplify(e)
    assert np.array_equal(at_all_points(e), at_all_points(new)), (e, new)


@FAST
@given(conditions)
def test_conditions_keep_their_values(c):
    an = Analyzer()
    bind_all(an)
    for new in (Analyzer().rewrite_simplify(c), an.rewrite_simplify(c)):
        assert np.array_equal(at_all_points(c).astype(bool), at_all_points(new).astype(bool)), (c, new)


@FAST
@given(conditions, indices)
def test_under_a_constraint(condition, e):
    an = Analyzer()
    holds = at_all_points(condition).astype(bool)
    env = {v: a[holds] for v, a in ENV.items()}
    with an.constraint(condition):
        try:
            new = an.rewrite_simplify(e)
        except ArithError:  # the condition makes a divisor 0
            return
    count = int(holds.sum())
    assert np.array_equal(at_all_points(e, env, count), at_all_points(new, env, count)), (condition, e, new)
