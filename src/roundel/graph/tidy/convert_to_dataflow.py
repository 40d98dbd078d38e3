# SPDX-License-Identifier: Apache-2.0
"""Dataflow blocks around what is pure: importers of models with control flow bind everything plainly and run this."""

from __future__ import annotations

from ...ir import graph
from ...ir.module import IRModule
from ...ir.op import OpDef
from ...passes import pass_
from ..rewriter import GraphRewriter, operands, uses
from .inline_functions import straightened

_PLAIN = graph.If | graph.While


@pass_("convert_to_dataflow")
def convert_to_dataflow(mod: IRModule) -> IRModule:
    """Put every maximal run of pure bindings into a dataflow block; what only the run uses becomes a dataflow variable."""
    return _Convert(mod).module()


def straight_function(mod: IRModule, name: str, func: graph.Function) -> graph.Function:
    """The function with variables and sizes of its own and calls of graph functions expanded, in dataflow, without what nothing uses."""
    from ...relax.analysis import remove_all_unused  # with it comes all that reads scripts

    params, bindings, result = straightened(mod.with_functions({name: func}), name)
    body = graph.SeqExpr((graph.BindingBlock(tuple(bindings)),) if bindings else (), result)
    made = convert_to_dataflow(IRModule({name: graph.Function(params, body, result.sinfo, True, func.attrs)}))[name]
    return remove_all_unused(made)


class _Convert(GraphRewriter):
    def function(self, func: graph.Function) -> graph.Function:
        self.total = uses(func)
        self.local: set[graph.Var] = set()
        return super().function(func)

    def seq(self, expr: graph.SeqExpr) -> graph.SeqExpr:
        blocks = tuple(b for block in expr.blocks for b in self._runs(block))
        same = len(blocks) == len(expr.blocks) and all(a is b for a, b in zip(blocks, expr.blocks, strict=True))
        return super().seq(expr if same else expr.replace(blocks=blocks))

    def _runs(self, block: graph.BindingBlock) -> list[graph.BindingBlock]:
        if isinstance(block, graph.DataflowBlock):
            return [block]
        runs: list[tuple[bool, list[graph.Binding]]] = []
        for b in block.bindings:
            pure = _pure(b.value)
            if not runs or runs[-1][0] is not pure:
                runs.append((pure, []))
            runs[-1][1].append(b)
        for pure, run in runs:
            if pure:
                self._find_local(run)
        return [(graph.DataflowBlock if pure else graph.BindingBlock)(tuple(run)) for pure, run in runs]

    def _find_local(self, run: list[graph.Binding]) -> None:
        inside: dict[graph.Var, int] = {}
        for b in run:
            _count(b.value, inside)
        self.local.update(b.var for b in run if inside.get(b.var, 0) == self.total.get(b.var, 0))

    def _append(self, var: graph.Var, value: graph.GraphExpr, binding: graph.Binding | None = None) -> None:
        if var not in self.local:
            super()._append(var, value, binding)
            return
        fresh = graph.DataflowVar(var.name, var.sinfo)
        self.env[var] = fresh
        super()._append(fresh, value, binding)


def _pure(value: graph.GraphExpr) -> bool:
    if isinstance(value, graph.Call):
        return isinstance(value.op, OpDef) and value.op.pure
    return not isinstance(value, _PLAIN)


def _count(value: object, into: dict[graph.Var, int]) -> None:
    if isinstance(value, graph.Var):
        into[value] = into.get(value, 0) + 1
        return
    for child in operands(value):
        _count(child, into)
