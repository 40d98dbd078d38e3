# SPDX-License-Identifier: Apache-2.0
"""Dead code elimination: bindings nobody uses and functions nobody calls."""

from __future__ import annotations

from functools import lru_cache

from ...ir import graph, tir
from ...ir.module import IRModule
from ...ir.op import OpDef
from ...ir.tir.expr import Call as TirCall
from ...ir.visit import walk_data
from ...passes import pass_
from ..rewriter import operands


@pass_("eliminate_dead_code")
def eliminate_dead_code(mod: IRModule) -> IRModule:
    """Drop unused pure bindings, then private functions that are not reachable from exported ones."""
    changes = {name: _function(f) for name, f in mod.items() if isinstance(f, graph.Function)}
    mod = mod.with_functions(changes)
    reached = _reachable(mod)
    return mod.with_functions({name: None for name in mod if name not in reached}) if len(reached) < len(mod) else mod


def _function(func: graph.Function) -> graph.Function:
    body = _seq(func.body, set())
    return func if body is func.body else func.replace(body=body)


def _seq(expr: graph.SeqExpr, live: set[graph.Var]) -> graph.SeqExpr:
    """Walks backwards; ``live`` collects what later code needs."""
    _use(expr.body, live)
    blocks = []
    for block in reversed(expr.blocks):
        kept: list[graph.Binding] = []
        for binding in reversed(block.bindings):
            if binding.var in live or not _pure(binding):
                value = _value(binding.value, live)
                kept.append(binding if value is binding.value else binding.replace(value=value))
        if kept:
            same = len(kept) == len(block.bindings) and all(a is b for a, b in zip(reversed(kept), block.bindings, strict=True))
            blocks.append(block if same else block.replace(bindings=tuple(reversed(kept))))
    blocks.reverse()
    same = len(blocks) == len(expr.blocks) and all(a is b for a, b in zip(blocks, expr.blocks, strict=True))
    return expr if same else expr.replace(blocks=tuple(blocks))


def _value(value: graph.GraphExpr, live: set[graph.Var]) -> graph.GraphExpr:
    if isinstance(value, graph.If):
        new = value.replace(true_branch=_seq(value.true_branch, live), false_branch=_seq(value.false_branch, live))
        _use(value.condition, live)
        return new
    if isinstance(value, graph.While):
        new = value.replace(condition=_seq(value.condition, live), body=_seq(value.body, live))
        for v in value.init:
            _use(v, live)
        return new
    _use(value, live)
    return value


def _use(value: object, live: set[graph.Var]) -> None:
    if isinstance(value, graph.Var):
        live.add(value)
    for child in operands(value):
        _use(child, live)


def _pure(binding: graph.Binding) -> bool:
    if isinstance(binding, graph.MatchCast):
        return False
    value = binding.value
    if isinstance(value, graph.Call):
        return isinstance(value.op, OpDef) and value.op.pure
    return not isinstance(value, graph.While)


def _reachable(mod: IRModule) -> set[str]:
    roots = [n for n, f in mod.items() if "global_symbol" in f.attrs] or list(mod)
    seen: set[str] = set()
    while roots:
        name = roots.pop()
        if name in seen or name not in mod:
            continue
        seen.add(name)
        func = mod[name]
        if isinstance(func, tir.PrimFunc):
            roots += _called(func.body)
        else:
            _callees(func.body, roots)
    return seen


@lru_cache(maxsize=1024)
def _called(body: tir.Stmt) -> tuple[str, ...]:
    """The functions that a tensor program calls; statements are never changed, so it is read once and not in every pass."""
    found = []
    for node in walk_data(body):
        if type(node) is TirCall:
            if isinstance(node.op, graph.GlobalVar):
                found.append(node.op.name)
            elif node.op == "parallel_for" and isinstance(node.args[0], tir.expr.StringImm):
                found.append(node.args[0].value)
    return tuple(found)


def _callees(value: object, roots: list[str]) -> None:
    if isinstance(value, graph.GlobalVar):
        roots.append(value.name)
    if isinstance(value, graph.Call) and isinstance(value.op, graph.GlobalVar):
        roots.append(value.op.name)
    for child in operands(value):
        _callees(child, roots)
