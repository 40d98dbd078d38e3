# SPDX-License-Identifier: Apache-2.0
"""Panels of a constant matrix that two kinds of products read: plain ones its left half, Strassen's its quarters (``ops/strassen.py``).

Both must want one layout, or there would be two copies: four columns of quarters [K, 4 H] become [H / width, 4, K, width], so that the
quarters of a panel follow each other for Strassen's products and a plain panel is contiguous as well. The width is what suits
Strassen's products; the height of a plain product's tile stays free.
"""

from __future__ import annotations

from ...ir import tir
from ...target import Target
from ..match.contraction import Contraction
from .register_tile import Tile, choose_tile

PAIRS = 8   # of rows, in a tile of Strassen's products
PARTS = 4   # columns of quarters


def shared_tile(target: Target, half: int, inner: int) -> Tile:
    """The register tile of products of ``PAIRS`` rows with quarters [inner, half] of a float32 matrix."""
    lanes = target.lanes("float32")
    return choose_tile(target, PAIRS, [v for v in (1, 2, 3, 4) if half // lanes % v == 0], lanes, row_bytes=4 * inner)


def shared_half(c: Contraction, target: Target) -> int | None:
    """The number of columns of a quarter, where the vector operand is such a matrix; else None."""
    buffer, extent, lanes = c.vector.buffer, c.extent(c.vector_axis), target.lanes("float32")
    if buffer.ndim != 2 or buffer.dtype != "float32" or len(c.reduce) != 1 or c.columns or extent is None or c.is_data:
        return None
    inner, columns = (getattr(n, "value", 0) for n in buffer.shape)
    half = columns // PARTS
    return half if inner % 2 == 0 and columns == PARTS * half and half % lanes == 0 and 0 < half < extent <= 2 * half else None


def shared_panels(half: int, width: int) -> tir.IndexMap:
    """The layout of the matrix."""
    return tir.IndexMap.from_func(lambda k, n: (n % half // width if half > width else tir.index_const(0), n // half, k, n % width), 2)
