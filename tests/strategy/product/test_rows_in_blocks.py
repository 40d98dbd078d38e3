# SPDX-License-Identifier: Apache-2.0
"""Products of a symbolic number of rows whose reduction is cut into blocks: right for however many rows, in whole and short tiles and with what is
fused after them; and where they are chosen."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.ir import IRModule, tir
from roundel.ir.dtype import INT64
from roundel.strategy.explain import explain_program
from roundel.strategy.pack_constants import relayout
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target


def _product(inner, columns, used, fused=True):
    """Of data [m, inner] and the first ``used`` columns of a matrix."""
    m, k = tir.Var("m", INT64, True), te.reduce_axis((0, inner), "k")
    a, b = te.placeholder((m, inner), "float32", "A"), te.placeholder((inner, columns), "float32", "B")
    c = te.compute((m, used), lambda i, j: te.sum(a[i, k.var] * b[k.var, j], axis=[k]), "C")
    out = te.compute((m, used), lambda i, j: te.tanh(c[i, j]) + 1.0, "D") if fused else c
    return te.create_prim_func([a, b, out]).with_attr("global_symbol", "main")


def _in_blocks(func, target, rows):
    """Scheduled with the largest number of blocks, and how many these are."""
    others = {"rows": rows} if rows else {}
    asked = func.with_attr("decisions", {"sketch": "contraction", **others})
    blocks = max(explain_program(asked, target, constants=(1,)).candidates.columns["blocks"].tolist())
    return blocks, *schedule_program(func.with_attr("decisions", {"sketch": "contraction", "blocks": blocks, **others}), target, (1,))


@pytest.mark.parametrize("inner, columns, used, fused, rows", [
    (768, 96, 96, True, 9), (1000, 70, 70, True, 8), (514, 33, 33, False, 5), (512, 256, 120, True, None),
])
def test_every_number_of_rows(inner, columns, used, fused, rows):
    blocks, made, layouts = _in_blocks(_product(inner, columns, used, fused), Target.host().with_(far_panels_share=0.8, l1_bytes=256, near_times=1000.0), rows)
    assert blocks > 1
    run = rd.build(IRModule({"main": made}), threads=2)["main"]
    rng = np.random.default_rng(0)
    b = rng.standard_normal((inner, columns)).astype(np.float32) / 16
    packed = relayout(b, layouts[1], tuple(int(n.value) for n in made.buffer_params[1].shape)) if layouts else b
    for n in (*range(1, 20), 26, 27, 28, 70):
        a, out = rng.standard_normal((n, inner)).astype(np.float32), np.full((n, used), np.nan, np.float32)
        run(a, packed, out)
        wanted = a.astype(np.float64) @ b[:, :used]
        np.testing.assert_allclose(out, np.tanh(wanted) + 1 if fused else wanted, rtol=1e-4, atol=1e-4)


def test_panels_are_in_blocks_where_they_come_from_memory():
    """Long panels of weights are; short ones, those of data, and those of machines for which nothing was measured are not."""
    target = Target("znver5")
    chosen = lambda inner, target=target, constants=(1,): explain_program(_product(inner, 768, 768), target, constants=constants).decisions["blocks"]
    assert chosen(3072) > 1
    assert chosen(64) == chosen(3072, constants=()) == chosen(3072, Target("cortex-a53")) == 1
