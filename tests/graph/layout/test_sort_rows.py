# SPDX-License-Identifier: Apache-2.0
"""Sorts along strided axes become those of rows."""

import numpy as np
import pytest

from roundel.graph.layout.sort_rows import sort_rows
from roundel.ir import Var, graph, tir
from roundel.ir.dtype import INT64
from roundel.ops import make

from ..functions import calls, function
from ..running import agree

RNG = np.random.default_rng(0)
N = Var("n", INT64, True)


def _sorts(bb, x):
    best = bb.emit(make("topk", x, graph.PrimValue(tir.index_const(3)), axis=0, dtype="int64"))
    values, places = bb.emit(graph.TupleGetItem(best, 0)), bb.emit(graph.TupleGetItem(best, 1))
    return graph.Tuple((values, places, bb.emit(make("sort", x, axis=1, descending=True)), bb.emit(make("argsort", x, axis=-1)), best))


@pytest.mark.parametrize("shape, size", [((20, 5, 3), (20, 5, 3)), ((7, N, 3), (7, 9, 3)), ((40, 1, 1), (40, 1, 1))])
def test_sorts_along_any_axis(shape, size):
    mod = function([graph.TensorInfo(shape, "float32")], _sorts)
    made = sort_rows(mod)
    assert calls(made).count("permute_dims") == (0 if size[2] == 1 else 5)
    agree(mod, (RNG.integers(0, 9, size).astype("float32"),))
