# SPDX-License-Identifier: Apache-2.0
"""Matrices that a batch of products shares are not repeated."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.graph.tidy.dead_code import eliminate_dead_code
from roundel.graph.tidy.shared_operands import shared_operands
from roundel.ir import graph
from roundel.ops import make

from ..functions import calls, function, same_results


def _product(left, matrix, repeated, *views):
    """A product of ``left`` and a matrix that is repeated to a shape and seen as others."""

    def body(bb, x, w):
        y = bb.emit(make("broadcast_to", w, graph.ShapeExpr(repeated)))
        for shape in views:
            y = bb.emit(make("reshape", y, graph.ShapeExpr(shape)))
        return make("matmul", x, y)

    return function([graph.TensorInfo(left, "float32"), graph.TensorInfo(matrix, "float32")], body)


@pytest.mark.parametrize(("left", "matrix", "shapes", "once"), [
    ((5, 1, 3), (3, 7), [(5, 3, 7)], True),
    ((6, 2, 3), (1, 1, 3, 7), [(2, 3, 3, 7), (6, 3, 7)], True),
    ((2, 3, 4, 3), (1, 3, 7), [(6, 3, 7), (2, 3, 3, 7)], True),
    ((4, 3), (3, 7), [(5, 3, 7)], False),  # the batch comes from the repetition
    ((2, 4, 3), (2, 3, 7), [(2, 3, 7)], False),
    ((6, 2, 3), (2, 3, 7), [(3, 2, 3, 7), (6, 3, 7)], False),
    ((5, 1, 6), (3, 7), [(10, 3, 7), (5, 6, 7)], False),
])
def test_right_operands(left, matrix, shapes, once):
    mod = _product(left, matrix, *shapes)
    out = eliminate_dead_code(shared_operands(mod))
    assert ("broadcast_to" not in calls(out)) is once
    rng = np.random.default_rng(0)
    same_results(mod, out, *(rng.standard_normal(s).astype("float32") for s in (left, matrix)))
