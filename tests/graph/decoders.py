# SPDX-License-Identifier: Apache-2.0
"""A decoder's attention with its caches, for the tests of those."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel.builder import BlockBuilder
from roundel.ir import IRModule, Var, graph
from roundel.ir.dtype import INT64
from roundel.ops import make

from .functions import function

B, P, S = (Var(n, INT64, True) for n in "bps")
RNG = np.random.default_rng(7)


def numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def info(*shape: Any) -> graph.TensorInfo:
    return graph.TensorInfo(shape, "float32")


def appending(past: graph.TensorInfo, new: graph.TensorInfo, axis: int) -> IRModule:
    """``main(past, new)``: one behind the other."""
    return function([past, new], lambda bb, p, n: make("concat", graph.Tuple((p, n)), axis=axis))


def _attention(bb: BlockBuilder, q: Any, past_k: Any, past_v: Any, new_k: Any, new_v: Any) -> graph.Tuple:
    k, v = (bb.emit(make("concat", graph.Tuple((p, n)), axis=2)) for p, n in ((past_k, new_k), (past_v, new_v)))
    scores = bb.emit(make("matmul", q, make("permute_dims", k, axes=(0, 1, 3, 2))))
    weights = bb.emit(make("nn.softmax", scores, axis=-1))
    return graph.Tuple((bb.emit(make("matmul", weights, v)), k, v))


def decoder(batch: Any = B, heads: int = 3, width: int = 8) -> IRModule:
    """``main(query, past keys, past values, keys, values)``: attention, and what is past now."""
    past, new = info(batch, heads, P, width), info(batch, heads, S, width)
    return function([new, past, past, new, new], _attention)


def step_inputs(batch: int, past: int, new: int, heads: int = 3, width: int = 8) -> tuple[np.ndarray, ...]:
    """Arguments of the decoder."""
    return numbers(batch, heads, new, width), *(numbers(batch, heads, past, width) for _ in "kv"), *(numbers(batch, heads, new, width) for _ in "kv")
