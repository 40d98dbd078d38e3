# SPDX-License-Identifier: Apache-2.0
"""Indices become int64: loop variables, block variables, shape variables and scalar parameters that a script declared as int32.

Index arithmetic is exact, so its width does not show. Where an index is used as data (stored, cast, passed to a call)
it is cast back to the type that it had.
"""

from __future__ import annotations

from roundel.ir import Rewriter, Var, free_vars, on, tir
from roundel.ir.dtype import INT64
from roundel.ir.visit import walk

from .kernel_pass import kernel_pass

_REBUILD = {
    tir.Add: tir.add,
    tir.Sub: tir.sub,
    tir.Mul: tir.mul,
    tir.FloorDiv: tir.floordiv,
    tir.FloorMod: tir.floormod,
    tir.Div: tir.truncdiv,
    tir.Mod: tir.truncmod,
    tir.Min: tir.min_,
    tir.Max: tir.max_,
    tir.EQ: tir.eq,
    tir.NE: tir.ne,
    tir.LT: tir.lt,
    tir.LE: tir.le,
    tir.GT: tir.gt,
    tir.GE: tir.ge,
}


class _Widen(Rewriter):
    def __init__(self, params: set[Var]) -> None:
        self.params = params
        self.vars: dict[Var, Var] = {}
        self.buffers: dict[tir.Buffer, tir.Buffer] = {}

    def wide(self, v: Var) -> Var:
        """The int64 variable that takes the place of a narrow one."""
        if not v.dtype.is_int or v.dtype is INT64 or v in self.params:
            return v
        return self.vars.setdefault(v, Var(v.name, INT64, v.size))

    def index(self, e: tir.Expr) -> tir.Expr:
        """An expression in the place of an index."""
        new = self.rewrite(e)
        return tir.cast(new, INT64) if new.is_index and new.dtype.is_int else new

    def data(self, e: tir.Expr) -> tir.Expr:
        """An expression in the place of data: of the type that it had."""
        new = e if e in self.params else self.rewrite(e)
        return new if new.dtype is e.dtype else tir.cast(new, e.dtype)

    @on(Var)
    def _var(self, v: Var) -> tir.Expr:
        if v in self.params and v.dtype.is_int:
            return tir.cast(v, INT64)
        return self.vars.get(v, v)

    @on(*_REBUILD)
    def _binary(self, e: tir.BinaryOp) -> tir.Expr:
        part = self.rewrite if e.is_index else self.data
        a, b = part(e.a), part(e.b)
        return e if a is e.a and b is e.b else _REBUILD[type(e)](a, b)

    @on(tir.Select, tir.IfThenElse)
    def _choice(self, e: tir.Select | tir.IfThenElse) -> tir.Expr:
        return e.replace(
            condition=self.rewrite(e.condition),
            true_value=self.data(e.true_value),
            false_value=self.data(e.false_value),
        )

    @on(tir.Cast)
    def _cast(self, e: tir.Cast) -> tir.Expr:
        return tir.cast(self.rewrite(e.value), e.dtype)

    @on(tir.Call, tir.Broadcast, tir.Shuffle, tir.Not)
    def _operands(self, e: tir.Expr) -> tir.Expr:
        changes = {}
        for name in e._children:
            old = getattr(e, name)
            changes[name] = tuple(map(self.data, old)) if isinstance(old, tuple) else self.data(old)
        return e if all(_same(changes[n], getattr(e, n)) for n in changes) else e.replace(**changes)

    @on(tir.Ramp)
    def _ramp(self, e: tir.Ramp) -> tir.Expr:
        return tir.Ramp(self.index(e.base), self.index(e.stride), e.lanes)

    @on(tir.BufferLoad)
    def _load(self, e: tir.BufferLoad) -> tir.Expr:
        predicate = None if e.predicate is None else self.rewrite(e.predicate)
        return tir.BufferLoad(self.buffer(e.buffer), tuple(map(self.index, e.indices)), predicate)

    @on(tir.BufferStore)
    def _store(self, s: tir.BufferStore) -> tir.Stmt:
        predicate = None if s.predicate is None else self.rewrite(s.predicate)
        indices = tuple(map(self.index, s.indices))
        return s.replace(buffer=self.buffer(s.buffer), value=self.data(s.value), indices=indices, predicate=predicate)

    @on(tir.Range)
    def _range(self, r: tir.Range) -> tir.Range:
        return tir.Range(self.index(r.min), self.index(r.extent))

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        return loop.replace(
            loop_var=self.wide(loop.loop_var),
            min=self.index(loop.min),
            extent=self.index(loop.extent),
            body=self.rewrite(loop.body),
        )

    @on(tir.IterVar)
    def _iter_var(self, iv: tir.IterVar) -> tir.IterVar:
        return iv.replace(var=self.wide(iv.var), dom=self.rewrite(iv.dom))

    @on(tir.BlockRealize)
    def _realize(self, realize: tir.BlockRealize) -> tir.Stmt:
        values = tuple(map(self.index, realize.iter_values))
        return realize.replace(
            iter_values=values, predicate=self.rewrite(realize.predicate), block=self.rewrite(realize.block)
        )

    @on(tir.Block)
    def _block(self, block: tir.Block) -> tir.Block:
        for match in block.match_buffers:
            self.buffer(match.buffer)  # before the body: it declares variables that the body may use as data
        return self.generic(block)

    @on(tir.Let)
    def _let(self, let: tir.Let) -> tir.Stmt:
        return let.replace(value=self.data(let.value), body=self.rewrite(let.body))

    def buffer(self, buffer: tir.Buffer) -> tir.Buffer:
        if buffer not in self.buffers:
            for e in (*buffer.shape, *buffer.strides, buffer.elem_offset):
                for v in free_vars(e) if e is not None else ():
                    if v.size or any(v is n for n in buffer.shape):
                        self.wide(v)
            self.buffers[buffer] = buffer.replace(
                shape=_all(self.index, buffer.shape),
                strides=_all(self.index, buffer.strides),
                elem_offset=None if buffer.elem_offset is None else self.index(buffer.elem_offset),
            )
        return self.buffers[buffer]


def _all(fn: object, items: tuple) -> tuple:
    new = tuple(map(fn, items))
    return items if all(a is b for a, b in zip(new, items, strict=True)) else new


def _same(a: object, b: object) -> bool:
    return all(x is y for x, y in zip(a, b, strict=True)) if isinstance(a, tuple) else a is b


def _has_narrow(func: tir.PrimFunc) -> bool:
    for n in walk(func.body):
        if type(n) is Var and n.dtype.is_int and n.dtype is not INT64:
            return True
    return any(v.dtype is not INT64 for b in func.buffer_params for e in b.shape for v in free_vars(e))


@kernel_pass("widen_indices")
def widen_indices(func: tir.PrimFunc) -> tir.PrimFunc:
    """Narrow index variables become int64."""
    if not _has_narrow(func):
        return func
    widen = _Widen(set(func.params))
    pairs = tuple((v, widen.buffer(b)) for v, b in func.buffer_map)
    return func.replace(buffer_map=pairs, body=widen.rewrite(func.body))
