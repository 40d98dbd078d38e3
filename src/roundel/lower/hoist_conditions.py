# SPDX-License-Identifier: Apache-2.0
"""Conditions move out of the loops in which they do not change.

for j in range(n):                 if i < m:
    if i < m:               ->         for j in range(n):
        C[i, j] = ...                      C[i, j] = ...
"""

from __future__ import annotations

from roundel.ir import free_vars, on, tir
from roundel.ir.visit import statements, walk

from .kernel_pass import kernel_pass
from .statements import StatementRewriter
from .vector_expr import conjuncts


def _stable(condition: tir.Expr, loop: tir.For) -> bool:
    """Whether a condition has one value during the whole loop: what it loads, if anything, is not written there."""
    if loop.loop_var in free_vars(condition) or any(type(n) is tir.Call and n.op != "likely" for n in walk(condition)):
        return False
    loaded = {n.buffer for n in walk(condition) if type(n) is tir.BufferLoad}
    return not loaded or loaded.isdisjoint(n.buffer for n in statements(loop.body) if type(n) is tir.BufferStore)


class _Hoist(StatementRewriter):
    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        loop = self.generic(loop)
        inner = loop.body
        if type(inner) is not tir.If or inner.else_case is not None or loop.kind is tir.ForKind.PARALLEL:
            return loop
        parts = conjuncts(inner.condition)
        out = [c for c in parts if _stable(c, loop)]
        if not out:
            return loop
        stay = [c for c in parts if not _stable(c, loop)]
        body = tir.If(tir.logical_and(*stay), inner.then_case) if stay else inner.then_case
        return tir.If(tir.logical_and(*out), loop.replace(body=body))

    @on(tir.If)
    def _if(self, stmt: tir.If) -> tir.Stmt:
        """Nested conditions become one."""
        stmt = self.generic(stmt)
        inner = stmt.then_case
        if stmt.else_case is None and type(inner) is tir.If and inner.else_case is None and not _loads(inner.condition):
            return tir.If(tir.And(stmt.condition, inner.condition), inner.then_case)
        return stmt


def _loads(e: tir.Expr) -> bool:
    return any(type(n) in (tir.BufferLoad, tir.Call) for n in walk(e))


@kernel_pass("hoist_conditions")
def hoist_conditions(func: tir.PrimFunc) -> tir.PrimFunc:
    """Invariant conditions outside of their loops."""
    return func.replace(body=_Hoist().rewrite(func.body))
