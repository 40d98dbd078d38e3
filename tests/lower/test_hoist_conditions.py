# SPDX-License-Identifier: Apache-2.0
"""A condition on data that is said to be likely leaves the loops in which it has one value, which then have no branches."""

from __future__ import annotations

import numpy as np
import pytest

from roundel import te
from roundel.driver import build_module
from roundel.ir import IRModule, tir
from roundel.ir.dtype import INT64
from roundel.ir.visit import statements, walk
from roundel.lower import PIPELINE, hoist_conditions


def _rows(guarded: bool):
    """C[i, j] = X[i, j] where X[i, 0] > 0, else -X[i, j]; ``guarded``: of a row that need not be there."""
    x = te.placeholder((8, 16), "float32", "X")
    row = lambda i: i + 1 if guarded else i
    positive = te.compute((8,), lambda i: x[i, 0] > 0, "E")
    choice = lambda i, j: tir.select(tir.call("likely", positive[row(i)]), x[i, j], 0.0 - x[i, j])
    value = (lambda i, j: te.if_then_else(row(i) + j < 8, choice(i, j), 1.0)) if guarded else choice
    func = te.create_prim_func([x, te.compute((8, 16), value, "C")]).with_attr("global_symbol", "main")
    return IRModule({"main": func})


def _hoisted(mod):
    for step in PIPELINE[: PIPELINE.index(hoist_conditions) + 1]:
        mod = step(mod)
    return mod["main"].body


def test_each_case_has_a_loop_without_branches():
    body = _hoisted(_rows(guarded=False))
    (choice,) = (s for s in statements(body) if type(s) is tir.If)
    for case in (choice.then_case, choice.else_case):
        assert type(case) is tir.For
        assert not any(type(n) in (tir.If, tir.Select) for n in walk(case))


@pytest.mark.parametrize("guarded", [False, True])
def test_results_are_the_same(guarded):
    mod = _rows(guarded)
    x = np.random.default_rng(0).standard_normal((8, 16)).astype("float32")
    got = np.empty_like(x)
    build_module(mod)["main"](x, got)
    expected = np.where(x[:, :1] > 0, x, -x)
    if guarded:
        i, j = np.indices(x.shape)
        expected = np.where(i + 1 + j < 8, np.where(np.roll(x[:, :1], -1, 0) > 0, x, -x), 1)
    np.testing.assert_array_equal(got, expected)


def _run(*stmts):
    """The loop's body over four elements, after the pass; buffers by name are those of the program."""
    i = tir.Var("i", INT64)
    loop = tir.For(i, tir.index_const(0), tir.index_const(4), tir.ForKind.SERIAL, tir.Seq(tuple(make(i) for make in stmts)))
    return hoist_conditions(IRModule({"main": tir.PrimFunc((X.data, E.data), loop, buffer_map={})}))["main"].body


X, E = tir.decl_buffer((4,), "float32", "X"), tir.decl_buffer((4,), "bool", "E")


def test_neighbours_that_ask_the_same_of_data_are_asked_together():
    holds = lambda i: tir.call("likely", E[i])
    put = lambda i, n: tir.BufferStore(X, tir.const(float(n), "float32"), (i,))
    body = _run(lambda i: tir.If(tir.Not(holds(i)), put(i, 1)), lambda i: tir.If(holds(i), put(i, 2)), lambda i: tir.If(holds(i), put(i, 3), put(i, 4)))
    (choice,) = (s for s in statements(body) if type(s) is tir.If)
    values = lambda stmt: [s.value.value for s in statements(stmt) if type(s) is tir.BufferStore]
    assert values(choice.then_case) == [2, 3] and values(choice.else_case) == [1, 4]


def test_a_question_is_asked_again_where_its_answer_may_have_changed():
    put = lambda i, value: tir.If(E[i], tir.BufferStore(E, tir.const(value, "bool"), (i,)))
    body = _run(lambda i: put(i, False), lambda i: put(i, True))
    assert sum(type(s) is tir.If for s in statements(body)) == 2
