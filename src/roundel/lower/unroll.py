# SPDX-License-Identifier: Apache-2.0
"""Unrolled loops of constant extent become their iterations, one after another.

Loops that index a buffer of scope ``local`` are unrolled too while they stay small, so that it can live in registers.
"""

from __future__ import annotations

import operator
from typing import Any

from roundel.ir import Rewriter, Var, free_vars, on, tir
from roundel.ir.visit import Substitution, substitute, walk

from .kernel_pass import kernel_pass

MAX_COPIES = 4096  # statements that explicit unrolling may make of one loop
MAX_TILE_COPIES = 256  # ... that unrolling for the sake of a local buffer may make
_CHOICES = (tir.IfThenElse, tir.Select)
_COMPARE = {tir.EQ: operator.eq, tir.NE: operator.ne, tir.LT: operator.lt, tir.LE: operator.le}
_TILES = (tir.ForKind.SERIAL, tir.ForKind.UNROLLED)


class _Values(Substitution):
    """The present values of variables; what an expression becomes is remembered until a variable in it changes."""

    def __init__(self) -> None:
        self.values: dict[Var, tir.Expr] = {}
        super().__init__(self.values, {})
        self.users: dict[Var, list[tir.Expr]] = {}  # what is remembered, by variable in it

    def rewrite(self, node: Any) -> Any:
        hit = self.memo.get(node)
        if hit is not None:
            return hit
        if type(node) is Var:
            return self.values.get(node, node)
        if not isinstance(node, tir.Expr):
            return super().rewrite(node)
        hit = self.memo[node] = self.made(node)
        for v in free_vars(node):
            if v in self.values:
                self.users[v].append(node)
        return hit

    def made(self, node: tir.Expr) -> tir.Expr:
        """What an expression becomes. Of a conditional expression whose condition is constant now, only the side that is taken is visited."""
        if type(node) in _CHOICES:
            condition = self.rewrite(node.condition)
            compare = _COMPARE.get(type(condition))
            if compare is not None and type(condition.a) is type(condition.b) is tir.IntImm:
                return self.rewrite(node.true_value if compare(condition.a.value, condition.b.value) else node.false_value)
        return self.generic(node)

    def set(self, v: Var, value: tir.Expr) -> None:
        """The value of a variable from now on."""
        self.values[v] = value
        for e in self.users.get(v, ()):
            self.memo.pop(e, None)
        self.users[v] = []

    def forget(self, v: Var) -> None:
        """The variable has no value any more."""
        self.set(v, v)
        del self.values[v]

    def set_buffer(self, old: tir.Buffer, new: tir.Buffer) -> None:
        """What a buffer that an iteration defines is there."""
        self.buffers[old] = new
        self.memo = {}

    def buffer(self, buffer: tir.Buffer) -> tir.Buffer:
        """The buffer in the present iteration; one that is defined outside of the loop is the same in all."""
        return self.buffers.get(buffer, buffer)


class _Unroll(Rewriter):
    """Writes the iterations out; ``values`` holds the number of the present iteration and renamed definitions."""

    def __init__(self) -> None:
        self.values = _Values()

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, tir.Expr):
            return self.values.rewrite(node) if self.values.values else node
        return super().rewrite(node)

    def buffer(self, buffer: tir.Buffer) -> tir.Buffer:
        return self.values.buffer(buffer)

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        low, extent = self.rewrite(loop.min), self.rewrite(loop.extent)
        if _count(loop) is not None and self.wanted(loop):
            return self.iterations(loop, low.value)
        kind = tir.ForKind.SERIAL if loop.kind is tir.ForKind.UNROLLED else loop.kind
        return loop.replace(
            loop_var=self.renamed(loop.loop_var), min=low, extent=extent, kind=kind, body=self.rewrite(loop.body)
        )

    def wanted(self, loop: tir.For) -> bool:
        if loop.kind is tir.ForKind.UNROLLED:
            return _weight(loop, (tir.ForKind.UNROLLED,)) <= MAX_COPIES
        return loop.kind in _TILES and _weight(loop, _TILES) <= MAX_TILE_COPIES and _indexes_local(loop)

    def iterations(self, loop: tir.For, start: int) -> tir.Stmt:
        parts = []
        for k in range(start, start + loop.extent.value):
            self.values.set(loop.loop_var, tir.const(k, loop.loop_var.dtype))
            parts.append(self.rewrite(loop.body))
        self.values.forget(loop.loop_var)
        return tir.seq(*parts)

    def renamed(self, v: Var) -> Var:
        """A definition inside of unrolled iterations is a new one in each."""
        if not self.values.values:
            return v
        new = Var(v.name, v.dtype, v.size)
        self.values.set(v, new)
        return new

    @on(tir.Let)
    def _let(self, let: tir.Let) -> tir.Stmt:
        value = self.rewrite(let.value)
        return let.replace(var=self.renamed(let.var), value=value, body=self.rewrite(let.body))

    @on(tir.Allocate)
    def _allocate(self, alloc: tir.Allocate) -> tir.Stmt:
        if self.values.values:
            data = self.renamed(alloc.buffer.data)
            self.values.set_buffer(alloc.buffer, substitute(alloc.buffer.replace(data=data), self.values.values))
        return alloc.replace(buffer=self.buffer(alloc.buffer), body=self.rewrite(alloc.body))

    @on(tir.DeclBuffer)
    def _declare(self, decl: tir.DeclBuffer) -> tir.Stmt:
        if self.values.values:
            self.values.set_buffer(decl.buffer, _with_values(decl.buffer, self.values.values))
        return decl.replace(buffer=self.buffer(decl.buffer), body=self.rewrite(decl.body))


def _with_values(b: tir.Buffer, values: dict[Var, tir.Expr]) -> tir.Buffer:
    offset = None if b.elem_offset is None else substitute(b.elem_offset, values)
    data = values.get(b.data, b.data)
    shape, strides = tuple(substitute(s, values) for s in b.shape), tuple(substitute(s, values) for s in b.strides)
    return b.replace(shape=shape, strides=strides, elem_offset=offset, data=data)


def _count(loop: tir.For) -> int | None:
    constant = type(loop.extent) is tir.IntImm and type(loop.min) is tir.IntImm and loop.step is None
    return loop.extent.value if constant else None


def _weight(stmt: tir.Stmt, kinds: tuple[tir.ForKind, ...]) -> int:
    """Statements that this one becomes when loops of these kinds are unrolled."""
    if type(stmt) is tir.For:
        copies = (_count(stmt) or 1) if stmt.kind in kinds else 1
        return copies * _weight(stmt.body, kinds)
    parts = [getattr(stmt, f) for f in ("body", "then_case", "else_case") if getattr(stmt, f, None) is not None]
    parts += stmt.stmts if type(stmt) is tir.Seq else ()
    return sum(_weight(p, kinds) for p in parts) if parts else 1


def _indexes_local(loop: tir.For) -> bool:
    v = loop.loop_var
    return any(
        type(n) in (tir.BufferStore, tir.BufferLoad)
        and n.buffer.scope == "local"
        and any(v in free_vars(i) for i in n.indices)
        for n in walk(loop.body)
    )


@kernel_pass("unroll")
def unroll(func: tir.PrimFunc) -> tir.PrimFunc:
    """Writes out the iterations of loops marked as unrolled and of small loops over register tiles."""
    return func.replace(body=_Unroll().rewrite(func.body))
