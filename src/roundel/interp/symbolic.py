# SPDX-License-Identifier: Apache-2.0
"""Solves symbolic dimensions from actual ones, and evaluates dimensions once they are known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..ir import tir
from ..ir.errors import CallError
from ..ir.visit import free_vars
from .expr import Evaluator
from .lanes import bounds
from .numeric import Machine

_MACHINE = Machine()
Dims = dict[tir.Var, Any]


def evaluate(e: tir.Expr, dims: Dims) -> int:
    """The number that an index expression is when its variables have these values; raises InterpretError for a missing
    one.
    """
    if type(e) is tir.IntImm:
        return e.value
    known = dims.get(e)  # type: ignore[call-overload]
    if known is not None:
        return known
    ev = Evaluator(_MACHINE, "a dimension")
    ev.env = dims
    return ev.index(e) if e.dtype.is_int else ev.value(e)


def solve(equations: Iterable[tuple[tir.Expr, int, str]], dims: Dims) -> None:
    """Bind the variables in ``equations`` (dimension, actual extent, where it is) in ``dims``; raises CallError on a
    contradiction.

    Plain variables bind first; then a dimension that is linear in one unknown (``4 * m``) determines it.
    """
    pending = list(equations)
    while pending:
        rest = [eq for eq in pending if not _settle(*eq, dims)]
        if len(rest) == len(pending):
            return  # what is left has several unknowns: a later use will name them
        pending = rest


def _settle(e: tir.Expr, actual: int, where: str, dims: Dims) -> bool:
    if type(e) is tir.Var and e not in dims:
        dims[e] = actual
        return True
    unknown = [v for v in free_vars(e) if v not in dims]
    if not unknown:
        want = evaluate(e, dims)
        if want != actual:
            used = ", ".join(f"{v.name} = {dims[v]}" for v in sorted(free_vars(e), key=lambda v: v.name))
            raise CallError(f"{where} is {actual}, expected {want}", why=f"by {used}" if used else "")
        return True
    if len(unknown) > 1:
        return False
    at = [evaluate(e, {**dims, unknown[0]: k}) for k in (1, 2)]
    slope = at[1] - at[0]
    if (
        slope == 0
        or (actual - at[0]) % slope
        or evaluate(e, {**dims, unknown[0]: (actual - at[0]) // slope + 1}) != actual
    ):
        return False
    dims[unknown[0]] = (actual - at[0]) // slope + 1
    return True


def largest(value: Any) -> int:
    """The number an index value is, or its largest over lanes."""
    return bounds(value)[1]
