# SPDX-License-Identifier: Apache-2.0
"""The flat form: what lowering hands to code generation, written down as a checker.

A flat kernel or task consists of serial ``For`` loops (constant or symbolic extents), ``While``, ``If``, ``Let``,
``Seq``, ``Assert``, ``AttrStmt``, ``Evaluate`` of calls, ``Allocate`` and ``DeclBuffer``, and loads and stores of
buffers with strides and element offset. At most one index of an access is a vector, and a predicate has as many lanes.
There are no blocks, no other loop kinds, and every variable and buffer is defined where it is used.
"""

from __future__ import annotations

from typing import Any

from roundel.ir import tir
from roundel.ir.errors import LowerError
from roundel.ir.visit import Visitor, free_vars, on


class _Check(Visitor):
    def __init__(self, func: tir.PrimFunc) -> None:
        self.func = func
        self.vars: set[tir.Var] = set(func.params)
        for _, buffer in func.buffer_map:
            self.vars.add(buffer.data)
        self.seen: set[tir.Expr] = set()

    def fail(self, what: str, where: Any) -> None:
        raise LowerError(
            f"not in flat form: {what}",
            where=getattr(where, "span", None),
            why=f"in function {self.func.attrs.get('global_symbol', 'without a name')}, at\n{where.script()}",
        )

    def use(self, expr: tir.Expr, where: Any) -> None:
        if expr in self.seen:
            return
        self.seen.add(expr)
        for v in free_vars(expr):
            if v not in self.vars:
                self.fail(f"variable {v.name} is used where it is not defined", where)
        self.visit(expr)

    def define(self, var: tir.Var, where: Any) -> None:
        self.vars.add(var)

    def use_buffer(self, buffer: tir.Buffer, where: Any) -> None:
        if buffer.data not in self.vars:
            self.fail(f"buffer {buffer.name} is used where its memory is not defined", where)
        for e in (*buffer.shape, *buffer.strides, *([] if buffer.elem_offset is None else [buffer.elem_offset])):
            self.use(e, where)

    def access(self, access: Any) -> None:
        buffer = access.buffer
        self.use_buffer(buffer, access)
        if len(access.indices) != len(buffer.shape):
            self.fail(f"{len(access.indices)} indices for buffer {buffer.name} of rank {len(buffer.shape)}", access)
        vectors = [i.dtype.lanes for i in access.indices if i.dtype.lanes > 1]
        if len(vectors) > 1:
            self.fail(f"{len(vectors)} indices of buffer {buffer.name} are vectors, but only one may be", access)
        lanes = vectors[0] if vectors else 1
        if access.predicate is not None and (
            access.predicate.dtype.lanes != lanes or not access.predicate.dtype.element.is_bool
        ):
            self.fail(f"the predicate of an access of {lanes} lanes is {access.predicate.dtype}", access)

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> None:
        self.access(load)
        self.generic(load)

    @on(tir.BufferStore)
    def _store(self, store: tir.BufferStore) -> None:
        self.access(store)
        for e in (*store.indices, store.value, *([] if store.predicate is None else [store.predicate])):
            self.use(e, store)
        lanes = max((i.dtype.lanes for i in store.indices), default=1)
        want = store.buffer.dtype if lanes == 1 else store.buffer.dtype.with_lanes(lanes)
        if store.value.dtype != want:
            self.fail(f"a value of {store.value.dtype} is stored where {want} belongs", store)

    @on(tir.For)
    def _for(self, loop: tir.For) -> None:
        if loop.kind is not tir.ForKind.SERIAL:
            self.fail(f"the loop over {loop.loop_var.name} is {loop.kind.value}", loop)
        for e in (loop.min, loop.extent):
            self.use(e, loop)
        self.define(loop.loop_var, loop)
        self.visit(loop.body)

    @on(tir.Let)
    def _let(self, let: tir.Let) -> None:
        self.use(let.value, let)
        self.define(let.var, let)
        self.visit(let.body)

    @on(tir.Allocate)
    def _allocate(self, alloc: tir.Allocate) -> None:
        self.define(alloc.buffer.data, alloc)
        self.use_buffer(alloc.buffer, alloc)
        self.visit(alloc.body)

    @on(tir.DeclBuffer)
    def _decl(self, decl: tir.DeclBuffer) -> None:
        self.use_buffer(decl.buffer, decl)
        self.visit(decl.body)

    @on(tir.If)
    def _if(self, stmt: tir.If) -> None:
        self.use(stmt.condition, stmt)
        if stmt.condition.dtype != "bool":
            self.fail(f"the condition is {stmt.condition.dtype}", stmt)
        self.visit(stmt.then_case)
        if stmt.else_case is not None:
            self.visit(stmt.else_case)

    @on(tir.While)
    def _while(self, stmt: tir.While) -> None:
        self.use(stmt.condition, stmt)
        self.visit(stmt.body)

    @on(tir.Assert)
    def _assert(self, stmt: tir.Assert) -> None:
        for e in (stmt.condition, *stmt.values):
            self.use(e, stmt)

    @on(tir.Evaluate)
    def _evaluate(self, stmt: tir.Evaluate) -> None:
        self.use(stmt.value, stmt)

    @on(tir.Block, tir.BlockRealize)
    def _block(self, stmt: tir.Stmt) -> None:
        self.fail("there is a block left", stmt)


def check_flat(func: tir.PrimFunc) -> None:
    """Raises LowerError that names the first thing that code generation could not take."""
    _Check(func).visit(func.body)
