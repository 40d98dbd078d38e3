# SPDX-License-Identifier: Apache-2.0
"""How large a product of sizes is at most: in floating-point numbers, which do not wrap around as 64-bit integers do."""

from __future__ import annotations

from collections.abc import Callable

from ..ir import tir

_SMALL_DIVISOR = 4096.0


def magnitude(size: tir.Expr) -> tir.Expr:
    """What an index expression is at most, as a float64."""
    handler = _MAGNITUDES.get(type(size))
    return tir.cast(size, "float64") if handler is None else handler(*map(magnitude, (size.a, size.b)))  # type: ignore[attr-defined]


_MAGNITUDES: dict[type, Callable[[tir.Expr, tir.Expr], tir.Expr]] = {
    tir.Add: lambda a, b: a + b, tir.Sub: lambda a, b: a - b, tir.Mul: lambda a, b: a * b, tir.Max: tir.max_, tir.Min: tir.min_,
    tir.FloorDiv: lambda a, b: tir.Div(a, b) if isinstance(b, tir.FloatImm) and 1 <= b.value <= _SMALL_DIVISOR else a,  # what is divided must not wrap
    tir.FloorMod: lambda a, b: b,
}
