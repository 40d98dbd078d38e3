# SPDX-License-Identifier: Apache-2.0
"""Evaluates expressions of tensor programs for all lanes at once.

Integer expressions of the index sort stay exact (``lanes``); everything else is typed (``numeric``). A mask says which
lanes are active: what they compute must be defined, what the others would compute is neither evaluated strictly nor
stored.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from ..ir import tir
from ..ir.dtype import BOOL, DType
from ..ir.errors import InterpretError
from ..ir.visit import on
from . import lanes
from .lanes import Lin, dense
from .memory import Pointer, View, address, load, row_major
from .numeric import DIVISIONS, Machine

_EXACT = {
    tir.Add,
    tir.Sub,
    tir.Mul,
    tir.Div,
    tir.Mod,
    tir.FloorDiv,
    tir.FloorMod,
    tir.Min,
    tir.Max,
    tir.Select,
    tir.IfThenElse,
    tir.Ramp,
    tir.Broadcast,
}


def _wide(dtype: DType) -> bool:
    return dtype.kind == "int" and dtype.element.bits >= 32


def is_exact(e: tir.Expr) -> bool:
    """Whether ``e`` is evaluated as an exact integer: signed, at least 32 bits, without loads or calls."""
    kind = type(e)
    if kind is tir.IntImm or kind is tir.Var:
        return _wide(e.dtype)
    if e._facts is None:
        e._facts = {}
    known = e._facts.get("exact")
    if known is None:
        parts = (
            (e.true_value, e.false_value)
            if kind in (tir.Select, tir.IfThenElse)
            else [getattr(e, f) for f in e._children]
        )
        known = e._facts["exact"] = (
            _wide(e.dtype)
            and (kind in _EXACT or (kind is tir.Cast and _wide(e.value.dtype)))
            and all(is_exact(p) for p in parts)
        )
    return known


def combine(mask: Any, condition: Any) -> Any:
    """``mask`` and ``condition``; a mask is None (all lanes) or a bool array."""
    if isinstance(condition, bool | np.bool_):
        return mask if condition else np.zeros((), bool)
    return condition if mask is None else mask & condition


def active(mask: Any) -> bool:
    """Whether any lane is active."""
    return mask is None or bool(np.any(mask))


class _Handlers:
    _eval: ClassVar[dict[type, Callable]] = {}

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        own = {t: fn for fn in cls.__dict__.values() if hasattr(fn, "handles") for t in fn.handles}
        cls._eval = {**cls._eval, **own}


class Evaluator(_Handlers):
    """Expressions in one activation of a function. ``env`` holds variables, ``views`` buffers, ``mask`` the active
    lanes.
    """

    def __init__(self, machine: Machine, name: str) -> None:
        self.machine, self.name = machine, name
        self.env: dict[tir.Var, Any] = {}
        self.views: dict[tir.Buffer, View] = {}
        self.axes: list[int] = []  # extents of the lane axes, outermost first
        self.mask: Any = None
        self.constants: dict[tir.Expr, Any] = {}

    # --- the three ways to ask for a value

    def eval(self, e: tir.Expr) -> Any:
        """As it comes: an index value, a typed value, a condition, a Pointer or a string."""
        handler = self._eval.get(type(e))
        if handler is None:
            raise InterpretError(f"the interpreter does not know the expression {type(e).__name__}", where=self.name)
        return handler(self, e)

    def index(self, e: tir.Expr) -> Any:
        """An integer expression as an exact index value."""
        v = self.eval(e)
        if is_exact(e):
            return v
        if isinstance(v, np.ndarray) and v.ndim:
            return v.astype(np.int64)
        return int(v)

    def value(self, e: tir.Expr) -> Any:
        """As a typed scalar or array."""
        v = self.eval(e)
        return self.machine.from_index(dense(v), e.dtype) if is_exact(e) else v

    def condition(self, e: tir.Expr) -> Any:
        """A bool, or a bool array where lanes differ."""
        v = self.eval(e)
        if not e.dtype.is_bool:
            return lanes.invert(lanes.equal(v, 0)) if is_exact(e) else np.not_equal(v, 0)
        return bool(v) if np.ndim(v) == 0 else v

    @contextmanager
    def masked(self, condition: Any) -> Any:
        """Runs with fewer lanes active; yields whether any is."""
        saved = self.mask
        self.mask = combine(saved, condition)
        try:
            yield active(self.mask)
        finally:
            self.mask = saved

    # --- leaves

    @on(tir.IntImm)
    def _int(self, e: tir.IntImm) -> Any:
        if _wide(e.dtype):
            return e.value
        return bool(e.value) if e.dtype is BOOL else self.machine.const(e.value, e.dtype)

    @on(tir.FloatImm)
    def _float(self, e: tir.FloatImm) -> Any:
        hit = self.constants.get(e)
        if hit is None:
            hit = self.constants[e] = self.machine.const(e.value, e.dtype)
        return hit

    @on(tir.StringImm)
    def _string(self, e: tir.StringImm) -> str:
        return e.value

    @on(tir.Var)
    def _var(self, e: tir.Var) -> Any:
        try:
            return self.env[e]
        except KeyError:
            raise InterpretError(
                f"variable {e.name} has no value",
                where=self.name,
                hint="pass it as an argument, or let a buffer's shape bind it",
            ) from None

    # --- arithmetic

    @on(tir.Add, tir.Sub, tir.Mul, tir.Min, tir.Max, tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod)
    def _binary(self, e: tir.BinaryOp) -> Any:
        kind = type(e).__name__
        if is_exact(e):
            a, b = self.eval(e.a), self.eval(e.b)
            return lanes.BINARY[kind](a, self._divisor(b, e) if kind in DIVISIONS else b)
        a, b = self.value(e.a), self.value(e.b)
        if kind in DIVISIONS and not e.dtype.is_float:
            b = self._divisor(b, e)
        return self.machine.binary(kind, a, b, e.dtype.element)

    def _divisor(self, b: Any, e: tir.BinaryOp) -> Any:
        """``b`` with zeros of inactive lanes made 1; a zero in an active lane is an error."""
        zero = lanes.equal(b, 0) if type(b) is Lin or type(b) is int else np.equal(b, 0)
        if not np.any(zero):
            return b
        if np.any(zero if self.mask is None else zero & self.mask):
            raise InterpretError(f"integer division by zero in {e.script()}", where=self.name)
        return np.where(zero, 1, dense(b)).astype(np.asarray(dense(b)).dtype)

    @on(tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE)
    def _compare(self, e: tir.Compare) -> Any:
        kind = type(e).__name__
        if is_exact(e.a) and is_exact(e.b):
            return lanes.COMPARE[kind](self.eval(e.a), self.eval(e.b))
        return self.machine.compare(kind, self.value(e.a), self.value(e.b))

    @on(tir.And)
    def _and(self, e: tir.And) -> Any:
        a = self.condition(e.a)
        if a is False:
            return False
        with self.masked(a) as some:
            b = self.condition(e.b) if some else False
        return b if a is True else a & b

    @on(tir.Or)
    def _or(self, e: tir.Or) -> Any:
        a = self.condition(e.a)
        if a is True:
            return True
        with self.masked(lanes.invert(a)) as some:
            b = self.condition(e.b) if some else False
        return b if a is False else a | b

    @on(tir.Not)
    def _not(self, e: tir.Not) -> Any:
        return lanes.invert(self.condition(e.a))

    @on(tir.Select)
    def _select(self, e: tir.Select) -> Any:
        c, t, f = self.condition(e.condition), self._choice(e.true_value, e), self._choice(e.false_value, e)
        return (t if c else f) if isinstance(c, bool) else np.where(c, dense(t), dense(f))

    @on(tir.IfThenElse)
    def _if_then_else(self, e: tir.IfThenElse) -> Any:
        c = self.condition(e.condition)
        if isinstance(c, bool):
            return self._choice(e.true_value if c else e.false_value, e)
        with self.masked(c) as some:
            t = self._choice(e.true_value, e) if some else None
        with self.masked(~c) as some:
            f = self._choice(e.false_value, e) if some else None
        if t is None or f is None:
            return f if t is None and f is not None else t if t is not None else self._zero(e)
        return np.where(c, dense(t), dense(f))

    def _choice(self, part: tir.Expr, whole: tir.Expr) -> Any:
        return self.eval(part) if is_exact(whole) else self.value(part)

    def _zero(self, e: tir.Expr) -> Any:
        return 0 if is_exact(e) else self.machine.const(0, e.dtype.element)

    @on(tir.Cast)
    def _cast(self, e: tir.Cast) -> Any:
        if is_exact(e):
            return self.eval(e.value)
        if is_exact(e.value) and e.dtype.is_int:
            return self.machine.from_index(dense(self.eval(e.value)), e.dtype.element)
        source = e.value.dtype.element
        if source.is_handle or e.dtype.is_handle:
            return self.eval(e.value)
        return self.machine.cast(self.value(e.value), source, e.dtype.element)

    # --- vectors: axis 0, the last dimension

    @on(tir.Ramp)
    def _ramp(self, e: tir.Ramp) -> Any:
        if not e.dtype.is_int:
            steps = self.machine.cast(np.arange(e.lanes), DType("int64"), e.dtype.element)
            return self.value(e.base) + self.value(e.stride) * steps
        out = lanes.add(self.index(e.base), lanes.mul(self.index(e.stride), lanes.lane(0, e.lanes)))
        return out if is_exact(e) else self.machine.from_index(dense(out), e.dtype.element)

    @on(tir.Broadcast)
    def _broadcast(self, e: tir.Broadcast) -> Any:
        return self._choice(e.value, e)

    def vector(self, e: tir.Expr) -> np.ndarray:
        """A vector value with all its lanes in the last dimension."""
        v = np.asarray(self.value(e) if not e.dtype.is_bool else self.condition(e))
        v = v.reshape(1) if v.ndim == 0 else v
        return np.broadcast_to(v, (*v.shape[:-1], e.dtype.lanes))

    @on(tir.Shuffle)
    def _shuffle(self, e: tir.Shuffle) -> Any:
        parts = [self.vector(v) for v in e.vectors]
        lead = np.broadcast_shapes(*(p.shape[:-1] for p in parts))
        whole = np.concatenate([np.broadcast_to(p, lead + p.shape[-1:]) for p in parts], axis=-1)
        out = whole[..., list(e.indices)]
        return out.reshape(())[()] if out.size == 1 else out

    # --- memory

    @on(tir.BufferLoad)
    def _load(self, e: tir.BufferLoad) -> Any:
        mask = self.mask if e.predicate is None else combine(self.mask, self.condition(e.predicate))
        out = load(self.view(e.buffer), [self.index(i) for i in e.indices], mask)
        return (
            np.where(self.condition(e.predicate), out, self.machine.const(0, e.dtype.element))
            if e.predicate is not None
            else out
        )

    def view(self, buffer: tir.Buffer) -> View:
        """The view a buffer stands for; one not declared yet is resolved through its data pointer."""
        found = self.views.get(buffer)
        return found if found is not None else self.declare(buffer, self.eval(buffer.data))

    def declare(self, buffer: tir.Buffer, pointer: Pointer) -> View:
        """Makes ``buffer`` a view at ``pointer`` plus its element offset."""
        shape = tuple(self.index(s) for s in buffer.shape)
        strides = tuple(self.index(s) for s in buffer.strides) if buffer.strides else row_major(shape)
        offset = pointer.offset
        if buffer.elem_offset is not None:
            offset = lanes.add(offset, self.byte_offset(buffer.dtype, self.index(buffer.elem_offset)))
        return self.bind_view(buffer, pointer.storage, offset, shape, strides)

    def bind_view(self, buffer: tir.Buffer, storage: np.ndarray, offset: Any, shape: tuple, strides: tuple) -> View:
        """Registers the view of a buffer; ``offset`` in bytes of storage."""
        dtype, machine = buffer.dtype, self.machine
        lanes_ = dtype.lanes
        scaled = strides if lanes_ == 1 else tuple(lanes.mul(s, lanes_) for s in strides)
        view = View(buffer.name, dtype, storage, offset, shape, scaled, machine.numpy(dtype), machine.itemsize(dtype))
        self.views[buffer] = view
        return view

    def byte_offset(self, dtype: DType, elements: Any) -> Any:
        """Bytes of storage that ``elements`` elements take."""
        bits = dtype.storage_bits * dtype.lanes * self.machine.scale
        return lanes.mul(elements, bits // 8) if bits % 8 == 0 else lanes.floordiv(lanes.mul(elements, bits), 8)

    def address_of(self, e: tir.BufferLoad) -> Pointer:
        """Pointer to the element that a load names."""
        view = self.view(e.buffer)
        at = address(view, [self.index(i) for i in e.indices])
        shape = tuple(lanes.bounds(s)[1] for s in view.shape)
        return Pointer(view.storage, lanes.floordiv(lanes.mul(at, view.dtype.bits), 8) if view.packed else at, shape)
