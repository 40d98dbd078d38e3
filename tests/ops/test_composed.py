# SPDX-License-Identifier: Apache-2.0
"""Attention, quantisation, layout transformation."""

from __future__ import annotations

import numpy as np
import pytest
from opcheck import T, opcheck

from roundel.ir import graph, tir
from roundel.ir.errors import RoundelError, TypeInferenceError
from roundel.ir.op import all_ops
from roundel.ops import make

N = {"n": 5}


@pytest.mark.parametrize(
    "attrs",
    [
        {},
        {"scale": 0.3},
        {"causal_mask": "TopLeft"},
        {"causal_mask": "BottomRight"},
        {"causal_mask": "TopLeft", "window_size": 2},
    ],
)
def test_attention(attrs):
    q, k, v = T(2, 4, 2, 3), T(2, "n", 2, 3), T(2, "n", 2, 6)
    opcheck("nn.attention", q, k, v, dims=N, **attrs)
    opcheck("nn.attention", q, k, v, T(2, 1, 1, "n"), dims=N, **attrs)
    opcheck("nn.attention", T(1, 4, 6, 3), T(1, 5, 2, 3), T(1, 5, 2, 3), **attrs)


@pytest.mark.parametrize("zero", ["", "nan", "empty"])
def test_attention_from_scores(zero):
    opcheck("nn.softmax_matmul", T(2, "n", 5), T(2, "n", 3), dims=N, zero=zero)
    opcheck("nn.softmax_matmul", T(values=np.float32([[-np.inf, 1.0], [-np.inf, np.inf]])), T(2, 3), zero=zero)


def test_quantization():
    opcheck(
        "quantize",
        T(values=[0.0, 0.5, 1.5, 2.5, -0.5, 1e9, -1e9, np.inf, np.nan]),
        T(values=np.float32(1.0)),
        T(values=np.int8(3), dtype="int8"),
    )
    opcheck("quantize", T("n", 4, 3), T(4, low=0.01, high=0.1), T(4, dtype="uint8"), dims=N, axis=1, out_dtype="uint8")
    opcheck("dequantize", T("n", 4, 3, dtype="uint8"), T(4, low=0.01, high=0.1), T(4, dtype="uint8"), dims=N, axis=1)
    opcheck("dequantize", T("n", 4, dtype="int32"), T(values=np.float32(0.25)), dims=N)


def test_layout_transform():
    blocked = lambda n, c, h, w: (n, c // 4, h, w, c % 4)
    opcheck("layout_transform", T("n", 8, 3, 2), dims=N, index_map=tir.IndexMap.from_func(blocked))
    opcheck("layout_transform", T(2, 6, 3, 2), index_map=tir.IndexMap.from_func(blocked), pad_value=1.0)
    opcheck("layout_transform", T("n", 7), dims=N, index_map=tir.IndexMap.from_func(lambda i, j: (j, i)))


OF_THE_HOST = ("shape_of", "tensor_to_shape", "assert_op", "null_value", "check_indices")  # the host function computes these itself


def test_every_operator_is_complete():
    for name, op in all_ops().items():
        if name.startswith("call_"):
            continue
        assert op.has("infer"), name
        assert op.has("numpy"), name
        assert op.has("compute") != op.has("decompose") or name in OF_THE_HOST, name
        assert type(op).__doc__, name


def test_arguments_are_explained():
    x = graph.Var("x", graph.TensorInfo((2, 3), "float32"))
    for call, message in (
        (lambda: make("add", x), "needs operand x2"),
        (lambda: make("sum", x, axes=0), "no argument axes"),
        (lambda: make("expand_dims", x), "needs axis"),
        (lambda: make("nosuch", x), "no operator R.nosuch"),
    ):
        with pytest.raises(RoundelError, match=message):
            call()
    assert make("sum", x, 1, True).attrs["keepdims"] is True
    with pytest.raises(TypeInferenceError):
        make("nn.attention", x, x, x)
