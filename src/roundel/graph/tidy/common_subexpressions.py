# SPDX-License-Identifier: Apache-2.0
"""Common subexpression elimination of pure calls."""

from __future__ import annotations

from typing import Any

from ...ir import graph
from ...ir.module import IRModule
from ...ir.op import OpDef
from ...passes import pass_
from ..rewriter import GraphRewriter


@pass_("eliminate_common_subexpressions")
def eliminate_common_subexpressions(mod: IRModule) -> IRModule:
    """A call equal to an earlier one in scope (same operator, operands, attributes) becomes a reference to it."""
    return _Eliminate(mod).module()


class _Eliminate(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.seen: dict[Any, graph.Var] = {}

    def function(self, func: graph.Function) -> graph.Function:
        self.seen = {}
        return super().function(func)

    def seq(self, expr: graph.SeqExpr) -> graph.SeqExpr:
        outer = dict(self.seen)  # what a branch computes is not visible after it
        out = super().seq(expr)
        self.seen = outer
        return out

    def block(self, block: graph.BindingBlock) -> graph.BindingBlock:
        out = super().block(block)
        # variables of a dataflow block end with it
        self.seen = {k: v for k, v in self.seen.items() if not isinstance(v, graph.DataflowVar)}
        return out

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if not (isinstance(call.op, OpDef) and call.op.pure):
            return call
        key = (call.op, tuple(map(_key, call.args)), call.attrs, call.sinfo_args)
        hit = self.seen.get(key)
        if hit is not None:
            return self._operand(hit)
        self.seen[key] = binding.var
        return call


def _key(value: Any) -> Any:
    if isinstance(value, graph.Constant):
        # big constants by identity of their data (hashing hundreds of MB finds little), small ones by content
        return ("const", value.data.key if value.data.nbytes <= 4096 else id(value.data), value.sinfo)
    if isinstance(value, graph.Tuple):
        return ("tuple", *map(_key, value.fields))
    if isinstance(value, graph.ShapeExpr):
        return ("shape", value.values)
    if isinstance(value, graph.PrimValue | graph.StringValue | graph.DTypeValue):
        return (type(value), value.value)
    return value
