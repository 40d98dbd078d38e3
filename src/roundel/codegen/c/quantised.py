# SPDX-License-Identifier: Apache-2.0
"""What ends most kernels of quantised models: a float becomes the nearest whole number, a zero point is added, limits are applied.

    cast("int8", min(max(round(x) + -128.0, -128.0), 127.0))     ->     rd_quantised_i8(x, -128, -128, 127)

Whole numbers are integers sooner here: clamping these takes an instruction or two, where floats are compared, and NaN asked for, at each step. All of this
is exact, as numbers that are cut off at 16 bits before the zero point is added are beyond the limits anyway.
"""

from __future__ import annotations

from ...ir import tir
from ...ir.dataclass import dataclass
from ...ir.dtype import DType
from . import prelude
from .byte_sums import byte_sum
from .types import c_type, short
from .writer import Writer

_MOST = 16384  # of zero points and limits: then what 16 bits hold, with a zero point added, reaches beyond every limit
_SMALL_ZERO = 512  # of zero points: what is beyond 2,047 before one is added, is beyond every limit
_FLOAT32 = DType("float32")


@dataclass(frozen=True)
class Quantised:
    """Such a cast of the float ``value``."""

    value: tir.Expr
    zero: int
    low: int
    high: int

    @staticmethod
    def of(e: tir.Cast) -> Quantised | None:
        """None of other casts."""
        if e.dtype.element not in (DType("int8"), DType("uint8")) or e.value.dtype.element is not _FLOAT32:
            return None
        value, low, high = e.value, *map(float, e.dtype.element.limits)
        limited: set[type] = set()
        while type(value) in (tir.Min, tir.Max):
            found = _whole(value.b)
            if found is None:
                return None
            if type(value) is tir.Min and not limited:
                high = min(high, found)
            elif type(value) is tir.Max and low <= found <= high:
                low = found
            else:
                return None
            limited.add(type(value))
            value = value.a
        zero = _whole(value.b) if type(value) is tir.Add else 0.0
        value = value.a if type(value) is tir.Add else value
        if zero is None or limited != {tir.Min, tir.Max} or type(value) is not tir.Call or value.op not in ("round", "nearbyint"):
            return None
        return Quantised(value.args[0], int(zero), int(low), int(high))


def quantised(w: Writer, e: tir.Cast) -> str | None:
    """The text of such a cast; None of others."""
    found = Quantised.of(e)
    if found is None:
        return None
    nearest = w.helpers.use(prelude.nearest(_FLOAT32))
    scaled = _Scaled.of(found.value) if w.for_board and w.contract and abs(found.zero) <= _SMALL_ZERO else None
    if scaled is not None:
        plain = w.helpers.use(_helper(e.dtype.element, nearest))
        name = w.helpers.use(_scaled_helper(e.dtype.element, plain, w.helpers.use(prelude.fused(_FLOAT32))))
        operands = ", ".join(map(w.value, (scaled.number, scaled.scale, scaled.bias)))
        return f"{name}({operands}, {found.zero}, {found.low}, {found.high})"
    plain = w.helpers.use(_helper(e.dtype.element, nearest))
    if w.for_board and (text := byte_sum(w, e.dtype.element, found.value, (found.zero, found.low, found.high), plain)):
        return text
    return f"{plain}({w.value(found.value)}, {found.zero}, {found.low}, {found.high})"


@dataclass(frozen=True)
class _Scaled:
    """float(number) * scale + bias, in float32, with ``number`` of 32 bits."""

    number: tir.Expr
    scale: tir.Expr
    bias: tir.Expr

    @staticmethod
    def of(e: tir.Expr) -> _Scaled | None:
        """None of other values."""
        bias: tir.Expr = tir.const(0.0, e.dtype)
        if type(e) is tir.Add:
            e, bias = e.a, e.b
        if type(e) is not tir.Mul or type(e.a) is not tir.Cast or e.a.value.dtype.element != "int32" or any(_has_product(x) for x in (e.b, bias)):
            return None
        return _Scaled(e.a.value, e.b, bias)


def _has_product(e: tir.Expr) -> bool:
    """Whether it is more than a number that is there already."""
    return type(e) not in (tir.BufferLoad, tir.FloatImm, tir.Var, tir.Broadcast)


def _whole(e: tir.Expr) -> float | None:
    """A small whole number."""
    e = e.value if type(e) is tir.Broadcast else e
    return e.value if type(e) is tir.FloatImm and abs(e.value) <= _MOST and e.value == int(e.value) else None


