# SPDX-License-Identifier: Apache-2.0
"""Powers of two that bring the rows of one matrix and the columns of another to one size before an algorithm that mixes them.

    A B  =  R ((A / R) (B / C)) C      R, C: diagonal matrices of powers of two

Division and multiplication by powers of two are exact, so the rounding errors of a row (a column) are those of its own size and not of
its largest neighbour's: "outside scaling" of Ballard, Benson, Druinsky, Lipshitz and Schwartz, Improving the numerical stability of fast
matrix multiplication, SIAM Journal on Matrix Analysis and Applications 37, 2016. Sizes are Euclidean norms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import finfo

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import INT64
from roundel.ir.op import FuseKind, OpDef, register

from .dims import fail, tensor_info
from .elementwise import label
from .reduce import reduce_te

LEVEL = 8              # exponent of the norm that rows have after it, so that the power of the largest row is a float32 number
LEAST, MOST = -149, 127  # exponents of powers of two in float32
SPREAD = 2.0 ** 16     # between the norms of columns that are brought to one size
EXTREME = 2.0 ** 60    # norms of columns beyond which, or below whose inverse, a product with a row's power may overflow or vanish


def column_scale(weight: np.ndarray) -> np.ndarray | None:
    """The powers of two [N] for the columns of a constant matrix [K, N]: all 1 where the norms are within a factor of two of each other,
    0 for columns of zeros. None where there are none that do no harm: elements that are not finite, norms that are extreme or far apart.

    Columns of a float32 matrix become as small as the smallest one, so that plain products with the divided matrix overflow no sooner;
    those stored in fewer bits as large as the largest, which loses no bits."""
    stored = finfo(weight.dtype)
    wide = weight.astype(np.float32, copy=False)
    with np.errstate(invalid="ignore"):
        norms = np.sqrt(np.einsum("kn,kn->n", wide, wide, dtype=np.float64))
    some = norms[norms > 0]
    if not np.isfinite(norms).all() or some.size == 0:
        return None
    least, most = some.min(), some.max()
    if most > SPREAD * least or least < 1 / EXTREME or most > min(EXTREME, float(stored.max) / 2):
        return None
    if most <= 2 * least:
        return (norms > 0).astype(np.float32)
    exponents = np.floor(np.log2(np.where(norms > 0, norms, 1)))
    level = np.floor(np.log2(most if stored.bits < 32 else least))
    return np.where(norms > 0, np.exp2(exponents - level), 0).astype(np.float32)


def divided(weight: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The matrix [K, N] with its columns divided by ``column_scale``."""
    return (weight.astype(np.float32, copy=False) / np.where(scale > 0, scale, 1)).astype(weight.dtype)


def scaled(value: Any, power: Any) -> Any:
    """A float32 element divided by the power of its row; 0 in rows of zeros and in those that are not finite. In two steps, as the inverse
    of a denormal power is no float32 number."""
    const = lambda v: tir.const(v, "float32")
    first = te.select(tir.lt(power, const(1)), const(2.0**24), const(1))
    known = tir.logical_and(tir.gt(power, const(0)), tir.lt(power, const(float("inf"))))
    return te.select(known, value * first * (const(1) / (power * first)), const(0))


@register
class RowScale(OpDef):
    """The powers of two for the rows of ``data`` [..., K]: [..., 1]. A divided row has a norm from 2^8 to 2^9 (less only where that is no
    float32 number). Rows of zeros have 0, those with a NaN or an infinity have infinity.

    Squares are summed up in float64, in which none of a float32 number overflows or vanishes.
    """

    name, operands, kind = "nn.row_scale", ("data",), FuseKind.REDUCTION

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data = tensor_info(self, args[0], args)
        if data.shape is None or not data.shape or data.dtype != "float32":
            fail(self, "float32 rows of known shape are needed", *args)
        return graph.TensorInfo((*data.shape[:-1], tir.index_const(1)), data.dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (data,) = args
        wide = lambda v: te.cast(v, "float64")
        squares = reduce_te(data, [len(data.shape) - 1], te.sum, keepdims=True, name=f"{label(self)}_squares",
                            before=lambda v: wide(v) * wide(v), identity=0)

        def power(*at: Any) -> Any:
            total = squares(*at)
            root = te.cast(((tir.Call("reinterpret", (total,), INT64) >> 52) - 1023) >> 1, "int32")
            exponent = te.min_(te.max_(root - LEVEL, LEAST), MOST)
            normal, denormal = (exponent + 127) << 23, tir.const(1, "int32") << (exponent - LEAST)
            made = tir.Call("reinterpret", (te.select(tir.ge(exponent, -126), normal, denormal),), data.dtype)
            known = te.select(tir.gt(total, 0.0), made, tir.const(0, data.dtype))
            return te.select(te.isfinite(total), known, tir.const(float("inf"), data.dtype))

        return te.compute(squares.shape, power, label(self))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        with np.errstate(all="ignore"):
            norm = np.sqrt(np.square(args[0].astype(np.float64)).sum(-1, keepdims=True))
            exponent = np.clip(np.frexp(norm)[1] - 1 - LEVEL, LEAST, MOST)
        made = np.where(norm > 0, np.ldexp(np.float32(1), exponent), np.float32(0))
        return np.where(np.isfinite(norm), made, np.float32(np.inf)).astype(np.float32)
