# SPDX-License-Identifier: Apache-2.0
"""Structural equality: names do not count, what binds a variable does."""

from __future__ import annotations

import pytest

from roundel.ir import structural_equal, structural_hash, tir
from roundel.ir.dtype import INT64
from roundel.ir.equal import StructuralMap
from roundel.script import parse

X, Y = tir.Var("x", INT64), tir.Var("y", INT64)

VIEW = """
@T.prim_func
def f(A: T.Buffer((16,), "float32")):
    {declared}
    with T.block("b"):
        T.reads(A[0:4])
        T.writes(A[0:4])
        S = T.match_buffer(A[0:4], (4,), "float32")
        T.evaluate(T.call_extern("int32", "g", {pointer}))
"""
BOUND_OR_FREE = [  # a program, where the variable that is used is bound in one form and free in the other
    VIEW,
    """
@T.prim_func
def f(A: T.Buffer((16,), "float32")):
    {declared}
    S = T.allocate((4,), "float32", "global")
    T.evaluate(T.call_extern("int32", "g", {pointer}))
""",
    """
@T.prim_func
def f(A: T.Buffer((16,), "float32"), S: T.Buffer((4,), "float32")):
    {declared}
    T.evaluate(T.call_extern("int32", "g", {pointer}))
""",
]


@pytest.mark.parametrize("text", BOUND_OR_FREE)
def test_a_bound_variable_is_not_a_free_one(text):
    bound = parse(text.format(declared="", pointer="S.data"))
    free = parse(text.format(declared="D = T.handle()", pointer="D"))
    again = parse(text.format(declared="", pointer="S.data"))
    assert structural_equal(bound, again)
    assert not structural_equal(bound, free)
    assert not structural_equal(free, bound)


def test_free_variables_of_expressions_are_themselves():
    pairs = [(X, Y), (X + 1, Y + 1), (tir.Evaluate(X), tir.Evaluate(Y)), (tir.While(X > 0, tir.Evaluate(X)), tir.While(Y > 0, tir.Evaluate(Y)))]
    for a, b in pairs:
        assert structural_equal(a, a)
        assert structural_hash(a) == structural_hash(a)
        assert not structural_equal(a, b)
        assert structural_hash(a) != structural_hash(b)
        assert structural_equal(a, b, map_free_vars=True)
        assert structural_hash(a, map_free_vars=True) == structural_hash(b, map_free_vars=True)


def test_what_is_mapped_is_mapped_one_to_one():
    assert not structural_equal(X + X, X + Y, map_free_vars=True)
    assert not structural_equal(X + Y, X + X, map_free_vars=True)


def test_variables_that_loops_bind_correspond():
    def loop(v: tir.Var, used: tir.Expr) -> tir.Stmt:
        return tir.For(v, tir.index_const(0), tir.index_const(8), tir.ForKind.SERIAL, tir.Evaluate(used))

    i, j = tir.Var("i", INT64), tir.Var("j", INT64)
    assert structural_equal(loop(i, i + X), loop(j, j + X))
    assert not structural_equal(loop(i, i + X), loop(j, j + Y))
    assert not structural_equal(loop(i, i), loop(j, X))
    assert structural_hash(loop(i, i + X)) == structural_hash(loop(j, j + X))


def test_names_of_blocks_do_not_count():
    block = '        with T.block("NAME"):\n            v = T.axis.spatial(4, i)\n            A[v] = 1'
    text = f'@T.prim_func\ndef f(A: T.Buffer((4,), "int32")):\n    for i in range(4):\n{block}'
    a, b = parse(text), parse(text.replace("NAME", "other"))
    assert structural_equal(a, b)
    assert structural_hash(a) == structural_hash(b)


def test_hashes_tell_apart_which_variable_stands_where():
    x, y, z = (tir.Var(n, "int32") for n in "xyz")
    assert structural_hash(x + x, True) != structural_hash(x + y, True) == structural_hash(y + x, True)
    assert structural_hash(x + y) != structural_hash(y + x)
    first, second = (tir.PrimFunc((x, y), tir.Evaluate(e)) for e in (x - y, y - x))
    assert structural_hash(first) != structural_hash(second)
    assert structural_hash(first) == structural_hash(tir.PrimFunc((z, x), tir.Evaluate(z - x)))


def test_arrays_among_attributes_are_compared_by_their_elements():
    """As attributes of a function hold them."""
    import numpy as np

    func = tir.PrimFunc((), tir.Evaluate(tir.const(0, "int32")))
    a, b, c = (func.with_attr("data", np.array(x)) for x in ([1, 2, 3], [1, 2, 3], [1, 2, 4]))
    assert structural_equal(a, b) and structural_hash(a) == structural_hash(b)
    assert not structural_equal(a, c) and not structural_equal(a, func.with_attr("data", np.array([[1, 2, 3]])))


def test_values_by_program_keep_the_order_in_which_they_were_made():
    """Whatever the programs have in common: their parameters may be the same or not."""
    table = StructuralMap()
    x, y, z = (tir.Var(name, INT64) for name in "xyz")
    made = [((x,), x), ((x, y), x), ((x,), x + 1), ((z,), z)]
    programs = [tir.PrimFunc(params, tir.Evaluate(value)) for params, value in made]
    assert [table.setdefault(p, lambda k=k: k) for k, p in enumerate(programs)] == [0, 1, 2, 0]
    assert table.values() == [0, 1, 2]
