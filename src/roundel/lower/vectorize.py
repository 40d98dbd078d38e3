# SPDX-License-Identifier: Apache-2.0
"""Vectorized loops become vector expressions.

    for j in T.vectorized(8):                         C[i, ramp(0, 1, 8)] =
        if j0 * 8 + j < n:                      ->        A[i, ramp(0, 1, 8)] + broadcast(b, 8)
            C[i, j] = A[i, j] + b                         where ramp(j0 * 8, 1, 8) < broadcast(n, 8)

Inner serial loops are widened in place. Conditions that differ between lanes become predicates of loads and stores. A
statement that has no vector form (an opaque call, a ``while``, extents that differ between lanes) stays a serial loop.
An accumulation into one place over the lanes becomes a horizontal reduction.
"""

from __future__ import annotations

from collections.abc import Callable

from roundel.ir import Var, on, tir
from roundel.ir.visit import substitute, walk

from .kernel_pass import kernel_pass
from .statements import StatementRewriter
from .vector_expr import CannotWiden, Widen, as_vector, lanes_of

_REDUCTIONS: dict[type, str] = {
    tir.Add: "reduce_add",
    tir.Mul: "reduce_mul",
    tir.Max: "reduce_max",
    tir.Min: "reduce_min",
}
_IDENTITY: dict[type, Callable] = {
    tir.Add: lambda d: tir.const(0, d),
    tir.Mul: lambda d: tir.const(1, d),
    tir.Max: lambda d: tir.const(float("-inf") if d.is_float else _least(d), d),
    tir.Min: lambda d: tir.const(float("inf") if d.is_float else _greatest(d), d),
}


def _least(dtype: tir.Expr) -> int:
    return 0 if dtype.kind == "uint" else -(1 << (dtype.bits - 1))


def _greatest(dtype: tir.Expr) -> int:
    return (1 << (dtype.bits - (dtype.kind != "uint"))) - 1


