# SPDX-License-Identifier: Apache-2.0
"""Calls of operators of which every size is an input's: examples, and what another implementation says of the same call.

``OPERATORS`` names operator, operands, attributes. An operand is an array or None; ``constant(array)`` is known to the model, ``fixed(array, axes)`` has
sizes along these axes that the model knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_MOST = 1 << 18  # elements of an operand, about
_RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Operand:
    """An example of an operand."""

    value: np.ndarray
    constant: bool = False
    fixed: tuple[int, ...] = ()


@dataclass(frozen=True)
class Subject:
    """``compile()`` gives a model; ``example`` inputs that are right, with the axes of each that may have other sizes; ``reference`` what is right."""

    name: str
    compile: Callable[[], Any]
    example: tuple[np.ndarray, ...]
    axes: tuple[tuple[int, ...], ...]
    reference: Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]] = field(repr=False)


def f(*shape: int) -> np.ndarray:
    """Numbers between 0 and 1."""
    return _RNG.random(shape, np.float32)


def i(*values: int, dtype: str = "int64") -> np.ndarray:
    """Integers."""
    return np.array(values, dtype)


def zeros(dtype: str, *shape: int) -> np.ndarray:
    """Zeros."""
    return np.zeros(shape, dtype)


def constant(value: Any) -> Operand:
    """An operand that the model holds."""
    return Operand(np.asarray(value), constant=True)


def fixed(value: np.ndarray, *axes: int) -> Operand:
    """An operand with sizes that the model knows."""
    return Operand(value, fixed=axes)


def scalar(value: Any, dtype: str) -> np.ndarray:
    """A tensor without dimensions."""
    return np.array(value, dtype)


MS = "com.microsoft"
OPERATORS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("BatchNormalization", [f(2, 3, 5, 5), f(3), f(3), f(3), f(3)], {}), ("InstanceNormalization", [f(2, 3, 5, 5), f(3), f(3)], {}),
    ("LayerNormalization", [f(4, 8), f(8), f(8)], {}), ("LayerNormalization", [f(4, 3, 8), f(3, 8), f(3, 8)], {"axis": 1}),
    ("GroupNormalization", [f(2, 4, 5), f(4), f(4)], {"num_groups": 2, "opset": 21}),
    ("GroupNormalization", [f(2, 4, 5), f(2), f(2)], {"num_groups": 2, "opset": 18}),
    ("RMSNormalization", [f(4, 8), f(8)], {"opset": 23}), ("LpNormalization", [f(4, 8)], {}), ("MeanVarianceNormalization", [f(2, 3, 4, 5)], {}),
    ("LRN", [f(2, 3, 4, 5)], {"size": 3}), ("PRelu", [f(2, 3, 5, 4), fixed(f(3, 1, 1), 1, 2)], {}), ("PRelu", [f(2, 3, 5, 4), f(4)], {}),
    ("Conv", [f(2, 3, 5, 6), fixed(f(4, 3, 3, 3), 2, 3), f(4)], {"pads": [1] * 4}), ("Conv", [f(2, 4, 5, 6), fixed(f(4, 2, 3, 3), 2, 3), f(4)], {"group": 2}),
    ("Conv", [f(2, 3, 5, 6), constant(f(4, 3, 3, 3)), f(4)], {"strides": [2, 2]}),
    ("Conv", [fixed(f(2, 3, 5, 6), 1), constant(f(16, 3, 3, 3))], {"auto_pad": "SAME_UPPER"}),
    ("Conv", [f(2, 3, 7), fixed(f(4, 3, 3), 2)], {"dilations": [2]}),
    ("ConvTranspose", [f(2, 3, 5, 6), fixed(f(3, 4, 3, 3), 2, 3), f(4)], {"strides": [2, 2]}),
    ("ConvTranspose", [f(2, 3, 5, 6), constant(f(3, 4, 2, 2))], {"strides": [2, 2]}),
    ("DeformConv", [f(2, 3, 5, 6), fixed(f(4, 3, 3, 3), 2, 3), fixed(f(2, 18, 5, 6), 1), f(4), fixed(f(2, 9, 5, 6), 1)], {"pads": [1] * 4}),
    ("Gemm", [f(4, 5), f(5, 6), f(6)], {}), ("Gemm", [f(5, 4), f(6, 5), f(4, 6)], {"transA": 1, "transB": 1}), ("MatMul", [f(2, 4, 5), f(2, 5, 6)], {}),
    ("MatMul", [f(5), f(2, 5, 6)], {}), ("MatMul", [f(4, 5), constant(f(5, 64))], {}), ("MatMul", [f(2, 3, 4, 5), f(3, 5, 6)], {}),
    ("Einsum", [f(4, 5), f(5, 6)], {"equation": "ij,jk->ik"}), ("Einsum", [f(4, 4)], {"equation": "ii->i"}),
    ("Einsum", [f(4, 4), f(4)], {"equation": "ii,i->"}),
    ("Einsum", [f(2, 3, 4), f(2, 4, 5), f(5)], {"equation": "...ij,...jk,k->...i"}),
    ("Einsum", [f(2, 3, 4), f(4, 2)], {"equation": "bij,jb->i"}), ("Where", [f(4, 5) > 0.5, f(4, 5), f(5)], {}), ("Add", [f(4, 5), f(4, 5)], {}),
    ("Add", [f(3, 4, 5), f(4, 5)], {}), ("Add", [fixed(f(1, 5), 0), fixed(f(4, 1), 1)], {}), ("Sum", [f(4, 5), f(4, 5), f(5)], {}),
    ("Clip", [f(4, 5), scalar(0.2, "float32"), scalar(0.8, "float32")], {}), ("Gather", [f(4, 5), i(0, 1)], {}),
    ("Gather", [f(4, 5), constant(i(3, -1))], {"axis": 1}), ("GatherElements", [f(4, 5), i(0, 1, 2, 3, 0).reshape(1, 5)], {}),
    ("GatherElements", [f(4, 5), i(0, 1, 2, 3).reshape(4, 1)], {"axis": 1}),
    ("GatherND", [f(2, 4, 5), fixed(i(0, 1).reshape(2, 1, 1), 2)], {"batch_dims": 1}),
    ("GatherND", [f(4, 5), fixed(i(0, 1, 2, 3).reshape(2, 2), 1)], {}), ("ScatterElements", [f(4, 5), i(0, 1, 2, 3, 0).reshape(1, 5), f(1, 5)], {}),
    ("ScatterElements", [f(4, 5), i(0, 1, 2, 3).reshape(4, 1), f(4, 1)], {"axis": 1, "reduction": "add"}),
    ("ScatterND", [f(4, 5), fixed(i(0, 2).reshape(2, 1), 1), f(2, 5)], {}), ("ScatterND", [f(4, 5), fixed(i(0, 2).reshape(1, 2), 1), f(1)], {}),
    ("TensorScatter", [f(2, 5, 4), f(2, 2, 4), i(0, 1)], {"axis": 1, "opset": 24}), ("TensorScatter", [f(2, 5, 4), f(2, 2, 4)], {"axis": 1, "opset": 24}),
    ("TensorScatter", [f(2, 5, 4), f(2, 2, 4), i(4, 1)], {"axis": 1, "mode": "circular", "opset": 24}),
    ("ReverseSequence", [f(4, 2, 3), i(3, 2)], {}), ("OneHot", [i(0, 1), constant(i(4)), constant(np.float32([0, 1]))], {}),
    ("TopK", [f(4, 5), constant(i(3))], {"outputs": 2}), ("Tile", [f(4, 5), constant(i(2, 1))], {}), ("Expand", [fixed(f(1, 5), 0), constant(i(4, 1))], {}),
    ("Pad", [f(4, 5), constant(i(0, 0, 1, 1)), scalar(3, "float32")], {}), ("Pad", [f(4, 5), constant(i(1, 1, 0, -1))], {"mode": "reflect"}),
    ("Pad", [f(4, 5), constant(i(3, 0, 3, 4))], {"mode": "reflect"}), ("Pad", [f(4, 5), constant(i(7, 0, 0, 9))], {"mode": "wrap", "opset": 19}),
    ("Pad", [f(4, 5), constant(i(1, 2, 0, 1))], {"mode": "edge"}), ("Pad", [f(4, 5), constant(i(-1, -2, 0, -1))], {}),
    ("Slice", [f(4, 5), constant(i(1, 0)), constant(i(3, 4))], {}),
    ("Slice", [f(4, 5), constant(i(-1)), constant(i(-9)), constant(i(0)), constant(i(-2))], {}),
    ("Split", [f(4, 5), constant(i(2, 2))], {"outputs": 2}), ("Split", [f(6, 5)], {"num_outputs": 3, "outputs": 3}),
    ("Concat", [f(4, 5), f(2, 5)], {"axis": 0}), ("Concat", [f(4, 5), f(4, 2), f(4, 1)], {"axis": 1}), ("Reshape", [f(4, 6), constant(i(2, -1))], {}),
    ("Reshape", [f(4, 6), constant(i(0, 2, 3))], {}), ("Reshape", [f(4, 6), constant(i(24))], {}), ("Flatten", [f(2, 3, 4)], {}),
    ("Transpose", [f(2, 3, 4)], {}), ("Squeeze", [f(1, 3, 1), constant(i(0))], {}), ("Unsqueeze", [f(3, 4), constant(i(1))], {}),
    ("DepthToSpace", [f(2, 8, 3, 4)], {"blocksize": 2}), ("SpaceToDepth", [f(2, 3, 4, 6)], {"blocksize": 2}),
    ("DepthToSpace", [f(1, 8, 2, 2)], {"blocksize": 2, "mode": "CRD"}), ("CenterCropPad", [f(6, 5), constant(i(4, 8))], {}),
    ("CenterCropPad", [f(6, 5), constant(i(3))], {"axes": [1]}),
    ("Resize", [f(2, 3, 5, 6), None, None, constant(i(2, 3, 7, 9))], {"mode": "linear"}),
    ("Resize", [f(1, 3, 5, 6), None, constant(np.float32([1, 1, 2, 0.5]))], {"mode": "nearest"}),
    ("Resize", [f(1, 3, 5, 6), None, constant(np.float32([1, 1, 2, 0.5]))], {"mode": "cubic"}),
    ("Resize", [f(1, 1, 8, 8), constant(np.float32([0, 0, 0.1, 0.2, 1, 1, 0.9, 0.8])), None, constant(i(1, 1, 4, 4))],
      {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}),
    ("Upsample", [f(1, 2, 3, 4), constant(np.float32([1, 1, 2, 3]))], {"opset": 9}),
    ("GridSample", [f(2, 3, 5, 5), fixed(f(2, 4, 4, 2), 3)], {}),
    ("GridSample", [f(2, 3, 5, 5), fixed(f(2, 4, 4, 2), 3)], {"padding_mode": "border", "mode": "nearest"}),
    ("GridSample", [f(2, 3, 5, 5), fixed(f(2, 4, 4, 2), 3)], {"padding_mode": "reflection", "mode": "cubic"}),
    ("AffineGrid", [fixed(f(2, 2, 3), 1, 2), constant(i(2, 1, 4, 4))], {}), ("AffineGrid", [f(2, 2, 3), constant(i(2, 1, 4, 4))], {}),
    ("RoiAlign", [f(2, 3, 5, 5), fixed(np.float32([[0, 0, 4, 4]]), 1), i(0)], {"output_height": 2, "output_width": 2}),
    ("MaxRoiPool", [f(2, 3, 5, 5), fixed(np.float32([[0, 0, 0, 4, 4]]), 1)], {"pooled_shape": [2, 2]}),
    ("MaxPool", [f(2, 3, 5, 6)], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ("AveragePool", [f(2, 3, 5, 6)], {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}),
    ("LpPool", [f(2, 3, 5, 6)], {"kernel_shape": [2, 2]}), ("GlobalAveragePool", [f(2, 3, 5, 6)], {}), ("GlobalMaxPool", [f(2, 3, 5, 6)], {}),
    ("MaxUnpool", [f(1, 1, 2, 2), i(0, 3, 8, 15).reshape(1, 1, 2, 2)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("MaxUnpool", [f(1, 1, 2, 2), i(0, 1, 2, 3).reshape(1, 1, 2, 2), constant(i(1, 1, 5, 5))],
      {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("NonMaxSuppression", [fixed(f(1, 6, 4), 2), f(1, 2, 6), i(3), np.float32([0.5]), np.float32([0.1])], {}),
    ("LSTM", [f(3, 2, 4), fixed(f(1, 16, 4), 1), fixed(f(1, 16, 4), 1, 2), f(1, 32), i(3, 2, dtype="int32"), f(1, 2, 4), f(1, 2, 4), f(1, 12)],
      {"hidden_size": 4, "outputs": 3}),
    ("LSTM", [f(3, 2, 4), constant(f(1, 16, 4)), constant(f(1, 16, 4)), constant(f(1, 32)), i(3, 2, dtype="int32")],
      {"hidden_size": 4, "direction": "reverse"}),
    ("GRU", [f(3, 2, 4), f(1, 12, 4), f(1, 12, 4), f(1, 24), i(3, 2, dtype="int32"), f(1, 2, 4)], {"hidden_size": 4, "outputs": 2}),
    ("RNN", [f(3, 2, 4), f(1, 4, 4), f(1, 4, 4), f(1, 8), None, f(1, 2, 4)], {"hidden_size": 4, "direction": "reverse"}),
    ("NegativeLogLikelihoodLoss", [f(2, 3, 4), zeros("int64", 2, 4), f(3)], {}),
    ("NegativeLogLikelihoodLoss", [f(5, 3), zeros("int64", 5)], {"reduction": "none"}),
    ("SoftmaxCrossEntropyLoss", [f(2, 3, 4), zeros("int64", 2, 4), f(3)], {}),
    ("SoftmaxCrossEntropyLoss", [f(5, 3), zeros("int64", 5)], {"reduction": "sum", "ignore_index": 1}),
    ("QuantizeLinear", [f(4, 5), f(5), zeros("uint8", 5)], {"axis": 1}),
    ("QuantizeLinear", [f(4, 8), f(4, 2), zeros("uint8", 4, 2)], {"axis": 1, "block_size": 4, "opset": 21}),
    ("DequantizeLinear", [zeros("uint8", 4, 5), f(5), zeros("uint8", 5)], {"axis": 1}),
    ("DequantizeLinear", [zeros("int8", 4, 8), f(4, 2), zeros("int8", 4, 2)], {"axis": 1, "block_size": 4, "opset": 21}),
    ("DynamicQuantizeLinear", [f(4, 5)], {"outputs": 3}),
    ("QLinearMatMul", [zeros("uint8", 4, 5), scalar(1, "float32"), scalar(0, "uint8"), zeros("uint8", 5, 6), f(6), zeros("uint8", 6), scalar(1, "float32"),
      scalar(0, "uint8")], {}),
    ("QLinearConv", [zeros("uint8", 1, 3, 5, 5), scalar(1, "float32"), scalar(0, "uint8"), fixed(zeros("uint8", 4, 3, 3, 3), 2, 3), f(4),
      zeros("uint8", 4), scalar(1, "float32"), scalar(0, "uint8"), zeros("int32", 4)], {}),
    ("MatMulInteger", [zeros("uint8", 4, 5), zeros("uint8", 5, 6), zeros("uint8", 4), zeros("uint8", 6)], {}),
    ("ConvInteger", [zeros("uint8", 1, 3, 5, 5), fixed(zeros("uint8", 4, 3, 3, 3), 2, 3), scalar(0, "uint8"), zeros("uint8", 4)], {}),
    ("Attention", [f(2, 2, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 4), f(2, 2, 3, 5)], {"opset": 23}),
    ("Attention", [f(2, 2, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 4), f(3, 5)], {"opset": 23}),
    ("Attention", [f(2, 4, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 6)], {"opset": 23}),
    ("Attention", [f(2, 2, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 4), fixed(f(1, 1, 3, 5) > 0.5, 0, 1)], {"opset": 23}),
    ("Attention", [f(2, 2, 3, 4), f(2, 2, 2, 4), f(2, 2, 2, 4), None, f(2, 2, 3, 4), f(2, 2, 3, 4)], {"opset": 23, "outputs": 3, "is_causal": 1}),
    ("Attention", [fixed(f(2, 3, 8), 2), fixed(f(2, 5, 8), 2), fixed(f(2, 5, 8), 2)], {"q_num_heads": 2, "kv_num_heads": 2, "opset": 23}),
    ("Attention", [fixed(f(1, 1, 2, 4), 3), fixed(f(1, 1, 10, 4), 3), fixed(f(1, 1, 10, 4), 3), None, None, None, i(7)], {"opset": 24}),
    ("RotaryEmbedding", [fixed(f(2, 2, 3, 4), 3), f(9, 2), f(9, 2), i(0, 1, 2, 0, 1, 2).reshape(2, 3)], {"opset": 23}),
    ("RotaryEmbedding", [fixed(f(2, 2, 3, 4), 3), f(2, 3, 2), f(2, 3, 2)], {"opset": 23}),
    ("Compress", [f(4, 5), np.array([1, 0, 1, 0], bool)], {"axis": 0}), ("Compress", [f(4, 5), np.array([1, 0, 1, 0], bool)], {}), ("NonZero", [f(4, 5)], {}),
    ("Unique", [f(4, 5)], {"axis": 0}), ("Unique", [f(4, 5)], {"sorted": 0}), ("CumSum", [f(4, 5), constant(scalar(1, "int64"))], {}),
    ("CumProd", [f(4, 5), constant(scalar(0, "int64"))], {"opset": 26}), ("DFT", [fixed(f(1, 8, 1), 2)], {"axis": 1, "opset": 17}),
    ("DFT", [fixed(f(1, 8, 2), 2), constant(scalar(5, "int64"))], {"axis": 1, "opset": 17}),
    ("STFT", [fixed(f(1, 50, 1), 2), constant(scalar(4, "int64")), f(16), constant(scalar(16, "int64"))], {}),
    ("STFT", [fixed(f(1, 50, 1), 2), constant(scalar(4, "int64")), f(16)], {}),
    ("MelWeightMatrix", [constant(scalar(v, "int64")) for v in (8, 16, 8000)] + [constant(scalar(v, "float32")) for v in (0, 4000)], {}),
    ("HannWindow", [constant(scalar(8, "int64"))], {}), ("Col2Im", [f(1, 5, 5), constant(i(5, 5)), constant(i(1, 5))], {}),
    ("Col2Im", [fixed(f(1, 10, 5), 1, 2), constant(i(5, 5)), constant(i(1, 5))], {}),
    ("Det", [f(2, 3, 3)], {}), ("Trilu", [f(2, 3)], {}), ("EyeLike", [f(2, 3)], {"k": 1}),
    ("Inverse", [f(3, 3) + np.eye(3, dtype=np.float32)], {"domain": MS}), ("ReduceSum", [f(2, 3, 4), constant(i(1))], {}),
    ("ReduceMax", [f(2, 3, 4), constant(i(-1))], {}), ("ReduceMean", [f(2, 3)], {}), ("ReduceLogSumExp", [f(2, 3), constant(i(0))], {}),
    ("ArgMax", [f(2, 3)], {"axis": 1}), ("ArgMin", [f(2, 3)], {"axis": 0, "select_last_index": 1}), ("Softmax", [f(2, 3)], {}),
    ("LogSoftmax", [f(2, 3)], {"axis": 0}), ("Hardmax", [f(2, 3)], {}), ("Shape", [f(2, 3)], {}),
    ("BitShift", [zeros("uint8", 3), zeros("uint8", 3)], {"direction": "LEFT"}), ("Mod", [i(5, 7), i(2, 3)], {}), ("Div", [i(5, 7), i(2, 3)], {}),
    ("SkipLayerNormalization", [f(2, 3, 8), f(2, 3, 8), f(8), f(8), f(8)], {"domain": MS}),
    ("SkipSimplifiedLayerNormalization", [f(2, 3, 8), f(2, 3, 8), f(8), f(8)], {"domain": MS}),
    ("EmbedLayerNormalization", [zeros("int32", 2, 3), zeros("int32", 2, 3), f(9, 8), f(9, 8), f(2, 8), f(8), f(8), np.ones((2, 3), np.int32)],
      {"domain": MS}),
    ("BiasGelu", [f(2, 8), f(8)], {"domain": MS}), ("FastGelu", [f(2, 8), f(8)], {"domain": MS}),
    ("FusedMatMul", [f(5, 4), f(6, 5)], {"domain": MS, "transA": 1, "transB": 1}),
    ("FusedConv", [f(2, 3, 5, 5), fixed(f(4, 3, 3, 3), 2, 3), f(4)], {"domain": MS, "activation": "Relu"}),
    ("Attention", [fixed(f(2, 3, 8), 2), constant(f(8, 24)), constant(f(24)), np.ones((2, 3), np.int32)], {"domain": MS, "num_heads": 2}),
    ("Attention", [fixed(f(2, 3, 8), 0, 2), fixed(f(8, 24), 1), fixed(f(24), 0), fixed(i(2, 3, dtype="int32"), 0)], {"domain": MS, "num_heads": 2}),
    ("MultiHeadAttention", [fixed(f(2, 3, 8), 2), fixed(f(2, 5, 8), 2), fixed(f(2, 5, 8), 2), fixed(f(24), 0), np.ones((2, 5), np.int32), f(2, 2, 3, 5)],
      {"domain": MS, "num_heads": 2}),
    ("MultiHeadAttention", [fixed(f(2, 3, 8), 0, 2), fixed(f(2, 5, 8), 2), fixed(f(2, 5, 8), 2), None, fixed(i(3, 2, dtype="int32"), 0)],
      {"domain": MS, "num_heads": 2}),
    ("MultiHeadAttention", [fixed(f(2, 3, 8), 2), fixed(f(2, 5, 8), 2), fixed(f(2, 5, 8), 2)], {"domain": MS, "num_heads": 2}),
    ("GroupQueryAttention", [fixed(f(1, 1, 8), 2), fixed(f(1, 1, 8), 2), fixed(f(1, 1, 8), 2), fixed(f(1, 1, 10, 8), 1, 3), fixed(f(1, 1, 10, 8), 1, 3),
      i(9, dtype="int32"), scalar(10, "int32")], {"domain": MS, "num_heads": 1, "kv_num_heads": 1, "outputs": 3}),
    ("GroupQueryAttention", [fixed(f(1, 1, 8), 2), fixed(f(1, 1, 8), 2), fixed(f(1, 1, 8), 2), fixed(f(1, 1, 10, 8), 1, 3), fixed(f(1, 1, 10, 8), 1, 3),
      i(9, dtype="int32"), scalar(10, "int32"), f(20, 4), f(20, 4)],
      {"domain": MS, "num_heads": 1, "kv_num_heads": 1, "do_rotary": 1, "outputs": 3}),
    ("RotaryEmbedding", [f(2, 2, 3, 4), i(0, 1, 2, 0, 1, 2).reshape(2, 3), f(9, 2), f(9, 2)], {"domain": MS}),
    ("RotaryEmbedding", [fixed(f(2, 2, 3, 4), 3), i(0), f(9, 2), f(9, 2)], {"domain": MS}),
    ("LinearAttention", [fixed(f(2, 3, 8), 2), fixed(f(2, 3, 8), 2), fixed(f(2, 3, 8), 2)],
      {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear", "opset": 27}),
    ("DynamicQuantizeMatMul", [f(4, 5), zeros("uint8", 5, 6), f(6), zeros("uint8", 6), f(6)], {"domain": MS}),
    ("MatMulIntegerToFloat", [zeros("uint8", 4, 5), zeros("uint8", 5, 6), scalar(1, "float32"), f(6), scalar(0, "uint8"), zeros("uint8", 6), f(6)],
      {"domain": MS}),
    ("MatMulNBits", [f(4, 32), zeros("uint8", 6, 2, 8), f(12)], {"domain": MS, "K": 32, "N": 6, "bits": 4, "block_size": 16}),
    ("MatMulNBits", [f(4, 32), constant(zeros("uint8", 6, 2, 8)), constant(f(12))], {"domain": MS, "K": 32, "N": 6, "bits": 4, "block_size": 16}),
    ("GatherBlockQuantized", [zeros("uint8", 10, 16), i(0, 1), f(10, 2)], {"domain": MS, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}),
    ("QLinearAdd", [zeros("uint8", 4, 5), scalar(1, "float32"), scalar(0, "uint8"), zeros("uint8", 4, 5), scalar(1, "float32"), scalar(0, "uint8"),
      scalar(1, "float32"), scalar(0, "uint8")], {"domain": MS}),
]


def subjects() -> list[Subject]:
    """Every operator of ONNX, then those of PyTorch."""
    from .size_modules import modules

    return [_subject(*case) for case in OPERATORS] + list(modules())


def _subject(kind: str, operands: list[Any], attrs: dict[str, Any]) -> Subject:
    attrs = dict(attrs)
    opset, count, domain = attrs.pop("opset", 20), attrs.pop("outputs", 1), attrs.pop("domain", "")
    given = [o if o is None or isinstance(o, Operand) else Operand(o) for o in operands]
    proto = model(kind, given, attrs, opset, count, domain)
    inputs = [o for o in given if o is not None and not o.constant]
    names = [f"i{k}" for k, o in enumerate(given) if o is not None and not o.constant]
    sessions: list[Any] = []

    def compile_() -> Any:
        import roundel as rd

        return rd.compile(proto, threads=1)

    def reference(arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        if not all(a.size for a in arrays):
            raise ValueError("ONNX Runtime ends the process for some empty tensors")
        if not sessions:
            sessions.append(_session(proto))
        return sessions[0].run(None, dict(zip(names, arrays, strict=True)))

    shown = ",".join("-" if o is None else "x".join(map(str, o.value.shape)) or "1" for o in given)
    return Subject(f"{domain and 'ms.'}{kind} {shown} {attrs or ''}".strip(), compile_, tuple(o.value for o in inputs),
                   tuple(tuple(a for a in range(o.value.ndim) if a not in o.fixed) for o in inputs), reference)


def _session(proto: Any) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def model(kind: str, given: Sequence[Operand | None], attrs: dict[str, Any], opset: int, count: int, domain: str) -> Any:
    """A model of one node, ``count`` its results."""
    from onnx import helper, numpy_helper

    names = ["" if o is None else f"i{k}" for k, o in enumerate(given)]
    node = helper.make_node(kind, names, [f"y{k}" for k in range(count)], "node", domain=domain, **attrs)
    inputs, constants = [], []
    for k, o in enumerate(given):
        if o is not None and o.constant:
            constants.append(numpy_helper.from_array(o.value, f"i{k}"))
        elif o is not None:
            shape = [n if a in o.fixed else f"d{k}_{a}" for a, n in enumerate(o.value.shape)]
            inputs.append(helper.make_tensor_value_info(f"i{k}", helper.np_dtype_to_tensor_dtype(o.value.dtype), shape))
    outputs = [helper.make_empty_tensor_value_info(f"y{k}") for k in range(count)]
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)]
    return helper.make_model(helper.make_graph([node], "g", inputs, outputs, constants), opset_imports=opsets, ir_version=10)


def drawn(rng: np.random.Generator, subject: Subject) -> tuple[list[np.ndarray], bool]:
    """Inputs of a call: one or two sizes are others, or one number is another wherever it is a size; whether none was changed."""
    arrays = list(subject.example)
    places = [(k, axis) for k, axes in enumerate(subject.axes) for axis in axes]
    draw = rng.random()
    if not places or draw < 0.05:
        return arrays, True
    if draw < 0.3:  # sizes that agree
        k, axis = places[rng.integers(len(places))]
        old = arrays[k].shape[axis]
        chosen = [(j, a) for j, a in places if subject.example[j].shape[a] == old]
        new = _another(rng, old)
        changes: Iterator[tuple[tuple[int, int], int]] = ((place, new) for place in chosen)
    else:
        picked = [places[p] for p in rng.choice(len(places), min(len(places), int(rng.choice([1, 1, 2]))), replace=False)]
        changes = ((place, _another(rng, arrays[place[0]].shape[place[1]])) for place in picked)
    for (k, axis), size in changes:
        size = size if arrays[k].size * size < _MOST else size % 5
        arrays[k] = np.take(arrays[k], np.arange(size) % max(arrays[k].shape[axis], 1), axis) if arrays[k].shape[axis] else np.zeros(
            (*arrays[k].shape[:axis], size, *arrays[k].shape[axis + 1:]), arrays[k].dtype)
        if arrays[k].dtype == np.float32:  # not singular where rows are repeated
            arrays[k] = arrays[k] + rng.random(arrays[k].shape, np.float32) / 8
    return arrays, False


def _another(rng: np.random.Generator, size: int) -> int:
    return int(rng.choice([0, 1, 2, max(size - 1, 0), size + 1, size + 7, 2 * size, 61, 200]))
