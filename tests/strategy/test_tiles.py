# SPDX-License-Identifier: Apache-2.0
"""What the model of a core holds about small tiles, code that is written out, and panels that are fetched ahead."""

from __future__ import annotations

import pytest

from roundel import te
from roundel.strategy.choose import attempt
from roundel.strategy.cost import exposed
from roundel.strategy.product.register_tile import product_cycles
from roundel.strategy.rules import contraction, generic
from roundel.target import Target

TARGET = Target("znver5")


def _scheduled(cout, **decisions):
    """A convolution of 40 rows of 60 pixels with 3 taps along rows, its weights a constant."""
    x, w = te.placeholder((40, 62, 64), "float32", "X"), te.placeholder((3, 64, cout), "float32", "W")
    a, c = te.reduce_axis(3, "a"), te.reduce_axis(64, "c")
    y = te.compute((40, 60, cout), lambda i, j, o: te.sum(x[i, j + a.var, c.var] * w[a.var, c.var, o], axis=[a, c]), "Y")
    func = te.create_prim_func([x, w, y]).with_attr("decisions", decisions)
    found = attempt(contraction, func, TARGET, constants=(1,))
    return found.applied.func, found.sketch.candidates


def test_delays_at_the_end_of_short_tiles_are_filled_by_the_next():
    assert exposed(TARGET, 10) < 0.1 < 0.9 < exposed(TARGET, 10_000)
    waiting, many = product_cycles(TARGET, 84, 1, 3, 16), product_cycles(TARGET, 84, 14, 2, 16)
    assert waiting > 1.3 * many  # three chains do not hide the latency of four cycles
    assert many == pytest.approx(84 / TARGET.fma_ports, rel=0.15)


def test_code_that_is_written_out_is_short():
    _, table = _scheduled(256)
    unroll, vectors, rows = (table.columns[n] for n in ("unroll", "vectors", "rows"))
    written = unroll > 1
    assert written.any()
    assert (unroll * vectors)[written].max() <= 16
    assert (unroll * vectors * rows)[written].max() <= 128


@pytest.mark.parametrize("cout, fetched", [(32, False), (64, True)])
def test_the_next_panel_is_fetched_where_there_is_one(cout, fetched):
    func, _ = _scheduled(cout, rows=10, vectors=2, order=0)
    assert ('"prefetch"' in func.script()) == fetched


def test_a_tile_that_fills_the_registers_has_single_steps_where_the_next_is_loaded_early():
    """9 x 3 sums, three vectors and a broadcast are 31 registers: another vector takes one from the sums."""
    def cost(target, rows, steps):
        found = attempt(contraction, _product(rows, steps), target, constants=(1,))
        return found.sketch.candidates.expected({**found.choice, "rows": rows, "vectors": 3, "unroll": steps, "order": 0})

    early, late = Target("sapphirerapids"), Target("znver5")
    assert early.loaded_ahead > late.loaded_ahead == 0
    assert cost(early, 9, 4) > 1.1 * cost(early, 9, 1)
    assert cost(early, 8, 4) < 1.02 * cost(early, 8, 1) and cost(late, 9, 4) < 1.02 * cost(late, 9, 1)


@pytest.mark.parametrize("target", ["wasm32", "wasm32-relaxed"])
def test_tiles_leave_registers_for_operands_that_are_loaded_ahead(target):
    """V8's TurboFan loads all operands of a step before it multiplies: of 12 rows by one vector, five sums went through memory in each step (MobileNetV2 took
    1.35 times as long in node 20)."""
    target = Target(target)
    x, w, k = te.placeholder((3136, 64), "float32", "X"), te.placeholder((64, 96), "float32", "W"), te.reduce_axis(64, "k")
    y = te.compute((3136, 96), lambda i, j: te.sum(x[i, k.var] * w[k.var, j], axis=[k]), "Y")
    found = attempt(contraction, te.create_prim_func([x, w, y]), target, constants=(1,)).sketch.candidates.columns
    rows, vectors = found["rows"], found["vectors"]
    needed = rows * vectors + vectors + rows
    assert (needed[(rows > 1) | (vectors > 1)] <= target.vector_registers).all() and needed.max() >= target.vector_registers - 1
    assert target.holds_tile(4, 2) and not target.holds_tile(12, 1)
    native = Target("x86-64-v3")
    assert native.holds_tile(14, 1) and native.holds_tile(5, 2) and not native.holds_tile(16, 1)


