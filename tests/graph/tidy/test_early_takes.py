# SPDX-License-Identifier: Apache-2.0
"""Rows of a constant table are converted after they were taken."""

import numpy as np
import pytest

from roundel.graph.tidy.dead_code import eliminate_dead_code
from roundel.graph.tidy.simplify import simplify
from roundel.ir import graph
from roundel.ops import make

from ..functions import calls, function, same_results

RNG = np.random.default_rng(0)
TABLE = RNG.integers(0, 256, (50, 6)).astype(np.uint8)


def _module(scale, zero, axis=0, shape=(2, 5)):
    """An embedding of tokens from a quantised table."""

    def body(bb, ids):
        emit = lambda *a, **k: bb.emit(make(*a, **k))
        wide = emit("astype", emit("subtract", emit("astype", graph.Constant.of(TABLE), dtype="int32"), zero), dtype="float32")
        return emit("take", emit("multiply", wide, scale), ids, axis=axis)

    return function([graph.TensorInfo(shape, "int64")], body)


@pytest.mark.parametrize("shape", [(1,), (6,), (50, 1), (1, 6), ()])
def test_tables_are_converted_by_rows(shape):
    """With one scale, one for each column, one for each row."""
    mod = _module(RNG.uniform(0.1, 1, shape).astype(np.float32), np.int32(7))
    made = simplify(mod)
    assert calls(eliminate_dead_code(made))[0] == "take"
    same_results(mod, made, RNG.integers(0, 50, (2, 5)))


def test_no_indices_and_negative_ones():
    mod = _module(np.float32(0.5), np.int32(7), shape=(3,))
    same_results(mod, simplify(mod), np.array([-1, 0, -50]))


def test_columns_are_taken_as_they_are():
    mod = _module(np.float32(0.5), np.int32(7), axis=1)
    assert calls(eliminate_dead_code(simplify(mod)))[-1] == "take"


def test_computed_tables_stay():
    def body(bb, table, ids):
        return bb.emit(make("take", bb.emit(make("multiply", table, np.float32(2))), ids, axis=0))

    mod = function([graph.TensorInfo((9, 3), "float32"), graph.TensorInfo((4,), "int64")], body)
    assert simplify(mod) is mod
