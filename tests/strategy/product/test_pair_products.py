# SPDX-License-Identifier: Apache-2.0
"""Sums of several products in registers of integers: in the interpreter, and as C, which is the instructions' meaning where a compiler has none."""

from __future__ import annotations

import pytest

import roundel as rd
from roundel import te
from roundel.interp import interpret
from roundel.ir import IRModule, tir
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target
from tests.strategy.product.test_tile_products import agrees, product

TYPES = ("int8", "int8", "int32")


def convolution(inner, outer, high, wide, window, stride=1):
    """Of a picture NCHW with a border of one number; results as bytes, of a sum and another picture that has bytes."""
    pad = window // 2
    x, w = te.placeholder((1, inner, high, wide), "int8", "X"), te.placeholder((outer, inner, window, window), "int8", "W")
    inside = lambda i, j: tir.logical_and(i >= pad, i < high + pad, j >= pad, j < wide + pad)
    padded = te.compute((1, inner, high + 2 * pad, wide + 2 * pad),
                        lambda n, c, i, j: te.if_then_else(inside(i, j), x[n, c, i - pad, j - pad], te.const(-9, "int8")), "P") if pad else x
    c, a, b = (te.reduce_axis((0, n), name) for n, name in ((inner, "c"), (window, "a"), (window, "b")))
    rows, columns = ((n + 2 * pad - window) // stride + 1 for n in (high, wide))
    y = te.compute((1, outer, rows, columns), lambda n, o, i, j: te.sum(
        padded[n, c, i * stride + a, j * stride + b].astype("int32") * w[o, c, a, b].astype("int32"), axis=[c, a, b]), "Y")
    return te.create_prim_func([x, w, te.compute(y.shape, lambda *i: y[i] + 1, "Z")]).with_attr("global_symbol", "main")


PROGRAMS = {
    "whole tiles": product(8, 12, 32, TYPES), "nothing whole": product(7, 9, 30, TYPES), "one row": product(1, 10, 17, TYPES),
    "window": convolution(4, 3, 3, 4, 3), "window over few channels, in steps": convolution(3, 2, 5, 4, 3, 2), "pointwise": convolution(8, 6, 5, 5, 1),
    "wide window of one channel": convolution(1, 2, 3, 4, 5),
}


SOURCE = {"cortex-m3": "c", "cortex-m4": "c", "cortex-m55": "c -mattr=+mve.fp"}
"""C for this machine, in the form that it has for a processor."""


def scheduled(func, cpu="cortex-m4", **decisions):
    return schedule_program(func.with_attr("decisions", {"sketch": "pair_products", **decisions}), Target(cpu), (1,))


@pytest.mark.parametrize("cpu, name", [(cpu, name) for cpu in SOURCE for name in PROGRAMS])
def test_sums_of_several_products_are_the_products(cpu, name):
    func = PROGRAMS[name]
    made, layouts = scheduled(func, cpu)
    assert "P" not in {b.name for b in made.root_block.alloc_buffers}  # a border is no stage of its own
    agrees(func, made, layouts, interpret(IRModule({"main": made}))["main"])
    agrees(func, made, layouts, rd.build(IRModule({"main": made}), target=SOURCE[cpu])["main"])


@pytest.mark.parametrize("cpu, group, rows, columns", [("cortex-m3", 4, 3, 2), ("cortex-m4", 4, 1, 4), ("cortex-m4", 4, 4, 3), ("cortex-m55", 16, 2, 4),
                                                       ("cortex-m55", 8, 1, 4)])
def test_every_tile_is_the_product(cpu, group, rows, columns):
    func = PROGRAMS["nothing whole"]
    made, layouts = scheduled(func, cpu, group=group, rows=rows, columns=columns)
    agrees(func, made, layouts, rd.build(IRModule({"main": made}), target=SOURCE[cpu])["main"])


def test_what_follows_the_sums_is_computed_with_them():
    """Blocks that stand before the product and are read after it are no reason for a copy of all results."""
    a, b, r = te.placeholder((6, 8), "int8", "A"), te.placeholder((8, 4), "int8", "B"), te.reduce_axis((0, 8), "r")
    other = te.placeholder((6, 4), "int8", "O")
    wide = te.compute((6, 4), lambda i, j: other[i, j].astype("float32") * 0.5, "E")
    y = te.compute((6, 4), lambda i, j: te.sum(a[i, r].astype("int32") * b[r, j].astype("int32"), axis=r), "C")
    func = te.create_prim_func([a, b, other, te.compute((6, 4), lambda i, j: y[i, j].astype("float32") + wide[i, j], "D")])
    made, _ = scheduled(func)
    assert not any(buffer.shape == wide.shape for buffer in made.root_block.alloc_buffers)


@pytest.mark.parametrize("cpu, name", [("cortex-a7", "contraction"), ("cortex-m3", "pair_products"), ("cortex-m33", "pair_products"),
                                       ("cortex-m55", "pair_products")])
def test_processors_that_have_the_instructions_use_them(cpu, name):
    assert schedule_program(PROGRAMS["pointwise"], Target(cpu), (1,))[0].attrs["scheduled"] == name
