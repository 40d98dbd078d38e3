# SPDX-License-Identifier: Apache-2.0
"""Sizes that follow from others by divisions or products become variables of the programs that work on them.

    A: [n, 24, (h + 7) // 8, 16] -> B: [n, 24, (h + 7) // 8, 16]     becomes     A: [n, 24, s, 16] -> B: [n, 24, s, 16]

Inside of a program a dimension is then a variable that its callers' tensors give: its bounds and index arithmetic are as
simple as for an input's own dimensions, and programs that differ only in how their sizes came about are one program.
"""

from __future__ import annotations

from typing import Any

from ...arith import Analyzer
from ...ir import graph, tir
from ...ir.equal import StructuralMap
from ...ir.module import IRModule
from ...ir.op import CALL_TIR, CALL_TIR_INPLACE
from ...ir.visit import Rewriter, free_vars, walk
from ...passes import pass_
from ..rewriter import GraphRewriter


@pass_("name_sizes")
def name_sizes(mod: IRModule) -> IRModule:
    """Give tensor programs plain variables for dimensions with divisions or products; equal programs are shared."""
    return _NameSizes(mod).module()


class _NameSizes(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.named: dict[str, tuple[graph.GlobalVar, list[int]] | None] = {}
        self.programs = StructuralMap()

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if call.op not in (CALL_TIR, CALL_TIR_INPLACE):
            return call
        found = self._named(call.args[0])
        if found is None:
            return call
        name, kept = found
        scalars = call.args[2].values if len(call.args) > 2 else ()
        if name is call.args[0] and len(kept) == len(scalars):
            return call
        rest = (graph.ShapeExpr(tuple(scalars[k] for k in kept)),) if kept else ()
        return call.replace(args=(name, call.args[1], *rest))

    def _named(self, name: graph.GlobalVar) -> tuple[graph.GlobalVar, list[int]] | None:
        """The program with plain sizes, and which of its scalar parameters are left; None where it stays as it is."""
        if name.name not in self.named:
            func = self.mod[name]
            if func.root_block is None or not _symbolic(func) or not {"scheduled", "view", "global_symbol"}.isdisjoint(func.attrs):
                self.named[name.name] = None
            else:
                new, kept = plain_sizes(func)
                shared = self.programs.setdefault(new, lambda: name)
                if shared is name:
                    self.mod = self.mod.with_functions({name.name: new})
                self.named[name.name] = shared, kept
        return self.named[name.name]


def plain_sizes(func: tir.PrimFunc) -> tuple[tir.PrimFunc, list[int]]:
    """The program with a variable for every dimension of a parameter that holds a division or product, and which of its scalar parameters
    are left (the others were needed for those dimensions alone)."""
    scalars = [p for p in func.params if p not in func.buffers]
    plain = {d for b in func.buffer_params for d in b.shape if type(d) is tir.Var} | set(scalars)
    found = dict.fromkeys(d for b in func.buffer_params for d in b.shape if _is_involved(d) or free_vars(d) - plain)
    naming = _Naming()
    for dim in sorted(found, key=lambda d: sum(1 for _ in walk(d))):
        rest = naming.rewrite(dim)
        if _is_involved(rest) or free_vars(rest) - plain - set(naming.sizes.values()):
            naming.sizes[dim] = naming.sizes[rest] = tir.Var(f"s{len(naming.sizes)}", dim.dtype, True)
            naming.memo.clear()
    if not naming.sizes:
        return func, list(range(len(scalars)))
    new = naming.rewrite(func)
    used = {v for n in walk(new.body) if isinstance(n, tir.Expr) for v in free_vars(n)}
    used |= {v for b in naming.buffers.values() for d in b.shape for v in free_vars(d)}
    kept = [k for k, p in enumerate(scalars) if p in used]
    dropped = {p for k, p in enumerate(scalars) if k not in kept}
    return new.replace(params=tuple(p for p in new.params if p not in dropped)), kept


class _Naming(Rewriter):
    """Replaces expressions by the variables that stand for them."""

    def __init__(self) -> None:
        self.sizes: dict[tir.Expr, tir.Var] = {}
        self.buffers: dict[tir.Buffer, tir.Buffer] = {}
        self.memo: dict[tir.Expr, tir.Expr] = {}
        self.analyzer = Analyzer()

    def rewrite(self, node: Any) -> Any:
        if not isinstance(node, tir.Expr):
            return super().rewrite(node)
        hit = self.memo.get(node)
        if hit is None:
            named = self.sizes.get(node)
            if named is None and type(node) is tir.Mul and node.is_index:  # the factors may be in another order
                named = self.sizes.get(self.analyzer.simplify(node))
            hit = self.memo[node] = self.generic(node) if named is None else named
        return hit

    def buffer(self, buffer: tir.Buffer) -> tir.Buffer:
        if buffer not in self.buffers:
            self.buffers[buffer] = buffer.replace(shape=self.rewrite_field(buffer.shape), strides=self.rewrite_field(buffer.strides))
        return self.buffers[buffer]


def _is_involved(dim: tir.Expr) -> bool:
    """Whether an expression of sizes is more than a sum of multiples of them."""
    return any(type(n) in (tir.FloorDiv, tir.FloorMod) or (type(n) is tir.Mul and len(free_vars(n.a)) * len(free_vars(n.b))) for n in walk(dim)) \
        and bool(free_vars(dim))


def _symbolic(func: tir.PrimFunc) -> bool:
    return any(free_vars(d) for b in func.buffer_params for d in b.shape)
