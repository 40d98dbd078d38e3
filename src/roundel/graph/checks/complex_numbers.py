# SPDX-License-Identifier: Apache-2.0
"""Operators on complex numbers: those that move elements have them, others are refused with the name of their node."""

from __future__ import annotations

from typing import Any

from ...ir import graph, tir
from ...ir.errors import LowerError
from ...ir.module import IRModule
from ...ir.op import CALL_TIR, CALL_TIR_INPLACE
from ...lower.complex_elements import computed, refusal
from ...passes import pass_
from ..rewriter import GraphRewriter, is_call


@pass_("complex_numbers")
def complex_numbers(mod: IRModule) -> IRModule:
    """The module as it is. Raises LowerError for a call of a program that computes with complex numbers, whose bits it would take for an integer's."""
    found = {name: e for name, func in mod.items() if isinstance(func, tir.PrimFunc) and (e := computed(func)) is not None}
    return _Refuse(mod, found).module() if found else mod


class _Refuse(GraphRewriter):
    def __init__(self, mod: IRModule, found: dict[str, tir.Expr]) -> None:
        super().__init__(mod)
        self.found = found

    def call(self, call: graph.Call, binding: graph.VarBinding) -> Any:
        if (is_call(call, CALL_TIR) or is_call(call, CALL_TIR_INPLACE)) and call.args[0].name in self.found:
            raise LowerError(refusal(self.found[call.args[0].name]), where=binding.span or call.args[0].name)
        return call
