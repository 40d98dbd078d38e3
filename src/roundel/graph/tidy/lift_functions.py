# SPDX-License-Identifier: Apache-2.0
"""Functions inside of functions become functions of the module; what they use of the function around them becomes parameters.

    def main(x, y):                       def main_inner(z, y):
        def inner(z):                         return R.add(z, y)
            return R.add(z, y)     ->
        return inner(x)                   def main(x, y):
                                              return cls.main_inner(x, y)

A function that is used as a value (returned, or given to another) stays where it is, and so does one that needs a size which none of its parameters tells.
"""

from __future__ import annotations

from typing import Any

from ...ir import graph
from ...ir.module import IRModule
from ...ir.visit import Rewriter, on, walk
from ...passes import pass_
from ...relax.outline import Renamed, sizes_in


@pass_("lift_functions")
def lift_functions(mod: IRModule) -> IRModule:
    """Make functions of the module of those that graph functions define inside of themselves."""
    for name, func in list(mod.items()):
        if isinstance(func, graph.Function) and any(isinstance(n, graph.Function) for n in walk(func.body)):
            lifting = _Lifting(mod, name)
            body = lifting.rewrite(func.body)
            mod = lifting.mod.with_functions({name: func.replace(body=body)})
    return mod


class _Lifting(Rewriter):
    """Rewrites the body of the function ``name``. ``lifted``: of each variable, the function of the module and the arguments that it takes besides."""

    def __init__(self, mod: IRModule, name: str) -> None:
        self.mod, self.name = mod, name
        self.lifted: dict[graph.Var, tuple[graph.GlobalVar, tuple[graph.Var, ...]]] = {}

    @on(graph.SeqExpr)
    def _sequence(self, seq: graph.SeqExpr) -> graph.SeqExpr:
        values = _values(seq)
        for block in seq.blocks:
            for b in block.bindings:
                if isinstance(b.value, graph.Function) and b.var not in values:
                    self._lift(b.var, b.value)
        kept = tuple(block.replace(bindings=tuple(b for b in block.bindings if b.var not in self.lifted)) for block in seq.blocks)
        return self.generic(seq.replace(blocks=tuple(b for b in kept if b.bindings)))

    @on(graph.Call)
    def _call(self, call: graph.Call) -> Any:
        call = self.generic(call)
        if call.op not in self.lifted:
            return call
        function, captured = self.lifted[call.op]
        return call.replace(op=function, args=(*call.args, *captured))

    def _lift(self, var: graph.Var, func: graph.Function) -> None:
        captured = tuple(v for v in _free(func) if v is not var and v not in self.lifted)
        captured += tuple(c for v in _free(func) if v in self.lifted for c in self.lifted[v][1] if c not in captured)
        known = {d for v in (*func.params, *captured) for d in getattr(v.sinfo, "shape", None) or getattr(v.sinfo, "values", None) or ()}
        if any(isinstance(v.sinfo, graph.FuncInfo) for v in captured) or sizes_in(func) - known:
            return
        name = self.mod.unique_name(f"{self.name}_{var.name}")
        self.lifted[var] = (graph.GlobalVar(name), captured)
        inner = _Lifting(self.mod.with_functions({name: func}), name)  # the name is taken while what is inside looks for others
        inner.lifted = dict(self.lifted)
        fresh = tuple(graph.Var(v.name, v.sinfo) for v in captured)
        body = Renamed(dict(zip(captured, fresh, strict=True))).rewrite(inner.rewrite(func.body))
        attrs = {k: v for k, v in func.attrs.items() if k != "global_symbol"}
        self.mod = inner.mod.with_functions({name: func.replace(params=(*func.params, *fresh), body=body, attrs=type(func.attrs)(attrs))})


def _values(seq: graph.SeqExpr) -> set[Any]:
    """Variables that are used otherwise than as what is called."""
    used: set[Any] = set()

    def look(node: Any) -> None:
        if isinstance(node, graph.Var):
            used.add(node)
        elif isinstance(node, graph.Call):
            for a in node.args:
                look(a)
            if not isinstance(node.op, graph.Var):
                look(node.op)
        elif isinstance(node, graph.SeqExpr):
            for b in node.bindings:
                look(b.value)
            look(node.body)
        elif isinstance(node, graph.Function):
            look(node.body)
        elif isinstance(node, graph.GraphExpr):
            for child in node._below():
                look(child)

    look(seq)
    return used


def _free(func: graph.Function) -> list[graph.Var]:
    """The variables of the graph around a function that it uses, in order."""
    bound = set(func.params)
    for node in walk(func.body):
        if isinstance(node, graph.Function):
            bound.update(node.params)
        elif isinstance(node, graph.SeqExpr):
            bound.update(b.var for b in node.bindings)
        elif isinstance(node, graph.While):
            bound.update(node.loop_vars)
    return list(dict.fromkeys(n for n in walk(func.body) if isinstance(n, graph.Var) and n not in bound))
