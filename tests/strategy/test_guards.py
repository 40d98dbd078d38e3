# SPDX-License-Identifier: Apache-2.0
"""Conditions cost something where lowering leaves them in the loops, and nothing where it cuts the loops so that they are decided."""

from __future__ import annotations

import pytest

from roundel import te
from roundel.ir import IRModule, tir
from roundel.ir.visit import statements as nodes
from roundel.ir.visit import walk
from roundel.lower import lower
from roundel.schedule import Schedule
from roundel.strategy.cost import expected_cycles
from roundel.strategy.program import Program
from roundel.strategy.statements import statements
from roundel.strategy.window.windows import windows
from roundel.target import Target

FIXED = Target("x86-64-v4", cores=1)


def shifted(n=100, by=1):
    """Y[i] = X[i - by] where there is such an element, else 0."""
    x = te.placeholder((n,), "float32", "X")
    return te.create_prim_func([x, te.compute((n,), lambda i: te.if_then_else(i >= by, x[i - by], 0.0), "Y")])


def padded(side=28, stride=1):
    """A depthwise convolution of 3 x 3 with a border of zeros, channels in blocks."""
    x, w = te.placeholder((4, side, side, 16), "float32", "X"), te.placeholder((4, 3, 3, 16), "float32", "W")
    inside = lambda *i: te.logical_and(*(te.logical_and(k >= 1, k < side + 1) for k in i))
    p = te.compute((4, side + 2, side + 2, 16), lambda b, i, j, c: te.if_then_else(inside(i, j), x[b, i - 1, j - 1, c], 0.0), "P")
    h, v, out = te.reduce_axis((0, 3), "h"), te.reduce_axis((0, 3), "v"), (side - 1) // stride + 1
    y = te.compute((4, out, out, 16), lambda b, i, j, c: te.sum(p[b, i * stride + h, j * stride + v, c] * w[b, h, v, c], axis=[h, v]), "Y")
    return te.create_prim_func([x, w, y])


def asked(func):
    """Instructions for the choice in the program's only statement, as a mean: 2 where it is made in every iteration."""
    (only,) = statements(func, FIXED, {})
    return sum(o.instructions for o in only.operations)


def split(func, *, vector=False, unroll=False):
    sch = Schedule(func)
    _, inner = sch.split(sch.get_loops(sch.get_block("Y"))[0], [None, 10])
    if vector:
        sch.vectorize(inner)
    if unroll:
        sch.unroll(inner)
    return sch.func


def left(func):
    """Whether lowering leaves a choice in a loop of more than one iteration."""
    flat = lower(IRModule({"main": func}, {"target": FIXED}))
    loops = [n for f in flat.functions.values() if isinstance(f, tir.PrimFunc) for n in nodes(f.body) if type(n) is tir.For]
    return any(type(n) in (tir.IfThenElse, tir.Select, tir.If) for loop in loops for n in walk(loop.body))


@pytest.mark.parametrize("by", [1, 7, 30])
def test_a_serial_loop_is_cut_where_the_condition_begins_to_hold(by):
    assert asked(shifted(by=by)) == 0.0 and not left(shifted(by=by))


def test_only_tiles_at_the_border_ask():
    assert asked(split(shifted())) == pytest.approx(2 * 0.1)
    assert asked(split(shifted(), vector=True)) == pytest.approx(2 * 0.1)
    assert asked(split(shifted(by=25))) == pytest.approx(2 * 0.3)


def test_what_is_written_out_at_the_border_is_decided():
    assert asked(split(shifted(), unroll=True)) == 0.0


def test_what_data_decides_is_asked_everywhere():
    x, flag = te.placeholder((100,), "float32", "X"), te.placeholder((100,), "bool", "F")
    func = te.create_prim_func([x, flag, te.compute((100,), lambda i: te.if_then_else(flag[i], x[i], 0.0), "Y")])
    assert asked(func) == asked(split(func, unroll=True)) == 2.0 and left(func)


def test_a_condition_that_always_holds_costs_nothing():
    x = te.placeholder((100,), "float32", "X")
    assert asked(te.create_prim_func([x, te.compute((50,), lambda i: te.if_then_else(i + 20 >= 1, x[i], 0.0), "Y")])) == 0.0


@pytest.mark.parametrize(("side", "stride"), [(28, 1), (28, 2), (56, 1), (112, 2)])
def test_padding_that_is_cut_off_costs_what_the_table_of_windows_expects(side, stride):
    sketch = windows(Program(padded(side, stride), FIXED))[0]
    order = sketch.candidates.ranking()
    for k in (order[0], order[len(order) // 4]):
        choice = sketch.candidates.decisions(int(k))
        priced = expected_cycles(sketch.schedule(choice).func, FIXED, cores=1)
        assert 0.6 < sketch.expected(choice) / priced < 1.6, choice
