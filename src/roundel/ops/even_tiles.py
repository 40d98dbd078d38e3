# SPDX-License-Identifier: Apache-2.0
"""Which tiles of a Winograd convolution F(4x4, 3x3) are precise enough: a test of the data, so that the others are computed directly.

The rounding errors of a tile's results follow the norm of its 36 pixels, those of a direct sum the norm of the 9 pixels of one window. A
tile is taken as it is where the former is not much larger than the latter (which nothing infinite is, nor NaN). F(2x2, 3x3) needs no
such test: all that a result is made of there comes from the pixels of its own window.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import tir

from .dims import simplify, static

TILE = 4
SPREAD = 19.5
"""The root of the sum over positions of squares of A x |G g Gᵀ| x |Bᵀ d B|, at most, for ||d|| = ||g|| = 1 and any result of the tile."""
TIMES, DEVIATIONS = 8.0, 6.0
SCALE = 2.0**60  # of squares: values from 2^-105 to 2^34 have some


def unevenness(channels: int) -> float:
    """How much larger (root of the sum of squares) a tile may be than the window of one of its results, so that the result's rounding
    error stays within TIMES the bound of the direct sum of n = 9 channels products, gamma_n ||window|| ||kernel||.

    The rounding errors of sums over channels and of the transforms (which count as 30 channels) are taken as independent, each uniform
    in half a unit of the last place of a partial sum: DEVIATIONS standard deviations, for the worst data and kernels, stay below.
    """
    deviation = SPREAD * math.sqrt(channels + 30) / 3
    return TIMES * 9 * channels / (DEVIATIONS * deviation)


def even_tiles(padded: Any, results: tuple[Any, Any], name: str) -> Any:
    """Which tiles [N, rows, columns] need not be computed directly: those that are finite and not much larger than the core of one of their windows.

    Every 3 x 3 window of a tile holds a core of 2 x 2 pixels in the tile's middle, of which there are four.
    """
    n, blocks, height, width, inner = padded.shape
    channels = static(blocks) * static(inner)
    rk = te.reduce_axis(blocks, "rk")
    square = lambda b, y, x, c: padded[b, rk.var, y, x, c] * SCALE * padded[b, rk.var, y, x, c]
    squares = te.compute((n, height, width, inner), lambda *at: te.sum(square(*at), axis=rk), f"{name}_squares")
    counts = tuple(simplify(tir.floordiv(e + (TILE - 1), TILE)) for e in results)
    edge, starts, most = TILE + 2, (1, 3), tir.const(float(np.finfo(np.float32).max), padded.dtype)

    def part(rows: Iterable[int], columns: Iterable[int], b: Any, t: Any, s: Any, c: Any) -> Any:
        return _total([squares[b, t * TILE + i, s * TILE + j, c] for i in rows for j in columns])

    def core(b: Any, t: Any, s: Any, c: Any) -> Any:
        parts = {(i, j): part((i, i + 1), (j, j + 1), b, t, s, c) for i in starts for j in starts}
        has_results = lambda i, j: te.logical_and(*(at * TILE + k <= e for at, k, e in zip((t, s), (i, j), results, strict=True)))
        return functools.reduce(tir.min_, (te.if_then_else(has_results(*at), p, most) if max(at) > 1 else p for at, p in parts.items()))

    shape = (n, *counts, inner)
    whole = te.compute(shape, lambda b, t, s, c: part(range(edge), range(edge), b, t, s, c), f"{name}_tile")
    cores = te.compute(shape, core, f"{name}_core")
    limit = unevenness(channels) ** 2

    def even(b: Any, t: Any, s: Any) -> Any:
        all_of_it, least = (_total([x[b, t, s, c] for c in range(static(inner))]) for x in (whole, cores))
        return all_of_it <= tir.min_(least * limit, most)

    return te.compute((n, *counts), even, f"{name}_even")


def _total(values: Sequence[Any]) -> Any:
    """The sum, in pairs."""
    half = len(values) // 2
    return values[0] if len(values) == 1 else _total(values[:half]) + _total(values[half:])
