# SPDX-License-Identifier: Apache-2.0
"""Maps that ``detect_iter_map(surjective=True)`` accepts take every combination of values that it tells of."""

import itertools

import numpy as np
import pytest
from arith_brute import as_range, evaluate, grid
from hypothesis import given, settings
from hypothesis import strategies as st

from roundel.arith import detect_iter_map, iter_map_simplify
from roundel.arith.analyzer import Analyzer
from roundel.ir import tir
from roundel.ir.dtype import INT64, DType
from roundel.ir.errors import ArithError
from roundel.ir.tir import Range, Var

X, Y = Var("x", INT64), Var("y", INT64)


def taken(indices, extents):
    """The values that the indices take together."""
    env = grid({v: range(n) for v, n in extents.items()})
    columns = [evaluate(e, env) + 0 * env[X] for e in indices]
    return set(zip(*(c.tolist() for c in columns), strict=True))


def told(found):
    """The values that the map is said to take."""
    an = Analyzer()
    axes = []
    for s in found.indices:
        base = an.value(s.base)
        n, step = (an.value(s.splits[0].extent), an.value(s.splits[0].scale)) if s.splits else (1, 1)
        axes.append([base + step * k for k in range(n)])
    return set(itertools.product(*axes))


def detect(indices, extents):
    return detect_iter_map(indices, {v: as_range(range(n)) for v, n in extents.items()}, surjective=True)


@pytest.mark.parametrize(
    "indices, extents",
    [
        ([(X + 70) // 24], {X: 100}),
        ([(X + 70) // 24 % 2, (X + 70) % 24], {X: 100}),
        ([X // 7], {X: 30}),
        ([X // 3 % 4, X % 3], {X: 13}),
        ([X * 5 + Y], {X: 4, Y: 6}),
        ([(X + 5) % 4, (X + 5) // 4 % 3], {X: 40}),
    ],
)
def test_padded_and_overlapping_maps_are_onto(indices, extents):
    assert told(detect(indices, extents)) == taken(indices, extents)


@pytest.mark.parametrize(
    "indices, extents",
    [
        ([(X + 70) // 24, (X + 70) % 24], {X: 100}),
        ([X // 7, X % 7], {X: 30}),
        ([X * 5 + Y], {X: 4, Y: 4}),
        ([X * 9 + Y * 4], {X: 3, Y: 3}),
        ([X // 3, X % 4], {X: 30}),
        ([X, X % 3], {X: 30}),
        ([(X + 1) % 2, ((X + 1) // 2 + 1) // 2], {X: 2}),
    ],
)
def test_maps_that_leave_values_out_are_refused(indices, extents):
    with pytest.raises(ArithError):
        detect(indices, extents)


_offset, _divisor, _extent = st.integers(0, 40), st.integers(2, 9), st.integers(2, 60)
_whole = st.builds(lambda b: X + b, _offset)
_part = st.builds(lambda x, c: x // c, _whole, _divisor)
_index = st.one_of(
    _part,
    st.builds(lambda x, c: x % c, st.one_of(_whole, _part), _divisor),
    st.builds(lambda x, b, c: (x + b) // c, _part, _offset, _divisor),
    st.builds(lambda k, b: X * k + Y + b, st.integers(1, 9), _offset),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(_index, min_size=1, max_size=3), _extent, st.integers(1, 9))
def test_every_map_that_is_accepted_is_onto(indices, n, m):
    extents = {X: n, Y: m}
    try:
        found = detect(indices, extents)
    except ArithError:
        return
    assert told(found) == taken(indices, extents), found


def test_parts_of_symbolic_iterators_join():
    n = Var("n", INT64, True)
    dom = {X: Range(tir.index_const(0), n * n * 6)}
    (e,) = iter_map_simplify([X // (n * n) % 6 * (n * n) + X // n % n * n + X % n], dom)
    assert e is X


def test_indices_that_are_no_map_are_simplified_alone():
    (e,) = iter_map_simplify([X * X + Y - Y], {X: as_range(range(4)), Y: as_range(range(4))})
    assert e is X * X


def test_domains_of_narrow_integers():
    """Extents and divisors of int32 (dividing by a symbol of int32 did not end)."""
    x, n, m = (Var(name, DType("int32"), name != "x") for name in "xnm")
    found = detect_iter_map([x // n, x % n], {x: Range(tir.const(0, "int32"), m * n)})
    assert [Analyzer().prove_equal(a, b) for a, b in zip(found.extents(), (m, n), strict=True)] == [True, True]


Z = Var("z", INT64)


@pytest.mark.parametrize(
    "index, extents, conditions, expected",
    [
        (X * 7 + Y * 2 + Z, {X: 9, Y: 4, Z: 2}, [Y * 2 + Z >= 1], range(1, 64)),
        (X * 7 + Y * 2 + Z, {X: 9, Y: 4, Z: 2}, [Y * 2 + Z >= 1, X * 7 + Y * 2 + Z >= 5, X * 7 + Y * 2 + Z < 31], range(5, 31)),
        (X * 5 + Y, {X: 9, Y: 7}, [Y >= 1, Y < 6], range(1, 46)),
        (X * 5 + Y, {X: 9, Y: 7}, [Y >= 1, Y < 6, X * 5 + Y < 17], range(1, 17)),
    ],
)
def test_conditions_on_iterators_and_on_what_they_are_part_of(index, extents, conditions, expected):
    dom = {v: as_range(range(n)) for v, n in extents.items()}
    (s,) = detect_iter_map([index], dom, tir.logical_and(*conditions)).indices
    an = Analyzer()
    first = an.value(s.base)
    assert range(first, first + an.value(s.splits[0].extent)) == expected
    env = grid({v: range(n) for v, n in extents.items()})
    holds = np.logical_and.reduce([evaluate(c, env) for c in conditions])
    assert sorted(evaluate(index, env)[holds].tolist()) == list(expected)
