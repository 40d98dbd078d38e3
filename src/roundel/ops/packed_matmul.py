# SPDX-License-Identifier: Apache-2.0
"""Products with a matrix of numbers of few bits, which stay packed in words, with a scale for each group of rows of a column."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.op import FuseKind, OpDef, register

from .dims import fail, fill, same, static, tensor_info
from .elementwise import widen

WORD, BYTE, MANTISSA = 32, 8, 23  # bits
BIAS = 127  # of exponents


def _converted(word: Any, e: Any, bits: int) -> Any:
    """Element ``e`` of a word as float32."""
    return te.cast(te.cast((word >> te.cast(e * bits, "uint32")) & tir.const((1 << bits) - 1, "uint32"), "int32"), "float32")


def _mantissa(word: Any, e: Any, bits: int) -> Any:
    """Element ``e`` of a word and 2^bits, whose float32 is that element in the highest bits of the mantissa of 2^bits: no conversion, and where a machine
    has operations of three operands, one beside the shift."""
    at, high = e * bits, MANTISSA - bits
    left, right = (te.cast(x, "uint32") for x in (high - at, at - high))
    moved = tir.if_then_else(at < high, word << left, word >> right)
    placed = (moved & tir.const(((1 << bits) - 1) << high, "uint32")) | tir.const((BIAS + bits) << MANTISSA, "uint32")
    return tir.call("reinterpret", placed, dtype="float32")


def scaled_by(total: Any, i: Any, g: Any, n: Any, scales: Any, sums: Any, shift: Any, attrs: Attrs, base: int = 0) -> Any:
    """The part of a result that is the sum ``total`` of group g for row i and column n, of elements to which ``base`` was added."""
    real = lambda v: te.cast(v, "float32")
    scale, added = real(scales(g, n)), shift is not None and not attrs["shift_is_scaled"]
    zero: Any = attrs["zero"] * (shift is None) + base
    if shift is not None and not added:
        zero = real(shift(g, n)) + tir.const(float(base), "float32") if base else real(shift(g, n))
    elif zero:
        zero = tir.const(float(zero), "float32")
    total = total - sums(i, g) * zero if isinstance(zero, tir.Expr) else total
    return total * scale + sums(i, g) * real(shift(g, n)) if added else total * scale


def added_up(partial: np.ndarray, scales: np.ndarray, sums: np.ndarray, shift: np.ndarray | None, attrs: Attrs) -> np.ndarray:
    """Results (rows, n) of the sums of groups (groups, rows, n)."""
    scale, sums = widen(scales)[:, None, :], sums.T[:, :, None]
    if shift is not None and not attrs["shift_is_scaled"]:
        return (partial * scale + sums * widen(shift)[:, None, :]).sum(0, dtype=partial.dtype)
    zero = attrs["zero"] if shift is None else widen(shift)[:, None, :].astype(partial.dtype)
    return ((partial - sums * zero) * scale).sum(0, dtype=partial.dtype)


@register
class PackedMatMul(OpDef):
    """A product of rows with a matrix whose elements q of 2, 4 or 8 bits are unsigned and packed, with scales s for groups of its rows.


        y[i, n] = sum over groups g of s[g, n] * (sum over k of x[i, g, k] * q[g, k, n] - zero * sums[i, g])

    ``data`` is x in float32 as (rows, groups, words of a group, elements of a word); ``words`` is (groups * words of a group, n) in uint32, the first
    element in the lowest bits; ``scales`` is (groups, n); ``sums`` are those of x over each group. ``zero`` is one number, or ``shift`` holds one for each
    scale: the zero points instead of it (``shift_is_scaled``), or what is added to the elements after they are scaled::

        y[i, n] = sum over g of s[g, n] * (...) + shift[g, n] * sums[i, g]

    Scales and shifts may be of any number type; the result is float32. As blocks of MatMulNBits, of DequantizeLinear and of GGUF have it.
    """

    name, operands, kind = "packed_matmul", ("data", "words", "scales", "sums", "shift?"), FuseKind.ANCHOR
    attributes = {"bits": ..., "zero": 0.0, "shift_is_scaled": True}

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, words, scales, sums, shift = (None if a is None else tensor_info(self, a, args) for a in fill(args, 5))
        if attrs["bits"] not in (2, 4, 8):
            fail(self, f"elements of {attrs['bits']} bits", *args, hint="they have 2, 4 or 8")
        if [x.ndim for x in (data, words, scales, sums)] != [4, 2, 2, 2]:
            fail(self, "data has four dimensions, the others have two", *args)
        rows, groups, deep, per = data.shape
        if static(per) != WORD // attrs["bits"] or not same(words.shape[0], groups * deep) or not same(scales.shape[0], groups):
            fail(self, "sizes of data, words and scales do not fit", *args)
        if not same(words.shape[1], scales.shape[1]) or (shift is not None and not all(map(same, shift.shape, scales.shape))):
            fail(self, "words, scales and shift have not as many columns", *args)
        return graph.TensorInfo((rows, words.shape[1]), "float32")

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, words, scales, sums, shift = fill(args, 5)
        rows, groups, deep, per = x.shape
        bits, columns = attrs["bits"], words.shape[1]
        in_mantissa = bits < BYTE  # then a number stands for itself and ``base``
        base = (1 << bits) * in_mantissa
        number = _mantissa if in_mantissa else _converted
        levels = te.compute((groups, deep, per, columns), lambda g, w, e, n: number(words(g * deep + w, n), e, bits), "levels")
        w, e, g = te.reduce_axis(deep, "w"), te.reduce_axis(per, "e"), te.reduce_axis(groups, "g")
        partial = te.compute((rows, groups, columns), lambda i, k, n: te.sum(x(i, k, w.var, e.var) * levels(k, w.var, e.var, n), axis=[w, e]), "partial_sums")

        scaled = lambda i, n: scaled_by(partial(i, g.var, n), i, g.var, n, scales, sums, shift, attrs, base)
        return te.compute((rows, columns), lambda i, n: te.sum(scaled(i, n), axis=g), "packed_matmul")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, words, scales, sums, shift = fill(args, 5)
        rows, groups, deep, per = x.shape
        bits = attrs["bits"]
        levels = (words[:, None, :] >> (np.arange(per, dtype=np.uint32) * np.uint32(bits))[None, :, None]) & np.uint32((1 << bits) - 1)
        partial = np.einsum("igk,gkn->gin", x.reshape(rows, groups, deep * per), levels.reshape(groups, deep * per, -1).astype(x.dtype))
        return added_up(partial, scales, sums, shift, attrs).astype(x.dtype)
