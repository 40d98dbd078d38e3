# SPDX-License-Identifier: Apache-2.0
"""Integer expressions that cannot be negative, as far as one look at them tells: dividing them is cheaper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir import tir

Known = set[tir.Var]


def nonneg(e: tir.Expr, known: Known) -> bool:
    """Whether an exact integer expression is known to be >= 0, as the variables of ``known`` are."""
    rule = _NONNEG.get(type(e))
    return rule is not None and rule(known, e)


def _both(known: Known, e: Any) -> bool:
    return e.is_index and nonneg(e.a, known) and nonneg(e.b, known)


_NONNEG: dict[type, Callable[[Known, Any], bool]] = {
    tir.IntImm: lambda known, e: e.value >= 0,
    tir.Var: lambda known, e: e.size or e in known or e.dtype.kind == "uint",
    tir.Add: _both,
    tir.Mul: _both,
    tir.FloorDiv: _both,
    tir.Div: _both,
    tir.Min: _both,
    tir.Mod: lambda known, e: e.is_index and nonneg(e.a, known),
    tir.FloorMod: lambda known, e: e.is_index and nonneg(e.b, known),
    tir.Max: lambda known, e: nonneg(e.a, known) or nonneg(e.b, known),
    tir.Select: lambda known, e: nonneg(e.true_value, known) and nonneg(e.false_value, known),
    tir.Ramp: lambda known, e: nonneg(e.base, known) and nonneg(e.stride, known),
    tir.Broadcast: lambda known, e: nonneg(e.value, known),
}
