# SPDX-License-Identifier: Apache-2.0
"""Generic schedules of windows that are for measurements: axes of the reduction written out, padding as conditions on loops."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.ir import IRModule, tir
from roundel.strategy.generic.generic import generic, generic_padding
from roundel.strategy.program import Program
from roundel.target import Target


def windows(c=3, h=11, w=9, step=1):
    """Sums over windows of 3 x 3 of a padded picture, ``c`` vectors of 16 channels each with weights of its own."""
    x, k = te.placeholder((c, h, w, 16), "float32", "X"), te.placeholder((c, 3, 3, 16), "float32", "K")
    inside = lambda i, j: tir.logical_and(i >= 1, i < h + 1, j >= 1, j < w + 1)
    padded = te.compute((c, h + 2, w + 2, 16), lambda q, i, j, o: te.if_then_else(inside(i, j), x[q, i - 1, j - 1, o], 0.0), "padded")
    r, s = te.reduce_axis((0, 3), "r"), te.reduce_axis((0, 3), "s")
    extents = (c, (h - 1) // step + 1, (w - 1) // step + 1, 16)
    total = te.compute(extents, lambda q, i, j, o: te.sum(padded[q, i * step + r, j * step + s, o] * k[q, r, s, o], axis=[r, s]), "total")
    return te.create_prim_func([x, k, te.compute(extents, lambda *at: te.max(total[at], 0.0), "Y")])


def expected(x, k, step):
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    near = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::step, ::step]
    return np.maximum(np.einsum("qijors,qrso->qijo", near, k), 0)


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("rule", [generic, generic_padding])
def test_written_out_windows_are_right(rule, step):
    program = Program(windows(step=step), Target("x86-64-v4"))
    (sketch,) = rule(program)
    (table,) = sketch.tables
    rng = np.random.default_rng(step)
    drawn = [int(rng.choice(np.flatnonzero(table.columns["straight"] == k))) for k in (0, 1, 1)]
    funcs = {f"f{k}": sketch.schedule(table.decisions(row)).func.with_attr("global_symbol", f"f{k}") for k, row in enumerate(drawn)}
    library = rd.build(IRModule(funcs), target="x86-64-v3")
    x, k = rng.standard_normal((3, 11, 9, 16)).astype("float32"), rng.standard_normal((3, 3, 3, 16)).astype("float32")
    wanted = expected(x, k, step)
    for name in funcs:
        out = np.full(wanted.shape, np.nan, dtype="float32")
        library[name](x, k, out)
        np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-5)


def test_padding_is_stored_by_one_of_the_sketches_alone():
    program = Program(windows(), Target("x86-64-v4"))
    stored, guarded = (next(iter(rule(program))).schedule().func.script() for rule in (generic, generic_padding))
    assert 'sblock("padded")' in stored and 'sblock("padded")' not in guarded
    a, r = te.placeholder((4, 64), "float32", "A"), te.reduce_axis((0, 64), "r")
    sums = te.create_prim_func([a, te.compute((4,), lambda i: te.sum(a[i, r], axis=r), "Y")])
    assert not generic_padding(Program(sums, Target("x86-64-v4")))
