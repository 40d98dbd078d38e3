# SPDX-License-Identifier: Apache-2.0
"""The pass that replaces elementary functions by their expansions, for targets without them and for checking."""

from __future__ import annotations

from typing import Any

from ...ir import tir
from ...ir.visit import Rewriter, on
from .math import expand_call


class _Legalize(Rewriter):
    """Shared expressions are rewritten once: expansions are graphs, not trees."""

    def __init__(self) -> None:
        self.memo: dict[tir.Expr, tir.Expr] = {}

    def rewrite(self, node: Any) -> Any:
        if not isinstance(node, tir.Expr):
            return super().rewrite(node)
        hit = self.memo.get(node)
        if hit is None:
            hit = self.memo[node] = super().rewrite(node)
        return hit

    @on(tir.Call)
    def _call(self, call: tir.Call) -> tir.Expr:
        call = self.generic(call)
        expanded = expand_call(call)
        return call if expanded is None else expanded


def legalize_math(func: tir.PrimFunc) -> tir.PrimFunc:
    """The function with elementary functions of at most 32 bits written out as arithmetic."""
    return _Legalize().rewrite(func)
