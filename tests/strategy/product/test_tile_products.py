# SPDX-License-Identifier: Apache-2.0
"""Products in tile registers (AMX): in the interpreter, in the disassembly, and on a processor that has them."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.build.inspect import inspect
from roundel.interp import interpret
from roundel.ir import IRModule, Var, tir
from roundel.ir.dtype import INT64
from roundel.lower import lower
from roundel.strategy.explain import explain_program
from roundel.strategy.pack_constants import relayout
from roundel.strategy.product.tile_products_candidates import lanes_copied
from roundel.strategy.roofline import rates
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target

TARGET = Target("sapphirerapids")
BYTES, HALVES = ("uint8", "int8", "int32"), ("bfloat16", "bfloat16", "float32")
HAS_TILES = Target.host().has("amx-int8") and Target.host().has("amx-bf16")


def product(m, n, k, types=BYTES):
    data, weight, total = types
    a, b, r = te.placeholder((m, k), data, "A"), te.placeholder((k, n), weight, "B"), te.reduce_axis((0, k), "r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r].astype(total) * b[r, j].astype(total), axis=r), "C")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: c[i, j] + 3, "D")]).with_attr("global_symbol", "main")


def convolution(inner, outer, high, wide, window, stride=1, types=BYTES, lanes=16, is_told=False):
    """Of a picture in blocks of channels, with a border of zeros, or of a number that the data tells, such as the zero of quantised numbers."""
    data, weight, total = types
    pad = window // 2
    x, w = te.placeholder((inner, high, wide, lanes), data, "X"), te.placeholder((outer, inner, window, window, lanes, lanes), weight, "W")
    inside = lambda i, j: tir.logical_and(i >= pad, i < high + pad, j >= pad, j < wide + pad)
    fill = x[0, 0, 0, 0] if is_told else te.const(0, data)
    padded = te.compute((inner, high + 2 * pad, wide + 2 * pad, lanes),
                        lambda c, i, j, v: te.if_then_else(inside(i, j), x[c, i - pad, j - pad, v], fill), "P") if pad else x
    c, a, b, v = (te.reduce_axis((0, n), name) for n, name in ((inner, "c"), (window, "a"), (window, "b"), (lanes, "v")))
    rows, columns = ((n + 2 * pad - window) // stride + 1 for n in (high, wide))
    y = te.compute((outer, rows, columns, lanes), lambda o, i, j, q: te.sum(
        padded[c, i * stride + a, j * stride + b, v].astype(total) * w[o, c, a, b, v, q].astype(total), axis=[c, a, b, v]), "Y")
    return te.create_prim_func([x, w, te.compute(y.shape, lambda o, i, j, q: y[o, i, j, q] + 1, "Z")]).with_attr("global_symbol", "main")


def with_axes_of_one():
    """A window of one place moves the data alone, and there is one picture."""
    x, w = te.placeholder((1, 6, 7, 64), "uint8", "X"), te.placeholder((64, 32), "int8", "W")
    a, c = te.reduce_axis((0, 1), "a"), te.reduce_axis((0, 64), "c")
    y = te.compute((1, 6, 7, 32), lambda n, i, j, o: te.sum(x[n, i + a, j, c].astype("int32") * w[c, o].astype("int32"), axis=[a, c]), "Y")
    return te.create_prim_func([x, w, te.compute(y.shape, lambda n, i, j, o: y[n, i, j, o] + 1, "Z")]).with_attr("global_symbol", "main")


def numbers(buffer, shape=None, seed=0):
    rng, dtype = np.random.default_rng(seed), str(buffer.dtype)
    shape = [n.value for n in buffer.shape] if shape is None else shape
    if buffer.dtype.is_int:
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, endpoint=True).astype(dtype)
    return rng.standard_normal(shape).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def scheduled(func, **decisions):
    return schedule_program(func.with_attr("decisions", {"sketch": "tile_products", **decisions}), TARGET, (1,))


def agrees(func, made, layouts, run, rows=None):
    data, weight, result = func.buffer_params
    shape = lambda b: [n.value if isinstance(n, tir.IntImm) else rows for n in b.shape]
    a, b, out, wanted = numbers(data, shape(data)), numbers(weight, seed=1), *(np.full(shape(result), -1, str(result.dtype)) for _ in range(2))
    interpret(IRModule({"main": func}))["main"](a, b, wanted)
    run(a, relayout(b, layouts[1], [n.value for n in made.buffer_params[1].shape]), out)
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-4 if out.dtype.kind == "f" else 0)


PROGRAMS = {
    "whole tiles": product(32, 32, 64), "nothing whole": product(37, 60, 130), "one tile": product(16, 16, 64), "few rows": product(3, 33, 65),
    "bfloat16": product(37, 60, 130, HALVES), "signed": product(20, 48, 70, ("int8", "int8", "int32")),
    "unsigned": product(20, 48, 70, ("uint8", "uint8", "int32")),
    "window": convolution(2, 3, 5, 7, 3), "window of bfloat16, in steps": convolution(2, 2, 9, 4, 3, 2, HALVES), "pointwise": convolution(4, 2, 6, 6, 1),
    "many channels": convolution(8, 2, 4, 5, 3), "axes of one": with_axes_of_one(), "rows of tiles": convolution(1, 2, 9, 7, 3, lanes=64),
    "rows of tiles of bfloat16, in steps": convolution(2, 1, 9, 12, 3, 2, HALVES, lanes=32), "every other place": convolution(1, 1, 9, 7, 1, 2, lanes=64),
    "a border that the data tells": convolution(1, 1, 4, 5, 3, 2, is_told=True),
    "rows of tiles in a border that the data tells": convolution(1, 2, 9, 7, 3, lanes=64, is_told=True),
}
SLIDING = [name for name in PROGRAMS if name.startswith("rows of tiles")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_products_in_tiles_are_the_products(name):
    func = PROGRAMS[name]
    made, layouts = scheduled(func)
    assert made.attrs["scheduled"] == "tile_products"
    agrees(func, made, layouts, interpret(IRModule({"main": made}))["main"])


@pytest.mark.parametrize("types", [BYTES, HALVES], ids=["bytes", "halves"])
def test_a_number_of_rows_that_the_run_tells(types):
    func = product(Var("m", INT64, True), 33, 65, types)
    made, layouts = scheduled(func)
    for rows in (1, 16, 17, 70):
        agrees(func, made, layouts, interpret(IRModule({"main": made}))["main"], rows)


def test_every_candidate_is_the_product():
    func = product(70, 100, 64)
    table = explain_program(func.with_attr("decisions", {"sketch": "tile_products"}), TARGET, constants=(1,)).candidates
    blocks = {(r, c) for r, c in zip(table.columns["rows"].tolist(), table.columns["columns"].tolist(), strict=True)}
    assert blocks == {(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (1, 2), (2, 2), (1, 3), (1, 4), (1, 5), (1, 6)}
    for choice in [{"rows": r, "columns": c} for r, c in blocks] + [{"rows": 2, "columns": 2, "panels": 1, "once": once} for once in (0, 1)]:
        made, layouts = scheduled(func, **choice)
        agrees(func, made, layouts, interpret(IRModule({"main": made}))["main"])
        assert "ldtilecfg" in lower(IRModule({"main": made})).script()  # there are registers for all of it


@pytest.mark.parametrize("name", ["window", "a border that the data tells"])
def test_neighbours_in_the_data_are_copied_together(name):
    table = explain_program(PROGRAMS[name], TARGET, "main", constants=(1,)).sketch
    assert table.name == "tile_products" and lanes_copied(table.steps.keywords["found"]) == 16


@pytest.mark.parametrize("name, block", [(SLIDING[0], {"rows": 1, "columns": 4}), (SLIDING[1], {"rows": 2, "columns": 2})])
def test_windows_slide_over_one_copy(name, block):
    """It is little larger than the data, and no border is a stage of its own."""
    func = PROGRAMS[name]
    made, layouts = scheduled(func, slide=1, **block)
    sizes = {b.name: int(np.prod([n.value for n in b.shape])) for b in made.root_block.alloc_buffers if b.scope == "global"}
    assert "P" not in sizes and sizes["X_tiles"] < 3 * np.prod([n.value for n in func.buffer_params[0].shape])
    agrees(func, made, layouts, interpret(IRModule({"main": made}))["main"])


def test_registers_are_shaped_once_for_each_share_of_a_loop_and_released():
    made, _ = scheduled(product(512, 512, 512))
    flat = lower(IRModule({"main": made}))
    text = flat.script()
    assert text.count("ldtilecfg") == text.count("tilerelease") == 1
    (task,) = [f for _, f in flat.items() if f.attrs.get("kind") == "task"]
    assert "ldtilecfg" in task.script() and task.script().index("ldtilecfg") < task.script().index("\n    for ")
    used = {int(n) for call in re.findall(r"llvm.x86.(?:tdp|tileload|tilezero|tilestore)[^\n]*", text) for n in re.findall(r"T.int8\((\d)\)", call)}
    assert used == set(range(8))


def test_groups_of_columns_that_cannot_be_shown_to_store_apart_run_in_parallel_by_rows_or_by_groups():
    for outer, wide in ((16, 14), (64, 6)):
        made, _ = scheduled(convolution(16, outer, wide, wide, 3), rows=2, columns=2, panels=1)
        assert made.attrs["scheduled"] == "tile_products" and made.script().count("T.parallel") >= 1


@pytest.mark.parametrize("types, mnemonic", [(BYTES, "tdpbusd"), (("int8", "int8", "int32"), "tdpbssd"), (HALVES, "tdpbf16ps")], ids=["us", "ss", "bf16"])
def test_the_inner_loop_is_loads_and_products_of_tiles(types, mnemonic):
    depth = 64 // np.dtype(ml_dtypes.bfloat16 if "bfloat16" in types else types[0]).itemsize  # of a tile
    for steps, streamed in ((8, ""), (16, "B"), (64, "AB")):  # how much of the panels the first cache holds
        made, _ = scheduled(product(512, 512, steps * depth, types), rows=2, columns=2)
        text = inspect(made, target=TARGET).assembly
        found = re.findall(rf"^\s*(tileloaddt1|tileloadd|{mnemonic}|tilezero|tilestored|ldtilecfg|tilerelease)\b", text, re.MULTILINE)
        loads = [f"tileloadd{'t1' * (name in streamed)}" for name in "BBAA"]
        assert found == ["ldtilecfg", *["tilezero"] * 4, *loads, *[mnemonic] * 4, *["tilestored"] * 4, "tilerelease"], streamed


def choice(m, n, k, types=BYTES):
    return explain_program(product(m, n, k, types), TARGET, constants=(1,)).decisions


@pytest.mark.parametrize("types", [BYTES, HALVES], ids=["bytes", "halves"])
def test_panels_of_a_large_constant_are_read_once_while_all_rows_pass(types):
    """The next one is fetched meanwhile; a constant that the second-level cache holds stays there for rows that are copied a block at a time."""
    large, small = choice(128, 768, 3072, types), choice(50176, 256, 64, types)
    assert (large["panels"], large["once"]) == (1, 1) and small["once"] == 0
    assert choice(2048, 2048, 512, types)["panels"] > 1  # results that no near cache holds are not written in narrow pieces
    fetches = lambda func, **decisions: lower(IRModule({"main": scheduled(func, rows=1, columns=2, **decisions)[0]})).script().count("prefetch(")
    for rows in (128, 16):
        assert fetches(product(rows, 256, 512, types), panels=1, once=1)
    assert not fetches(product(128, 256, 512, types), panels=8, once=0)


@pytest.mark.parametrize("func, why", [(product(8, 16, 32), "fill no tile of 64 by 16"), (product(8, 8, 64), "fill no tile of 64 by 16")])
def test_tiles_that_are_refused_are_told_with_the_reason(func, why):
    assert why in explain_program(func, TARGET, constants=(1,)).passed_over["tile_products by amx.product_16x16x64_u8i8i32"]
    assert "is no constant" in explain_program(func, TARGET).passed_over["tile_products by amx.product_16x16x64_u8i8i32"]


def test_copies_of_few_channels_at_a_time_do_not_keep_tiles_away():
    assert explain_program(convolution(3, 6, 40, 40, 3, lanes=8), TARGET, constants=(1,)).rule == "tile_products"


def test_tiles_and_vectors_compete_by_the_time_that_is_expected():
    few, many = (explain_program(product(m, 256, 256), TARGET, constants=(1,)) for m in (1, 512))
    assert (few.rule, many.rule) == ("dot_products", "tile_products")
    assert explain_program(product(512, 256, 256), Target("znver5"), constants=(1,)).rule == "dot_products"


def test_the_bound_of_a_machine_counts_its_tiles():
    gains = rates(TARGET).gains
    assert gains[BYTES] == 32 and gains[HALVES] == 16 and rates(Target("znver5")).gains[BYTES] == 4


@pytest.mark.skipif(not HAS_TILES, reason="needs a processor with AMX")
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_processor_computes_the_products(name, threads):
    func = PROGRAMS[name]
    made, layouts = scheduled(func)
    agrees(func, made, layouts, rd.build(IRModule({"main": made}), threads=threads)["main"])
