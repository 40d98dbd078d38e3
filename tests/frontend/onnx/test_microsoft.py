# SPDX-License-Identifier: Apache-2.0
"""com.microsoft operators against ONNX Runtime, which defines them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from .single_node import check as check_node

pytest.importorskip("onnxruntime")
check = partial(check_node, domain="com.microsoft")
OPEN = ("b", "s", None)
rng = np.random.default_rng(7)


def f32(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def test_activations() -> None:
    x, b = f32(2, 3, 8), f32(8)
    check("BiasGelu", x, b, symbolic={0: OPEN})
    check("FastGelu", x, b)
    check("FastGelu", x)
    check("QuickGelu", x, alpha=1.5)
    check("Gelu", x)


def test_normalisation() -> None:
    x, skip, gamma, beta, bias = f32(2, 3, 8), f32(2, 3, 8), f32(8), f32(8), f32(8)
    check("SkipLayerNormalization", x, skip, gamma, beta, bias, outputs=[0, 3], epsilon=1e-5, symbolic={0: OPEN, 1: OPEN})
    check("SkipLayerNormalization", x, skip[0], gamma, None, outputs=1)
    check("SkipSimplifiedLayerNormalization", x, skip, gamma, bias, outputs=[0, 3], epsilon=1e-5)
    check_node("SimplifiedLayerNormalization", x, gamma, outputs=1, axis=-1, epsilon=1e-5, stash_type=1)
    words, places, kinds = f32(11, 8), f32(6, 8), f32(2, 8)
    ids = rng.integers(0, 11, (2, 5)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    segments = rng.integers(0, 2, (2, 5)).astype(np.int32)
    check("EmbedLayerNormalization", ids, segments, words, places, kinds, gamma, beta, mask, outputs=3, epsilon=1e-5)
    at = rng.integers(0, 6, (2, 5)).astype(np.int32)
    check("EmbedLayerNormalization", ids, None, words, places, None, gamma, beta, None, at, outputs=2)


def test_products() -> None:
    a, b = f32(2, 3, 5), f32(2, 7, 5)
    check("FusedMatMul", a, b, transB=1, alpha=0.5)
    check("FusedMatMul", f32(3, 2, 5), f32(2, 5, 4), transBatchA=1)
    check("FusedMatMul", f32(5, 2, 3), f32(2, 5, 4), transBatchA=1, transA=1)
    check("FusedGemm", f32(3, 4), f32(5, 4), f32(5), transB=1, beta=0.5, activation="LeakyRelu", activation_alpha=0.2)
    x, w, bias = f32(1, 3, 7, 7), f32(4, 3, 3, 3), f32(4)
    check("FusedConv", x, w, bias, activation="Relu", kernel_shape=[3, 3])
    for kind, params in (("LeakyRelu", [0.1]), ("Clip", [-0.5, 0.5]), ("HardSigmoid", [0.3, 0.4])):
        check("FusedConv", x, w, bias, activation=kind, activation_params=params, pads=[1] * 4, kernel_shape=[3, 3])
    check("FusedConv", x, w, bias, f32(1, 4, 5, 5), activation="Relu", kernel_shape=[3, 3])


def test_the_rest() -> None:
    check("Inverse", f32(2, 4, 4), tolerance=1e-3)
    check("Inverse", f32(3, 3), tolerance=1e-3)
    check("Trilu", f32(3, 4), np.array(1, np.int64), upper=0, constant=[1])
    check("Unique", np.array([3, 1, 3, 2, 1], np.float32), outputs=3)
    check("CDist", f32(3, 5), f32(4, 5), metric="euclidean", tolerance=1e-4)
    check("ExpandDims", f32(3, 4), np.array(-1, np.int32), constant=[1])


def test_rotary_embedding() -> None:
    cos, sin = f32(16, 4), f32(16, 4)
    at = np.array([[0, 1, 2], [5, 6, 7]], np.int64)
    check("RotaryEmbedding", f32(2, 3, 16), at, cos, sin)
    check("RotaryEmbedding", f32(2, 2, 3, 8), at, cos, sin, interleaved=1)
    check("RotaryEmbedding", f32(2, 3, 16), np.array([4], np.int64), cos, sin)
    check("RotaryEmbedding", f32(2, 3, 2 * 12), at, cos, sin, num_heads=2, rotary_embedding_dim=8)


MASKS = {"none": None, "ends": np.array([3, 5], np.int32), "rows": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32),
         "spans": np.array([5, 4, 1, 0], np.int32), "matrix": (rng.random((2, 5, 5)) > 0.3).astype(np.int32)}


@pytest.mark.parametrize("kind", MASKS)
def test_attention(kind: str) -> None:
    x, w, b = f32(2, 5, 6), f32(6, 24), f32(24)
    check("Attention", x, w, b, MASKS[kind], num_heads=2)
    check("Attention", x, w, b, MASKS[kind], num_heads=2, unidirectional=1)


def test_attention_with_past_and_other_sizes() -> None:
    x, w, b = f32(2, 3, 6), f32(6, 24), f32(24)
    check("Attention", x, w, b, None, f32(2, 2, 2, 4, 4), num_heads=2, unidirectional=1, outputs=2)
    check("Attention", x, w, b, (rng.random((2, 7)) > 0.3).astype(np.int32), f32(2, 2, 2, 4, 4), num_heads=2, outputs=2)
    check("Attention", x, w, b, None, None, f32(1, 2, 3, 3), num_heads=2)
    check("Attention", x, f32(6, 20), f32(20), num_heads=2, qkv_hidden_sizes=[8, 8, 4], scale=0.3)


def test_multi_head_attention() -> None:
    q, k, v = f32(2, 3, 8), f32(2, 5, 8), f32(2, 5, 12)
    check("MultiHeadAttention", q, k, v, num_heads=2)
    check("MultiHeadAttention", q, k, v, f32(28), MASKS["rows"], num_heads=2, scale=0.4)
    check("MultiHeadAttention", q, k, v, None, MASKS["ends"], f32(1, 2, 3, 5), num_heads=2)
    check("MultiHeadAttention", q, f32(2, 2, 5, 4), f32(2, 2, 5, 4), num_heads=2)
    new = f32(2, 3, 8)
    check("MultiHeadAttention", q, new, new, None, None, None, f32(2, 2, 4, 4), f32(2, 2, 4, 4), num_heads=2, outputs=3, unidirectional=1)


def _group_query(past: int, length: int, lasts: list[int], room: int, **attrs: object) -> None:
    """A cache with ``room`` entries; what lies beyond a batch element's own length is not compared."""
    h, heads, kv = 16, 4, 2
    total, batch = past + length, len(lasts)
    ends = np.array(lasts, np.int32) + 1

    def rows(k: int, a: np.ndarray) -> np.ndarray:
        axis = 1 if k == 0 else 2
        begins = np.where(length == total, 0, ends - length)
        keep = [np.arange(a.shape[axis]) < (e - b if k == 0 else e) for b, e in zip(begins, ends, strict=True)]
        return np.concatenate([np.compress(m, part, axis - 1).reshape(-1) for m, part in zip(keep, a, strict=True)])

    caches = (f32(batch, kv, room, h), f32(batch, kv, room, h))
    tokens = [f32(batch, length, n * h) for n in (heads, kv, kv)]
    arrays = [*tokens, *caches, np.array(lasts, np.int32), np.array(total, np.int32),
              f32(32, h // 2), f32(32, h // 2)]
    check("GroupQueryAttention", *arrays, outputs=3, num_heads=heads, kv_num_heads=kv, rows=rows, tolerance=1e-4, **attrs)


def test_group_query_attention() -> None:
    _group_query(0, 5, [4, 4], 0, do_rotary=1)  # a prompt
    _group_query(0, 5, [4, 2], 0)  # one that is padded
    _group_query(6, 1, [6, 6], 6, do_rotary=1, rotary_interleaved=1)  # a cache that grows
    _group_query(6, 1, [6, 3], 16, do_rotary=1)  # a cache with room, batch elements of two lengths
    _group_query(6, 1, [6, 6], 6, local_window_size=3, softcap=2.0)
    _group_query(4, 3, [6], 4, do_rotary=1, smooth_softmax=1)


def test_group_query_attention_packed_with_open_sizes() -> None:
    h, heads, kv = 16, 4, 2
    arrays = [f32(1, 1, (heads + 2 * kv) * h), None, None, f32(1, kv, 6, h), f32(1, kv, 6, h), np.array([6], np.int32), np.array(7, np.int32),
              f32(32, h // 2), f32(32, h // 2)]
    check("GroupQueryAttention", *arrays, outputs=3, num_heads=heads, kv_num_heads=kv, do_rotary=1, tolerance=1e-4,
          symbolic={0: OPEN, 3: ("b", None, "past", None), 4: ("b", None, "past", None), 5: ("b",)})
