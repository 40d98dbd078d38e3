# SPDX-License-Identifier: Apache-2.0
"""What the model of a core holds about small tiles, code that is written out, and panels that are fetched ahead."""

from __future__ import annotations

import pytest

from roundel import te
from roundel.strategy.choose import attempt
from roundel.strategy.cost import exposed
from roundel.strategy.product.register_tile import product_cycles
from roundel.strategy.rules import contraction
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


def _product(rows, steps):
    x, w, k = te.placeholder((72 * 8, 256), "float32", "X"), te.placeholder((256, 480), "float32", "W"), te.reduce_axis(256, "k")
    y = te.compute((72 * 8, 480), lambda i, j: te.sum(x[i, k.var] * w[k.var, j], axis=[k]), "Y")
    return te.create_prim_func([x, w, y]).with_attr("decisions", {"rows": rows, "vectors": 3, "unroll": steps, "order": 0})
