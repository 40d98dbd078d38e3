# SPDX-License-Identifier: Apache-2.0
"""Affine iteration maps: what is detected is true of all points, and what splits and fuses make is detected."""

from itertools import product
from random import Random

import numpy as np
import pytest
from arith_brute import as_range, evaluate, grid
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from roundel.arith import (
    Analyzer,
    detect_iter_map,
    estimate_region,
    estimate_region_lower,
    inverse_affine_iter_map,
    inverse_index_map,
    map_shape,
    normalize_to_iter_sum,
    same_region,
    subspace_divide,
)
from roundel.ir import substitute, tir
from roundel.ir.dtype import INT64
from roundel.ir.errors import ArithError
from roundel.ir.tir import IndexMap, Range, Var

I, J, K = (Var(name, INT64) for name in "ijk")
N, M = Var("n", INT64, True), Var("m", INT64, True)
FAST = settings(max_examples=150, deadline=None)


def columns(exprs, env):
    size = len(next(iter(env.values())))
    return np.stack([np.broadcast_to(evaluate(e, env), size) for e in exprs])


@st.composite
def built(draw):
    """Indices made of three iterators by fusing and splitting, which are bijective by construction.

    Simplified indices must be recognised when extents are powers of two: where factors such as 6 and 9 meet, the
    simplifier may take apart what the splits have in common.
    """
    simplified = draw(st.booleans())
    extents = draw(st.tuples(*[st.sampled_from([1, 2, 4, 8] if simplified else [1, 2, 3, 4, 6]) for _ in range(3)]))
    starts = draw(st.tuples(*[st.sampled_from([0, 0, 0, 2, -1]) for _ in range(3)]))
    dom = {v: range(s, s + n) for v, s, n in zip((I, J, K), starts, extents, strict=True)}
    items = [(v - s, n) for v, s, n in zip((I, J, K), starts, extents, strict=True)]
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()) and len(items) > 1:
            a, b = draw(st.permutations(items))[:2]
            items = [x for x in items if x is not a and x is not b] + [(a[0] * b[1] + b[0], a[1] * b[1])]
        else:
            e, n = a = draw(st.sampled_from(items))
            f = draw(st.sampled_from([f for f in range(1, n + 1) if n % f == 0]))
            items = [x for x in items if x is not a] + [(tir.floordiv(e, f), n // f), (tir.floormod(e, f), f)]
    return dom, items, simplified


@FAST
@given(built())
def test_splits_and_fuses_are_detected(made):
    dom, items, simplified = made
    exprs = [e for e, _ in items]
    ranges = {v: as_range(r) for v, r in dom.items()}
    an = Analyzer(ranges)
    if simplified:
        exprs = [an.simplify(e) for e in exprs]
    found = detect_iter_map(exprs, ranges, check_bijective=True)
    assert [an.value(n) for n in found.extents()] == [n for _, n in items]
    env = grid(dom)
    values = columns(exprs, env)
    assert np.array_equal(values, columns(found.exprs(), env))
    outputs = [Var(f"o{k}", INT64) for k in range(len(exprs))]
    back = inverse_affine_iter_map(found, outputs)
    given_back = {o: values[k] for k, o in enumerate(outputs)}
    for v in dom:
        if len(dom[v]) > 1:
            assert np.array_equal(np.broadcast_to(evaluate(back[v], given_back), len(env[v])), env[v])


_atoms = st.one_of(st.sampled_from([I, J, K]), st.integers(0, 5).map(tir.index_const))
_any = st.recursive(
    _atoms,
    lambda e: st.one_of(
        st.builds(lambda a, b: a + b, e, e),
        st.builds(lambda a, k: a * k, e, st.sampled_from([2, 3, 4, 6, 12])),
        st.builds(tir.floordiv, e, st.sampled_from([2, 3, 4])),
        st.builds(tir.floormod, e, st.sampled_from([2, 3, 4])),
    ),
    max_leaves=4,
)
_limits = st.one_of(
    st.just(True),
    st.builds(
        lambda a, k: tir.lt(a, k), st.sampled_from([I, I * 4 + J, J * 3 + K, I * 12 + J * 3 + K]), st.integers(1, 30)
    ),
    st.builds(lambda a, k: tir.ge(a, k), st.sampled_from([I, I * 4 + J, J * 3 + K]), st.integers(0, 6)),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(_any, min_size=1, max_size=3), _limits, st.booleans())
def test_what_is_detected_is_true(exprs, limit, bijective):
    dom = {I: range(6), J: range(4), K: range(3)}
    env = grid(dom)
    if limit is not True:
        keep = np.broadcast_to(evaluate(limit, env), len(env[I])).astype(bool)
        assume(keep.any())
        env = {v: a[keep] for v, a in env.items()}
    try:
        found = detect_iter_map(exprs, {v: as_range(r) for v, r in dom.items()}, limit, check_bijective=bijective)
    except ArithError:
        return
    values = columns(exprs, env)
    assert np.array_equal(values, columns(found.exprs(), env))
    an = Analyzer()
    distinct = {tuple(c) for c in values.T}
    assert len(distinct) == np.prod([an.value(n) for n in found.extents()])
    if bijective:
        assert len(distinct) == values.shape[1]
    lower = estimate_region_lower(
        [Range(e, tir.index_const(1)) for e in exprs], {v: as_range(r) for v, r in dom.items()}, limit
    )
    if lower is not None:
        box = [range(an.value(r.min), an.value(r.min) + an.value(r.extent)) for r in lower]
        assert len(distinct) == np.prod([len(b) for b in box]) and all(
            all(x in b for x, b in zip(c, box, strict=True)) for c in distinct
        )


def test_symbolic_extents():
    an = Analyzer()
    dom = {I: Range.of(N), J: Range.of(M)}
    found = detect_iter_map([I * M + J], dom, check_bijective=True)
    assert an.prove_equal(found.extents()[0], N * M)
    assert len(detect_iter_map([I // M, I % M], {I: Range.of(N * M)}, check_bijective=True).indices) == 2
    tiles = {I: Range.of(tir.ceildiv(N, 16)), J: Range.of(16)}
    found = detect_iter_map([I * 16 + J], tiles, I * 16 + J < N, check_bijective=True)
    assert an.prove_equal(found.extents()[0], N)


def test_simplified_divisions_of_a_bounded_iterator():
    an = Analyzer({I: Range.of(7), J: Range.of(16)})
    f = I * 16 + J
    for limit in (f < 100, tir.logical_and(f < 104, f >= 8)):
        found = detect_iter_map(
            [an.simplify(f // 4), an.simplify(f % 4)], {I: Range.of(7), J: Range.of(16)}, limit, check_bijective=True
        )
        assert [an.value(n) for n in found.extents()] == [25 if limit is (f < 100) else 24, 4]
    with pytest.raises(ArithError):
        detect_iter_map(
            [an.simplify(f // 4), an.simplify(f % 4)], {I: Range.of(7), J: Range.of(16)}, f < 101, check_bijective=True
        )


@pytest.mark.parametrize(
    "indices, bijective",
    [([I + J], False), ([I * 2 + K], False), ([I, I], False), ([I * J], False), ([I], True), ([I // 2, J, K], True)],
)
def test_what_is_no_map_is_refused(indices, bijective):
    with pytest.raises(ArithError, match="not an affine iteration map"):
        detect_iter_map(indices, {I: Range.of(8), J: Range.of(8), K: Range.of(4)}, check_bijective=bijective)


@pytest.mark.parametrize(
    "fn, shape",
    [
        (lambda a, b, c, d: (a, b // 4, c, d, b % 4), (1, 8, 3, 5)),
        (lambda a, b: (a * 8 + b // 4, b % 4), (4, 32)),
        (lambda a: (a // 4, a % 4), (10,)),
        (lambda a: ((a + 3) // 4, (a + 3) % 4), (10,)),
        (lambda a, b: (b, a), (3, 4)),
        (lambda a, b: (a // 4, b // 8, a % 4, b % 8), (10, 13)),
        (lambda a, b: (a * 5 + b,), (4, 5)),
        (lambda a: (a // 6, a // 2 % 3, a % 2), (17,)),
        (lambda a, b: (a, b), (1, 1)),
        (lambda a, b, c: ((a * 36 + b) // 24, c // 63, (a * 36 + b) % 24 // 8, c % 63 // 21, c % 21 // 3, (a * 36 + b) % 8, c % 3), (5, 36, 49)),
    ],
)
def test_inverse_of_an_index_map(fn, shape):
    index_map = IndexMap.from_func(fn)
    inverse, padding = inverse_index_map(index_map, shape)
    an = Analyzer()
    final = [an.value(n) for n in map_shape(index_map, shape)]
    start = grid({v: range(n) for v, n in zip(index_map.initial_indices, shape, strict=True)})
    there = columns(index_map.final_indices, start)
    back = columns(inverse.final_indices, dict(zip(inverse.initial_indices, there, strict=True)))
    assert np.array_equal(back, np.stack(list(start.values())))
    every = grid({v: range(n) for v, n in zip(inverse.initial_indices, final, strict=True)})
    padded = np.broadcast_to(evaluate(padding, every), len(next(iter(every.values())))).astype(bool)
    assert {tuple(c) for c in there.T} == {tuple(c) for c in np.stack(list(every.values()))[:, ~padded].T}


def test_an_index_map_that_loses_indices_has_no_inverse():
    for fn in (lambda a: (a // 2,), lambda a: (a % 2,), lambda a: (0 * a,)):
        with pytest.raises(ArithError):
            inverse_index_map(IndexMap.from_func(fn), (8,))


def test_symbolic_shapes_of_index_maps():
    index_map = IndexMap.from_func(lambda a, b: (a // 16, b, a % 16))
    inverse, padding = inverse_index_map(index_map, (N, M))
    an = Analyzer()
    assert [
        an.prove_equal(a, b) for a, b in zip(map_shape(index_map, (N, M)), (tir.ceildiv(N, 16), M, 16), strict=True)
    ] == [True] * 3
    o, _, q = inverse.initial_indices
    assert an.prove_equal(inverse.final_indices[0], o * 16 + q)
    assert an.simplify(padding) is an.simplify(tir.ge(o * 16 + q, N))


@pytest.mark.parametrize(
    "bindings, inner, predicate",
    [
        ([I * 16 + J, K], [J], True),
        ([I * 16 + J, K], [J, K], True),
        ([(I * 16 + J) // 4, (I * 16 + J) % 4], [J], True),
        ([I * 64 + J * 4 + K], [J, K], True),
        ([I * 64 + J * 4 + K], [K], True),
        ([I * 16 + J], [J], I * 16 + J < 100),
        ([I, J + 1, K], [J], True),
        ([K, J, I], [], True),
    ],
)
def test_subspaces(bindings, inner, predicate):
    dom = {I: range(8), J: range(16), K: range(4)}
    got = subspace_divide(bindings, {v: as_range(r) for v, r in dom.items()}, inner, predicate)
    env = grid(dom)
    an = Analyzer()
    for e, d in zip(bindings, got.bindings, strict=True):
        inner_extent, outer_extent = an.value(d.inner_extent), an.value(d.outer_extent)
        outer, part = columns([d.outer, d.inner], env)
        assert np.array_equal(outer * inner_extent + part, columns([e], env)[0])
        assert part.max() - part.min() < inner_extent and outer.max() - outer.min() < outer_extent
        fixed = {v: a if v in inner else np.zeros_like(a) for v, a in env.items()}
        assert np.array_equal(columns([d.inner], fixed)[0], part)
        fixed = {v: np.zeros_like(a) if v in inner else a for v, a in env.items()}
        assert np.array_equal(columns([d.outer], fixed)[0], outer)


def test_what_a_condition_leaves_needs_no_remainder():
    """Of 8 * 3 tiles, 20 exist: where the condition holds, the number of a tile is what it is."""
    dom = {I: Range.of(8), J: Range.of(3), K: Range.of(16)}
    got = subspace_divide([I * 48 + J * 16 + K], dom, [K], I * 3 + J < 20)
    assert Analyzer().prove_equal(got.bindings[0].outer, I * 3 + J)


def test_subspace_that_is_no_tile():
    with pytest.raises(ArithError, match="faster"):
        subspace_divide([I * 16 + J], {I: Range.of(8), J: Range.of(16)}, [I])


def test_covered_regions_are_exact():
    dom = {I: Range.of(8), J: Range.of(16)}
    region = [Range(I * 4, tir.index_const(4)), Range(J, tir.index_const(1))]
    assert same_region(estimate_region_lower(region, dom), estimate_region(region, dom))
    assert estimate_region_lower([Range(I * 4, tir.index_const(3))], dom) is None


def test_an_index_as_a_sum_of_parts():
    n, a = Var("n", INT64, True), Var("a", INT64, True)
    dom = {I: as_range(range(9)), J: as_range(range(4)), K: as_range(range(3))}
    found = normalize_to_iter_sum(K + (J + I * 4 + 2) * n + tir.max_(a, K) + 3, dom)
    assert [p.mark.source for p in found.splits] == [I, J, K]
    an = Analyzer()
    assert all(an.prove_equal(p.scale, s) for p, s in zip(found.splits, (n * 4, n, 1), strict=True))
    assert an.prove_equal(found.base, n * 2 + tir.max_(a, K) + 3)
    (whole,) = normalize_to_iter_sum(I // 3 * 3 + I % 3, dom).splits
    assert whole.mark.source is I and an.value(whole.extent) == 9


@pytest.mark.parametrize("seed", range(6))
def test_divided_bindings_are_what_they_were(seed):
    """A binding is ``outer * inner_extent + inner`` wherever the condition holds: all values tried."""
    random = Random(seed)
    divided = 0
    for _ in range(150):
        loops = {Var(n, INT64): random.choice((2, 3, 4)) for n in "ijk"[: random.choice((2, 3))]}
        variables = list(loops)
        inner = variables[random.randrange(1, len(variables)) :]
        cut, limit = random.randrange(len(variables)), random.randrange(1, 13)
        tail, step = variables[cut:], 1
        scales: dict = {}
        for v in reversed(variables):
            step = limit if cut and v is variables[cut - 1] else step  # the loops above begin where the condition cuts those below
            scales[v], step = step, step * loops[v]
        binding = tir.sum_of([v * s for v, s in scales.items()])
        condition = random.choice((tir.const(True), tir.sum_of([v * s for v, s in scales.items() if v in tail]) < limit))
        try:
            found = subspace_divide([binding], {v: Range.of(tir.index_const(n)) for v, n in loops.items()}, inner, condition)
        except ArithError:
            continue
        divided += 1
        (d,) = found.bindings
        for at in product(*(range(n) for n in loops.values())):
            table = {v: tir.index_const(k) for v, k in zip(variables, at)}
            holds, again, was = (Analyzer().simplify(substitute(e, table)).value for e in (condition, d.outer * d.inner_extent + d.inner, binding))
            assert not holds or again == was, (binding, condition, at)
    assert divided
