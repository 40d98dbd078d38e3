# SPDX-License-Identifier: Apache-2.0
"""Systems of inequalities: ranges and relations hold the same points as before."""

import numpy as np
from arith_brute import as_range, evaluate, grid
from hypothesis import given, settings
from hypothesis import strategies as st

from roundel.arith import deskew_ranges, solve_linear_inequalities
from roundel.ir import tir
from roundel.ir.dtype import INT64
from roundel.ir.tir import Var, const

X, Y, Z = VARS = tuple(Var(n, INT64) for n in "xyz")
SPAN = range(-5, 6)
ENV = grid(dict.fromkeys(VARS, SPAN))
_numbers = st.integers(-4, 4)
_relation = st.builds(
    lambda k, c, op: op(tir.sum_of([v * n for v, n in zip(VARS, k, strict=True)]) + c, const(0)),
    st.tuples(_numbers, _numbers, _numbers),
    st.integers(-8, 8),
    st.sampled_from([tir.LE, tir.LT, tir.GE, tir.GT, tir.EQ]),
)


def values(e, env):
    return np.broadcast_to(evaluate(e, env), len(next(iter(env.values()))))


def holds(relations, ranges, env):
    out = np.ones(len(next(iter(env.values()))), dtype=bool)
    for r in relations:
        out &= values(r, env).astype(bool)
    for v, r in ranges.items():
        low = values(r.min, env)
        out &= (env[v] >= low) & (env[v] < low + values(r.extent, env))
    return out


@settings(max_examples=150, deadline=None)
@given(st.lists(_relation, min_size=1, max_size=4))
def test_ranges_and_relations_hold_the_same_points(relations):
    ranges = {v: as_range(SPAN) for v in VARS}
    inside = holds(relations, ranges, ENV)
    found = solve_linear_inequalities(relations, VARS, ranges)
    if not found.variables:
        assert not inside.any()
        return
    assert np.array_equal(holds(found.relations, found.ranges, ENV), inside)
    moved = deskew_ranges(found)
    if not moved.src_to_dst:
        assert not inside.any()
        return
    there = {p: values(e, ENV)[inside] for p, e in moved.dst_to_src.items()}
    if there and inside.any():
        assert holds(moved.dst.relations, moved.dst.ranges, there).all()
        for v in VARS:
            assert np.array_equal(np.broadcast_to(evaluate(moved.src_to_dst[v], there), int(inside.sum())), ENV[v][inside])


def test_a_triangle():
    found = solve_linear_inequalities([X >= Y, X + Y <= 9, Y >= 2], [X, Y])
    assert (found.ranges[Y].min.value, found.ranges[Y].extent.value) == (2, 3)
    assert found.ranges[X].min is Y
    assert found.ranges[X].extent.value == 6
    assert found.relations == (X + Y < 10,)


def test_a_point_has_no_variables_left():
    found = solve_linear_inequalities([X + Y >= 11, X - Y >= 1, X <= 6], [X, Y])
    moved = deskew_ranges(found)
    assert moved.dst.variables == ()
    assert moved.src_to_dst == {X: const(6), Y: const(5)}


def test_no_solution():
    found = solve_linear_inequalities([X > Y, Y > X], [X, Y])
    assert found.variables == () and found.relations == (const(False),)
    assert deskew_ranges(found).dst.relations == (const(False),)


def test_what_is_not_linear_is_kept():
    found = solve_linear_inequalities([X <= 4, X >= 4, X >= Y * Z], [X, Y, Z])
    assert found.ranges[X].extent.value == 1
    assert found.relations == (Y * Z < 5,)


def test_an_open_end_has_no_range():
    found = solve_linear_inequalities([X > 3], [X])
    assert not found.ranges and found.relations == (const(4) <= X,)
