# SPDX-License-Identifier: Apache-2.0
"""Questions about the statements around blocks."""

from roundel.ir import tir
from roundel.schedule.scopes import asked_around
from roundel.schedule.tree import nest


def test_conditions_and_bounds_around_blocks_are_asked_and_what_is_inside_of_statements_without_others_is_not():
    n, i, j, v = (tir.Var(name, "int64") for name in "nijv")
    buffer = tir.decl_buffer((n,), "int64", "B")
    store = tir.BufferStore(buffer, v * 3, (j,))
    condition = i < n
    body = tir.seq(tir.If(condition, tir.Let(v, i * 2, nest(store, [(j, n + 1)]))), tir.BufferStore(buffer, i, (i,)))
    found = asked_around(nest(body, [(i, n)]))
    zero = tir.index_const(0)
    assert set(found) == {zero, n, condition, i * 2, n + 1} and found.count(zero) == 2
