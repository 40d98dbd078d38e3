# SPDX-License-Identifier: Apache-2.0
"""Positions that no rule of arithmetic bounds: programs of known sizes are right in every iteration, which is tried, or refused."""

import itertools

import numpy as np
import pytest

import roundel as rd
from roundel.graph.checks.iterations import MOST, always
from roundel.graph.checks.size_checks import size_checks
from roundel.graph.programs.legalize import legalize
from roundel.ir import tir
from roundel.ir.dtype import INT64
from roundel.ir.errors import LowerError
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.script import tir as T

EDGE = 8
POSITIONS = {
    "triangle": (lambda i, j: i * (i + 1) // 2 + j, lambda i, j: j <= i),
    "one of two is 0": (lambda i, j: i + j, lambda i, j: i * j < 1),
    "products": (lambda i, j: (i * 5 + j * 3) * (i + j) % 61, lambda i, j: i >= 0),
    "differences": (lambda i, j: i * i - j * j, lambda i, j: j <= i),
    "a quotient of products": (lambda i, j: (i * i * i - 3 * i * j + 17) // (j + 1), lambda i, j: j <= 1),
    "negative": (lambda i, j: i * i - j * j - 1, lambda i, j: j <= i),
}


def scattered(position, condition, size):
    """A program that writes one element in each iteration in which the condition holds."""
    @I.ir_module
    class Scattered:
        @T.prim_func
        def scatter(A: T.Buffer((EDGE, EDGE), "float32"), B: T.Buffer((size,), "float32")):
            for i, j in T.grid(EDGE, EDGE):
                with T.block("scatter"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    if condition(vi, vj):
                        B[position(vi, vj)] = A[vi, vj]

        @R.function
        def main(x: R.Tensor((EDGE, EDGE), "float32")):
            with R.dataflow():
                z = R.call_tir(Scattered.scatter, (x,), R.Tensor((size,), "float32"))
                R.output(z)
            return z

    return Scattered


@pytest.mark.parametrize("kind", POSITIONS)
def test_the_least_size_that_holds_all_positions_is_accepted_and_no_smaller_one(kind):
    position, condition = POSITIONS[kind]
    places = [position(i, j) for i, j in itertools.product(range(EDGE), repeat=2) if condition(i, j)]
    least = max(places) + 1
    with pytest.raises(LowerError, match="dimension 0 of B"):
        size_checks(legalize(scattered(position, condition, least - 1)))
    if min(places) >= 0:
        size_checks(legalize(scattered(position, condition, least)))
    else:
        with pytest.raises(LowerError, match="an access outside of dimension 0 of B cannot be excluded|dimension 0 of B"):
            size_checks(legalize(scattered(position, condition, 1000)))


def test_what_is_accepted_runs():
    position, condition = POSITIONS["triangle"]
    x = np.arange(EDGE * EDGE, dtype=np.float32).reshape(EDGE, EDGE)
    np.testing.assert_array_equal(rd.compile(scattered(position, condition, 36))(x), x[np.tril_indices(EDGE)])


I0, J0 = tir.Var("i", INT64), tir.Var("j", INT64)


def test_loops_of_other_lengths_and_too_many_iterations_are_not_tried():
    loop = lambda n: (I0, tir.Range(tir.index_const(0), tir.as_index(n)))
    assert always(I0 * I0 < 50, [loop(8)])
    assert not always(I0 * I0 < 49, [loop(8)])
    assert always(I0 * I0 < 49, [loop(8), tir.ne(I0, 7)])
    assert not always(I0 < MOST + 1, [loop(MOST + 1)])
    assert not always(I0 * I0 < 50, [loop(tir.Var("n", INT64, True))])
    assert not always(I0 < J0, [loop(8)])


def test_what_variables_are_and_lengths_that_follow_from_outer_loops():
    inner = (J0, tir.Range(tir.index_const(0), I0 + 1))
    outer = (I0, tir.Range(tir.index_const(2), tir.index_const(3)))
    k = tir.Var("k", INT64)
    assert always(k < 9, [outer, inner, (k, I0 + J0)])
    assert not always(k < 8, [outer, inner, (k, I0 + J0)])


def test_a_division_by_zero_in_an_iteration_is_no_proof():
    assert not always(tir.floordiv(tir.index_const(8), I0) < 9, [(I0, tir.Range(tir.index_const(0), tir.index_const(4)))])
