# SPDX-License-Identifier: Apache-2.0
"""float16, bfloat16, float8 and float4 from and to float32 by integer arithmetic; rounding is to nearest, ties to even."""

from __future__ import annotations

from typing import Any

from ...ir import tir
from ...ir.dataclass import dataclass
from ...ir.dtype import DType


@dataclass(frozen=True)
class Format:
    """A narrow float: exponent and mantissa bits, exponent bias; what its special codes mean.

    ``infinity`` and ``nan`` are magnitudes (None: there is none; NaN of ``fnuz`` is the code of minus zero). What
    exceeds ``largest`` becomes ``overflow``.
    """

    exponent: int
    mantissa: int
    bias: int
    largest: int
    overflow: int
    nan: int | None
    infinity: int | None = None
    fnuz: bool = False

    @property
    def sign(self) -> int:
        """The sign's bit."""
        return 1 << (self.exponent + self.mantissa)


FORMATS: dict[str, Format] = {
    "float16": Format(5, 10, 15, 0x7BFF, 0x7C00, 0x7E00, 0x7C00),
    "float8_e4m3fn": Format(4, 3, 7, 0x7E, 0x7F, 0x7F),
    "float8_e5m2": Format(5, 2, 15, 0x7B, 0x7C, 0x7E, 0x7C),
    "float8_e4m3fnuz": Format(4, 3, 8, 0x7F, 0x80, 0x80, fnuz=True),
    "float8_e5m2fnuz": Format(5, 2, 16, 0x7F, 0x80, 0x80, fnuz=True),
    "float4_e2m1fn": Format(2, 1, 1, 0x7, 0x7, None),
}


def widen(e: tir.Expr) -> tir.Expr:
    """``e`` in float32."""
    return tir.cast(e, "float32")


def narrow(e: tir.Expr, dtype: DType) -> tir.Expr:
    """float32 ``e`` rounded to ``dtype``."""
    return tir.cast(e, dtype)


def bits_of(e: tir.Expr, dtype: Any) -> tir.Expr:
    """The bits of ``e`` as (a vector of) another type of the same width."""
    return tir.Call("reinterpret", (e,), DType(dtype).with_lanes(e.dtype.lanes))


def decode(e: tir.Expr) -> tir.Expr:
    """A narrow float's value as float32, exactly."""
    name = e.dtype.element
    if name == "bfloat16":
        return bits_of(tir.cast(bits_of(e, "uint16"), "uint32") << 16, "float32")
    code = tir.cast(bits_of(e, f"uint{e.dtype.bits}"), "uint32")
    if name == "float8_e8m0fnu":
        value = tir.select(tir.eq(code, 0), tir.const(0x00400000, code.dtype), code << 23)
        return bits_of(tir.select(tir.eq(code, 0xFF), tir.const(0x7FC00000, code.dtype), value), "float32")
    f = FORMATS[name]
    magnitude = code & (f.sign - 1)
    # the fields moved into place mean the value scaled by 2^(bias - 127), subnormals included
    scale = tir.const(2.0 ** (127 - f.bias), tir.const(0.0, "float32").dtype.with_lanes(e.dtype.lanes))
    value = bits_of(bits_of(magnitude << (23 - f.mantissa), "float32") * scale, "uint32")
    if f.infinity is not None:
        special = tir.select(
            tir.eq(magnitude, f.infinity), tir.const(0x7F800000, code.dtype), tir.const(0x7FC00000, code.dtype)
        )
        value = tir.select(magnitude >= f.infinity, special, value)
    elif f.nan is not None and not f.fnuz:
        value = tir.select(tir.eq(magnitude, f.nan), tir.const(0x7FC00000, code.dtype), value)
    value = value | ((code & f.sign) << (31 - f.exponent - f.mantissa))
    if f.fnuz:
        value = tir.select(tir.eq(code, f.nan), tir.const(0x7FC00000, code.dtype), value)
    return bits_of(value, "float32")


def encode(e: tir.Expr, dtype: DType) -> tir.Expr:
    """float32 ``e`` rounded to the narrow float ``dtype``."""
    name, lanes = dtype.element, e.dtype.lanes
    bits = bits_of(e, "uint32")
    if name == "bfloat16":
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        code = tir.select(tir.Call("isnan", (e,), DType("bool").with_lanes(lanes)), (bits >> 16) | 0x40, rounded)
        return bits_of(tir.cast(code, "uint16"), name)
    code = _encode_e8m0(e, bits) if name == "float8_e8m0fnu" else _encode(e, bits, FORMATS[name])
    return bits_of(tir.cast(code, f"uint{dtype.bits}"), name)


def half_of_double(e: tir.Expr) -> tir.Expr:
    """float64 ``e`` as float16, rounded once: through the float32 that is cut off, its last bit set if inexact."""
    single = tir.cast(e, "float32")
    back = tir.cast(single, "float64")
    too_far = tir.GT(tir.call("abs", back), tir.call("abs", e))
    cut = bits_of(single, "int32") - tir.cast(too_far, "int32")
    return tir.cast(bits_of(cut | tir.cast(tir.NE(back, e), "int32"), "float32"), "float16")


def _encode_e8m0(e: tir.Expr, bits: tir.Expr) -> tir.Expr:
    """The nearest power of two, ties upward; NaN for what is negative, NaN or infinite."""
    exponent, fraction = bits >> 23, bits & 0x7FFFFF
    up = tir.cast(fraction >= 0x400000, "uint32")
    small = tir.cast(fraction >= 0x600000, "uint32")  # exponent 0: subnormals lie around 2^-127 = 0x400000
    code = exponent + tir.select(tir.eq(exponent, 0), small, up)
    bad = tir.logical_or(bits >= 0x7F800000, tir.le(bits, 0))
    return tir.select(bad, tir.const(0xFF, bits.dtype), tir.min_(code, tir.const(0xFF, bits.dtype)))


def _encode(e: tir.Expr, bits: tir.Expr, f: Format) -> tir.Expr:
    shift, magnitude = 23 - f.mantissa, bits & 0x7FFFFFFF
    rebased = magnitude - ((127 - f.bias) << 23)
    normal = (rebased + ((1 << (shift - 1)) - 1) + ((rebased >> shift) & 1)) >> shift
    # below the least normal: adding 2^(24 - bias - mantissa) makes the hardware round at the right bit
    magic = tir.const(2.0 ** (24 - f.bias - f.mantissa), e.dtype)
    subnormal = bits_of(bits_of(magnitude, "float32") + magic, "uint32") - bits_of(magic, "uint32")
    code = tir.select(magnitude < ((128 - f.bias) << 23), subnormal, normal)
    sign = (bits >> (31 - f.exponent - f.mantissa)) & f.sign
    over = tir.const(f.overflow, bits.dtype)
    # an infinity or NaN overflows first; magnitudes this large wrap nowhere since `rebased` stays positive
    code = tir.select(code > f.largest, over, code)
    if f.infinity is not None and f.nan is not None:
        code = tir.select(magnitude > 0x7F800000, tir.const(f.nan, bits.dtype), code)
    elif f.nan is not None:
        code = tir.select(magnitude >= 0x7F800000, tir.const(f.nan, bits.dtype), code)
    if f.fnuz:  # one zero, one NaN
        return tir.select(tir.logical_or(tir.eq(code, 0), tir.eq(code, f.nan)), code, code | sign)
    return code | sign
