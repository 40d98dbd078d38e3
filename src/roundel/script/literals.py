# SPDX-License-Identifier: Apache-2.0
"""Floating-point values as text that reads back bit for bit: ``inf``, ``-nan``, ``nan:7ff8000000000001``."""

from __future__ import annotations

import math
import struct

_QUIET = struct.unpack("<Q", struct.pack("<d", math.nan))[0]


def float_text(value: float) -> str:
    """The shortest text for a value; numbers as Python writes them, others quoted."""
    if not math.isnan(value):
        return f'"{value}"' if math.isinf(value) else repr(value)
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    sign = "-" if bits >> 63 else ""
    return f'"{sign}nan"' if bits & ~(1 << 63) == _QUIET & ~(1 << 63) else f'"nan:{bits:016x}"'


def float_of(text: str) -> float:
    """The value of a text; raises ValueError."""
    if text.startswith("nan:"):
        return struct.unpack("<d", struct.pack("<Q", int(text[4:], 16)))[0]
    value = float(text)
    return math.copysign(value, -1.0 if text.startswith("-") else 1.0) if math.isnan(value) else value
