# SPDX-License-Identifier: Apache-2.0
"""Which tiles of a Winograd convolution are precise enough: a test of the data, so that the others are computed directly.

With F(4x4, 3x3) the rounding errors of a tile's results follow the norm of its 36 pixels, those of a direct sum the norm of the 9 pixels of one
window. A tile is taken as it is where the former is not much larger than the latter (which nothing infinite is, nor NaN). With F(2x2, 3x3) all
that a result is made of comes from the pixels of its own window, so that tiles only have to be finite and so small that nothing overflows.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import tir

from .dims import simplify, static
from .elementwise import pick

SPREAD = 19.5
"""The root of the sum over positions of squares of A x |G g Gᵀ| x |Bᵀ d B|, at most, for ||d|| = ||g|| = 1 and any result of the tile."""
TIMES, DEVIATIONS = 8.0, 6.0
LEAST_OF_FOUR = (-1.03, 0.70)
"""Mean and standard deviation of the least of four standard normal numbers."""
CORES: dict[int, tuple[int, ...]] = {2: (), 4: (1, 3)}
"""Of each tile: where the cores begin that its windows are compared with, along either axis."""


def unevenness(channels: int) -> float:
    """How much larger (root of the sum of squares) a tile may be than the window of one of its results, so that the result's rounding
    error stays within TIMES the bound of the direct sum of n = 9 channels products, gamma_n ||window|| ||kernel||.

    The rounding errors of sums over channels and of the transforms (which count as 30 channels) are taken as independent, each uniform
    in half a unit of the last place of a partial sum: DEVIATIONS standard deviations, for the worst data and kernels, stay below.
    """
    deviation = SPREAD * math.sqrt(channels + 30) / 3
    return TIMES * 9 * channels / (DEVIATIONS * deviation)


def uneven_share(channels: int, lanes: int) -> float:
    """The share of tiles of 4 x 4 that the test turns down where pixels are independent and normally distributed.

    Of a block of channels, each lane gives the least of four sums of squares, each over the lane's channels of 4 pixels. By Wilson and Hilferty's
    approximation (1931) the third root of such a sum is about normal; what all lanes give together is too, and is compared with the squares of
    all 36 pixels.
    """
    width = math.sqrt(2 / (9 * 4 * channels / lanes))
    least, spread = 1 - width**2 + LEAST_OF_FOUR[0] * width, LEAST_OF_FOUR[1] * width
    mean, deviation = least**3 + 3 * least * spread**2, 3 * least**2 * spread / math.sqrt(lanes)
    return 0.5 * math.erfc((mean - 9 / unevenness(channels) ** 2) / (deviation * math.sqrt(2)))


def even_tiles(padded: Any, results: tuple[Any, Any], tile: int, name: str) -> Any:
    """Which tiles [N, rows, columns] need not be computed directly: those that are finite and, where ``tile`` is 4, not much larger than the core
    of one of their windows.

    Every 3 x 3 window of a tile of 4 x 4 results holds a core of 2 x 2 pixels in the tile's middle, of which there are four. Each block of channels
    gives sums of squares for a tile, those of the cores and the rest; a program may make them where it has the tile's pixels at hand.
    Values below 2^-63 may have no square, and those above 2^64 have none, so that their tiles are not even.
    """
    n, blocks, _, _, inner = padded.shape
    counts = tuple(simplify(tir.floordiv(e + (tile - 1), tile)) for e in results)
    edge, starts = tile + 2, CORES[tile]
    places = [(i, j) for i in starts for j in starts]
    cores = [tuple((i + y, j + x) for y in (0, 1) for x in (0, 1)) for i, j in places]
    rest = [(i, j) for i in range(edge) for j in range(edge) if not any((i, j) in core for core in cores)]
    share = unevenness(static(blocks) * static(inner)) ** -2 if places else 1.0
    most = tir.const(float(np.finfo(np.float32).max), padded.dtype)

    def part(q: Any, b: Any, k: Any, t: Any, s: Any, c: Any) -> Any:
        pixel = lambda i, j: padded[b, k, t * tile + i, s * tile + j, c]
        return pick(q, [functools.reduce(operator.add, [pixel(*at) * pixel(*at) for at in pixels]) for pixels in (rest, *cores)])

    parts = te.compute((len(cores) + 1, n, blocks, *counts, inner), part, f"{name}_parts")
    rk = te.reduce_axis(blocks, "rk")
    squares = te.compute((len(cores) + 1, n, *counts, inner), lambda q, b, t, s, c: te.sum(parts[q, b, rk.var, t, s, c], axis=rk), f"{name}_squares")

    def margin(b: Any, t: Any, s: Any, c: Any) -> Any:
        rest, *cores = (squares[q, b, t, s, c] for q in range(len(places) + 1))
        has_results = lambda at: te.logical_and(*(of * tile + k <= e for of, k, e in zip((t, s), at, results, strict=True)))
        known = [te.if_then_else(has_results(at), core, most) if max(at) > 1 else core for at, core in zip(places, cores, strict=True)]
        return functools.reduce(tir.min_, known or [most]) - _total([rest, *cores]) * share

    margins = te.compute((n, *counts, inner), margin, f"{name}_margins")
    return te.compute((n, *counts), lambda b, t, s: _total([margins[b, t, s, c] for c in range(static(inner))]) >= 0.0, f"{name}_even")


def _total(values: Sequence[Any]) -> Any:
    """The sum, in pairs."""
    half = len(values) // 2
    return values[0] if len(values) == 1 else _total(values[:half]) + _total(values[half:])
