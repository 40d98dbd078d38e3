# SPDX-License-Identifier: Apache-2.0
"""Questions about graph functions, by TVM's names: variables free, bound and used, bindings by name, what is not used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from roundel.arith.struct_infos import symbols_of
from roundel.ir import graph, tir
from roundel.ir.op import OpDef
from roundel.ir.visit import walk

from .patterns import get_var2val


def post_order_visit(expr: Any, visit: Callable[[Any], None]) -> None:
    """``visit`` of every graph expression, parts before the whole."""
    for node in reversed(list(walk(expr))):
        if isinstance(node, graph.GraphExpr | graph.Function | graph.GlobalVar):
            visit(node)


def _bound(expr: Any) -> Iterator[graph.Var]:
    for node in walk(expr):
        if isinstance(node, graph.Binding):
            yield node.var
        elif isinstance(node, graph.Function):
            yield from node.params
        elif isinstance(node, graph.While):
            yield from node.loop_vars


def _met(expr: Any) -> Iterator[graph.Var]:
    bound = {id(n.var) for n in walk(expr) if isinstance(n, graph.Binding)}
    params = {id(p) for n in walk(expr) if isinstance(n, graph.Function) for p in n.params}
    yield from (n for n in walk(expr) if isinstance(n, graph.Var) and id(n) not in bound | params)


def bound_vars(expr: Any) -> list[graph.Var]:
    """Variables that parameters, bindings and loops define, in order."""
    return list(dict.fromkeys(_bound(expr)))


def free_vars(expr: Any) -> list[graph.Var]:
    """Variables that are used and not bound, in order."""
    bound = set(_bound(expr))
    return list(dict.fromkeys(v for v in _met(expr) if v not in bound))


def all_vars(expr: Any) -> list[graph.Var]:
    """Variables that are bound or used, in order."""
    return list(dict.fromkeys(n for n in walk(expr) if isinstance(n, graph.Var)))


def all_global_vars(expr: Any) -> list[graph.GlobalVar]:
    """Functions of the module that are named, in order."""
    return list(dict.fromkeys(n for n in walk(expr) if isinstance(n, graph.GlobalVar)))


called_global_vars = all_global_vars


def defined_symbolic_vars(func: graph.Function) -> list[tir.Var]:
    """Symbolic dimensions that parameters and casts define."""
    infos = [p.sinfo for p in func.params] + [n.sinfo for n in walk(func.body) if isinstance(n, graph.MatchCast)]
    return _symbols(infos)


def free_symbolic_vars(func: graph.Function) -> list[tir.Var]:
    """Symbolic dimensions that are used and that neither a parameter nor a cast defines."""
    known = set(defined_symbolic_vars(func))
    infos = [n.var.sinfo for n in walk(func.body) if isinstance(n, graph.Binding)]
    used = [*_symbols([*infos, func.ret_sinfo]), *(n for n in walk(func.body) if isinstance(n, tir.Var))]
    return [v for v in dict.fromkeys(used) if v not in known]


def _symbols(infos: list[graph.StructInfo]) -> list[tir.Var]:
    return list(dict.fromkeys(v for info in infos for v in sorted(symbols_of([info]), key=lambda v: v.name)))


def name_to_binding(func: graph.Function) -> dict[str, list[graph.Binding]]:
    """Bindings by the name of their variable."""
    found: dict[str, list[graph.Binding]] = {}
    for node in walk(func.body):
        if isinstance(node, graph.Binding):
            found.setdefault(node.var.name, []).append(node)
    return found


def udchain(block: graph.DataflowBlock) -> dict[graph.Var, list[graph.Var]]:
    """The variables of a dataflow block with those in whose values each is used."""
    users: dict[graph.Var, list[graph.Var]] = {b.var: [] for b in block.bindings}
    for b in block.bindings:
        for v in dict.fromkeys(n for n in walk(b.value) if isinstance(n, graph.Var)):  # type: ignore[attr-defined]
            users.setdefault(v, []).append(b.var)
    return users


def contains_impure_call(expr: Any) -> bool:
    """Whether a call in it has effects: of an operator that says so, a foreign function or a function that is not pure."""
    return any(isinstance(n, graph.Call) and _impure(n) for n in walk(expr))


def _impure(call: graph.Call) -> bool:
    if isinstance(call.op, OpDef):
        return not call.op.pure
    info = call.op.sinfo if isinstance(call.op, graph.Var) else None
    return isinstance(call.op, graph.ExternFunc) or (isinstance(info, graph.FuncInfo) and not info.pure)


def remove_all_unused(func: graph.Function) -> graph.Function:
    """The function without bindings that nothing uses and that have no effects; blocks that are left empty go."""
    needed = {n for n in walk(func.body.body) if isinstance(n, graph.Var)}
    kept: list[graph.BindingBlock] = []
    for block in reversed(func.body.blocks):
        bindings: list[graph.Binding] = []
        for b in reversed(block.bindings):
            if b.var in needed or isinstance(b, graph.MatchCast) or contains_impure_call(b.value):  # type: ignore[attr-defined]
                bindings.append(b)
                needed |= {n for n in walk(b.value) if isinstance(n, graph.Var)}  # type: ignore[attr-defined]
        if bindings:
            kept.append(block if len(bindings) == len(block.bindings) else type(block)(tuple(reversed(bindings))))
    blocks = tuple(reversed(kept))
    same = len(blocks) == len(func.body.blocks) and all(a is b for a, b in zip(blocks, func.body.blocks, strict=True))
    return func if same else func.replace(body=graph.SeqExpr(blocks, func.body.body))


__all__ = [
    "all_global_vars", "all_vars", "bound_vars", "called_global_vars", "contains_impure_call", "defined_symbolic_vars", "free_symbolic_vars", "free_vars",
    "get_var2val", "name_to_binding", "post_order_visit", "remove_all_unused", "udchain",
]  # fmt: skip
