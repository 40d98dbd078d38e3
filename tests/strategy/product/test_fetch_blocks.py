# SPDX-License-Identifier: Apache-2.0
"""Blocks of channels of large pictures are fetched ahead; those of small ones are where they are read from already."""

from __future__ import annotations

import pytest

from roundel import te
from roundel.ir import IRModule, tir
from roundel.ir.annotations import PREFETCH, Prefetch
from roundel.ir.visit import statements, walk
from roundel.lower import lower
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target

FIXED = Target("x86-64-v4", cores=1)


def pointwise(side, channels, lanes=16):
    """A 1 x 1 convolution of a picture in blocks of channels."""
    x = te.placeholder((channels // lanes, side * side, lanes), "float32", "X")
    w = te.placeholder((4, channels // lanes, lanes, lanes), "float32", "W")
    b, c = te.reduce_axis((0, channels // lanes), "b"), te.reduce_axis((0, lanes), "c")
    return te.create_prim_func([x, w, te.compute((4, side * side, lanes), lambda o, p, v: te.sum(x[b, p, c] * w[o, b, c, v], axis=[b, c]), "Y")])


@pytest.mark.parametrize(("side", "channels", "is_large"), [(64, 1024, True), (60, 1024, True), (14, 1024, False), (56, 64, False)])
def test_blocks_of_large_pictures_are_fetched(side, channels, is_large):
    made = schedule_program(pointwise(side, channels), FIXED, (1,))[0]
    ahead = [Prefetch.of(n.annotations).ahead for n in statements(made) if type(n) is tir.For and PREFETCH in n.annotations]
    assert (side * side * 16 in ahead) == is_large
    if is_large:
        assert "prefetch" in lower(IRModule({"main": made}, {"target": FIXED})).script()


@pytest.mark.parametrize("rows", [5, 6])
def test_tiles_of_rows_take_turns_to_fetch_the_next_panel(rows):
    """Whether or not the last tile is full: each fetches a share of the panel, one line in each step, and not all of it."""
    x, w = te.placeholder((1, 205, 64), "float32", "X"), te.placeholder((1, 64, 672), "float32", "W")
    b, c = te.reduce_axis((0, 1), "b"), te.reduce_axis((0, 64), "c")
    func = te.create_prim_func([x, w, te.compute((205, 672), lambda p, o: te.sum(x[b, p, c] * w[b, c, o], axis=[b, c]), "Y")])
    pinned = func.with_attr("decisions", {"rows": rows, "vectors": 2, "order": 0, "unroll": 2})
    made, layouts = schedule_program(pinned, FIXED, (1,))
    assert made.attrs["scheduled"] == "contraction" and layouts
    flat = lower(IRModule({"main": made}, {"target": FIXED}))
    loops = [x for f in flat.functions.values() for x in statements(f.body) if type(x) is tir.For]
    inner = [x for x in loops if not any(type(y) is tir.For and y is not x for y in statements(x.body))]
    fetches = [sum(type(n) is tir.Call and n.op == "prefetch" for n in walk(x.body)) for x in inner]
    assert set(fetches) <= {0, 1} and 1 in fetches
