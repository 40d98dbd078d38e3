# SPDX-License-Identifier: Apache-2.0
"""Rewriting of what patterns match: ``rewrite_call`` one value at a time, ``rewrite_bindings`` the values of a graph pattern together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

from roundel.builder import BlockBuilder
from roundel.ir import graph, structural_equal
from roundel.ir.visit import Rewriter, on, walk

from .graph_patterns import PatternContext
from .patterns import DFPattern, Matcher

_ROUNDS = 100  # of rewriting; patterns whose replacements match again for ever end here


def rewrite_call(pattern: DFPattern, rewriter: Callable[[Any, dict[DFPattern, Any]], Any], func: graph.Function) -> graph.Function:
    """The function with every value that matches replaced by ``rewriter(value, matches)``, again until nothing changes.

    A rewriter that returns the value leaves it as it is; so do bindings that are not used any more not stay.
    """
    for _ in range(_ROUNDS):
        new = _rebuilt(func, lambda m, var, value: rewriter(value, m.found) if m.match(pattern, value) else value)
        if structural_equal(new, func):
            return func
        func = new
    return func


def rewrite_bindings(
    context: PatternContext, rewriter: Callable[[dict[DFPattern, Any], dict[Any, Any]], Mapping[Any, Any]], func: graph.Function
) -> graph.Function:
    """The function with the values of each match replaced: ``rewriter(matches, bindings)`` maps variables to what they become."""
    for _ in range(_ROUNDS):
        changes: dict[Any, Any] = {}
        for block in func.body.blocks:
            found = context.match_dfb(block) if isinstance(block, graph.DataflowBlock) else None
            if found is not None:
                changes.update(rewriter(found, {b.var: b.value for b in block.bindings if isinstance(b, graph.VarBinding)}))
        if not changes:
            return func
        func = _rebuilt(func, lambda m, var, value, changes=changes: changes.get(var, value))
    return func


class _Renamed(Rewriter):
    """Variables replaced by what stands for them."""

    def __init__(self, bb: BlockBuilder) -> None:
        self.bb = bb
        self.table: dict[Any, Any] = {}
        self.emitted: dict[int, tuple[Any, Any]] = {}  # operands that are calls: each is bound once, wherever it is met

    @on(graph.Var, graph.DataflowVar)
    def _var(self, v: graph.Var) -> Any:
        return self.table.get(v, v)

    def flat(self, e: Any) -> Any:
        """A value whose operands are variables, constants or tuples of them."""
        if isinstance(e, graph.Call):
            return e.replace(args=tuple(map(self.operand, e.args)))
        if isinstance(e, graph.TupleGetItem):
            return graph.TupleGetItem(self.operand(e.tuple_value), e.index)
        return graph.Tuple(tuple(map(self.operand, e.fields))) if isinstance(e, graph.Tuple) else self.rewrite(e)

    def operand(self, e: Any) -> Any:
        """An operand; a call that is one is bound before."""
        if not isinstance(e, graph.Call | graph.TupleGetItem):
            return self.flat(e)
        if id(e) not in self.emitted:
            self.emitted[id(e)] = e, self.bb.emit(self.flat(e))
        return self.emitted[id(e)][1]


def _rebuilt(func: graph.Function, change: Callable[[Matcher, Any, Any], Any]) -> graph.Function:
    """The function with each bound value changed, trivial and unused bindings left out."""
    bb = BlockBuilder()
    names = _Renamed(bb)
    with bb.function("main", func.params, {k: v for k, v in func.attrs.items() if k != "global_symbol"}, pure=func.is_pure, private=True):
        for block in func.body.blocks:
            with bb.dataflow() if isinstance(block, graph.DataflowBlock) else nullcontext():
                for b in block.bindings:
                    _bind(bb, b, names, change)
        result = names.rewrite(func.body.body)
        bb.emit_func_output(result)
    made = bb.get()["main"]
    body = graph.SeqExpr(_used(made.body.blocks, made.body.body), made.body.body)
    return func.replace(body=body)


def _bind(bb: BlockBuilder, b: graph.Binding, names: _Renamed, change: Callable[[Matcher, Any, Any], Any]) -> None:
    if not isinstance(b, graph.VarBinding):
        bb.emit_normalized(names.rewrite(b))
        return
    value = names.rewrite(b.value)
    made = names.flat(change(Matcher(bb.bound), b.var, value))
    leaves = not isinstance(b.var, graph.DataflowVar) and bb.current_block_is_dataflow()
    if isinstance(made, graph.Var) and not (leaves and isinstance(made, graph.DataflowVar)):
        names.table[b.var] = made
        return
    if leaves and isinstance(made, graph.DataflowVar):
        made = bb.lookup_binding(made)
    var = (bb.emit_output if leaves else bb.emit)(made, b.var.name)
    names.table[b.var] = var


def _used(blocks: tuple[graph.BindingBlock, ...], result: Any) -> tuple[graph.BindingBlock, ...]:
    """Blocks without bindings of dataflow blocks that nothing uses."""
    needed = {n for n in walk(result) if isinstance(n, graph.Var)}
    kept: list[graph.BindingBlock] = []
    for block in reversed(blocks):
        bindings = []
        for b in reversed(block.bindings):
            if b.var in needed or not isinstance(block, graph.DataflowBlock) or isinstance(b, graph.MatchCast):
                bindings.append(b)
                needed |= {n for n in walk(b.value) if isinstance(n, graph.Var)}  # type: ignore[attr-defined]
        if bindings:
            kept.append(type(block)(tuple(reversed(bindings))))
    return tuple(reversed(kept))
