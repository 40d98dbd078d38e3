# SPDX-License-Identifier: Apache-2.0
"""Index expressions and conditions in canonical form, knowing the ranges of loops and the conditions around.

Loops of one iteration, conditions known to hold or to fail, and constant lets disappear.
"""

from __future__ import annotations

from math import inf

from roundel.arith import Analyzer
from roundel.ir import Rewriter, on, tir
from roundel.ir.visit import substitute, walk

from .kernel_pass import kernel_pass
from .loop_facts import inside


class _Simplify(Rewriter):
    def __init__(self) -> None:
        self.analyzer = Analyzer()

    def expr(self, e: tir.Expr) -> tir.Expr:
        """A simplified expression."""
        return self.analyzer.simplify(e)

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        low, extent = self.expr(loop.min), self.expr(loop.extent)
        if type(extent) is tir.IntImm and extent.value <= 0:
            return tir.Seq(())
        if type(extent) is tir.IntImm and extent.value == 1 and loop.kind is not tir.ForKind.THREAD_BINDING:
            return self.rewrite(substitute(loop.body, {loop.loop_var: low}))
        loop = loop.replace(min=low, extent=extent)
        with inside(self.analyzer, loop):
            body = self.rewrite(loop.body)
        return body if is_empty(body) else loop.replace(body=body)

    @on(tir.Seq)
    def _seq(self, stmt: tir.Seq) -> tir.Stmt:
        return tir.seq(*(s for s in map(self.rewrite, stmt.stmts) if not is_empty(s)))

    @on(tir.If)
    def _if(self, stmt: tir.If) -> tir.Stmt:
        condition = self.expr(stmt.condition)
        if type(condition) is tir.IntImm:
            taken = stmt.then_case if condition.value else stmt.else_case
            return tir.Seq(()) if taken is None else self.rewrite(taken)
        with self.analyzer.constraint(condition):
            then = self.rewrite(stmt.then_case)
        if stmt.else_case is None:
            return then if is_empty(then) else tir.If(condition, then, None, stmt.span)
        with self.analyzer.constraint(tir.logical_not(condition)):
            otherwise = self.rewrite(stmt.else_case)
        if is_empty(otherwise):
            return then if is_empty(then) else tir.If(condition, then, None, stmt.span)
        if is_empty(then):
            return tir.If(tir.logical_not(condition), otherwise, None, stmt.span)
        return stmt.replace(condition=condition, then_case=then, else_case=otherwise)

    @on(tir.Let)
    def _let(self, let: tir.Let) -> tir.Stmt:
        value = self.expr(let.value)
        if type(value) in (tir.IntImm, tir.FloatImm, tir.Var) or (value.is_index and let.var.dtype.is_int and not _chooses(value)):
            return self.rewrite(substitute(let.body, {let.var: value}))
        if value.is_index:
            low, high = self.analyzer.bounds(value)
            if low != -inf and high != inf:
                self.analyzer.bind(let.var, tir.Range(tir.index_const(int(low)), tir.index_const(int(high - low + 1))))
        return let.replace(value=value, body=self.rewrite(let.body))

    @on(tir.BufferStore)
    def _store(self, store: tir.BufferStore) -> tir.Stmt:
        predicate = None if store.predicate is None else self.expr(store.predicate)
        if _all_true(predicate):
            predicate = None
        value, indices = self.expr(store.value), tuple(map(self.expr, store.indices))
        if value is store.value and indices == store.indices and predicate is store.predicate:
            return store
        return tir.BufferStore(store.buffer, value, indices, predicate, store.span)

    @on(tir.Evaluate, tir.Assert, tir.While)
    def _simple(self, stmt: tir.Stmt) -> tir.Stmt:
        changes = {name: self.expr(getattr(stmt, name)) for name in ("value", "condition") if name in stmt._fields}
        if type(stmt) is tir.While:
            changes["body"] = self.rewrite(stmt.body)
        return stmt.replace(**changes)

    @on(tir.Allocate, tir.DeclBuffer, tir.AttrStmt)
    def _scope(self, stmt: tir.Stmt) -> tir.Stmt:
        body = self.rewrite(stmt.body)
        return body if is_empty(body) else stmt.replace(body=body)


def _chooses(value: tir.Expr) -> bool:
    """Whether an index is chosen among several: such a one is computed once, and not wherever it is used."""
    return any(type(n) is tir.Select for n in walk(value))


def is_empty(stmt: tir.Stmt) -> bool:
    """Whether a statement does nothing."""
    return type(stmt) is tir.Seq and not stmt.stmts


def _all_true(predicate: tir.Expr | None) -> bool:
    return type(predicate) is tir.Broadcast and type(predicate.value) is tir.IntImm and bool(predicate.value.value)


@kernel_pass("simplify")
def simplify(func: tir.PrimFunc) -> tir.PrimFunc:
    """Canonical index expressions; dead conditions and unit loops removed."""
    return func.replace(body=_Simplify().rewrite(func.body))
