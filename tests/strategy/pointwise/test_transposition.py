# SPDX-License-Identifier: Apache-2.0
"""Transposed tiles: every shape and permutation gives what NumPy does, and the tiles stay in registers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.build import inspect
from roundel.ir import tir
from roundel.ir.errors import ScheduleError
from roundel.strategy.schedule_module import schedule_program
from roundel.strategy.statements import LANES, statements
from roundel.target import Target

SHAPES = [
    ((172, 20), (1, 0)),  # two tiles side by side, what is left in smaller ones
    ((36, 16, 196), (0, 2, 1)), ((2, 49, 16), (0, 2, 1)), ((3, 20, 37), (0, 2, 1)), ((33, 70), (1, 0)), ((5, 3, 7, 19), (3, 1, 0, 2)),
    ((24, 49), (1, 0)), ((8, 8), (1, 0)), ((1, 17), (1, 0)), ((4, 5), (1, 0)),
]


def _permuted(shape: tuple, order: tuple[int, ...], dtype: str = "float32", more: float | None = None) -> tir.PrimFunc:
    x = te.placeholder(shape, dtype, "x")

    def at(*index: object) -> tir.Expr:
        place = [index[order.index(k)] for k in range(len(shape))]
        return x(*place) if more is None else x(*place) * more

    y = te.compute(tuple(shape[k] for k in order), at, "y")
    return te.create_prim_func([x, y])


@pytest.mark.parametrize("target", ["znver5", "znver3", "neoverse-n1"])
def test_rule(target: str) -> None:
    found = [schedule_program(_permuted(s, o), Target(target))[0].attrs["scheduled"] for s, o in SHAPES]
    assert found == ["transposition"] * 8 + ["elementwise", "transposition"]


@pytest.mark.parametrize("shape, single", [((40, 37), 40), ((172, 20), 0), ((43, 50), 2 * 43 + 48 * 3)])
def test_what_fills_no_tile_is_cut_into_smaller_ones(shape: tuple, single: int) -> None:
    """Single elements are left where no tile of four fits."""
    scheduled, _ = schedule_program(_permuted(shape, (1, 0)), Target("znver3"))
    results = [s for s in statements(scheduled, Target("znver3"), {}) if any(t.is_store and t.buffer in scheduled.buffer_params for t in s.touches)]
    one_by_one = [s for s in results if all(x.kind != LANES for x in s.loops)]
    assert sum(math.prod(x.extent for x in s.loops) for s in one_by_one) == single


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "float16", "uint8"])
def test_values(dtype: str) -> None:
    for k, (shape, order) in enumerate(SHAPES if dtype == "float32" else [((2, 49, 80), (0, 2, 1)), ((33, 70), (1, 0))]):
        run = rd.build(schedule_program(_permuted(shape, order, dtype, 3 if k % 2 and dtype != "uint8" else None), Target.host())[0])
        x = np.arange(np.prod(shape)).reshape(shape).astype(dtype) if dtype != "float16" else np.random.default_rng(0).random(shape).astype(dtype)
        y = np.zeros([shape[i] for i in order], dtype)
        run(x, y)
        np.testing.assert_array_equal(y, x.transpose(order) * (3 if k % 2 and dtype != "uint8" else 1))


@pytest.mark.parametrize("shape, order", [((9, 6, 5, 19), (3, 2, 1, 0)), ((13, 4, 3, 37), (3, 1, 2, 0)), ((5, 3, 7, 24), (1, 3, 2, 0))])
def test_every_order_with_rows_written_in_turn_or_not(shape: tuple, order: tuple[int, ...]) -> None:
    func, x = _permuted(shape, order, more=2.0), np.random.default_rng(0).random(shape, np.float32)
    for pins in ({"staged": s, "order": o} for s in (0, 1) for o in (0, 1)):
        y = np.zeros([shape[i] for i in order], np.float32)
        try:
            scheduled = schedule_program(func, Target.host(), pins={"sketch": "transposition", **pins})[0]
        except ScheduleError:  # only one order is another one than the result's
            assert pins["order"] == 1 and [k for k in order[:-1] if k != len(shape) - 1] == sorted(k for k in order[:-1] if k != len(shape) - 1)
            continue
        rd.build(scheduled)(x, y)
        np.testing.assert_array_equal(y, x.transpose(order) * 2)


@pytest.mark.parametrize("machine, shape, staged", [("sapphirerapids", (56, 121, 15, 19), 1), ("sapphirerapids", (56, 12, 15, 19), 0),
                                                    ("znver4", (83, 8, 4, 105), 0), ("znver4", (56, 121, 15, 19), 0), ("sapphirerapids", (64, 300, 300), 0)])
def test_rows_in_many_pages_are_written_in_turn(machine: str, shape: tuple, staged: int) -> None:
    """Where the result is larger than the second-level cache, the rows of a tile are a page apart or more, and the last cache is far."""
    order = (3, 2, 1, 0) if len(shape) == 4 else (0, 2, 1)
    scheduled, _ = schedule_program(_permuted(shape, order), Target(machine))
    assert sum(b.scope == "global" for b in scheduled.root_block.alloc_buffers) == staged


def test_symbolic_sizes() -> None:
    n, m = te.size_var("n"), te.size_var("m")
    scheduled, _ = schedule_program(_permuted((3, n, m), (0, 2, 1)), Target.host())
    assert scheduled.attrs["scheduled"] == "transposition"
    run = rd.build(scheduled)
    for rows, columns in ((1, 1), (16, 16), (5, 40), (37, 33), (64, 15)):
        x = np.random.default_rng(0).random((3, rows, columns), np.float32)
        y = np.zeros((3, columns, rows), np.float32)
        run(x, y)
        np.testing.assert_array_equal(y, x.transpose(0, 2, 1))


@pytest.mark.parametrize("shape, perm, whole", [((4, 16, 64), (0, 2, 1), True), ((64, 96), (1, 0), True), ((64, 72), (1, 0), False)])
def test_tiles_stay_in_registers(shape, perm, whole) -> None:
    """Also where the loops over tiles are one; vectors of a whole line only where rows begin at lines."""
    scheduled, _ = schedule_program(_permuted(shape, perm), Target("znver5"))
    assembly = inspect(scheduled).assembly
    if whole:
        assert assembly.count("vunpck") == 32 and assembly.count("vshuff64x2") == 32
    assert ("zmm" in assembly) == whole and not [x for x in assembly.splitlines() if "mm" in x and "rsp" in x]
