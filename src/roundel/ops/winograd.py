# SPDX-License-Identifier: Apache-2.0
"""Winograd convolution F(m x m, 3 x 3): tiles of m x m results from (m + 2)^2 products per channel pair instead of 9 m^2.

A tile's data d and a kernel g give Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A (Lavin and Gray, 2015). Kernels are transformed beforehand
(``transform_weight``); the products of one position of all tiles and channels are a matrix product. An infinity or NaN
in the data spreads through its tile, and sums of large terms that cancel cost about a digit (m = 4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.op import FuseKind, OpDef, register

from .conv import pad_spatial
from .dims import fail, paddings, simplify, static, tensor_info
from .elementwise import label
from .layout import named_layout

PIECE = 512  # kernels transformed together: they stay in the cache, and are so few that no BLAS wakes its threads, which then spin

Row = Sequence[Any]

KERNEL_TRANSFORM: dict[int, list[list[float]]] = {
    2: [[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]],
    4: [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ],
}
"""G for the interpolation points 0, 1, -1 (, 2, -2) and infinity."""


def transform_weight(weight: np.ndarray, tile: int) -> np.ndarray:
    """``G g Gᵀ`` of kernels [O, I, 3, 3]: [tile + 2, tile + 2, O, I], worked out in float64."""
    g = np.array(KERNEL_TRANSFORM[tile])
    both, kernels = np.kron(g, g), weight.reshape(-1, 9)
    out = np.empty((len(both), len(kernels)), weight.dtype)
    for k in range(0, len(kernels), PIECE):
        out[:, k : k + PIECE] = both @ kernels[k : k + PIECE].T.astype(np.float64)
    return out.reshape(tile + 2, tile + 2, *weight.shape[:2])


def _data_2(d: Row) -> list[Any]:
    return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]


def _data_4(d: Row) -> list[Any]:
    even, odd = d[4] - d[2] * 4.0, d[3] - d[1] * 4.0
    near, far = d[4] - d[2], (d[3] - d[1]) * 2.0
    return [d[0] * 4.0 - d[2] * 5.0 + d[4], even + odd, even - odd, near + far, near - far, d[1] * 4.0 - d[3] * 5.0 + d[5]]


def _result_2(m: Row) -> list[Any]:
    return [m[0] + m[1] + m[2], m[1] - m[2] - m[3]]


def _result_4(m: Row) -> list[Any]:
    a, b, c, d = m[1] + m[2], m[1] - m[2], m[3] + m[4], m[3] - m[4]
    return [m[0] + a + c, b + d * 2.0, a + c * 4.0, b + d * 8.0 + m[5]]


DATA_TRANSFORM: dict[int, Callable[[Row], list[Any]]] = {2: _data_2, 4: _data_4}
"""``Bᵀ d`` of one row of m + 2 values."""
RESULT_TRANSFORM: dict[int, Callable[[Row], list[Any]]] = {2: _result_2, 4: _result_4}
"""``Aᵀ m`` of one row of m + 2 values."""


@register
class WinogradConv2d(OpDef):
    """A 3 x 3 convolution with stride 1 of data in blocks of channels (``data_layout`` "NCHW16c") by transformed weights.

    ``weight`` is [tile + 2, tile + 2, O / o, I / c, c, o]; the result has blocks of o channels. ``padding`` as for
    ``nn.conv2d``.
    """

    name, operands, kind = "nn.winograd_conv2d", ("data", "weight"), FuseKind.ANCHOR
    (attributes,) = ({"tile": 4, "padding": 1, "data_layout": "NCHW16c"},)

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, weight = (tensor_info(self, a, args) for a in args)
        edge = attrs["tile"] + 2
        if data.shape is None or weight.shape is None or len(data.shape) != 5 or len(weight.shape) != 6:
            fail(self, "data in blocks of channels (5 dimensions) and transformed weights (6 dimensions) are needed", *args)
        if [static(n) for n in weight.shape[:2]] != [edge, edge] or [static(n) for n in weight.shape[3:5]] != [static(data.shape[1]), static(data.shape[4])]:
            fail(self, f"the weight is not one of tiles of {attrs['tile']} for these channels", *args)
        n, _, h, w, _ = data.shape
        (top, bottom), (left, right) = paddings(attrs["padding"], 2)
        rows, cols = simplify(h + (top + bottom - 2)), simplify(w + (left + right - 2))
        return graph.TensorInfo((n, weight.shape[2], rows, cols, weight.shape[5]), data.dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, weight = args
        m, name = attrs["tile"], label(self)
        n, blocks, height, width, inner = data.shape
        outer, lanes = weight.shape[2], weight.shape[5]
        (top, bottom), (left, right) = paddings(attrs["padding"], 2)
        rows, cols = simplify(height + (top + bottom - 2)), simplify(width + (left + right - 2))
        down, across = (simplify(tir.floordiv(e + (m - 1), m)) for e in (rows, cols))
        layout = named_layout(attrs["data_layout"])
        pads = {"H": (top, simplify(down * m + 2 - height - top)), "W": (left, simplify(across * m + 2 - width - left))}
        padded = pad_spatial(data, layout, pads, tir.const(0, data.dtype), f"{name}_pad")
        a = m + 2

        def columns(x: Any, b: Any, k: Any, t: Any, col: Any, c: Any) -> Any:
            return _pick(x, DATA_TRANSFORM[m]([padded[b, k, t * m + i, col, c] for i in range(a)]))

        half = te.compute((a, n, blocks, down, simplify(across * m + 2), inner), columns, f"{name}_data_columns")

        def positions(x: Any, y: Any, b: Any, k: Any, t: Any, c: Any) -> Any:
            row, first = tir.floordiv(t, across), tir.floormod(t, across) * m
            return _pick(y, DATA_TRANSFORM[m]([half[x, b, k, row, first + j, c] for j in range(a)]))

        count = simplify(down * across)
        tiles = te.compute((a, a, n, blocks, count, inner), positions, f"{name}_data")
        rk, rc = te.reduce_axis(blocks, "rk"), te.reduce_axis(inner, "rc")
        products = te.compute(
            (a, a, n, outer, count, lanes),
            lambda x, y, b, k, t, o: te.sum(tiles[x, y, b, rk.var, t, rc.var] * weight[x, y, k, rk.var, rc.var, o], axis=[rk, rc]),
            f"{name}_products",
        )
        part = te.compute(
            (a, n, outer, down, across, m, lanes),
            lambda y, b, k, t, s, i, o: _pick(i, RESULT_TRANSFORM[m]([products[x, y, b, k, t * across + s, o] for x in range(a)])),
            f"{name}_result_columns",
        )
        whole = te.compute(
            (n, outer, down, across, m, m, lanes),
            lambda b, k, t, s, i, j, o: _pick(j, RESULT_TRANSFORM[m]([part[y, b, k, t, s, i, o] for y in range(a)])),
            f"{name}_result",
        )

        def cut(b: Any, k: Any, y: Any, x: Any, o: Any) -> Any:
            return whole[b, k, tir.floordiv(y, m), tir.floordiv(x, m), tir.floormod(y, m), tir.floormod(x, m), o]

        return te.compute((n, outer, rows, cols, lanes), cut, name)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, weight = (x.astype(np.float64) for x in args)
        m, a = attrs["tile"], attrs["tile"] + 2
        n, _, height, width, _ = data.shape
        (top, bottom), (left, right) = paddings(attrs["padding"], 2)
        rows, cols = height + top + bottom - 2, width + left + right - 2
        down, across = -(-rows // m), -(-cols // m)
        around = [(0, 0), (0, 0), (top, down * m + 2 - height - top), (left, across * m + 2 - width - left), (0, 0)]
        x = np.pad(data, around)
        tiles = np.lib.stride_tricks.sliding_window_view(x, (a, a), (2, 3))[:, :, ::m, ::m]
        b, r = (_matrix(f[m], a) for f in (DATA_TRANSFORM, RESULT_TRANSFORM))
        spread = np.einsum("xi,yj,nkdscij->xynkdsc", b, b, tiles)
        products = np.einsum("xynkdsc,xyokcl->xynodsl", spread, weight)
        out = np.einsum("ix,jy,xynodsl->nodisjl", r, r, products)
        out = out.reshape(n, weight.shape[2], down * m, across * m, weight.shape[5])
        return out[:, :, :rows, :cols].astype(args[0].dtype)


def _matrix(transform: Callable[[Row], list[Any]], edge: int) -> np.ndarray:
    return np.array(transform(list(np.eye(edge))))


def _pick(index: Any, values: Sequence[Any]) -> Any:
    """``values[index]``, for an index that a schedule unrolls."""
    out = values[-1]
    for k in range(len(values) - 2, -1, -1):
        out = te.if_then_else(tir.eq(index, k), values[k], out)
    return out
