# SPDX-License-Identifier: Apache-2.0
"""Positions in caches, sequences, quantised tables and trees, for ``indices``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .index_models import Rng, model, node
from .index_subjects import Case, Subject, Unprescribed, data, draw, inside

MS = {"domain": "com.microsoft"}


def _some(rng: Rng, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _group_query(rng: Rng) -> Case:
    """Two heads of queries on one of keys, each 4 wide: the last position of each batch element, and the length of the cache after the call."""
    b, s, past = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(0, 7))
    total = int(_some(rng, past + s, past, s, 0, -1, -(2**31), 40)) if rng.random() < 0.3 else past + s
    room = max(total, past)
    last = draw(rng, (b,), max(room, 1), "int32", False)
    q, k, v = data(rng, b, s, 8), data(rng, b, s, 4), data(rng, b, s, 4)
    caches = [data(rng, b if rng.random() < 0.95 else b + 1, 1, past, 4) for _ in range(2)]

    def reference() -> Any:
        inside(last, room, False)
        raise Unprescribed

    return (q, k, v, *caches, last, np.array(total, np.int32)), reference


def _multi_head(rng: Rng) -> Case:
    b, s, past = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(0, 6))
    tokens = [data(rng, b, s, 8) for _ in range(3)]
    ends = draw(rng, (b,), past + s + 1, "int32", False)
    caches = [data(rng, b if rng.random() < 0.9 else b + 1, 2, past, 4) for _ in range(2)]

    def reference() -> Any:
        raise Unprescribed

    return (*tokens, ends, *caches), reference


def _quantised_rows(rng: Rng) -> Case:
    """A table with blocks of 16 numbers of 4 bits, two of them a row."""
    n, k = int(rng.integers(1, 9)), int(rng.integers(1, 40))
    packed, scales, at = rng.integers(0, 256, (n, 16)).astype(np.uint8), data(rng, n, 2), draw(rng, (k,), n)
    levels = np.stack([packed & 15, packed >> 4], -1).reshape(n, 2, 16).astype(np.float32) - 8
    return (packed, at, scales), lambda: (levels * scales[:, :, None]).reshape(n, 32)[inside(at, n)]


def _sequence(change: Callable[[list[np.ndarray], int], Any], least: int, most: int) -> Callable[[Rng], Case]:
    """Three tensors and a position."""

    def case(rng: Rng) -> Case:
        n = int(rng.integers(1, 6))
        items, at = [data(rng, n, 3) for _ in range(4)], draw(rng, (), most, negative=True)

        def reference() -> Any:
            if not least <= int(at) < most:
                raise IndexError
            return change(items, int(at))

        return (*items, at), reference

    return case


def _erased(items: list[np.ndarray], at: int) -> np.ndarray:
    kept = items[:3]
    del kept[at]
    return np.concatenate(kept)


def _inserted(items: list[np.ndarray], at: int) -> np.ndarray:
    kept = items[:3]
    kept.insert(at, items[3])
    return np.concatenate(kept)


def _sequence_nodes(op: str, inputs: str) -> list[Any]:
    nodes = [node("SequenceConstruct", "a b c", "q"), node(op, inputs, "y" if op == "SequenceAt" else "r")]
    return nodes if op == "SequenceAt" else [*nodes, node("ConcatFromSequence", "r", axis=0)]


def _trees() -> Any:
    """What compiles an ensemble of random trees, many of which do not hang together, and runs it."""

    def run(seed: np.ndarray, x: np.ndarray) -> Any:
        rng = np.random.default_rng(int(seed[0]))
        n = int(rng.integers(1, 8))
        numbers = lambda most: [int(v) for v in draw(rng, (n,), most)]
        ids = list(range(n)) if rng.random() < 0.7 else numbers(n)
        modes = [_some(rng, "BRANCH_LEQ", "LEAF") for _ in range(n)]
        compiled = model([node("TreeEnsembleRegressor", "x", domain="ai.onnx.ml", n_targets=1, nodes_treeids=[0] * n, nodes_nodeids=ids,
                               nodes_featureids=numbers(3), nodes_values=[float(v) for v in rng.standard_normal(n)], nodes_modes=modes,
                               nodes_truenodeids=numbers(n), nodes_falsenodeids=numbers(n), target_treeids=[0] * n, target_nodeids=numbers(n),
                               target_ids=numbers(1), target_weights=[1.0] * n)], "x:f:n,3")()
        return compiled(x)

    return run


def _tree_case(rng: Rng) -> Case:
    def reference() -> Any:
        raise Unprescribed

    return (rng.integers(0, 2**62, 1), data(rng, int(rng.integers(0, 6)), 3)), reference


def subjects() -> list[Subject]:
    """Models of ONNX and of com.microsoft."""
    four = "a:f:n,3 b:f:n,3 c:f:n,3 d:f:n,3 p:i:"
    group = node("GroupQueryAttention", "q k v o w l t", "y kk vv", num_heads=2, kv_num_heads=1, **MS)
    heads = node("MultiHeadAttention", "q k v - m - o w", "y kk vv", num_heads=2, **MS)
    return [
        Subject("GroupQueryAttention", model([group], "q:f:b,s,8 k:f:b,s,4 v:f:b,s,4 o:f:b,1,p,4 w:f:b,1,p,4 l:j:b t:j:"), _group_query),
        Subject("MultiHeadAttention", model([heads], "q:f:b,s,8 k:f:b,s,8 v:f:b,s,8 m:j:b o:f:b,2,p,4 w:f:b,2,p,4"), _multi_head),
        Subject("GatherBlockQuantized", model([node("GatherBlockQuantized", "x i s", block_size=16, bits=4, quantize_axis=1, **MS)],
                                              "x:u:n,16 i:i:k s:f:n,2"), _quantised_rows),
        Subject("SequenceAt", model(_sequence_nodes("SequenceAt", "q p"), four), _sequence(lambda items, at: items[:3][at], -3, 3)),
        Subject("SequenceErase", model(_sequence_nodes("SequenceErase", "q p"), four), _sequence(_erased, -3, 3)),
        Subject("SequenceInsert", model(_sequence_nodes("SequenceInsert", "q d p"), four), _sequence(_inserted, -3, 4)),
        Subject("TreeEnsembleRegressor", _trees, _tree_case),
    ]
