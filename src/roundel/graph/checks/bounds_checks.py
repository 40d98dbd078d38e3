# SPDX-License-Identifier: Apache-2.0
"""Checks of indices: what an operator takes as positions (``OpDef.positions``) goes through ``check_indices``, unless it is proven.

    take(x, i, axis=0)   ->   c = check_indices(i, (n,), flag); take(x, c, axis=0)      flag = index_flag(i, (n,))

The check is made as far up as possible: of what was widened, repeated or rearranged, the smaller tensor before that. Few indices are
looked at one by one; of constants only the least and the greatest are compared with what the run knows.
"""

from __future__ import annotations

from typing import Any

from ...arith import Analyzer
from ...ir import graph, options, tir
from ...ir.module import IRModule
from ...ir.op import OpDef
from ...ir.positions import Positions
from ...ops import make
from ...passes import pass_
from ..rewriter import GraphRewriter, is_call
from .index_ranges import IndexRanges, static

FEW = 16
"""Up to so many indices are compared one by one: less work than a call of a kernel."""


@pass_("bounds_checks")
def bounds_checks(mod: IRModule) -> IRModule:
    """Have every index that is not proven to be one checked when the model runs (option ``bounds_checks``); drop checks that are not needed."""
    return (_Insert if options.get("bounds_checks") else _Drop)(mod).module()


class _Drop(GraphRewriter):
    """Without checks: also those that importers asked for are gone."""

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        return call.args[0] if is_call(call, "check_indices") else call


class _Insert(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.ranges = IndexRanges(self.producer)

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if not isinstance(call.op, OpDef) or not call.op.has("positions"):
            return call
        name = call.attrs["node"] if call.op.name == "check_indices" else ""
        name = name or str(binding.span or f"R.{call.op.name}")
        args = list(call.args)
        for wanted in call.op.positions(tuple(a.sinfo for a in args), call.attrs):
            args[wanted.operand] = self.checked(args[wanted.operand], wanted, name)
        if call.op.name == "check_indices":
            return args[0]
        return call if all(a is b for a, b in zip(args, call.args, strict=True)) else call.replace(args=tuple(args))

    def checked(self, value: Any, wanted: Positions, name: str) -> Any:
        """The indices, checked unless that is not needed."""
        if self.ranges.inside(value, wanted):
            return value
        made = self.producer(value)
        if len(wanted.limits) == 1 and _passes_on(made):
            source = self.checked(made.args[0], wanted, name)
            return value if source is made.args[0] else self.emit(made.replace(args=(source, *made.args[1:])), "indices")
        return self.emit(self.check(value, wanted, name), "indices")

    def check(self, value: Any, wanted: Positions, name: str) -> graph.Call:
        """The call of ``check_indices``, with what tells fast whether all is well."""
        simplify = Analyzer().simplify
        limits = tuple(simplify(n) for n in (wanted.limits if len(dict.fromkeys(wanted.limits)) > 1 else wanted.limits[:1]))
        count = static(simplify(tir.product_of(value.sinfo.shape)))
        flag = None
        if isinstance(value, graph.Constant) and len(limits) == 1:
            low, high = self.ranges.of(value)  # type: ignore[misc]
            flag = graph.PrimValue(tir.logical_or(high >= limits[0], low < (0 - limits[0] if wanted.negative else 0)))
        elif count is None or count > FEW:
            flat = value
            if len(limits) == 1 and value.sinfo.ndim != 1:
                flat = self.emit(make("reshape", value, graph.ShapeExpr((simplify(tir.product_of(value.sinfo.shape)),))), "flat")
            flag = self.emit(make("index_flag", flat, graph.ShapeExpr(limits), negative=wanted.negative), "flag")
        return make("check_indices", value, graph.ShapeExpr(limits), *([] if flag is None else [flag]), negative=wanted.negative, node=name)


def _passes_on(made: Any) -> bool:
    """Whether a call gives the elements of its operand on, all of them, as they are or in a wider type."""
    if is_call(made, "astype"):
        before, after = made.args[0].sinfo.dtype, made.sinfo.dtype
        wider = after.bits > before.bits if before.kind == "uint" else after.bits >= before.bits
        return before.is_int and after.kind == "int" and wider
    return isinstance(made, graph.Call) and any(is_call(made, name) for name in ("reshape", "expand_dims", "squeeze", "broadcast_to", "permute_dims", "repeat"))
