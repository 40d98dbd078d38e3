# SPDX-License-Identifier: Apache-2.0
"""Rewriting that is told by two graph functions: what looks like ``pattern`` becomes what ``replacement`` makes of the same parameters.

    @R.rewriter
    class AddToLibrary:
        @R.function
        def pattern(x: R.Tensor([16], "float32"), y: R.Tensor([16], "float32")):
            return R.add(x, y)

        @R.function
        def replacement(x: R.Tensor([16], "float32"), y: R.Tensor([16], "float32")):
            return R.call_pure_packed("my_add", x, y, sinfo_args=R.Tensor([16], "float32"))

    mod = AddToLibrary(mod)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roundel.ir import graph
from roundel.ir.errors import RoundelError
from roundel.ir.module import IRModule
from roundel.ir.visit import Rewriter, on

from .patterns import DFPattern, StructInfoPattern, is_expr, is_op, is_tuple, wildcard
from .rewriting import rewrite_call


class PatternRewriter:
    """Applied to a module or a graph function it gives one in which nothing looks like a pattern any more; ``a | b`` does both.

    Raises RoundelError for functions with several results or other parameters than the replacement's.
    """

    def __init__(self, rules: Sequence[tuple[graph.Function, graph.Function]]) -> None:
        self.rules = list(rules)
        for pattern, replacement in self.rules:
            if len(pattern.params) != len(replacement.params):
                raise RoundelError("a pattern and its replacement have the same parameters", why=f"{len(pattern.params)} and {len(replacement.params)}")
            if isinstance(pattern.ret_sinfo, graph.TupleInfo):
                raise RoundelError("a pattern of a rewriter has one result", hint="roundel.relax.dpl.rewrite_bindings replaces several values together")

    @staticmethod
    def from_module(mod: IRModule) -> PatternRewriter:
        """By the functions ``pattern`` and ``replacement`` of a module. Raises KeyError."""
        return PatternRewriter([(mod["pattern"], mod["replacement"])])  # type: ignore[list-item]

    def __or__(self, other: PatternRewriter) -> PatternRewriter:
        return PatternRewriter([*self.rules, *other.rules])

    def __call__(self, target: Any) -> Any:
        if isinstance(target, IRModule):
            return target.with_functions({name: self(f) for name, f in target.items() if isinstance(f, graph.Function)})
        for pattern, replacement in self.rules:
            holes, looks = _looks_like(pattern)
            target = rewrite_call(looks, lambda value, found, holes=holes, made=replacement: _made(made, [found[h] for h in holes]), target)
        return target


def _looks_like(func: graph.Function) -> tuple[list[DFPattern], DFPattern]:
    """The patterns of a function's parameters, and of its result."""
    holes: list[DFPattern] = [StructInfoPattern(wildcard(), p.sinfo) for p in func.params]
    known: dict[Any, DFPattern] = dict(zip(func.params, holes, strict=True))

    def look(value: Any) -> DFPattern:
        if value in known:
            return known[value]
        if isinstance(value, graph.Call):
            called = is_op(value.op.name) if hasattr(value.op, "operands") else is_expr(value.op)
            pattern = called(*map(look, value.args))
            return pattern.has_attr(dict(value.attrs)) if value.attrs else pattern
        if isinstance(value, graph.Tuple):
            return is_tuple([look(f) for f in value.fields])
        if isinstance(value, graph.TupleGetItem):
            return look(value.tuple_value)[value.index]  # type: ignore[index]
        return is_expr(value)

    for block in func.body.blocks:
        for b in block.bindings:
            known[b.var] = look(b.value)  # type: ignore[attr-defined]
    return holes, look(func.body.body)


class _Filled(Rewriter):
    """Variables replaced by values."""

    def __init__(self, table: Mapping[Any, Any]) -> None:
        self.table = table

    @on(graph.Var, graph.DataflowVar)
    def _var(self, v: graph.Var) -> Any:
        return self.table.get(v, v)


def _made(func: graph.Function, values: Sequence[Any]) -> Any:
    """The result of a function as one expression of these operands."""
    table: dict[Any, Any] = dict(zip(func.params, values, strict=True))
    fill = _Filled(table)
    for block in func.body.blocks:
        for b in block.bindings:
            table[b.var] = fill.rewrite(b.value)  # type: ignore[attr-defined]
    return fill.rewrite(func.body.body)


__all__ = ["PatternRewriter"]
