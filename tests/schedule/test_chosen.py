# SPDX-License-Identifier: Apache-2.0
"""only_where_chosen: what a condition on data chooses is computed where it does."""

from __future__ import annotations

import pytest

from roundel import te
from roundel.ir import tir
from roundel.ir.errors import ScheduleError
from roundel.ir.module import IRModule
from roundel.lower import lower
from roundel.schedule import Schedule

from .programs import check


def one_of_two(choose, rows=12, depth=5):
    """Rows of a product where the first number of a row of A is positive, elsewhere doubled rows of A."""
    a, b = te.placeholder((rows, depth), "float32", "A"), te.placeholder((depth, depth), "float32", "B")
    k = te.reduce_axis((0, depth), "k")
    positive = te.compute((rows,), lambda i: a[i, 0] > 0.0, "positive")
    product = te.compute((rows, depth), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "product")
    return te.create_prim_func([a, b, te.compute((rows, depth), lambda i, j: choose(positive, product, i, j) + a[i, j], "C")])


def lazily(positive, product, i, j):
    return te.if_then_else(positive[i], product[i, j], 2.0)


def eagerly_on_the_other_side(positive, product, i, j):
    return tir.select(tir.call("likely", positive[i]), te.const(2.0, "float32"), product[i, j])


def used_twice(positive, product, i, j):
    value = tir.select(positive[i], product[i, j], 2.0)
    return value * te.exp(value * 0.1)


@pytest.mark.parametrize("choose", [lazily, eagerly_on_the_other_side, used_twice])
def test_runs_only_where_it_is_chosen(choose):
    func = one_of_two(choose)
    sch = Schedule(func)
    product = sch.get_block("product")
    i, _ = sch.get_loops(sch.get_block("C"))
    io, ii = sch.split(i, [None, 4])
    sch.compute_at(product, ii)
    sch.compute_at(sch.get_block("positive"), io)
    sch.only_where_chosen(product)
    sch.parallel(io)
    assert "T.where" in sch.func.script()
    check(sch, func)


def test_what_only_a_conditional_block_reads_runs_under_its_condition():
    """C[i, j] is a sum over rows of A beside a border of zeros where the row before is positive."""
    a = te.placeholder((12, 5), "float32", "A")
    k = te.reduce_axis((0, 3), "k")
    positive = te.compute((12,), lambda i: a[i, 0] > 0.0, "positive")
    padded = te.compute((12, 7), lambda i, j: te.if_then_else(te.logical_and(j > 0, j < 6), a[i, j - 1], 0.0), "padded")
    sums = te.compute((12, 5), lambda i, j: te.sum(padded[i, j + k], axis=k), "sums")
    func = te.create_prim_func([a, te.compute((12, 5), lambda i, j: te.if_then_else(positive[i], sums[i, j], 2.0), "C")])
    sch = Schedule(func)
    i, _ = sch.get_loops(sch.get_block("C"))
    for name in ("sums", "padded"):
        sch.compute_at(sch.get_block(name), i)
        sch.only_where_chosen(sch.get_block(name))
    assert sch.func.script().count("T.where") == 2
    check(sch, func)


def test_the_condition_leaves_the_loops_that_do_not_change_it():
    sch = Schedule(one_of_two(lazily))
    product = sch.get_block("product")
    sch.compute_at(product, sch.get_loops(sch.get_block("C"))[0])
    sch.only_where_chosen(product)
    flat = lower(IRModule({"main": sch.func}))["main"].script().split("\n")
    tested = [k for k, line in enumerate(flat) if "if positive" in line]
    sums = next(k for k, line in enumerate(flat) if "product" in line and "A[" in line)
    assert tested and tested[-1] < sums and any("for" in line for line in flat[tested[-1] : sums])


def test_refused():
    always = Schedule(one_of_two(lambda positive, product, i, j: product[i, j]))
    with pytest.raises(ScheduleError, match="nothing says"):
        always.only_where_chosen(always.get_block("product"))
    both = Schedule(one_of_two(lambda positive, product, i, j: te.if_then_else(positive[i], product[i, j], 2.0) + product[i, j]))
    with pytest.raises(ScheduleError, match="nothing says"):
        both.only_where_chosen(both.get_block("product"))
    early = Schedule(one_of_two(lazily))
    early.compute_at(early.get_block("positive"), early.get_loops(early.get_block("C"))[0])
    with pytest.raises(ScheduleError, match="not known yet"):
        early.only_where_chosen(early.get_block("product"))
    inner = Schedule(one_of_two(lazily))
    inner.compute_at(inner.get_block("product"), inner.get_loops(inner.get_block("C"))[0])
    inner.only_where_chosen(inner.get_block("product"))
    far = inner.cache_read(inner.get_block("product"), 1, "global")
    with pytest.raises(ScheduleError, match="same loops"):
        inner.only_where_chosen(far)
    mixed = Schedule(one_of_two(lambda positive, product, i, j: te.if_then_else(positive[i], product[j, i % 5], 2.0)))
    with pytest.raises(ScheduleError, match="depends on"):
        mixed.only_where_chosen(mixed.get_block("product"))
