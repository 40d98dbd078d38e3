# SPDX-License-Identifier: Apache-2.0
"""Convolutions of 16-bit floats against the interpreter, and that they run on blocked layouts."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from roundel.builder import BlockBuilder
from roundel.driver import compile_module, prepare
from roundel.interp import interpret
from roundel.ir import graph
from roundel.ir.constants import ConstData
from roundel.ops import make
from roundel.target import Target

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def _layers(op, shape, weight, dtype):
    """Two convolutions with a relu between."""
    rng, bb = np.random.default_rng(0), BlockBuilder()
    x = graph.Var("x", graph.TensorInfo(shape, dtype))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = x
            for channels in (weight, (weight[1 if "transpose" in op else 0],) * 2 + weight[2:]):
                kernel = (rng.standard_normal(channels) / 4).astype(TYPES[dtype])
                y = bb.emit(make("nn.relu", bb.emit(make(op, y, graph.Constant(ConstData(kernel), graph.TensorInfo(channels, dtype))))))
            y = bb.emit_output(y)
        bb.emit_func_output(y)
    return bb.get()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op, shape, weight", [("nn.conv2d", (2, 3, 9, 7), (32, 3, 3, 2)), ("nn.conv1d", (1, 5, 11), (16, 5, 3)),
                                               ("nn.conv2d_transpose", (1, 4, 5, 3), (4, 6, 2, 2))])
def test_equals_the_interpreter(op, shape, weight, dtype):
    mod = _layers(op, shape, weight, dtype)
    x = np.random.default_rng(1).standard_normal(shape).astype(TYPES[dtype])
    got, want = compile_module(mod).load(threads=1)["main"](x), interpret(mod)["main"](x)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got.astype("f"), want.astype("f"), rtol=2e-2, atol=2e-2)


def test_layouts_are_those_of_float32():
    text = prepare(_layers("nn.conv2d", (1, 16, 14, 14), (32, 16, 3, 3), "float16"), target=Target("llvm -mcpu=skylake-avx512")).script()
    assert "winograd" in text or ", 14, 14, 16)" in text or ", 12, 12, 16)" in text