class _VectorizeLoop(Widen):
    """Widens the statements of one vectorized loop; expressions are widened by the base class."""

    def __init__(self, loop: tir.For, lanes: int) -> None:
        super().__init__(loop.loop_var, loop.min, lanes)
        self.loop = loop
        self.private = 0  # > 0 inside a Let or Allocate that has been widened: no statement of it can be serial alone

    def statement(self, stmt: tir.Stmt) -> tir.Stmt:
        """The vector form, or else a serial loop around the statement."""
        try:
            return self._table[type(stmt)](self, stmt)
        except CannotWiden:
            if self.private:
                raise
            return self.serial(stmt)

    def serial(self, stmt: tir.Stmt) -> tir.Stmt:
        for condition in reversed(self.guards):
            stmt = tir.If(condition, stmt)
        var = Var(self.loop.loop_var.name, self.loop.loop_var.dtype)
        return tir.For(
            var, self.loop.min, self.loop.extent, tir.ForKind.SERIAL, substitute(stmt, {self.loop.loop_var: var})
        )

    @on(tir.BufferStore)
    def _store(self, store: tir.BufferStore) -> tir.Stmt:
        if store.predicate is not None or store.buffer.dtype.lanes > 1:
            raise CannotWiden
        buffer, indices = self.element(store.buffer, store.indices)
        if all(i.dtype.lanes == 1 for i in indices):
            return self._uniform_store(store, indices)
        buffer, indices = self.place(buffer, indices)
        return store.replace(
            buffer=buffer, indices=indices, value=as_vector(self.rewrite(store.value), self.lanes), predicate=self.mask
        )

    def _uniform_store(self, store: tir.BufferStore, indices: tuple[tir.Expr, ...]) -> tir.Stmt:
        """A store of all lanes to one element: an accumulation, or a uniform value."""
        value = store.value
        old = tir.BufferLoad(store.buffer, store.indices)
        if type(value) is tir.Select and value.false_value is old and value.condition is (old < value.true_value):
            return self._largest_number(store, indices)
        if type(value) in _REDUCTIONS:
            term = value.b if value.a is old else value.a if value.b is old else None
            if term is not None and not _loads(term, store.buffer):
                term = as_vector(self.rewrite(term), self.lanes)
                if self.mask is not None:
                    term = tir.Select(self.mask, term, as_vector(_IDENTITY[type(value)](value.dtype), self.lanes))
                total = tir.Call(_REDUCTIONS[type(value)], (term,), value.dtype)
                return store.replace(indices=indices, value=type(value)(tir.BufferLoad(store.buffer, indices), total))
        wide = self.rewrite(value)
        if wide.dtype.lanes > 1 or self.mask is not None or _loads(value, store.buffer):
            raise CannotWiden
        return store.replace(indices=indices, value=wide)

    def _largest_number(self, store: tir.BufferStore, indices: tuple[tir.Expr, ...]) -> tir.Stmt:
        """``acc = term if acc < term else acc``, a maximum that ignores NaN in ``term``, because no comparison with NaN holds. The lanes start from the
        least value."""
        term = store.value.true_value
        if _loads(term, store.buffer):
            raise CannotWiden
        least = as_vector(_IDENTITY[tir.Max](term.dtype), self.lanes)
        wide = as_vector(self.rewrite(term), self.lanes)
        larger = least < wide
        wide = tir.Select(larger if self.mask is None else tir.logical_and(self.mask, larger), wide, least)
        old, top = tir.BufferLoad(store.buffer, indices), tir.Call("reduce_max_number", (wide,), term.dtype)
        return store.replace(indices=indices, value=tir.Select(old < top, top, old))

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        low, extent = self.rewrite(loop.min), self.rewrite(loop.extent)
        if low.dtype.lanes > 1 or extent.dtype.lanes > 1 or loop.kind in (tir.ForKind.PARALLEL, tir.ForKind.VECTORIZED):
            raise CannotWiden
        return loop.replace(min=low, extent=extent, body=self.statement(loop.body))

    @on(tir.Seq)
    def _seq(self, stmt: tir.Seq) -> tir.Stmt:
        return tir.seq(*map(self.statement, stmt.stmts))

    @on(tir.If)
    def _if(self, stmt: tir.If) -> tir.Stmt:
        uniform, varying = self.split_condition(stmt.condition)
        if varying is None:
            otherwise = None if stmt.else_case is None else self.statement(stmt.else_case)
            return tir.If(self.rewrite(stmt.condition), self.statement(stmt.then_case), otherwise)
        written = {n.buffer for n in walk(stmt) if type(n) is tir.BufferStore}
        if any(type(n) is tir.BufferLoad and n.buffer in written for n in walk(stmt.condition)):
            raise CannotWiden  # the condition must be evaluated once, before the branches change it
        if stmt.else_case is not None:
            with self.under(stmt.condition):
                then = self.statement(stmt.then_case)
            with self.under(tir.logical_not(stmt.condition)):
                return tir.seq(then, self.statement(stmt.else_case))
        with self.under(varying):
            then = self.statement(stmt.then_case)
        return then if uniform is None else tir.If(self.rewrite(uniform), then)

    @on(tir.Let)
    def _let(self, let: tir.Let) -> tir.Stmt:
        value = self.rewrite(let.value)
        if value.dtype.lanes == 1:
            return let.replace(value=value, body=self.statement(let.body))
        var = Var(let.var.name, value.dtype)
        self.values[let.var] = var
        return let.replace(var=var, value=value, body=self._privately(let.body))

    def _privately(self, body: tir.Stmt) -> tir.Stmt:
        self.private += 1
        try:
            return self.statement(body)
        finally:
            self.private -= 1

    @on(tir.Allocate)
    def _allocate(self, alloc: tir.Allocate) -> tir.Stmt:
        """Memory that is private to a lane gets a last dimension over the lanes."""
        old = alloc.buffer
        if old.strides or old.dtype.lanes > 1:
            raise CannotWiden
        new = old.replace(shape=(*old.shape, tir.index_const(self.lanes)), data=Var(old.data.name, old.data.dtype))
        self.widened_buffers[old] = new
        body = self._privately(alloc.body)
        view = self.views.pop(new, None)
        return alloc.replace(buffer=new, body=body if view is None else tir.DeclBuffer(view, body))

    @on(tir.AttrStmt)
    def _attr(self, stmt: tir.AttrStmt) -> tir.Stmt:
        return stmt.replace(body=self.statement(stmt.body))

    @on(tir.Evaluate)
    def _evaluate(self, stmt: tir.Evaluate) -> tir.Stmt:
        if type(stmt.value) is tir.Call and tir.effect(stmt.value) is tir.Effect.OPAQUE:
            raise CannotWiden
        return tir.Seq(())  # a value that nobody uses

    @on(tir.While, tir.Assert, tir.DeclBuffer)
    def _serial_only(self, stmt: tir.Stmt) -> tir.Stmt:
        raise CannotWiden


def _loads(expr: tir.Expr, buffer: tir.Buffer) -> bool:
    return any(type(n) is tir.BufferLoad and n.buffer.data is buffer.data for n in walk(expr))


class _Vectorize(StatementRewriter):
    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        loop = self.generic(loop)
        if loop.kind is not tir.ForKind.VECTORIZED:
            return loop
        lanes = lanes_of(loop)
        if lanes is None or lanes == 0 or loop.step is not None:
            return loop.replace(kind=tir.ForKind.SERIAL)
        work = _VectorizeLoop(loop, lanes)
        try:
            body = work.statement(loop.body)
        except CannotWiden:
            return loop.replace(kind=tir.ForKind.SERIAL)
        for view in work.views.values():
            body = tir.DeclBuffer(view, body)
        return body


@kernel_pass("vectorize")
def vectorize(func: tir.PrimFunc) -> tir.PrimFunc:
    """Vectorized loops become vector statements."""
    return func.replace(body=_Vectorize().rewrite(func.body))
