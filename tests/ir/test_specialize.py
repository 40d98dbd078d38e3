# SPDX-License-Identifier: Apache-2.0
"""Programs for given sizes, and programs with variables of their own."""

from __future__ import annotations

import pytest

from roundel.ir import assert_structural_equal, structural_equal, tir, walk
from roundel.ir.errors import BuildError
from roundel.ir.specialize import renew_defs
from roundel.script import parse

COPY = parse('''
@T.prim_func
def f(a: T.handle, B: T.Buffer((64,), "float32"), n: T.int64, s: T.int64):
    A = T.match_buffer(a, (n, 8), "float32", strides=(s, 1))
    C = T.alloc_buffer((n,), "float32")
    for i in range(n // 2):
        with T.block("b"):
            vi = T.axis.spatial(n // 2, i)
            C[vi] = A[vi, (n + 1) % 8]
    for i in range(n):
        B[i] = C[i]
''')
A, B, N, S = COPY.params


def test_nothing_given_changes_nothing():
    assert COPY.specialize({}) is COPY and COPY.specialize({N: N}) is COPY


def test_a_size_is_put_in_everywhere_and_computed_with():
    text = COPY.specialize({N: 16}).script()
    assert "n" not in [p.name for p in COPY.specialize({N: 16}).params]
    assert "(16, 8)" in text and "range(8)" in text and "A[vi, 1]" in text and "alloc_buffer((16,)" in text


def test_a_buffer_gives_shape_strides_and_pointer():
    given = tir.decl_buffer((16, 8), strides=(8, 1))
    made = COPY.specialize({A: given})
    assert [p.name for p in made.params] == ["a", "B"] and made.buffer_params[0].data is given.data
    assert structural_equal(made, COPY.specialize({N: 16, S: 8}))


def test_what_does_not_fit_is_refused():
    for given, why in [
        ({A: tir.decl_buffer((16, 9), strides=(9, 1))}, "dimension 1 of buffer A is 8"),
        ({A: tir.decl_buffer((16,))}, "2 dimensions"),
        ({A: tir.decl_buffer((16, 8), "int32")}, "of float32"),
        ({A: 3}, "is a buffer"),
        ({tir.Var("q", N.dtype): 3}, "no parameter"),
        ({A: tir.decl_buffer((16, 8), strides=(8, 1)), N: 17}, "is 17 and 16|is 16 and 17"),
    ]:
        with pytest.raises(BuildError, match=why):
            COPY.specialize(given)


def test_renewed_definitions_are_equal_and_shared_by_nobody():
    made = renew_defs(COPY)
    assert_structural_equal(made, COPY)

    def own(func):
        buffers = set(func.buffer_params) | {b for n in walk(func.body) if isinstance(n, tir.Block) for b in n.alloc_buffers}
        return {*func.params, *buffers, *(b.data for b in buffers), *(n for n in walk(func.body) if type(n) is tir.Var)}

    assert not own(made) & own(COPY)
