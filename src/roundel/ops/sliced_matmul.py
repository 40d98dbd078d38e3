# SPDX-License-Identifier: Apache-2.0
"""Products of rows in float32 with numbers of few bits by instructions that sum products of bytes, without losing what float32 holds.

A row is cut into slices, as in Ozaki's scheme ("Error-free transformations of matrix multiplication", 2012): within each group of the sum, its numbers
are multiples of one step, whole numbers of 24 bits, whose bytes are the slices. Products of slices with whole numbers are exact, so what is lost is half a
step for each number, 2^-24 of the largest number of its group, as much as one rounding of that number in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.op import FuseKind, OpDef, register

from .dims import fail, fill, same, static, tensor_info
from .packed_matmul import BYTE, added_up, scaled_by

SLICES, BYTES = 3, 4  # of a number; of a word, whose products the instructions sum
LARGEST = 127 << 2 * BYTE  # whole number: its slices, and those of its neighbours that roundings lead to, are signed bytes
_CENTRE = 128 * (1 + (1 << BYTE) + (1 << 2 * BYTE))  # added, it makes all slices unsigned
_LEAST = 2.0**-100  # largest number of a group: below it steps would leave the range of float32


@register
class ByteSlices(OpDef):
    """The slices of numbers: signed bytes d with ``x = (65536 d[0] + 256 d[1] + d[2]) * step`` for the step of each group, ``most / 8323072``.

    ``data`` is x in float32 as (rows, groups, words, parts, 4), ``most`` the largest absolute value of each group (rows, groups). The result is
    (rows, 3, groups, words, parts, 4). Groups whose ``most`` is not finite give zeros.
    """

    name, operands, kind = "byte_slices", ("data", "most"), FuseKind.BROADCAST

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, most = (tensor_info(self, a, args) for a in args)
        if data.ndim != 5 or most.ndim != 2 or not all(map(same, data.shape[:2], most.shape)) or static(data.shape[-1]) != BYTES:
            fail(self, "data is (rows, groups, words, parts, 4), and most is (rows, groups)", *args)
        return graph.TensorInfo((data.shape[0], tir.index_const(SLICES), *data.shape[1:]), "int8")

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, most = args
        limit = tir.const(float(LARGEST), "float32")

        def body(i: Any, d: Any, *at: Any) -> Any:
            inverse = limit / te.max_(most(i, at[0]), tir.const(_LEAST, "float32"))
            whole = te.cast(te.nearbyint(x(i, *at) * inverse), "int32") + tir.const(_CENTRE, "int32")
            part = (whole >> te.cast((SLICES - 1 - d) * BYTE, "int32")) & tir.const(255, "int32")
            return te.cast(part - tir.const(128, "int32"), "int8")

        rows, *rest = x.shape
        return te.compute((rows, tir.index_const(SLICES), *rest), body, "byte_slices")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, most = args
        with np.errstate(all="ignore"):
            inverse = np.float32(LARGEST) / np.maximum(most, np.float32(_LEAST))
            whole = np.nan_to_num(np.rint(x * inverse[:, :, None, None, None]), nan=0.0).astype(np.int64) + _CENTRE
        return np.stack([(whole >> (SLICES - 1 - d) * BYTE) % 256 - 128 for d in range(SLICES)], 1).astype(np.int8)


@register
class SlicedMatMul(OpDef):
    """A product of rows with a matrix whose elements of 2, 4 or 8 bits are unsigned and packed, as ``packed_matmul`` defines it, of slices of the rows.

    ``slices`` are those of ``byte_slices`` (rows, 3, groups, words, parts, 4), ``most`` the numbers by which they were made. ``bytes`` is
    (groups * words * 4, n): byte b of word w holds elements (w, h, b) of its group for all parts h, the first in the lowest bits. ``scales``, ``sums``,
    ``shift`` and the attributes are those of ``packed_matmul``.
    """

    name, operands, kind = "sliced_matmul", ("slices", "most", "bytes", "scales", "sums", "shift?"), FuseKind.ANCHOR
    attributes = {"bits": ..., "zero": 0.0, "shift_is_scaled": True}

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        slices, most, packed, scales, sums, shift = (None if a is None else tensor_info(self, a, args) for a in fill(args, 6))
        if attrs["bits"] not in (2, 4, 8):
            fail(self, f"elements of {attrs['bits']} bits", *args, hint="they have 2, 4 or 8")
        if [x.ndim for x in (slices, most, packed, scales, sums)] != [6, 2, 2, 2, 2]:
            fail(self, "slices have six dimensions, the others have two", *args)
        rows, _, groups, words, parts, _ = slices.shape
        if static(parts) != BYTE // attrs["bits"] or not same(packed.shape[0], groups * words * BYTES) or not same(scales.shape[0], groups):
            fail(self, "sizes of slices, bytes and scales do not fit", *args)
        if not same(packed.shape[1], scales.shape[1]) or (shift is not None and not all(map(same, shift.shape, scales.shape))):
            fail(self, "bytes, scales and shift have not as many columns", *args)
        return graph.TensorInfo((rows, packed.shape[1]), "float32")

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        d, most, packed, scales, sums, shift = fill(args, 6)
        rows, _, groups, words, parts, _ = d.shape
        bits, columns = attrs["bits"], packed.shape[1]
        mask = tir.const((1 << bits) - 1, "uint8")
        part = lambda byte, h: byte if bits == BYTE else (byte >> te.cast(h * bits, "uint8")) & mask
        levels = te.compute((groups, words, parts, BYTES, columns), lambda g, w, h, b, n: part(packed((g * words + w) * BYTES + b, n), h), "levels")
        w, h, b, g = te.reduce_axis(words, "w"), te.reduce_axis(parts, "h"), te.reduce_axis(BYTES, "b"), te.reduce_axis(groups, "g")
        wide = lambda v: te.cast(v, "int32")
        product = lambda i, s, k, n: wide(d(i, s, k, w.var, h.var, b.var)) * wide(levels(k, w.var, h.var, b.var, n))
        partial = te.compute((rows, SLICES, groups, columns), lambda i, s, k, n: te.sum(product(i, s, k, n), axis=[w, h, b]), "partial_sums")

        def scaled(i: Any, n: Any) -> Any:
            first, *others = (te.cast(partial(i, s, g.var, n), "float32") for s in range(SLICES))
            for other in others:
                first = first * tir.const(float(1 << BYTE), "float32") + other
            step = te.max_(most(i, g.var), tir.const(_LEAST, "float32")) * tir.const(1.0 / LARGEST, "float32")
            return scaled_by(first * step, i, g.var, n, scales, sums, shift, attrs)

        return te.compute((rows, columns), lambda i, n: te.sum(scaled(i, n), axis=g), "sliced_matmul")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        d, most, packed, scales, sums, shift = fill(args, 6)
        rows, _, groups, words, parts, _ = d.shape
        at = (np.arange(parts) * attrs["bits"]).astype(np.uint8)
        levels = (packed.reshape(groups, words, 1, BYTES, -1) >> at[:, None, None]) & np.uint8((1 << attrs["bits"]) - 1)
        slices, levels = d.reshape(rows, SLICES, groups, -1), levels.reshape(groups, words * parts * BYTES, -1)
        whole = np.einsum("isgk,gkn->sgin", slices.astype(np.int64), levels.astype(np.int64))
        step = np.maximum(most, np.float32(_LEAST)).astype(np.float64) / LARGEST
        partial = (whole[0] * 65536 + whole[1] * 256 + whole[2]) * step.T[:, :, None]
        return added_up(partial, scales, sums, shift, attrs).astype(np.float32)
