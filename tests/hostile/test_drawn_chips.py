# SPDX-License-Identifier: Apache-2.0
"""Models on drawn accelerators, the short form."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel.builder import BlockBuilder
from roundel.intrinsics import accelerators
from roundel.ir import Var, graph
from roundel.ops import make
from roundel.target import Target

from .drawn_chips import NAME, TYPES, Chip, attack, described, drawn, tried

RNG = np.random.default_rng(0)
TARGET = Target(f"x86-64-v3 -device={NAME}")
WEIGHTS = RNG.integers(-128, 128, (45, 34)).astype(np.int8).astype(np.int32)


def multiplied(rows):
    """A product of so many rows, or of any number of them."""
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo((rows or Var("n", "int64", True), 45), "int8"))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(make("matmul", x, graph.Constant.of(WEIGHTS.astype(np.int8)), out_dtype="int32"))
        bb.emit_func_output(out)
    return bb.get()


def kernels(mod):
    """How each kernel is computed."""
    return {row["kernel"]: row["rule"] for row in rd.explain(mod, target=TARGET, threads=1).kernels}


@pytest.mark.parametrize("seed", range(2))
def test_models_on_drawn_chips_give_what_the_processor_gives(seed):
    assert not list(attack(4, seed))


def test_chips_of_many_kinds_are_drawn():
    chips = [drawn(np.random.default_rng([0, k])) for k in range(60)]
    assert len({c.types for c in chips}) == 5
    assert {len(c.memories) for c in chips} == {1, 2, 3}
    assert any(c.layouts[0].endswith("m") for c in chips)
    assert any("p" in c.axes or "q" in c.axes for c in chips)


@pytest.mark.parametrize("sums", ["mn", "nm"])
@pytest.mark.parametrize("weights", ["kn", "nk"])
def test_square_tiles_lie_as_they_are_described(weights, sums):
    """All operands have one shape: which is which, and which axis comes first, is told by their indices alone."""
    memories = {"drawn.data": (900, 4, 1), "drawn.weights": (900, 4, 1), "drawn.sums": (3600, 4, 1)}
    chip = Chip({"m": 3, "n": 3, "k": 3}, ("mk", weights, sums), ("int8", "int8", "int32"), tuple(memories), memories, (0, 2, 1))
    assert not tried(chip, np.random.default_rng(20))


TILES = {  # axes, layouts: what runs once lies anywhere; data and sums have their rows in different orders
    "one row": ({"m": 1, "n": 4, "k": 2}, ("km", "nk", "mn")),
    "one column": ({"m": 6, "n": 1, "k": 4}, ("km", "nk", "mn")),
    "one product": ({"m": 4, "n": 2, "k": 1}, ("mk", "kn", "nm")),
    "rows in two orders": ({"m": 2, "n": 3, "k": 4, "p": 2}, ("mkp", "nk", "pmn")),
    "columns apart": ({"m": 3, "n": 4, "k": 5, "p": 3, "q": 3}, ("mkp", "kqn", "pnmq")),
    "one row of one product": ({"m": 1, "n": 2, "k": 1}, ("km", "kn", "nm")),
    "more rows than there are": ({"m": 9, "n": 9, "k": 6, "p": 3}, ("mpk", "kn", "mpn")),
    "widest beside vectors": ({"m": 7, "n": 9, "k": 5}, ("km", "nk", "mn")),
}


@pytest.mark.parametrize("rows", [17, 0], ids=["known", "any"])
@pytest.mark.parametrize("tile", TILES)
def test_products_that_fill_a_tile_are_computed_by_the_chip(tile, rows):
    axes, layouts = TILES[tile]
    memories = {f"{NAME}.data": (1404, 4, 1), f"{NAME}.weights": (7680, 64, 2), f"{NAME}.sums": (2560, 4, 1)}
    made = accelerators.register(described(Chip(axes, layouts, TYPES[0], tuple(memories), memories, (2, 0, 1))))
    try:
        mod = multiplied(rows)
        assert kernels(mod)["matmul"] == NAME
        model = rd.compile(mod, target=TARGET, threads=1)
        for count in (rows,) if rows else (1, 17):
            x = RNG.integers(-128, 128, (count, 45)).astype(np.int8)
            np.testing.assert_array_equal(model(x), x.astype(np.int32) @ WEIGHTS)
    finally:
        accelerators.unregister(made)
