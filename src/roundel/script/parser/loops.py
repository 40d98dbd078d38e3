# SPDX-License-Identifier: Apache-2.0
"""The parts of a loop from what the script says of it."""

from __future__ import annotations

from ...ir import tir
from ...ir.tir import Expr, Var
from .. import marks


def loop_parts(name: str, spec: marks.Loop) -> tuple[Var, Expr, Expr, Expr | None]:
    """Loop variable, minimum, extent and step, of one dtype unless the script says otherwise."""
    low, extent = tir.as_index(spec.start), tir.as_index(spec.extent)
    if spec.dtype is not None:
        return Var(name, spec.dtype), low, extent, None if spec.step is None else tir.as_index(spec.step)
    if not isinstance(spec.start, Expr) or not isinstance(spec.extent, Expr):
        dtype = extent.dtype if isinstance(spec.extent, Expr) and not isinstance(spec.start, Expr) else low.dtype
    else:
        dtype = tir.promote(low.dtype, extent.dtype)
    step = (
        None
        if spec.step is None or (isinstance(spec.step, int) and spec.step == 1)
        else tir.cast(tir.as_index(spec.step), dtype)
    )
    return Var(name, dtype), tir.cast(low, dtype), tir.cast(extent, dtype), step
