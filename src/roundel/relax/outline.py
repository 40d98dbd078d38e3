# SPDX-License-Identifier: Apache-2.0
"""Bindings as a function of their own, with the operands to call it with: what every partition of a graph is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.visit import Rewriter, free_vars, on, walk


def outline(bindings: Sequence[graph.VarBinding], results: Sequence[graph.Var], attrs: dict[str, Any], *, bind_constants: bool = True,
            dataflow: bool = True) -> tuple[graph.Function, tuple[Any, ...]]:
    """A function that computes the ``results`` of these bindings (several as a tuple), and its operands: what the bindings use of the graph around them.

    ``bind_constants``: constants stay in the function and are no operands. ``dataflow``: its body is a dataflow block.
    """
    own = {b.var for b in bindings}
    kinds = (graph.Var, graph.DataflowVar) if bind_constants else (graph.Var, graph.DataflowVar, graph.Constant)
    operands = tuple(n for n in dict.fromkeys(n for b in bindings for n in leaves(b.value)) if isinstance(n, kinds) and n not in own)
    counts: Counter[str] = Counter()
    params = tuple(graph.Var(_free(getattr(o, "name", "const"), counts), o.sinfo) for o in operands)
    inside = Renamed(dict(zip(operands, params, strict=True)))
    made = []
    for b in bindings:
        kind = graph.DataflowVar if dataflow and b.var not in results else graph.Var
        value = inside.rewrite(b.value)
        var = inside.table[b.var] = kind(b.var.name, b.var.sinfo)
        made.append(graph.VarBinding(var, value, b.span))
    found = [inside.table[v] for v in results]
    body = graph.SeqExpr(((graph.DataflowBlock if dataflow else graph.BindingBlock)(tuple(made)),), found[0] if len(found) == 1 else graph.Tuple(found))
    return graph.Function(params, body, body.sinfo, True, Attrs(attrs)), operands


def unknown_sizes(func: graph.Function) -> set[tir.Var]:
    """Symbolic sizes that a function uses and that are no dimension of a parameter as they stand: no call could tell them."""
    dims = {d for p in func.params for d in getattr(p.sinfo, "shape", None) or getattr(p.sinfo, "values", None) or ()}
    return sizes_in(func.body) - dims


def with_own_sizes(func: graph.Function) -> tuple[graph.Function, dict[tir.Var, tir.Expr]]:
    """The function with a size of its own in place of each dimension of a parameter that is computed of sizes which no parameter tells, and what these
    stand for: of an operand of ``(w + 1) // 2`` rows a kernel needs to know how many there are, not what ``w`` is. The function itself where there are
    none; sizes stay unknown that are used otherwise too."""
    unknown, counts = unknown_sizes(func), Counter[str]()
    dims = (d for p in func.params for d in getattr(p.sinfo, "shape", None) or () if type(d) is not tir.Var and unknown & free_vars(d)) if unknown else ()
    own = {d: tir.Var(_free("size", counts), d.dtype, True) for d in dict.fromkeys(dims)}
    if not own:
        return func, {}
    made = _Sized(own)
    params = tuple(made.variable(p) for p in func.params)
    return graph.Function(params, made.rewrite(func.body), made.rewrite(func.ret_sinfo), func.is_pure, func.attrs, func.span), {v: d for d, v in own.items()}


def sizes_in(value: Any) -> set[tir.Var]:
    """The symbolic sizes that a value, or the type of a part of it, names."""
    return {n for n in walk(value) if isinstance(n, tir.Var) and n.is_index}


def leaves(value: Any) -> list[Any]:
    """The variables and constants of a value in order."""
    return [n for n in walk(value) if isinstance(n, graph.Var | graph.Constant)]


class Renamed(Rewriter):
    """Variables and constants replaced by what stands for them."""

    def __init__(self, table: dict[Any, Any]) -> None:
        self.table = table

    @on(graph.Var, graph.DataflowVar, graph.Constant)
    def _leaf(self, leaf: Any) -> Any:
        return self.table.get(leaf, leaf)


class _Sized(Rewriter):
    """Expressions of sizes replaced by variables, in the types of variables too, each of which is renewed once."""

    def __init__(self, own: dict[tir.Expr, tir.Var]) -> None:
        self.own, self.renewed = own, dict[graph.Var, graph.Var]()

    def rewrite(self, node: Any) -> Any:
        """The node with its expressions replaced."""
        return self.own[node] if isinstance(node, tir.Expr) and node in self.own else super().rewrite(node)

    @on(graph.Var, graph.DataflowVar)
    def variable(self, v: graph.Var) -> graph.Var:
        """The variable that stands for one."""
        if v not in self.renewed:
            self.renewed[v] = type(v)(v.name, self.rewrite(v.sinfo))
        return self.renewed[v]


def _free(name: str, counts: Counter[str]) -> str:
    counts[name] += 1
    return name if counts[name] == 1 else f"{name}_{counts[name] - 1}"
