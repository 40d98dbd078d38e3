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
from .types import c_type, short
from .writer import Writer

_MOST = 16384  # of zero points and limits: then what 16 bits hold, with a zero point added, reaches beyond every limit
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
    return f"{w.helpers.use(_helper(e.dtype.element, nearest))}({w.value(found.value)}, {found.zero}, {found.low}, {found.high})"


def _whole(e: tir.Expr) -> float | None:
    """A small whole number."""
    e = e.value if type(e) is tir.Broadcast else e
    return e.value if type(e) is tir.FloatImm and abs(e.value) <= _MOST and e.value == int(e.value) else None


def _helper(dtype: DType, nearest: str) -> tuple[str, str]:
    """0 of NaN. Processors without vectors have an instruction that rounds to the nearest integer, and one that cuts off."""
    t, name = c_type(dtype), f"rd_quantised_{short(dtype)}"
    return name, f"""RD_INLINE {t} {name}(float x, int32_t zero, int32_t low, int32_t high) {{
  int32_t n;
  if (x != x) return 0;
#if defined(__GNUC__) && defined(__arm__) && defined(__ARM_FP) && defined(__ARM_FEATURE_SAT)
  __asm__("vcvtr.s32.f32 %0, %1" : "=t"(x) : "t"(x));
  memcpy(&n, &x, sizeof n);
  __asm__("ssat %0, #16, %1" : "=r"(n) : "r"(n));
#else
  n = (int32_t){nearest}(x < -32768.0f ? -32768.0f : x > 32767.0f ? 32767.0f : x);
#endif
  n += zero;
  n = n < low ? low : n;
  return ({t})(n > high ? high : n);
}}"""