def _helper(dtype: DType, nearest: str) -> tuple[str, str]:
    """0 of NaN. Processors without vectors have an instruction that rounds to the nearest integer, and one that cuts off. Without instructions for floats,
    it is their bits that are rounded."""
    t, name = c_type(dtype), f"rd_quantised_{short(dtype)}"
    return name, f"""RD_INLINE {t} {name}(float x, int32_t zero, int32_t low, int32_t high) {{
  int32_t n;
#ifdef RD_NO_FLOATS
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  {{
    const uint32_t digits = (bits & 0x7FFFFFu) | 0x800000u, magnitude = bits & 0x7FFFFFFFu, below = 150 - (magnitude >> 23);
    if (magnitude > 0x7F800000u) return 0;
    n = magnitude < 0x3F000000u ? 0 : magnitude >= 0x47000000u ? 32767 /* half; 32768 */
        : (int32_t)((digits + (((uint32_t)1 << (below - 1)) - 1) + (digits >> below & 1)) >> below);
    n = bits >> 31 ? -n : n;
  }}
#else
  if (x != x) return 0;
#if defined(__GNUC__) && defined(__arm__) && defined(__ARM_FP) && defined(__ARM_FEATURE_SAT)
  __asm__("vcvtr.s32.f32 %0, %1" : "=t"(x) : "t"(x));
  memcpy(&n, &x, sizeof n);
  __asm__("ssat %0, #16, %1" : "=r"(n) : "r"(n));
#else
  n = (int32_t){nearest}(x < -32768.0f ? -32768.0f : x > 32767.0f ? 32767.0f : x);
#endif
#endif
  n += zero;
  n = n < low ? low : n;
  return ({t})(n > high ? high : n);
}}"""


def _scaled_helper(dtype: DType, plain: str, fused: str) -> tuple[str, str]:
    """Where no instruction multiplies floats, the product is computed in integers, with 32 digits behind the point and an error below 0.0022: three
    roundings of float32 (numbers below 6,144 in all), and what is cut off of a scale, times a number below 2^22. The digits of scale and bias are shifted to
    their places, which takes less than to look them up. Only where a number is so near to the
    middle between two whole ones, are floats asked which one it is. So results are those of floats."""
    t, name = c_type(dtype), f"rd_scaled_{short(dtype)}"
    exact = "(float)((double)(float)x * scale + bias)"  # a sum that is rounded once, as on processors that multiply and add in one instruction
    return name, f"""#ifdef RD_NO_FLOATS
#if defined(__GNUC__)
__attribute__((noinline))
#endif
static {t} {name}_exactly(int32_t x, float scale, float bias, int32_t zero, int32_t low, int32_t high) {{
  return {plain}({exact}, zero, low, high);
}}
RD_INLINE {t} {name}(int32_t x, float scale, float bias, int32_t zero, int32_t low, int32_t high) {{
  uint32_t a, b;
  memcpy(&a, &scale, sizeof a);
  memcpy(&b, &bias, sizeof b);
  {{
    const uint32_t up = a >> 23, along = b >> 23 & 255;
    uint32_t digits = (b & 0x7FFFFFu) | 0x800000u;
    int32_t places = 1;
    if (along >= 118) places = (int32_t)((uint32_t)1 << (along - 118 & 31));
    else digits = along < 95 ? 0 : digits >> (118 - along);
    if (up - 94 < 32 && along < 137 && (uint32_t)x + 0x400000u < 0x800000u) {{ /* the scale is below 1/2, and positive; the bias below 1,024 */
      const int32_t by = (int32_t)((a << 7 & 0x3FFFFFFFu) | 0x40000000u) >> (125 - up);
      const int64_t y = (int64_t)x * by + (int64_t)(int32_t)digits * (b >> 31 ? -places : places) + 0x80000000;
      if ((uint32_t)y + 0x900000u >= 0x1200000u) {{
        int32_t n = (int32_t)(y >> 32) + zero;
        n = n < low ? low : n;
        return ({t})(n > high ? high : n);
      }}
    }}
  }}
  return {name}_exactly(x, scale, bias, zero, low, high);
}}
#else
RD_INLINE {t} {name}(int32_t x, float scale, float bias, int32_t zero, int32_t low, int32_t high) {{
  return {plain}({fused}((float)x, scale, bias), zero, low, high);
}}
#endif"""