def _table(shape, batch=1):
    """The candidates of rows by constant columns, each of a batch with its own."""
    (m, n, depth), k = shape, te.reduce_axis(shape[2], "k")
    many = () if batch == 1 else (batch,)
    x, w = te.placeholder((*many, m, depth), "float32", "X"), te.placeholder((*many, depth, n), "float32", "W")
    y = te.compute((*many, m, n), lambda *i: te.sum(x[(*i[:-1], k.var)] * w[(*i[:-2], k.var, i[-1])], axis=[k]), "Y")
    return attempt(contraction, te.create_prim_func([x, w, y]), Target("sapphirerapids"), constants=(1,)).sketch.candidates


def test_columns_that_fill_no_panel_are_read_as_well():
    """Six panels of 128 columns are 9 % more than eleven of 64, of 683 columns whose weights fill the second-level cache; of 704 they are no more."""
    for columns, times in ((683, 1.06), (768, 0.97)):
        table = _table((1, columns, 663))
        wide, narrow = (min(table.cycles[(table.columns["vectors"] == v) & (table.columns["lanes"] == 16)]) for v in (8, 4))
        assert wide > times * narrow and (columns == 683 or wide < 1.03 * narrow)


def test_masked_columns_leave_a_register_for_what_is_loaded_early():
    """22 columns of a batch, whose weights lie in no panels: of 14 x 2 sums one vector is loaded with a mask, the other one a step ahead."""
    def cost(table, steps):
        return min(table.cycles[(table.columns["rows"] == 14) & (table.columns["vectors"] == 2) & (table.columns["unroll"] == steps)])

    masked, whole = _table((208, 22, 86), batch=10), _table((208, 32, 86), batch=10)
    assert cost(masked, 2) > 1.2 * cost(masked, 1) and cost(whole, 2) < 1.02 * cost(whole, 1)


def test_tiles_have_registers_for_what_is_kept_from_row_to_row():
    """A convolution of groups of 40 channels in vectors of pixels: three rows wait while ten channels are multiplied; 30 sums leave no register."""
    x, w = (te.placeholder(shape, "float32", name) for shape, name in (((128, 23, 23), "X"), ((320, 16, 3, 3), "W")))
    c, a, b = te.reduce_axis(16, "c"), te.reduce_axis(3, "a"), te.reduce_axis(3, "b")
    taken = lambda o, i, j: x[o // 40 * 16 + c.var, i + a.var, j + b.var] * w[o, c.var, a.var, b.var]
    y = te.compute((320, 21, 21), lambda *at: te.sum(taken(*at), axis=[c, a, b]), "Y")
    table = attempt(generic, te.create_prim_func([x, w, y]), Target("sapphirerapids"), constants=(1,)).sketch.candidates
    pixels = (table.columns["vector"] == 2) & (table.columns["row"] == 0) & (table.columns["beside"] == 1) & (table.columns["rows"] <= 10)
    kept = table.columns["rows"] * table.columns["others"] * table.columns["vectors"]
    waiting = table.columns["others"] * table.columns["vectors"]
    assert pixels.any() and ((kept + waiting + 1)[pixels & (40 % table.columns["rows"] == 0)] <= 32).all()


def _product(rows, steps):
    x, w, k = te.placeholder((72 * 8, 256), "float32", "X"), te.placeholder((256, 480), "float32", "W"), te.reduce_axis(256, "k")
    y = te.compute((72 * 8, 480), lambda i, j: te.sum(x[i, k.var] * w[k.var, j], axis=[k]), "Y")
    return te.create_prim_func([x, w, y]).with_attr("decisions", {"rows": rows, "vectors": 3, "unroll": steps, "order": 0})
