# SPDX-License-Identifier: Apache-2.0
"""Axes that go together become one, and only those."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.driver import LOWER, prepare
from roundel.graph.programs.collapse_axes import collapse_axes
from roundel.graph.programs.fuse import fuse
from roundel.graph.programs.legalize import legalize
from roundel.ir import graph, tir
from roundel.ir.dtype import DType
from roundel.ops import make

from ..functions import function, same_results
from ..running import agree

RNG = np.random.default_rng(5)
N, H, W = (tir.Var(x, DType("int64"), True) for x in "nhw")


def _x(*shape):
    return RNG.standard_normal(shape).astype("float32")


def _const(*shape):
    return graph.Constant.of(_x(*shape) * 0.3)


def _relu(bb, x):
    return make("nn.relu", x)


def _bias(bb, x):
    return make("add", x, _const(1, 6, 1, 1))


def _pointwise_conv(bb, x):
    y = bb.emit(make("nn.conv2d", x, _const(8, 6, 1, 1)))
    return make("nn.relu", bb.emit(make("add", y, _const(1, 8, 1, 1))))


def _strided_conv(bb, x):
    return make("nn.conv2d", x, _const(8, 6, 1, 1), strides=2)


def _gradient(bb, x):
    return make("concat", graph.Tuple((x, bb.emit(make("negative", x)))), axis=1)


def _transposed(bb, x):
    return make("add", x, bb.emit(make("permute_dims", bb.emit(make("permute_dims", x, axes=(0, 1, 3, 2))), axes=(0, 1, 3, 2))))


CASES = {_relu: 1, _bias: 3, _pointwise_conv: 3, _strided_conv: 4, _gradient: 3, _transposed: 4}


@pytest.mark.parametrize("body", CASES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dims", [(2, 6, 5, 7), (N, 6, H, W)], ids=["static", "symbolic"])
def test_axes(body, dims):
    """The number of dimensions that are left, and the same results."""
    mod = function([graph.TensorInfo(dims, "float32")], body)
    lowered = prepare(mod, pipeline=[legalize, fuse])
    after = collapse_axes(lowered)
    ranks = [max(b.ndim for b in f.buffer_params) for _, f in after.items() if isinstance(f, tir.PrimFunc)]
    assert min(ranks) <= CASES[body] if body is not _transposed else min(ranks) >= 1
    if body is _strided_conv:
        assert max(ranks) == 4, "an axis with a stride goes alone"
    same_results(lowered, after, _x(2, 6, 5, 7))


@pytest.mark.parametrize("shape", [(1, 6, 1, 1), (2, 6, 5, 7), (3, 6, 13, 11)])
def test_compiled(shape):
    agree(function([graph.TensorInfo((N, 6, H, W), "float32")], _pointwise_conv), (_x(*shape),))


def test_the_default_pipeline_has_it():
    assert collapse_axes in LOWER
