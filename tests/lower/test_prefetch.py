# SPDX-License-Identifier: Apache-2.0
"""Prefetching of panels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from roundel import te
from roundel.arith import Analyzer
from roundel.build import compile_module
from roundel.ir import IRModule, tir
from roundel.ir.dtype import INT64
from roundel.ir.visit import free_vars, statements, substitute, walk
from roundel.lower import lower, lower_blocks, prefetch, widen_indices
from roundel.lower.prefetch import _shares
from roundel.schedule import Schedule
from roundel.strategy.choose import attempt
from roundel.strategy.product.contraction import contraction
from roundel.target import Target


def _scheduled():
    a, b = te.placeholder((12, 32), "float32", "A"), te.placeholder((32, 64), "float32", "B")
    k = te.reduce_axis((0, 32), "k")
    c = te.compute((12, 64), lambda i, j: te.sum(a[i, k.var] * b[k.var, j], axis=k), "C")
    sch = Schedule(te.create_prim_func([a, b, c]).with_attr("global_symbol", "f"))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    jo, ji = sch.split(j, [None, 16])
    io, ii = sch.split(i, [None, 4])
    sch.reorder(jo, io, k, ii, ji)
    sch.annotate(io, "prefetch", ("B", 32 * 64, 64))
    sch.unroll(ii)
    sch.vectorize(ji)
    return sch.func


def test_each_pass_fetches_its_share_of_a_step():
    flat = lower(IRModule({"f": _scheduled()}))["f"]
    calls = [n for n in walk(flat.body) if type(n) is tir.Call and n.op == "prefetch"]
    assert len({c.args[0] for c in calls}) == 2  # four lines of 64 bytes per step, three passes
    assert {c.args[2].value for c in calls} == {3}  # into all caches


def test_passes_over_a_panel_of_several_loops_fetch_parts_of_the_next_one():
    """Whatever the extents: all passes together fetch every line of the next panel, each in the order of memory."""
    for passes, window, steps, written in ((3, 3, 4, 2), (7, 2, 6, 2), (2, 5, 1, 2), (2, 3, 2, 16), (3, 2, 4, 12), (5, 4, 2, 16)):
        x, w = te.placeholder((passes, window * steps * written), "float32", "X"), te.placeholder((3, window, steps, written, 16), "float32", "W")
        axes = [te.reduce_axis((0, n), name) for n, name in ((window, "r"), (steps, "s"), (written, "t"))]
        r, s, t = (a.var for a in axes)
        y = te.compute((3, passes, 16), lambda k, i, j: te.sum(x[i, (r * steps + s) * written + t] * w[k, r, s, t, j], axis=axes), "Y")  # noqa: B023
        sch = Schedule(te.create_prim_func([x, w, y]).with_attr("global_symbol", "f"))
        k, i, j, *_, t = sch.get_loops(sch.get_block("Y"))
        sch.reorder(k, i, *_, t, j)
        sch.unroll(t)
        sch.vectorize(j)
        sch.annotate(i, "prefetch", ("W", panel := window * steps * written * 16, written * 16))
        calls = [n for n in walk(lower(IRModule({"f": sch.func}))["f"].body) if type(n) is tir.Call and n.op == "prefetch"]
        fetched = []
        for here in itertools.product(range(passes), range(window), range(steps)):
            values = dict(zip("irs", here, strict=True)) | {"k": 1}
            fetched += [Analyzer().value(substitute(c.args[0].indices[0], {v: tir.index_const(values[v.name]) for v in free_vars(c)})) for c in calls]
        assert {*range(2 * panel, 3 * panel, 16)} <= {*fetched}
        each = len(fetched) // passes
        assert all(part == sorted(part) for n in range(passes) if (part := fetched[n * each : (n + 1) * each]))


def test_passes_whose_number_the_run_knows_share_all_lines():
    """Whatever the number of passes: together they fetch every line, and no pass more than its share."""
    count, parts = _shares(12, (passes := tir.Var("passes", INT64, True)))
    for n in range(1, 40):
        each, taking = (Analyzer().value(substitute(e, {passes: tir.index_const(n)})) for e in (count, parts))
        assert each * taking >= 12 and taking <= n and each * (taking - 1) < 12 and each <= 2 * -(-12 // n)


def _symbolic(unroll, rows=None):
    n = tir.Var("n", INT64, True) if rows is None else rows
    a, b = te.placeholder((n, 16), "float32", "A"), te.placeholder((4, 16, 16), "float32", "B")
    k = te.reduce_axis((0, 16), "k")
    c = te.compute((4, n, 16), lambda p, i, j: te.sum(a[i, k.var] * b[p, k.var, j], axis=k), "C")
    sch = Schedule(te.create_prim_func([a, b, c]).with_attr("global_symbol", "f"))
    panel, i, j, k = sch.get_loops(sch.get_block("C"))
    io, ii = sch.split(i, [None, 4])
    ko, ki = sch.split(k, [None, unroll])
    sch.reorder(panel, io, ko, ki, ii, j)
    sch.annotate(io, "prefetch", ("B", 16 * 16, unroll * 16))
    sch.unroll(ki)
    sch.unroll(ii)
    sch.vectorize(j)
    return sch.func


def _places(stmt, known, op="prefetch"):
    """The elements whose lines are fetched, or by which they are, in order."""
    value = lambda e: Analyzer().value(substitute(e, {v: tir.index_const(x) for v, x in known.items()}))
    kind = type(stmt)
    if kind is tir.For:
        first = value(stmt.min)
        return [x for i in range(value(stmt.extent)) for x in _places(stmt.body, known | {stmt.loop_var: first + i}, op)]
    if kind is tir.Let:
        return _places(stmt.body, known | {stmt.var: value(stmt.value)}, op)
    if kind is tir.If:
        return _places(stmt.then_case, known, op) if value(stmt.condition) else []
    if kind is tir.Evaluate and type(stmt.value) is tir.Call and stmt.value.op == op:
        return [value(stmt.value.args[0].indices[0])]
    return [x for s in stmt._below() if isinstance(s, tir.Stmt) for x in _places(s, known, op)]


@pytest.mark.parametrize("unroll", [1, 4])
def test_all_lines_of_the_next_panel_are_fetched_in_however_many_passes(unroll):
    made = prefetch(widen_indices(lower_blocks(IRModule({"f": _symbolic(unroll)}, {"target": Target("znver4")}))))["f"]
    panel, passes, *_ = [x for x in statements(made.body) if type(x) is tir.For]
    (n,) = free_vars(passes.extent)
    for rows in (1, 5, 11):
        lines = {x // 16 - 16 for x in _places(panel.body, {panel.loop_var: 0, n: rows})}
        assert set(range(16)) <= lines and max(lines) <= 16 + 64 + unroll


@pytest.mark.parametrize("rows", [8, 20, 32, 100, None])
def test_machines_without_instructions_for_it_read_each_line_of_the_next_panel_and_none_beyond_the_last(rows):
    made = prefetch(widen_indices(lower_blocks(IRModule({"f": _symbolic(1, rows)}, {"target": Target("wasm32")}))))["f"]
    panel, passes, *_ = [x for x in statements(made.body) if type(x) is tir.For]
    for given in (rows,) if rows else (32, 33):
        known = {panel.loop_var: 1} | {v: given for v in free_vars(passes.extent)}
        assert {x // 64 for x in _places(panel.body, known, "touch")} >= set(range(32, 48))
        assert not _places(panel.body, known)
        assert all(0 <= x < 4096 for x in _places(panel.body, known | {panel.loop_var: 3}, "touch"))


@pytest.mark.parametrize("groups, steps, vectors", [(64, 4, 3), (7, 8, 4), (33, 4, 1), (1, 8, 1)])
def test_one_pass_reads_a_stretch_ahead_where_there_are_no_instructions_for_it(groups, steps, vectors):
    """All lines but those of the first stretch are read once, in the order of memory, before the group that uses them; nothing beyond the buffer is."""
    a = te.placeholder((groups, steps, 16 * vectors), "float32", "A")
    w = te.reduce_axis((0, steps), "w")
    c = te.compute((groups, 16 * vectors), lambda g, j: te.sum(a[g, w.var, j], axis=w), "C")
    sch = Schedule(te.create_prim_func([a, c]).with_attr("global_symbol", "f"))
    g, j, w = sch.get_loops(sch.get_block("C"))
    sch.reorder(g, w, j)
    sch.vectorize(j)
    sch.annotate(w, "prefetch", ("A", 64, 16 * vectors, 1))
    made = prefetch(widen_indices(lower_blocks(IRModule({"f": sch.func}, {"target": Target("wasm32")}))))["f"]
    (outer, *_) = [x for x in statements(made.body) if type(x) is tir.For]
    size, seen = groups * steps * 16 * vectors, set()
    for k in range(groups):
        seen |= {x // 16 for x in _places(outer.body, {outer.loop_var: k}, "touch")}
        assert not seen or (k + 1) * steps * vectors <= max(seen) + 1, "what the group after this one reads was read before"
    assert not seen or (seen >= set(range(min(seen), size // 16)) and max(seen) < size // 16)
    assert bool(seen) == (size * 4 >= 1536)


def _in_blocks(apart):
    """Panels of 16 x 16 elements, ``apart`` from each other, each in two blocks."""
    n = tir.Var("n", INT64, True)
    a, b = te.placeholder((n, 16), "float32", "A"), te.placeholder((8, 16, 16), "float32", "B")
    k = te.reduce_axis((0, 16), "k")
    c = te.compute((2, n, 16), lambda p, i, j: te.sum(a[i, k.var] * b[p * (apart // 256), k.var, j], axis=k), "C")
    sch = Schedule(te.create_prim_func([a, b, c]).with_attr("global_symbol", "f"))
    panel, i, j, k = sch.get_loops(sch.get_block("C"))
    io, ii = sch.split(i, [None, 4])
    block, ko, ki = sch.split(k, [2, None, 4])
    sch.reorder(panel, block, io, ko, ki, ii, j)
    sch.annotate(io, "prefetch", ("B", 8 * 16, 4 * 16, 0, 16 * 16, apart))
    for loop in (ki, ii):
        sch.unroll(loop)
    sch.vectorize(j)
    return sch.func


@pytest.mark.parametrize("apart", [256, 768])
def test_after_the_last_block_of_a_panel_comes_the_first_of_the_next_one(apart):
    made = prefetch(widen_indices(lower_blocks(IRModule({"f": _in_blocks(apart)}, {"target": Target("znver4")}))))["f"]
    loops = [x for x in statements(made.body) if type(x) is tir.For]
    passes = next(x for x in loops if free_vars(x.extent) and any(type(c) is tir.Call and c.op == "prefetch" for c in walk(x.body)))
    (n,), (panel, block) = free_vars(passes.extent), [x for x in loops if passes in list(statements(x.body))]
    for rows in (1, 5, 11):
        for k, first in ((0, 8), (1, apart // 16)):
            lines = {x // 16 for x in _places(block.body, {panel.loop_var: 0, block.loop_var: k, n: rows})}
            assert set(range(first, first + 8)) <= lines and max(lines) < first + 8 + 64 + 4


def test_iterations_inside_take_turns():
    """Three tiles inside of a loop whose iteration goes over one panel: each fetches a share of the next panel."""
    sch = Schedule(_scheduled())
    jo, io, *_ = sch.get_loops(sch.get_block("C"))
    sch.unannotate(io, "prefetch")
    sch.annotate(jo, "prefetch", ("B", 16, 64, 1))
    whole = _fetched(sch.func)
    sch.annotate(io, "prefetch_pass", True)
    assert (whole, _fetched(sch.func)) == (4, 2)


def test_the_next_row_of_a_picture_comes_line_by_line():
    """Three positions along a row of the window take one line each of the three that the next row of results reads."""
    x = te.placeholder((2, 9, 40), "float32", "X")
    w = te.placeholder((2, 3, 3), "float32", "W")
    c, r, s = te.reduce_axis(2, "c"), te.reduce_axis(3, "r"), te.reduce_axis(3, "s")
    y = te.compute((4, 19), lambda i, j: te.sum(x[c.var, i * 2 + r.var, j * 2 + s.var] * w[c.var, r.var, s.var], axis=[c, r, s]), "Y")
    sch = Schedule(te.create_prim_func([x, w, y]).with_attr("global_symbol", "f"))
    window = sch.get_loops(sch.get_block("Y"))[-1]
    sch.annotate(window, "prefetch_lines", ("X", 80))
    flat = lower(IRModule({"f": sch.func}))["f"]
    (index,) = {n.args[0].indices[0] for n in walk(flat.body) if type(n) is tir.Call and n.op == "prefetch"}
    values = dict(zip("cijrs", (1, 2, 5, 1, 2), strict=True))
    at = substitute(index, {v: tir.index_const(values[v.name]) for v in free_vars(index)})
    assert {v.name for v in free_vars(index)} == set(values)
    assert Analyzer().simplify(at).value == 360 + (2 * 2 + 1) * 40 + 2 * 5 + 80 + 2 * 16


def test_convolutions_of_planes_fetch_the_next_rows():
    x = te.placeholder((3, 29, 63), "float32", "X")
    w = te.placeholder((3, 3, 3, 16), "float32", "W")
    c, r, s = te.reduce_axis(3, "c"), te.reduce_axis(3, "r"), te.reduce_axis(3, "s")
    y = te.compute((14, 31, 16), lambda i, j, o: te.sum(x[c.var, i * 2 + r.var, j * 2 + s.var] * w[c.var, r.var, s.var, o], axis=[c, r, s]), "Y")
    found = attempt(contraction, te.create_prim_func([x, w, y]), Target("znver4"))
    (fetched,) = [n.annotations["prefetch_lines"] for n in walk(found.applied.func.body) if type(n) is tir.For and "prefetch_lines" in n.annotations]
    assert [getattr(v, "value", v) for v in fetched] == ["X", 2 * 63]


def _fetched(func):
    flat = lower(IRModule({"f": func}))["f"]
    return len({n.args[0] for n in walk(flat.body) if type(n) is tir.Call and n.op == "prefetch"})


def test_results_do_not_change():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((12, 32), np.float32), rng.standard_normal((32, 64), np.float32)
    out = np.empty((12, 64), np.float32)
    compile_module(IRModule({"f": _scheduled()})).load()["f"](a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-5, atol=1e-5)
