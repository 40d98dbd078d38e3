# SPDX-License-Identifier: Apache-2.0
"""What quantised models compute of integers, in integers: sums brought to the scale of a result, for processors whose floats are computed by functions, and
functions of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel import te
from roundel.ir import tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import FLOAT32, DType
from roundel.ir.op import FuseKind, OpDef, register

from .dims import fail, tensor_info
from .elementwise import element, label

PLACES = 32
"""Binary digits behind the point."""
BYTES = 256
"""Values of a byte."""
LARGEST_SCALE, LARGEST_BIAS = 0.5, 1024.0
_HALF, _NEAR = 1 << (PLACES - 1), 9 << 20  # 9 * 2^20 / 2^32 is 0.0022
_MOST = 1 << 22


@register
class ScaledWhole(OpDef):
    """``clip(round(x * scale + bias) + zero, low, high)`` as ``out_dtype``, of 32-bit integers x, the sum rounded to float32 once.

    ``by`` and ``more`` are scale and bias times 2^32, cut off. In integers the error is below 0.0022 for x below 2^22: what is cut off of the scale, times x,
    and the roundings of float32, of numbers below 6,144 (beyond, they are limited either way). Where the number is nearer than that to the middle between
    two whole ones, or x is larger, the sum is made of floats. Scales and biases broadcast to the shape of x.
    """

    name, operands, kind = "nn.scaled_whole", ("data", "scale", "bias", "by", "more"), FuseKind.BROADCAST
    attributes = {"zero": 0, "low": -128, "high": 127, "out_dtype": "int8"}

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return tensor_info(self, args[0], args).replace(dtype=DType(attrs["out_dtype"]))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, *others = args
        kind, zero, low, high = attrs["out_dtype"], attrs["zero"], attrs["low"], attrs["high"]

        def body(*i: Any) -> Any:
            x, (scale, bias, by, more) = data(*i), (element(v, i, data.shape) for v in others)
            wide = lambda v: te.cast(v, "int64")
            total = wide(x) * wide(by) + more + tir.const(_HALF, "int64")
            digits = te.cast(total, "uint32") + tir.const(_NEAR, "uint32")
            near = digits < tir.const(2 * _NEAR, "uint32")
            large = te.cast(x, "uint32") + tir.const(_MOST, "uint32") >= tir.const(2 * _MOST, "uint32")
            real = te.nearbyint(te.cast(x, FLOAT32) * scale + bias) + tir.const(float(zero), "float32")
            exact = te.cast(te.min_(te.max_(real, float(low)), float(high)), kind)
            whole = te.cast(total >> tir.const(PLACES, "int64"), "int32") + tir.const(zero, "int32")
            limited = te.cast(te.min_(te.max_(whole, tir.const(low, "int32")), tir.const(high, "int32")), kind)
            return te.if_then_else(tir.logical_or(near, large), exact, limited)

        return te.compute(data.shape, body, label(self))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, scale, bias, _, _ = args
        total = (x.astype(np.float64) * scale + bias).astype(np.float32)
        return np.clip(np.rint(total) + attrs["zero"], attrs["low"], attrs["high"]).astype(DType(attrs["out_dtype"]).numpy)


@register
class ByteTable(OpDef):
    """``table[data]`` for unsigned bytes: any function of a byte, by a table of its 256 results."""

    name, operands, kind = "nn.byte_table", ("data", "table"), FuseKind.BROADCAST

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, table = tensor_info(self, args[0], args), tensor_info(self, args[1], args)
        if data.dtype != "uint8" or table.shape != (tir.index_const(BYTES),):
            fail(self, f"data have to be uint8 and the table a vector of {BYTES} elements", *args)
        return data.replace(dtype=table.dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, table = args
        return te.compute(data.shape, lambda *i: table(te.cast(data(*i), "int64")), label(self))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return args[1][args[0]]
