# SPDX-License-Identifier: Apache-2.0
"""Antialiased resizing: one constant matrix for each axis that changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir import graph, tir
from ....ops.image import coordinate, cubic_weight
from ..importer import NodeContext


def antialiased(node: NodeContext, x: Any, sizes: Sequence[Any], scales: Sequence[float | None], mode: str, coordinates: str) -> Any:
    """``x`` resized; a filter covers all the input that falls onto an output element."""
    out = x if x.sinfo.dtype.is_float else node.make("astype", x, dtype="float32")
    for axis, (old, new) in enumerate(zip(x.sinfo.shape, sizes, strict=True)):
        if not isinstance(old, tir.IntImm) or not isinstance(new, tir.IntImm):
            raise node.data_dependent("the size of an antialiased Resize")
        scale = scales[axis] if scales[axis] is not None else new.value / old.value
        if old.value == new.value and scale == 1.0:
            continue
        matrix = _matrix(node, old.value, new.value, scale, mode, coordinates)
        order = list(range(x.sinfo.ndim))
        order[axis], order[-1] = order[-1], order[axis]
        out = node.make("permute_dims", out, axes=tuple(order))
        out = node.make("matmul", out, graph.Constant.of(matrix.T.astype(out.sinfo.dtype.numpy)))
        out = node.make("permute_dims", out, axes=tuple(order))
    if out.sinfo.dtype == x.sinfo.dtype:
        return out
    return node.make("astype", node.make("round", out), dtype=x.sinfo.dtype)


def _matrix(node: NodeContext, old: int, new: int, scale: float, mode: str, coordinates: str) -> np.ndarray:
    """Weights of the input elements (columns) in each output element (rows)."""
    out = np.zeros((new, old))
    reach, narrow = 1 if mode == "linear" else 2, min(scale, 1.0)
    start = math.floor(-reach / narrow) + 1
    taps = np.arange(start, 2 - start)
    alpha, exclude = node.attr("cubic_coeff_a", -0.75), bool(node.attr("exclude_outside", 0))
    for i in range(new):
        place = float(coordinate(coordinates, i, old, new, scale, (0.0, 1.0), lambda c, a, b: a if c else b))
        base = math.ceil(place) - 1
        distance = np.abs((taps - (place - base)) * narrow)
        if mode == "linear":
            weights = np.clip(1 - distance, 0, 1)
        else:
            weights = np.asarray([cubic_weight(d, alpha, lambda c, a, b: a if c else b) for d in distance])
        where = base + taps
        if exclude:
            weights = np.where((where < 0) | (where >= old), 0, weights)
        np.add.at(out[i], np.clip(where, 0, old - 1), weights / weights.sum())
    return out
