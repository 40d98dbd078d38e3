# SPDX-License-Identifier: Apache-2.0
"""com.microsoft quantised operators against ONNX Runtime. Its rounding may differ by one unit where it uses other arithmetic."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import roundel as rd

from .single_node import check as check_node

pytest.importorskip("onnxruntime")
check = partial(check_node, domain="com.microsoft")
rng = np.random.default_rng(11)


def f32(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def levels(dtype: Any, *shape: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def scale(v: float) -> np.ndarray:
    return np.array(v, np.float32)


unit = partial(check, tolerance=1.01)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_elementwise(dtype: Any) -> None:
    a, b, zero = levels(dtype, 2, 3, 5), levels(dtype, 3, 5), np.array(3, dtype)
    for op in ("QLinearAdd", "QLinearMul"):
        unit(op, a, scale(0.1), zero, b, scale(0.2), zero, scale(0.3), zero)
    unit("QLinearSigmoid", a, scale(0.05), zero, scale(1 / 256), zero)
    unit("QLinearLeakyRelu", a, scale(0.05), zero, scale(0.04), zero, alpha=0.2)
    unit("QLinearSoftmax", a, scale(0.05), zero, scale(1 / 256), zero, opset=13, axis=-1)
    unit("QLinearConcat", scale(0.1), zero, a, scale(0.2), zero, a, scale(0.1), zero, axis=1)
    unit("QLinearWhere", rng.random((3, 5)) > 0.5, a, scale(0.1), zero, b, scale(0.2), zero, scale(0.3), zero)


def test_pooling() -> None:
    x, zero = levels(np.uint8, 1, 3, 6, 5), np.array(100, np.uint8)
    unit("QLinearGlobalAveragePool", x, scale(0.1), zero, scale(0.05), zero, channels_last=0)
    unit("QLinearAveragePool", x, scale(0.1), zero, scale(0.09), zero, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_products(dtype: Any) -> None:
    b, zero = levels(dtype, 6, 4), np.array(2, dtype)
    column_scales, column_zeros = np.abs(f32(4)) + 0.01, levels(dtype, 4)
    check("DynamicQuantizeMatMul", f32(2, 3, 6), b, column_scales, column_zeros, f32(4), tolerance=1e-3)
    a = levels(np.uint8, 2, 3, 6)
    check("MatMulIntegerToFloat", a, b, scale(0.1), column_scales, np.array(7, np.uint8), column_zeros, f32(4), tolerance=1e-4)
    check("QGemm", levels(np.uint8, 3, 6), scale(0.1), np.array(7, np.uint8), b, scale(0.2), zero, tolerance=1e-4, alpha=0.5)
    unit("QGemm", levels(np.uint8, 3, 6), scale(0.1), np.array(7, np.uint8), b, scale(0.2), zero, levels(np.int16, 4).astype(np.int32), scale(3.0),
         np.array(9, np.uint8), constant=[3, 4, 5])


@pytest.mark.parametrize(("bits", "has_zeros"), [(4, False), (4, True), (8, True)])
def test_block_weights(bits: int, has_zeros: bool) -> None:
    n, k, block = 5, 40, 16
    blocks = -(-k // block)
    b, s = levels(np.uint8, n, blocks, block * bits // 8), np.abs(f32(n, blocks)) / 10
    zeros = levels(np.uint8, n, -(-blocks * bits // 8)) if has_zeros else None
    check("MatMulNBits", f32(2, 3, k), b, s, zeros, constant=[1, 2, 3], N=n, K=k, bits=bits, block_size=block, tolerance=1e-4)


@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize("width", [16, 15, 9, 24])
def test_gathered_blocks(width: int, has_zeros: bool) -> None:
    """The last block of a row may be shorter than the others."""
    blocks = -(-2 * width // 16)
    table, s = levels(np.uint8, 7, width), np.abs(f32(7, blocks))
    zeros = levels(np.uint8, 7, -(-blocks // 2)) if has_zeros else None
    check("GatherBlockQuantized", table, np.array([[1, 6], [0, 3]]), s, zeros, constant=[0, 2, 3], gather_axis=0, quantize_axis=1, block_size=16, bits=4)


def test_scales_that_are_not_one_for_each_block_are_refused() -> None:
    inputs = ("table", TensorProto.UINT8, [7, 16]), ("ids", TensorProto.INT64, [2]), ("s", TensorProto.FLOAT, [7, 3])
    infos = [helper.make_tensor_value_info(*info) for info in inputs]
    node = helper.make_node("GatherBlockQuantized", ["table", "ids", "s"], ["y"], domain="com.microsoft", gather_axis=0, quantize_axis=1, block_size=16)
    model = helper.make_model(helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")]))
    with pytest.raises(rd.RoundelError, match="scales of a row and blocks of 16 of its elements: 3 and 2"):
        rd.compile(model)


def test_networks() -> None:
    h = 4
    x, bias, one = f32(5, 2, 3), f32(1, 8 * h), np.array([0], np.uint8)
    w, r = levels(np.uint8, 1, 3, 4 * h), levels(np.uint8, 1, h, 4 * h)
    check("DynamicQuantizeLSTM", x, w, r, bias, None, None, None, None, np.array([0.002], np.float32), one + 128, np.array([0.002], np.float32), one + 128,
          constant=[1, 2, 8, 9, 10, 11], hidden_size=h, outputs=3, tolerance=1e-3)
    tables = [levels(np.uint8, n, 8) for n in (11, 6, 2)] + [levels(np.uint8, 8) for _ in range(2)]
    ids, kinds = rng.integers(0, 11, (2, 5)).astype(np.int32), rng.integers(0, 2, (2, 5)).astype(np.int32)
    facts = [scale(0.02)] * 5 + [np.array(128, np.uint8)] * 5
    check("QEmbedLayerNormalization", ids, kinds, *tables, np.ones((2, 5), np.int32), *facts, outputs=2, epsilon=1e-5, tolerance=1e-4)
    q, weights = levels(np.uint8, 2, 5, 6), levels(np.int8, 6, 24)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    check("QAttention", q, weights, f32(24), scale(0.02), scale(0.01), mask, np.array(120, np.uint8), np.array(0, np.int8), num_heads=2, tolerance=1e-4)
