# SPDX-License-Identifier: Apache-2.0
"""Scalable vectors: ``T.vscale() * 4`` lanes, of which the machine says how many they are (as Arm's SVE and RISC-V's V have them).

A type with ``lanes`` -4 has four times ``vscale`` lanes. Programs with such types mean the same for every ``vscale``; to run one it is fixed.
"""

from __future__ import annotations

from typing import Any

from . import tir
from .dtype import DType
from .visit import Rewriter, on, substitute


def lanes_of(value: Any) -> int:
    """A number of lanes; ``k * vscale()`` is ``-k``. Raises TypeError for anything else."""
    if isinstance(value, tir.Mul):
        for a, b in ((value.a, value.b), (value.b, value.a)):
            if isinstance(a, tir.Call) and a.op == "vscale" and isinstance(b, tir.IntImm) and b.value > 0:
                return -b.value
    lanes = value.value if isinstance(value, tir.IntImm) else value
    if not isinstance(lanes, int) or lanes == 0:
        shown = value.script() if isinstance(value, tir.Expr) else value
        raise TypeError(f"a number of lanes is a positive number or that times T.vscale(), not {shown}")
    return lanes


def fixed_dtype(dtype: DType, vscale: int) -> DType:
    """The type with the lanes that it has on a machine."""
    return dtype.with_lanes(-dtype.lanes * vscale) if dtype.lanes < 0 else dtype


def fix_vectors(func: tir.PrimFunc, vscale: int) -> tir.PrimFunc:
    """The program for a machine where ``T.vscale()`` is ``vscale``; itself where it has no scalable vectors."""
    return _Fixed(vscale).rewrite(func) if DType.scalable_types else func


def vscale() -> tir.Expr:
    """How many times 128 bits a vector register of the machine holds."""
    DType.scalable_types = True
    return tir.call("vscale")


class _Fixed(Rewriter):
    def __init__(self, vscale: int) -> None:
        self.vscale = vscale

    @on(tir.Ramp)
    def _ramp(self, e: tir.Ramp) -> tir.Expr:
        return tir.Ramp(self.rewrite(e.base), self.rewrite(e.stride), self._lanes(e.lanes))

    @on(tir.Broadcast)
    def _broadcast(self, e: tir.Broadcast) -> tir.Expr:
        return tir.Broadcast(self.rewrite(e.value), self._lanes(e.lanes))

    def _lanes(self, lanes: int) -> int:
        return -lanes * self.vscale if lanes < 0 else lanes

    @on(tir.Cast)
    def _cast(self, e: tir.Cast) -> tir.Expr:
        return tir.Cast(fixed_dtype(e.dtype, self.vscale), self.rewrite(e.value))

    @on(tir.Call)
    def _call(self, e: tir.Call) -> tir.Expr:
        if e.op == "vscale":
            return tir.IntImm(self.vscale, e.dtype)
        args, dtype = tuple(map(self.rewrite, e.args)), fixed_dtype(e.dtype, self.vscale)
        if e.op == "get_active_lane_mask":
            base, limit = args
            return tir.lt(tir.Ramp(base, tir.IntImm(1, base.dtype), dtype.lanes), tir.Broadcast(tir.cast(limit, base.dtype), dtype.lanes))
        return tir.Call(e.op, args, dtype)

    @on(tir.Let)
    def _let(self, s: tir.Let) -> tir.Stmt:
        value, body = self.rewrite(s.value), self.rewrite(s.body)
        if value.dtype is s.var.dtype:
            return s.replace(value=value, body=body)
        var = tir.Var(s.var.name, value.dtype)
        return tir.Let(var, value, substitute(body, {s.var: var}), s.span)
