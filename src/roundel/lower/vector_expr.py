# SPDX-License-Identifier: Apache-2.0
"""Expressions of a vectorized loop in vector form: what differs between lanes is a vector, the rest stays scalar."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from roundel.arith import Analyzer
from roundel.ir import Rewriter, Var, free_vars, on, tir
from roundel.ir.visit import substitute, walk

from .match_buffers import strides_of
from .nearby_lanes import load_nearby


class CannotWiden(Exception):
    """There is no vector form; the caller falls back to a serial loop."""


def as_vector(e: tir.Expr, lanes: int) -> tir.Expr:
    """A scalar as a vector; a vector as it is."""
    if e.dtype.lanes == 1 and lanes > 1:
        return tir.Broadcast(e, lanes)
    if e.dtype.lanes != lanes:
        raise CannotWiden
    return e


def lanes_of(loop: tir.For) -> int | None:
    """The constant extent of a loop, or None."""
    return loop.extent.value if type(loop.extent) is tir.IntImm else None


def conjuncts(condition: tir.Expr) -> list[tir.Expr]:
    """The parts of a conjunction, in order."""
    if type(condition) is tir.And:
        return conjuncts(condition.a) + conjuncts(condition.b)
    if type(condition) is tir.Call and condition.op == "likely":
        return conjuncts(condition.args[0])
    return [condition]


_SCALAR_ONLY = (
    "call_pure_extern",
    "call_llvm_pure_intrin",
    "call_llvm_intrin",
    "address_of",
    "constant_ptr",
    "arena_ptr",
    "dot_accumulate",
)


class Widen(Rewriter):
    """Rewrites expressions over ``var`` in ``[start, start + lanes)``."""

    def __init__(self, var: Var, start: tir.Expr, lanes: int) -> None:
        self.var, self.start, self.lanes = var, start, lanes
        self.values: dict[Var, tir.Expr] = {
            var: tir.Ramp(start, tir.const(1, var.dtype), lanes) if lanes > 1 else start
        }
        self.widened_buffers: dict[tir.Buffer, tir.Buffer] = {}
        self.views: dict[tir.Buffer, tir.Buffer] = {}
        self.guards: list[tir.Expr] = []  # the scalar conditions that ``mask`` is made of
        self.mask: tir.Expr | None = None
        self.analyzer = Analyzer()

    def lane_ramp(self) -> tir.Expr:
        """0, 1, ... as an index."""
        return tir.Ramp(tir.index_const(0), tir.index_const(1), self.lanes)

    def varies(self, e: tir.Expr) -> bool:
        """Whether lanes may differ in this expression."""
        return not free_vars(e).isdisjoint(self.values) or any(
            type(n) is tir.BufferLoad and n.buffer in self.widened_buffers for n in walk(e)
        )

    def split_condition(self, condition: tir.Expr) -> tuple[tir.Expr | None, tir.Expr | None]:
        """The uniform and the varying part of a conjunction (None: there is none)."""
        parts = conjuncts(condition)
        uniform, varying = [p for p in parts if not self.varies(p)], [p for p in parts if self.varies(p)]
        return (tir.logical_and(*uniform) if uniform else None), (tir.logical_and(*varying) if varying else None)

    @contextmanager
    def under(self, condition: tir.Expr) -> Iterator[None]:
        """In this context only the lanes for which ``condition`` holds are active."""
        saved = self.mask
        wide = as_vector(self.rewrite(condition), self.lanes)
        self.mask = wide if saved is None else tir.And(saved, wide)
        self.guards.append(condition)
        try:
            yield
        finally:
            self.guards.pop()
            self.mask = saved

    @on(Var)
    def _var(self, v: Var) -> tir.Expr:
        return self.values.get(v, v)

    @on(tir.Add, tir.Sub, tir.Mul)
    def _linear(self, e: tir.BinaryOp) -> tir.Expr:
        a, b = self.rewrite(e.a), self.rewrite(e.b)
        if a.dtype.lanes == b.dtype.lanes == 1:
            return e if a is e.a and b is e.b else type(e)(a, b)
        combine = _RAMPS[type(e)]
        found = combine(a, b) if e.is_index else None
        return found if found is not None else self._vectors(type(e), a, b)

    def _vectors(self, cls: type, a: tir.Expr, b: tir.Expr) -> tir.Expr:
        return cls(as_vector(a, self.lanes), as_vector(b, self.lanes))

    @on(tir.Div, tir.Mod, tir.Min, tir.Max, tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE, tir.And, tir.Or)
    def _binary(self, e: tir.BinaryOp) -> tir.Expr:
        a, b = self.rewrite(e.a), self.rewrite(e.b)
        if a.dtype.lanes == b.dtype.lanes == 1:
            return e if a is e.a and b is e.b else type(e)(a, b)
        return self._vectors(type(e), a, b)

    @on(tir.Div, tir.Mod)
    def _divide(self, e: tir.BinaryOp) -> tir.Expr:
        a, b = self.rewrite(e.a), self.rewrite(e.b)
        if a.dtype.lanes == b.dtype.lanes == 1:
            return e if a is e.a and b is e.b else type(e)(a, b)
        return self._vectors(type(e), a, self.divisor(b))

    def divisor(self, b: tir.Expr) -> tir.Expr:
        """An integer divisor that is not zero in inactive lanes."""
        if self.mask is None or not b.dtype.is_int or type(b) is tir.IntImm:
            return b
        b = as_vector(b, self.lanes)
        return tir.Select(self.mask, b, as_vector(tir.const(1, b.dtype.element), self.lanes))

    @on(tir.FloorDiv, tir.FloorMod)
    def _floor(self, e: tir.BinaryOp) -> tir.Expr:
        """The quotient of consecutive numbers is uniform where they do not cross a multiple of the divisor."""
        a, b = self.rewrite(e.a), self.rewrite(e.b)
        if a.dtype.lanes == b.dtype.lanes == 1:
            return e if a is e.a and b is e.b else type(e)(a, b)
        if (
            type(a) is tir.Ramp
            and type(b) is tir.IntImm
            and b.value > 0
            and type(a.stride) is tir.IntImm
            and a.stride.value > 0
        ):
            span = a.stride.value * (self.lanes - 1)
            inside = self.analyzer.simplify(tir.floormod(a.base, b))
            if self.analyzer.prove(inside + span < b):
                return tir.floordiv(a.base, b) if type(e) is tir.FloorDiv else tir.Ramp(inside, a.stride, self.lanes)
        return self._vectors(type(e), a, self.divisor(b))

    @on(tir.Not)
    def _not(self, e: tir.Not) -> tir.Expr:
        return tir.Not(self.rewrite(e.a))

    @on(tir.Cast)
    def _cast(self, e: tir.Cast) -> tir.Expr:
        value = self.rewrite(e.value)
        return tir.Cast(e.dtype.with_lanes(value.dtype.lanes), value) if value is not e.value else e

    @on(tir.Select)
    def _select(self, e: tir.Select) -> tir.Expr:
        if not self.varies(e):
            return self.generic(e)
        a, b = as_vector(self.rewrite(e.true_value), self.lanes), as_vector(self.rewrite(e.false_value), self.lanes)
        return tir.Select(self.rewrite(e.condition), a, b)

    @on(tir.IfThenElse)
    def _if_then_else(self, e: tir.IfThenElse) -> tir.Expr:
        if not self.varies(e):
            return self.generic(e)
        uniform, varying = self.split_condition(e.condition)
        if varying is None:
            a, b = as_vector(self.rewrite(e.true_value), self.lanes), as_vector(self.rewrite(e.false_value), self.lanes)
            return tir.IfThenElse(self.rewrite(e.condition), a, b)
        with self.under(varying):
            a = as_vector(self.rewrite(e.true_value), self.lanes)
            is_masked = type(a) is tir.BufferLoad and a.predicate is self.mask
        with self.under(tir.logical_not(varying)) if uniform is None else nullcontext():
            b = as_vector(self.rewrite(e.false_value), self.lanes)
        either = a if is_masked and _is_zero(e.false_value) else tir.Select(as_vector(self.rewrite(varying), self.lanes), a, b)
        return either if uniform is None else tir.IfThenElse(self.rewrite(uniform), either, b)

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> tir.Expr:
        if load.predicate is not None or load.dtype.lanes > 1:
            if self.varies(load):
                raise CannotWiden
            return load
        buffer, indices = self.element(load.buffer, load.indices)
        if all(i.dtype.lanes == 1 for i in indices):
            return self._uniform_load(tir.BufferLoad(buffer, indices))
        buffer, indices = self.place(buffer, indices)
        nearby = load_nearby(buffer, indices, self.mask, self.analyzer)
        return tir.BufferLoad(buffer, indices, self.mask) if nearby is None else nearby

    def element(self, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> tuple[tir.Buffer, tuple[tir.Expr, ...]]:
        """What a scalar access addresses in all lanes; memory private to a lane has a last dimension over the lanes."""
        wide = tuple(map(self.rewrite, indices))
        return (
            (self.widened_buffers[buffer], (*wide, self.lane_ramp()))
            if buffer in self.widened_buffers
            else (buffer, wide)
        )

    def _uniform_load(self, load: tir.BufferLoad) -> tir.Expr:
        """A scalar load that is broadcast; under a mask it must not happen when no lane is active."""
        if self.mask is None or self._any_lane() or self._in_bounds(load):
            return load
        first = tir.logical_and(*(substitute(g, {self.var: self.start}) for g in self.guards))
        if not all(_falling(g, self.var) for g in self.guards) or any(
            free_vars(first) & (self.values.keys() - {self.var})
        ):
            raise CannotWiden
        return tir.IfThenElse(first, load, tir.const(0, load.dtype))

    def _any_lane(self) -> bool:
        return all(
            self.analyzer.prove(substitute(g, {self.var: self.start})) for g in self.guards if g.is_index
        ) and all(g.is_index for g in self.guards)

    def _in_bounds(self, load: tir.BufferLoad) -> bool:
        return all(
            i.is_index and self.analyzer.prove(tir.logical_and(i >= 0, i < n))
            for i, n in zip(load.indices, load.buffer.shape, strict=True)
        )

    def place(self, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> tuple[tir.Buffer, tuple[tir.Expr, ...]]:
        """An access with one vector index: if there are more, of a one-dimensional view of the same memory."""
        if sum(i.dtype.lanes > 1 for i in indices) <= 1:
            return buffer, indices
        linear: tir.Expr = tir.index_const(0)
        for i, s in zip(indices, strides_of(buffer), strict=True):
            product = _product(i, s)
            step = i * s if product is None else product  # the operators broadcast
            total = _sum(linear, step)
            linear = linear + step if total is None else total
        return self.view(buffer), (linear,)

    def view(self, buffer: tir.Buffer) -> tir.Buffer:
        """A one-dimensional buffer over the same memory."""
        if buffer not in self.views:
            size = (
                tir.product_of(buffer.shape)
                if not buffer.strides
                else tir.sum_of([(n - 1) * s for n, s in zip(buffer.shape, buffer.strides, strict=True)]) + 1
            )
            self.views[buffer] = buffer.replace(name=buffer.name + "_flat", shape=(size,), strides=())
        return self.views[buffer]

    @on(tir.Call)
    def _call(self, call: tir.Call) -> tir.Expr:
        args = tuple(map(self.rewrite, call.args))
        if all(a.dtype.lanes == 1 for a in args):
            return call.replace(args=args) if args != call.args else call
        if (
            not isinstance(call.op, str)
            or tir.effect(call) is not tir.Effect.PURE
            or call.op in _SCALAR_ONLY
            or call.op.startswith("reduce_")
        ):
            raise CannotWiden
        wide = tuple(as_vector(a, self.lanes) for a in args)
        return tir.Call(call.op, wide, call.dtype.with_lanes(self.lanes))

    @on(tir.Ramp, tir.Broadcast, tir.Shuffle)
    def _vector(self, e: tir.Expr) -> tir.Expr:
        if self.varies(e):
            raise CannotWiden
        return e


def _is_zero(e: tir.Expr) -> bool:
    """Whether a value is what lanes of a masked load are that are not read."""
    return type(e) in (tir.IntImm, tir.FloatImm) and e.value == 0 and math.copysign(1, e.value) > 0


def _falling(condition: tir.Expr, var: Var) -> bool:
    """Whether a condition that holds in some lane holds in the first: ``linear in var < bound``."""
    parts = conjuncts(condition)
    return all(type(p) in (tir.LT, tir.LE) and var not in free_vars(p.b) and _rising(p.a, var) for p in parts)


def _rising(e: tir.Expr, var: Var) -> bool:
    if var not in free_vars(e) or e is var:
        return True
    if type(e) is tir.Add:
        return _rising(e.a, var) and _rising(e.b, var)
    if type(e) is tir.Sub:
        return _rising(e.a, var) and var not in free_vars(e.b)
    if type(e) is tir.Mul:
        return _rising(e.a, var) and type(e.b) is tir.IntImm and e.b.value >= 0
    return False


def _sum(a: tir.Expr, b: tir.Expr) -> tir.Expr | None:
    if a.dtype.lanes == b.dtype.lanes == 1:
        return a + b
    if type(a) is tir.Ramp and type(b) is tir.Ramp:
        return tir.Ramp(a.base + b.base, a.stride + b.stride, a.lanes)
    if type(a) is tir.Ramp and b.dtype.lanes == 1:
        return tir.Ramp(a.base + b, a.stride, a.lanes)
    if type(b) is tir.Ramp and a.dtype.lanes == 1:
        return tir.Ramp(a + b.base, b.stride, b.lanes)
    return None


def _difference(a: tir.Expr, b: tir.Expr) -> tir.Expr | None:
    if type(a) is tir.Ramp and type(b) is tir.Ramp:
        return tir.Ramp(a.base - b.base, a.stride - b.stride, a.lanes)
    if type(a) is tir.Ramp and b.dtype.lanes == 1:
        return tir.Ramp(a.base - b, a.stride, a.lanes)
    if type(b) is tir.Ramp and a.dtype.lanes == 1:
        return tir.Ramp(a - b.base, tir.const(0, b.stride.dtype) - b.stride, b.lanes)
    return None


def _product(a: tir.Expr, b: tir.Expr) -> tir.Expr | None:
    if type(a) is tir.Ramp and b.dtype.lanes == 1:
        return tir.Ramp(a.base * b, a.stride * b, a.lanes)
    return tir.Ramp(b.base * a, b.stride * a, b.lanes) if type(b) is tir.Ramp and a.dtype.lanes == 1 else None


_RAMPS = {tir.Add: _sum, tir.Sub: _difference, tir.Mul: _product}
