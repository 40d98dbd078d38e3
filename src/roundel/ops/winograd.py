# SPDX-License-Identifier: Apache-2.0
"""Winograd convolution F(m x m, 3 x 3): tiles of m x m results from (m + 2)^2 products per channel pair instead of 9 m^2.

A tile's data d and a kernel g give Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A (Lavin and Gray, 2015). Kernels are transformed beforehand
(``transform_weight``); the products of one position of all tiles and channels are a matrix product. Infinities do not survive the transforms, and
where m = 4 they and NaNs spread through the tile, whose norm rounding errors follow: tiles whose values are not finite or too uneven for that
(``even_tiles``) are computed directly.
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
from .elementwise import label, pick
from .even_tiles import even_tiles
from .layout import named_layout

PIECE = 512  # kernels transformed together: they stay in the cache, and are so few that no BLAS wakes its threads, which then spin

Row = Sequence[Any]

NEAR, FAR = 5 / 8, 3 / 2
"""Interpolation points of F(4x4, 3x3), with either sign, beside 0 and infinity; half the error of the usual 1 and 2 (Barabasz, Anderson,
Soodhalter and Gregg, "Error analysis and improving the accuracy of Winograd convolution", 2020). Their powers in the transforms are exact."""


def _kernel_row(point: float, other: float) -> list[float]:
    """The row of G for one of the points 0, point, -point, other, -other."""
    scale = 2 * point**2 * (point**2 - other**2)
    return [1 / scale, point / scale, point**2 / scale]


KERNEL_TRANSFORM: dict[int, list[list[float]]] = {
    2: [[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]],
    4: [
        [1 / (NEAR * FAR) ** 2, 0, 0],
        _kernel_row(NEAR, FAR),
        _kernel_row(-NEAR, FAR),
        _kernel_row(FAR, NEAR),
        _kernel_row(-FAR, NEAR),
        [0, 0, 1],
    ],
}
"""G for the interpolation points 0, 1, -1 and infinity (m = 2); 0, NEAR, -NEAR, FAR, -FAR and infinity (m = 4)."""


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
    p, q = NEAR**2, FAR**2
    near_even, near_odd = d[4] - d[2] * q, (d[3] - d[1] * q) * NEAR
    far_even, far_odd = d[4] - d[2] * p, (d[3] - d[1] * p) * FAR
    first, last = (d[k] * (p * q) - d[k + 2] * (p + q) + d[k + 4] for k in (0, 1))
    return [first, near_even + near_odd, near_even - near_odd, far_even + far_odd, far_even - far_odd, last]


def _result_2(m: Row) -> list[Any]:
    return [m[0] + m[1] + m[2], m[1] - m[2] - m[3]]


def _result_4(m: Row) -> list[Any]:
    near, far = (m[1] + m[2], m[1] - m[2]), (m[3] + m[4], m[3] - m[4])
    power = lambda k: near[k % 2] * NEAR**k + far[k % 2] * FAR**k
    return [m[0] + near[0] + far[0], power(1), power(2), power(3) + m[5]]


DATA_TRANSFORM: dict[int, Callable[[Row], list[Any]]] = {2: _data_2, 4: _data_4}
"""``Bᵀ d`` of one row of m + 2 values."""
RESULT_TRANSFORM: dict[int, Callable[[Row], list[Any]]] = {2: _result_2, 4: _result_4}
"""``Aᵀ m`` of one row of m + 2 values."""


@register
class WinogradConv2d(OpDef):
    """A 3 x 3 convolution with stride 1 of data in blocks of channels (``data_layout`` "NCHW16c") by transformed weights.

    ``weight`` is [tile + 2, tile + 2, O / o, I / c, c, o]; ``kernel``, from which uneven tiles are computed, is [O / o, I / c, 3, 3, c, o]; the
    result has blocks of o channels. ``padding`` as for ``nn.conv2d``.
    """

    name, operands, kind = "nn.winograd_conv2d", ("data", "weight", "kernel"), FuseKind.ANCHOR
    (attributes,) = ({"tile": 4, "padding": 1, "data_layout": "NCHW16c"},)

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, weight, kernel = (tensor_info(self, a, args) for a in args)
        edge = attrs["tile"] + 2
        if data.shape is None or weight.shape is None or len(data.shape) != 5 or len(weight.shape) != 6:
            fail(self, "data in blocks of channels (5 dimensions) and transformed weights (6 dimensions) are needed", *args)
        if [static(n) for n in weight.shape[:2]] != [edge, edge] or [static(n) for n in weight.shape[3:5]] != [static(data.shape[1]), static(data.shape[4])]:
            fail(self, f"the weight is not one of tiles of {attrs['tile']} for these channels", *args)
        if kernel.shape is None or len(kernel.shape) != 6 or any(map(_differ, kernel.shape, [*weight.shape[2:4], 3, 3, *weight.shape[4:]])):
            fail(self, "the kernel is not one of 3 x 3 with the channels of the weight", *args)
        n, _, h, w, _ = data.shape
        (top, bottom), (left, right) = paddings(attrs["padding"], 2)
        rows, cols = simplify(h + (top + bottom - 2)), simplify(w + (left + right - 2))
        return graph.TensorInfo((n, weight.shape[2], rows, cols, weight.shape[5]), data.dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, weight, kernel = args
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
            return pick(x, DATA_TRANSFORM[m]([padded[b, k, t * m + i, col, c] for i in range(a)]))

        half = te.compute((a, n, blocks, down, simplify(across * m + 2), inner), columns, f"{name}_data_columns")

        def positions(x: Any, y: Any, b: Any, k: Any, t: Any, c: Any) -> Any:
            row, first = tir.floordiv(t, across), tir.floormod(t, across) * m
            return pick(y, DATA_TRANSFORM[m]([half[x, b, k, row, first + j, c] for j in range(a)]))

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
            lambda y, b, k, t, s, i, o: pick(i, RESULT_TRANSFORM[m]([products[x, y, b, k, t * across + s, o] for x in range(a)])),
            f"{name}_result_columns",
        )
        whole = te.compute(
            (n, outer, down, across, m, m, lanes),
            lambda b, k, t, s, i, j, o: pick(j, RESULT_TRANSFORM[m]([part[y, b, k, t, s, i, o] for y in range(a)])),
            f"{name}_result",
        )

        patch = pad_spatial(data, layout, pads, tir.const(0, data.dtype), f"{name}_patch")
        direct, even = _direct(patch, kernel, (down, across), m, name), even_tiles(padded, (rows, cols), m, name)

        def cut(b: Any, k: Any, y: Any, x: Any, o: Any) -> Any:
            t, s, i, j = tir.floordiv(y, m), tir.floordiv(x, m), tir.floormod(y, m), tir.floormod(x, m)
            return tir.select(tir.call("likely", even[b, t, s]), whole[b, k, t, s, i, j, o], direct[b, k, t, s, i, j, o])

        return te.compute((n, outer, rows, cols, lanes), cut, name)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, weight = (x.astype(np.float64) for x in args[:2])
        back = np.linalg.pinv(np.array(KERNEL_TRANSFORM[attrs["tile"]]))
        x = np.pad(data, [(0, 0), (0, 0), *paddings(attrs["padding"], 2), (0, 0)])
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
        return np.einsum("nkyxcij,ip,jq,pqokcl->noyxl", windows, back, back, weight, optimize=True).astype(args[0].dtype)


def _direct(padded: Any, kernel: Any, counts: tuple[Any, Any], tile: int, name: str) -> Any:
    """The results of all tiles [N, O / o, rows, columns, tile, tile, o] as plain sums."""
    outer, blocks, *_, inner, lanes = kernel.shape
    rk, ry, rx, rc = (te.reduce_axis(e, f"r{axis}") for e, axis in ((blocks, "k"), (3, "y"), (3, "x"), (inner, "c")))

    def result(b: Any, k: Any, t: Any, s: Any, i: Any, j: Any, o: Any) -> Any:
        pixel = padded[b, rk.var, t * tile + i + ry.var, s * tile + j + rx.var, rc.var]
        return te.sum(pixel * kernel[k, rk.var, ry.var, rx.var, rc.var, o], axis=[rk, ry, rx, rc])

    return te.compute((padded.shape[0], outer, *counts, tile, tile, lanes), result, f"{name}_direct")


def _differ(a: Any, b: Any) -> bool:
    """Whether two extents are different numbers."""
    return static(a) != (b if isinstance(b, int) else static(b))
