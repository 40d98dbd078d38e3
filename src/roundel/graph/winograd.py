# SPDX-License-Identifier: Apache-2.0
"""Whether a convolution runs by Winograd's algorithm, and with which tiles: by modelled time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir import graph, options
from ..ir.constants import ConstData
from ..ops.dims import paddings, per_axis, static
from ..ops.winograd import transform_weight
from ..target import Target

TILES = (2, 4)
LARGEST = 2.0**80
"""The largest norm of a kernel that is transformed. A tile of 4 that is not computed directly has pixels of norm below 2^36 (`ops/even_tiles.py`),
and no number on the way to a result, U = G g Gᵀ, V = Bᵀ d B, sums of U V over channels and of these over positions, is larger than ||g|| ||d||
times the square of the sum over x of |A_ix| ||B_x|| ||G_x|| for any i, 94 (of tiles of 2: 15). So nothing overflows."""
GROWTH = {2: 16 / 9, 4: 36 / 9 + 1}  # of the weights: transformed, and with tiles of 4 beside them as they are
READING_SHARE = 0.83   # of the rate at which a level is read, that weights are read from it
DIRECT_SHARE = 0.97    # of peak that a direct convolution reaches
PRODUCT_SHARE = 0.97   # ... the products of the positions
TRANSFORM_CYCLES = {2: 90, 4: 550}  # of the transform of a tile, for a vector of channels of the data or the result; the test of a tile of 4 included
EXPOSED = 0.4         # of the shorter of arithmetic and reading weights, that the longer does not hide


def winograd_tile(data: graph.TensorInfo, weight: graph.TensorInfo, attrs: Any, target: Target, constants: float = math.inf) -> int:
    """The tile (2 or 4) with which a convolution NCHW by OIHW is expected to run fastest, 0 for the direct way."""
    times = winograd_cycles(data, weight, attrs, target, constants)
    return min(times, key=times.__getitem__, default=0)


def winograd_cycles(data: graph.TensorInfo, weight: graph.TensorInfo, attrs: Any, target: Target, constants: float = math.inf) -> dict[int, float]:
    """What the model expects of each tile, in cycles of one core; 0 is the direct way. Empty where that is the only one. ``constants``: bytes of
    all that a run of the model reads of them, which decides where those of a layer come from when its turn is there again."""
    if options.get("accuracy") == "strict" or int(attrs["groups"]) != 1 or data.dtype != "float32":
        return {}
    kernel = [static(n) for n in weight.shape[2:]]
    if kernel != [3, 3] or tuple(per_axis(attrs["strides"], 2)) != (1, 1) or tuple(per_axis(attrs["dilation"], 2)) != (1, 1):
        return {}
    pads = paddings(attrs["padding"], 2)
    channels, height, width = (static(n) for n in data.shape[1:])
    outer = static(weight.shape[0])
    if channels is None or height is None or width is None or outer is None:
        return {}
    rows, cols = (n + sum(p) - 2 for n, p in zip((height, width), pads, strict=True))
    lanes = target.lanes("float32")
    if rows <= 0 or cols <= 0 or channels % lanes or outer % lanes:
        return {}
    batch = static(data.shape[0]) or 1
    tiles = [m for m in TILES if GROWTH[m] <= options.get("weight_growth")]
    level = target.level_of(constants)
    return {m: _cycles(m, batch, rows, cols, channels, outer, target, level) for m in (0, *tiles)}


def _cycles(m: int, batch: int, rows: int, cols: int, channels: int, outer: int, target: Target, level: int) -> float:
    """Modelled cycles of one core; ``m`` 0 is the direct way, ``level`` where weights come from."""
    lanes = target.lanes("float32")
    pairs = channels * outer / (lanes * target.fma_ports)
    edge = m + 2 if m else 3
    reading = edge**2 * channels * outer * 4 / (READING_SHARE * target.bytes_per_cycle(level))
    if not m:
        return _together(batch * 9 * rows * cols * pairs / DIRECT_SHARE, reading)
    tiles = batch * -(-rows // m) * -(-cols // m)
    transforms = tiles * TRANSFORM_CYCLES[m] * (channels + outer) / lanes
    return _together(edge**2 * tiles * pairs / PRODUCT_SHARE, reading) + transforms


def _together(arithmetic: float, reading: float) -> float:
    return max(arithmetic, reading) + EXPOSED * min(arithmetic, reading)


def is_transformable(weight: graph.Constant) -> bool:
    """Whether kernels OIHW are finite, and so small that Winograd's algorithm overflows nowhere where the direct one would not (of tiles
    of 2: for windows of norm below 2^124 / ||kernel|| and 2^126)."""
    kernels = weight.data.numpy()
    most = max(float(np.max(kernels)), -float(np.min(kernels))) if kernels.size else math.nan
    return most * math.sqrt(kernels[0].size) <= LARGEST


def winograd_weight(weight: graph.Constant, tile: int, inner: int, outer: int) -> graph.Constant:
    """A kernel OIHW transformed: [tile + 2, tile + 2, O / outer, I / inner, inner, outer]."""
    o, i = (static(n) for n in weight.sinfo.shape[:2])
    shape = (tile + 2, tile + 2, o // outer, i // inner, inner, outer)
    source = weight.data

    def transformed(array: np.ndarray) -> np.ndarray:
        cut = transform_weight(array, tile).reshape(tile + 2, tile + 2, o // outer, outer, i // inner, inner)
        return np.ascontiguousarray(cut.transpose(0, 1, 2, 4, 5, 3))

    data = ConstData.derived(transformed, (source,), "winograd", shape=shape, dtype=source.dtype)
    return graph.Constant(data, graph.TensorInfo(shape, source.dtype))
