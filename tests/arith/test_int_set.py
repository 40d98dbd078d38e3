# SPDX-License-Identifier: Apache-2.0
"""Symbolic intervals and regions: hand-made cases, and containment of all values by brute force."""

import numpy as np
from arith_brute import DOMAINS, ENV, SIZE, VARS, as_range, evaluate, indices
from hypothesis import given, settings

from roundel.arith import Analyzer, Interval, covers, disjoint, estimate_region, intersect, union, union_lower_bound
from roundel.ir import decl_buffer, tir
from roundel.ir.dtype import INT64
from roundel.ir.tir import Range, Var

I, J, K = VARS
N = SIZE


@settings(max_examples=300, deadline=None)
@given(indices)
def test_all_values_lie_in_the_interval(e):
    an = Analyzer()
    found = an.int_set(e, {v: as_range(r) for v, r in DOMAINS.items() if v in (I, J)})
    an.bind(K, as_range(DOMAINS[K]))
    again = an.int_set(e, {v: as_range(r) for v, r in DOMAINS.items() if v in (I, J)})
    values = evaluate(e, ENV)
    for got in (found, again):
        if got.min is not None:
            assert np.all(evaluate(got.min, ENV) <= values), (e, got.min)
        if got.max is not None:
            assert np.all(values <= evaluate(got.max, ENV)), (e, got.max)


def interval(e, dom, **kw):
    an = Analyzer()
    got = an.int_set(e, dom, **kw)
    return got.min, got.max


def test_symbolic_ends():
    an = Analyzer()
    low, high = interval(I * 4 + J, {I: Range.of(N), J: Range.of(4)})
    assert an.prove_equal(low, 0) and an.prove_equal(high, N * 4 - 1)
    low, high = interval((I * 4 + J) // 4, {J: Range.of(4)})
    assert low is I and high is I
    low, high = interval(I * N + J, {J: Range.of(N)})
    assert an.prove_equal(low, I * N) and an.prove_equal(high, I * N + N - 1)


def test_a_predicate_tightens():
    an = Analyzer()
    dom = {I: Range.of(tir.ceildiv(N, 16)), J: Range.of(16)}
    _, high = interval(I * 16 + J, dom, predicate=I * 16 + J < N)
    assert an.prove_equal(high, N - 1)


def test_dependent_domains():
    an = Analyzer()
    _, high = interval(J, {I: Range.of(8), J: Range(I, tir.index_const(4))})
    assert an.prove_equal(high, 10)


def test_regions():
    m = Var("m", INT64, True)
    buf = decl_buffer((N, m), name="A")
    region = buf[I * 4 : I * 4 + 4, J : J + 1]
    box = estimate_region(region, {I: Range.of(8)})
    an = Analyzer()
    assert an.prove_equal(box[0].min, 0) and an.prove_equal(box[0].extent, 32) and box[1].min is J
    a, b = (Range.of(8),), (Range(tir.index_const(4), tir.index_const(8)),)
    assert an.prove_equal(union(a, b)[0].extent, 12) and an.prove_equal(intersect(a, b)[0].extent, 4)
    assert covers(union(a, b), a) and not covers(a, b)
    assert disjoint((Range(I * 4, tir.index_const(4)),), (Range(I * 4 + 4, tir.index_const(4)),))
    loaded = estimate_region(
        tir.BufferRegion(buf, (Range(decl_buffer((4,), "int64")[I], tir.index_const(1)), Range.of(1))), {I: Range.of(4)}
    )
    assert loaded[0].extent is N


def test_quotients_toward_zero():
    x, n = Var("x", INT64), Var("n", INT64, True)
    an = Analyzer()
    quotient = an.int_set(tir.truncdiv(x, n), {x: Range(tir.index_const(-5), tir.index_const(20))})
    assert an.prove_equal(quotient.min, tir.truncdiv(tir.index_const(-5), n)) and an.prove_equal(quotient.max, tir.truncdiv(tir.index_const(14), n))
    rest = an.int_set(tir.truncmod(x, n), {x: Range(tir.index_const(-5), tir.index_const(20))})
    assert an.prove_equal(rest.min, 1 - n) and an.prove_equal(rest.max, n - 1)
    assert an.int_set(tir.truncmod(x, n), {x: Range(tir.index_const(0), tir.index_const(20))}).min.value == 0


def test_scalable_vectors_are_open():
    ramp = lambda stride: tir.Ramp(tir.index_const(7), tir.index_const(stride), -4)
    up, down = Analyzer().int_set(ramp(2), {}), Analyzer().int_set(ramp(-2), {})
    assert (up.min.value, up.max, down.min, down.max.value) == (7, None, None, 7)


def test_unions_that_hold_for_certain():
    n = Var("n", INT64, True)
    at = lambda low, high: Interval(*(None if e is None else tir.as_index(e) for e in (low, high)))
    an = Analyzer()
    assert union_lower_bound(an, [at(None, 0), at(1, None)]) == Interval(None, None)
    assert union_lower_bound(an, [at(0, 3), at(5, 9)]) == at(0, 3)
    joined = union_lower_bound(an, [at(n, n + 3), at(n + 9, n + 9), at(n + 4, n + 8)])
    assert an.prove_equal(joined.min, n) and an.prove_equal(joined.max, n + 9)
    assert union_lower_bound(an, []) is None
