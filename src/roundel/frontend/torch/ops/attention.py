# SPDX-License-Identifier: Apache-2.0
"""Attention: scaled dot products, and those with a user's function of each score (``flex_attention``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir import graph, tir
from ....ir.dtype import DType
from ..importer import NodeContext
from ..registry import converter
from .math import scalar, tensor


@converter("scaled_dot_product_attention")
def _attention(node: NodeContext, q: Any, k: Any, v: Any, mask: Any = None, dropout: float = 0.0, is_causal: bool = False, *, scale: Any = None,
               enable_gqa: bool = False) -> Any:
    if dropout:
        raise node.unsupported("dropout in attention: the model is in training mode")
    dtype = q.sinfo.dtype
    if enable_gqa:
        k, v = _grouped(node, q, k, v)
    n = k.sinfo.ndim
    scores = node.make("matmul", node.make("multiply", q, _factor(node, q, scale)), node.make("permute_dims", k, axes=(*range(n - 2), n - 1, n - 2)))
    lowest = scalar(-np.inf, dtype)
    if is_causal:
        allowed = _lower_triangle(node, q.sinfo.shape[-2], k.sinfo.shape[-2])
        scores = node.make("where", allowed, scores, lowest)
    elif mask is not None:
        scores = node.make("where", mask, scores, lowest) if mask.sinfo.dtype == "bool" else node.make("add", scores, mask)
    weights = node.make("nn.softmax", scores, axis=-1)
    if mask is not None:
        weights = node.make("where", node.make("isnan", weights), scalar(0, dtype), weights)  # rows without any allowed key
    return node.make("matmul", weights, v)


def _factor(node: NodeContext, q: Any, scale: Any) -> Any:
    """What scores are multiplied by: one over the root of the size of a head, where nothing is given."""
    size, dtype = q.sinfo.shape[-1], q.sinfo.dtype
    if scale is not None:
        return tensor(node, scale, dtype)
    return scalar(1 / math.sqrt(size.value), dtype) if isinstance(size, tir.IntImm) else node.make("rsqrt", tensor(node, size, dtype))


def _grouped(node: NodeContext, q: Any, *shared: Any) -> list[Any]:
    """Keys and values for each head of the queries, where several heads share them."""
    heads, given = q.sinfo.shape[-3], shared[0].sinfo.shape[-3]
    if given is heads:
        return list(shared)
    if not isinstance(heads, tir.IntImm) or not isinstance(given, tir.IntImm):
        raise node.unsupported("groups of heads whose number is symbolic")
    return [node.make("repeat", t, repeats=heads.value // given.value, axis=t.sinfo.ndim - 3) for t in shared]


def _lower_triangle(node: NodeContext, rows: tir.Expr, cols: tir.Expr) -> Any:
    def ramp(n: tir.Expr) -> Any:
        return node.make("arange", graph.PrimValue(tir.index_const(0)), graph.PrimValue(n), graph.PrimValue(tir.index_const(1)), dtype="int64")

    one = tir.index_const(1)
    return node.make("greater_equal", node.make("reshape", ramp(rows), graph.ShapeExpr((rows, one))), ramp(cols))


@converter("flex_attention")
def _flex_attention(node: NodeContext, q: Any, k: Any, v: Any, score_mod: Any, block_mask: Sequence[Any], scale: float, _options: Any = None,
                    score_buffers: Sequence[Any] = (), mask_buffers: Sequence[Any] = ()) -> tuple[Any, Any, Any]:
    """The result, and the logarithm (of base 2) of each row's sum of exponentials and its largest score in the same unit.

    The user's functions are graphs over one score and its place; here they run on all scores at once, places being vectors along their axes.
    """
    dtype = q.sinfo.dtype
    wide = dtype if dtype.bits >= 32 else DType("float32")
    k, v = _grouped(node, q, k, v)
    q, k = (tensor(node, t, wide) for t in (q, k))
    scores = node.make("matmul", node.make("multiply", q, tensor(node, scale, wide)), node.make("permute_dims", k, axes=(0, 1, 3, 2)))
    sizes, one = scores.sinfo.shape, tir.index_const(1)
    places = [node.make("reshape", node.make("arange", tir.index_const(0), n, one, dtype="int64"), graph.ShapeExpr((n, *[one] * (3 - axis))))
              for axis, n in enumerate(sizes)]
    allowed = node.importer.inline(block_mask[-1], (*places, *mask_buffers))[0]
    lowest = scalar(-np.inf, wide)
    scores = node.make("where", allowed, node.importer.inline(score_mod, (scores, *places, *score_buffers))[0], lowest)
    weights = node.make("nn.softmax", scores, axis=-1)
    weights = node.make("where", node.make("isnan", weights), scalar(0, wide), weights)  # rows without any allowed key
    out = node.make("matmul", tensor(node, weights, dtype), tensor(node, v, dtype))
    largest = node.make("max", scores, axis=(3,), keepdims=True)
    start = node.make("where", node.make("equal", largest, lowest), scalar(0, wide), largest)
    total = node.make("sum", node.make("exp", node.make("subtract", scores, start)), axis=(3,), keepdims=True)
    unit = scalar(1 / math.log(2), wide)
    logs = node.make("add", node.make("log", total), start)
    return out, *(node.make("multiply", node.make("reshape", t, graph.ShapeExpr(sizes[:3])), unit) for t in (logs, largest))
