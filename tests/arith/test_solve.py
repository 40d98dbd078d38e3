# SPDX-License-Identifier: Apache-2.0
"""Systems of linear equations: both forms of a solution hold the same points."""

import itertools

import numpy as np
from arith_brute import as_range, evaluate, grid
from hypothesis import given, settings
from hypothesis import strategies as st

from roundel.arith import IntConstraints, smith_normal_form, solve_linear_equations
from roundel.ir import tir
from roundel.ir.dtype import INT64, DType
from roundel.ir.tir import Var, const

X, Y, Z = VARS = tuple(Var(n, INT64) for n in "xyz")
SPAN = range(-4, 5)
_numbers = st.integers(-4, 4)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_the_normal_form(rows, columns, data):
    a = data.draw(st.lists(st.lists(_numbers, min_size=columns, max_size=columns), min_size=rows, max_size=rows))
    u, d, v, back = (np.array(m) for m in smith_normal_form(a))
    assert np.array_equal(u @ np.array(a) @ v, d)
    assert np.array_equal(v @ back, np.eye(columns, dtype=int))
    assert abs(round(np.linalg.det(u))) == 1
    diagonal = np.diag(d).tolist()
    assert np.count_nonzero(d) == np.count_nonzero(diagonal)
    assert all(x >= 0 for x in diagonal) and diagonal == sorted(diagonal, key=lambda x: x == 0)


def holds(constraints, env):
    """Where all relations and ranges hold."""
    out = np.ones(len(next(iter(env.values()))), dtype=bool)
    for r in constraints.relations:
        out &= np.broadcast_to(evaluate(r, env), out.shape).astype(bool)
    for v, r in constraints.ranges.items():
        out &= (env[v] >= r.min.value) & (env[v] < r.min.value + r.extent.value)
    return out


_equation = st.builds(
    lambda k, c, op: op(tir.sum_of([v * n for v, n in zip(VARS, k, strict=True)]) + c, const(0)),
    st.tuples(_numbers, _numbers, _numbers),
    _numbers,
    st.sampled_from([tir.EQ, tir.EQ, tir.EQ, tir.LE]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_equation, min_size=1, max_size=4))
def test_both_forms_hold_the_same_points(equations):
    ranges = {v: as_range(SPAN) for v in VARS}
    found = solve_linear_equations(equations, VARS, ranges)
    env = grid(dict.fromkeys(VARS, SPAN))
    inside = holds(IntConstraints(VARS, ranges, tuple(equations)), env)
    points = set(zip(*(env[v][inside].tolist() for v in VARS), strict=True))
    if not found.src_to_dst:
        assert not points
        return
    new = found.dst.variables
    count = int(inside.sum())
    if count:  # each solution has its new variables, which lead back to it
        there = {p: np.broadcast_to(evaluate(found.dst_to_src[p], {v: env[v][inside] for v in VARS}), count) for p in new}
        if new:
            assert holds(found.dst, there).all()
        for v in VARS:
            assert np.array_equal(np.broadcast_to(evaluate(found.src_to_dst[v], there), count), env[v][inside])
    if new:  # and what the new form holds is a solution
        wide = grid(dict.fromkeys(new, range(-9, 10)))
        kept = holds(found.dst, wide)
        back = {v: np.broadcast_to(evaluate(found.src_to_dst[v], wide), kept.shape)[kept] for v in VARS}
        assert set(zip(*(back[v].tolist() for v in VARS), strict=True)) <= points


def test_a_single_solution_needs_no_variable():
    found = solve_linear_equations([tir.eq(X + Y, 11), tir.eq(X - Y, 3)], [X, Y])
    assert found.dst.variables == ()
    assert found.src_to_dst == {X: const(7), Y: const(4)}


def test_no_solution():
    for equations in ([tir.eq(X * 2, 5)], [tir.eq(X + Y, 1), tir.eq(X + Y, 2)]):
        found = solve_linear_equations(equations, [X, Y])
        assert found.dst.relations == (const(False),)
        assert not found.src_to_dst and not found.dst_to_src


def test_symbols_on_the_right_stay():
    found = solve_linear_equations([tir.eq(X * 3, Z)], [X])
    assert found.dst.relations == (tir.eq(Z % 3, 0),)
    assert found.src_to_dst[X] is Z // 3


def test_ranges_of_new_variables():
    x, y = Var("x", DType("int32")), Var("y", DType("int32"))
    found = solve_linear_equations([tir.eq(x + y, 0)], [x, y], {x: as_range(range(-3, 8)), y: as_range(range(0, 6))})
    (n,) = found.dst.variables
    assert n.dtype is x.dtype
    r = found.dst.ranges[n]
    assert {r.min.value + k for k in range(r.extent.value)} >= set(range(-3, 1))


def test_nothing_to_solve_for():
    equations = (tir.eq(X, Y),)
    found = solve_linear_equations(equations)
    assert found.src is found.dst and found.src.relations == equations


def test_points_of_a_plane():
    found = solve_linear_equations([tir.eq(X * 2 + Y * 3, 1)], [X, Y])
    (n,) = found.dst.variables
    at = [tuple(int(evaluate(found.src_to_dst[v], {n: np.array([k])})[0]) for v in (X, Y)) for k in range(-30, 31)]
    assert all(2 * a + 3 * b == 1 for a, b in at) and len(set(at)) == len(at)
    inside = {(a, b) for a, b in itertools.product(range(-20, 21), repeat=2) if 2 * a + 3 * b == 1}
    assert inside <= set(at)
