# SPDX-License-Identifier: Apache-2.0
"""Tile registers of AMX: what their instructions compute is what their descriptions say, in the interpreter and on a processor that has them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from roundel.interp import interpret
from roundel.intrinsics import TensorIntrin
from roundel.ir import IRModule
from roundel.ir.visit import walk
from roundel.target import Target

TILES = [i for i in TensorIntrin.all() if i.name.startswith("amx.")]
PRODUCTS = [i for i in TILES if "product_" in i.name]
MOVES = [i for i in TILES if i not in PRODUCTS]
KINDS = ["random", "ends", "least", "largest", "special", "tiny"]


def values(buffer, kind):
    """Of an operand: the ends of its type's range, or numbers at random."""
    rng, shape = np.random.default_rng(len(kind)), [n.value for n in buffer.shape]
    if buffer.dtype.is_int:
        info = np.iinfo(str(buffer.dtype))
        ends = rng.choice([info.min, info.max, 0, 1, max(info.min, -127), min(info.max, 127)], shape)
        picked = {"ends": ends, "least": np.full(shape, info.min), "largest": np.full(shape, info.max)}.get(kind)
        return np.asarray(rng.integers(info.min, info.max, shape, endpoint=True) if picked is None else picked).astype(str(buffer.dtype))
    picked = {"ends": rng.choice([0.0, -0.0, 1.0, -3.0, 1e18, -1e18, 1e-18], shape), "least": np.full(shape, -1e15), "largest": np.full(shape, 1e15),
              "special": rng.choice([np.nan, np.inf, -np.inf, 1.0, -2.0], shape, p=[0.01, 0.01, 0.01, 0.47, 0.5]),
              "tiny": rng.choice([1e-40, -3e-39, 1e-38, 2.0], shape)}.get(kind)
    return (rng.standard_normal(shape) if picked is None else picked).astype(ml_dtypes.bfloat16 if buffer.dtype == "bfloat16" else str(buffer.dtype))


def run(program, arrays):
    out = [a.copy() for a in arrays]
    interpret(IRModule({"main": program.with_attr("global_symbol", "main")}))["main"](*out)
    return out[-1]


def close(intrin, made, wanted, arrays):
    if made.dtype.kind == "i":
        np.testing.assert_array_equal(made, wanted)
        return
    a, b, c = (np.abs(np.nan_to_num(x.astype(np.float64), posinf=0, neginf=0)) for x in arrays)
    lost = 2e-38 * (1 + a.max() + b.max()) * a.shape[1] * a.shape[2]
    bound = 40 * np.finfo(np.float32).eps * (c + np.einsum("ikg,kjg->ij", a, b)) + lost
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.isnan(made), np.isnan(wanted))
    np.testing.assert_array_equal(made[~finite], wanted[~finite])
    assert np.all(np.abs(made[finite].astype(np.float64) - wanted[finite]) <= bound[finite])


def described(arrays):
    a, b, c = arrays
    if c.dtype.kind == "i":
        return (c + np.einsum("ikg,kjg->ij", a.astype(np.int64), b.astype(np.int64))).astype(np.int32)
    with np.errstate(all="ignore"):
        wide = a.astype(np.float64)[:, None, :, :] * b.astype(np.float64).transpose(1, 0, 2)[None]
        return (c.astype(np.float64) + wide.sum((2, 3))).astype(np.float32)


@pytest.mark.parametrize("intrin", PRODUCTS, ids=lambda i: i.name)
def test_products_compute_what_the_description_says(intrin):
    for kind in KINDS:
        arrays = [values(b, kind) for b in intrin.desc.buffer_params]
        for program in (intrin.desc, intrin.impl):
            close(intrin, run(program, arrays), described(arrays), arrays)


@pytest.mark.parametrize("intrin", MOVES, ids=lambda i: i.name)
def test_tiles_are_loaded_stored_and_cleared_as_described(intrin):
    arrays = [values(b, "random") for b in intrin.desc.buffer_params]
    np.testing.assert_array_equal(run(intrin.impl, arrays), run(intrin.desc, arrays))


def test_every_product_names_the_instructions_that_go_with_it():
    assert len(PRODUCTS) == 5
    for intrin in PRODUCTS:
        assert {"init", "store", "load_A", "load_B", "stream_A", "stream_B"} == set(intrin.companions)
        assert all(TensorIntrin.get(n).has_effects for n in intrin.companions.values())
        assert set(intrin.storage.values()) == {"amx.tmm"} and intrin.has_effects and intrin.cost.slots == 32
        assert intrin.runs_on(Target("sapphirerapids")) and not intrin.runs_on(Target("znver5"))


def test_operands_are_the_numbers_of_registers_and_nothing_that_could_be_left_out():
    for intrin in TILES:
        (call,) = [n for n in walk(intrin.impl.body) if getattr(n, "op", None) == "call_llvm_intrin"]
        assert call.args[1].value == len(call.args) - 2  # how many operands follow, as a register's number could be taken for that
