# SPDX-License-Identifier: Apache-2.0
"""Executes statements of tensor programs: loops as lanes where that is safe, blocks, allocation, control flow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir import tir
from ..ir.errors import InterpretError
from ..ir.visit import on
from . import intrinsics, lanes
from .expr import Evaluator, active, combine, is_exact
from .inits import inits_of
from .lanes import bounds
from .memory import Pointer, View, affine_place, allocate, fits, row_major, store, trim

if TYPE_CHECKING:
    from .dependence import Plan
    from .runtime import Runtime

LANES = 1 << 21  # most elements that run at once; longer loops run in pieces
AT_ONCE = (tir.ForKind.PARALLEL, tir.ForKind.VECTORIZED, tir.ForKind.THREAD_BINDING)


class Executor(Evaluator):
    """One activation of a tensor program. ``plan`` says which loops may run as lanes."""

    def __init__(self, runtime: Runtime, name: str, plan: Plan | None = None) -> None:
        super().__init__(runtime.machine, name)
        self.runtime, self.plan = runtime, plan
        self.outputs: dict[int, View] = {}
        self.slots: dict[int, Pointer] = {}  # memory that heap_keep has put there

    def run(self, s: tir.Stmt) -> None:
        """Executes a statement in the active lanes."""
        handler = _STATEMENTS.get(type(s))
        if handler is None:
            raise InterpretError(f"the interpreter does not know the statement {type(s).__name__}", where=self.name)
        handler(self, s)

    @on(tir.Call)
    def _call(self, e: tir.Call) -> Any:
        return intrinsics.evaluate(self, e)

    # --- memory

    def allocate(self, buffer: tir.Buffer) -> None:
        """Fresh memory for a buffer, private to each lane."""
        shape = tuple(bounds(self.index(n))[1] for n in buffer.shape)
        strides = tuple(bounds(self.index(n))[1] for n in buffer.strides) if buffer.strides else row_major(shape)
        count = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides))
        bits = buffer.dtype.storage_bits * buffer.dtype.lanes * self.machine.scale
        pointer = allocate((count * bits + 7) // 8, self.axes)
        pointer.shape = shape
        self.env[buffer.data] = pointer
        if buffer.elem_offset is not None and type(buffer.elem_offset) is tir.Var:
            self.env.setdefault(buffer.elem_offset, 0)
        self.bind_view(buffer, pointer.storage, pointer.offset, shape, strides)

    def allocate_output(self, index: int, shape: tuple[int, ...]) -> Pointer:
        """Memory for output ``index`` of a host function, whose shape is known only now."""
        raise InterpretError(f"alloc_output({index}) outside a host function", where=self.name)

    def let(self, var: tir.Var, value: tir.Expr) -> Any:
        """The value that a variable is bound to: exact integers stay exact, views of memory are copied."""
        if is_exact(var):
            return self.index(value)
        v = (
            self.eval(value)
            if var.dtype.is_handle
            else self.condition(value)
            if var.dtype.is_bool
            else self.value(value)
        )
        return v.copy() if isinstance(v, np.ndarray) else v

    # --- loops

    def loop(self, s: tir.For) -> None:
        """A loop, as lanes or one iteration after another."""
        start, extent = self.index(s.min), self.index(s.extent)
        step = 1 if s.step is None else self.index(s.step)
        count = extent if step == 1 else lanes.floordiv(lanes.sub(lanes.add(extent, step), 1), step)
        n = bounds(count)[1]
        if n <= 0 or type(count) is not int:
            self._reduce_nothing(s, start, count)
        if n <= 0:
            return
        if self.runtime.order is not None and s.kind in AT_ONCE and not self.plan.reduces(s):  # type: ignore[union-attr]
            self._serial(s, start, count, step, self.runtime.order.sample(range(n), n))
            return
        piece = self._piece(s, n) if n > 1 and type(step) is int else 1
        if piece <= 1:
            self._serial(s, start, count, step, range(n))
            return
        cut = self.plan.factors(s, n)  # type: ignore[union-attr]
        inner = math.prod(cut[1:])
        piece = max(piece // inner, 1) * inner
        for first in range(0, n, piece):
            size = min(piece, n - first)
            left = None if type(count) is int else lanes.sub(count, first)
            self.lanes(s.loop_var, lanes.add(start, first * step), [size // inner, *cut[1:]], step, s.body, left)

    def _reduce_nothing(self, s: tir.For, start: Any, count: Any) -> None:
        """A reduction over no iterations gives its init: in the lanes where the loop has none."""
        inits = inits_of(s)
        if inits is None:
            return
        saved = self.mask
        self.mask = combine(saved, lanes.less(count, 1))
        if active(self.mask):
            self.env[s.loop_var] = start
            self.run(inits)
        self.mask = saved

    def _piece(self, s: tir.For, n: int) -> int:
        """How many iterations may run at once: 1 when they depend on each other."""
        if self.plan is None or not self.plan.independent(s):
            return 1
        if s.kind is tir.ForKind.THREAD_BINDING:
            return n
        room = LANES // max(1, math.prod(self.axes) * self.plan.width(s))
        return min(n, max(room, 1)) if n > room else n

    def lanes(self, var: tir.Var, start: Any, extents: list[int], step: int, body: tir.Stmt, count: Any) -> None:
        """Runs all iterations at once, along one axis for each of ``extents``; ``count`` is how many of them each outer
        lane has (None: all).
        """
        saved = self.mask
        k: Any = 0
        for n in extents:
            self.axes.append(n)
            k = lanes.add(lanes.mul(k, n), lanes.lane(len(self.axes), n))
        self.env[var] = lanes.add(start, lanes.mul(k, step))
        if count is not None:
            self.mask = combine(saved, lanes.less(k, count))
        if active(self.mask):
            self.run(body)
        del self.axes[len(self.axes) - len(extents) :]
        self.mask = saved

    def _serial(self, s: tir.For, start: Any, count: Any, step: Any, iterations: Iterable[int]) -> None:
        saved = self.mask
        for k in iterations:
            self.env[s.loop_var] = lanes.add(start, lanes.mul(step, k))
            if type(count) is not int:
                self.mask = combine(saved, lanes.less(k, count))
                if not active(self.mask):
                    continue
            self.run(s.body)
        self.mask = saved

    def while_loop(self, s: tir.While) -> None:
        """Runs until the condition holds in no lane."""
        saved = self.mask
        while True:
            condition = self.condition(s.condition)
            self.mask = combine(self.mask, condition)
            if condition is False or not active(self.mask):
                break
            self.run(s.body)
        self.mask = saved

    # --- blocks

    def realize(self, s: tir.BlockRealize) -> None:
        """A block: binds its iteration variables, its views and its memory, runs init at the start of the reduction."""
        saved = self.mask
        where = self.condition(s.predicate)
        values = [self.let(iv.var, v) for iv, v in zip(s.block.iter_vars, s.iter_values, strict=True)]
        if where is not True:
            self.mask = combine(saved, where)
            if not active(self.mask):
                self.mask = saved
                return
        for iv, v in zip(s.block.iter_vars, values):
            self.env[iv.var] = v
        self.block(s.block)
        self.mask = saved

    def block(self, b: tir.Block) -> None:
        """The inside of a block whose iteration variables are bound."""
        for buffer in b.alloc_buffers:
            self.allocate(buffer)
        for match in b.match_buffers:
            self._match(match)
        if b.init is not None:
            first: Any = True
            for iv in b.iter_vars:
                if iv.kind is tir.IterKind.REDUCE:
                    at_start = lanes.equal(self.env[iv.var], self.index(iv.dom.min))
                    first = at_start if first is True else first if at_start is True else first & at_start
            with self.masked(first) as some:
                if some:
                    self.run(b.init)
        self.run(b.body)

    def _match(self, m: tir.MatchBufferRegion) -> None:
        """A view of a region; variables in its shape, strides and offset are bound by the region."""
        source, target = self.view(m.source.buffer), m.buffer
        offset = source.offset
        for r, stride in zip(m.source.region, source.strides, strict=True):
            offset = lanes.add(offset, self.byte_offset(source.dtype.element, lanes.mul(self.index(r.min), stride)))
        drop = len(m.source.region) - len(target.shape)
        shape = tuple(self.index(r.extent) for r in m.source.region[drop:])
        strides = source.strides[drop:]
        if source.dtype.lanes > 1:
            strides = tuple(lanes.floordiv(s, source.dtype.lanes) for s in strides)
        for wanted, got in [*zip(target.shape, shape), *zip(target.strides, strides)]:
            if type(wanted) is tir.Var and wanted not in self.env:
                self.env[wanted] = got
        self._bind_pointer(target, source, offset)
        self.bind_view(target, source.storage, offset, shape, tuple(strides))

    def _bind_pointer(self, target: tir.Buffer, source: View, offset: Any) -> None:
        """``data`` and ``elem_offset`` of a matched buffer: the source's memory, and where in it the region starts."""
        if type(target.elem_offset) is tir.Var:
            self.env[target.data] = Pointer(source.storage, source.offset)
            moved = lanes.sub(offset, source.offset)
            self.env[target.elem_offset] = lanes.floordiv(
                lanes.mul(moved, 8), target.dtype.bits * target.dtype.lanes * self.machine.scale
            )
        else:
            self.env[target.data] = Pointer(source.storage, offset)


def _store(ex: Executor, s: tir.BufferStore) -> None:
    if type(s.value) is tir.Add and _accumulate(ex, s, s.value):
        return
    value = ex.condition(s.value) if s.value.dtype.is_bool else ex.value(s.value)
    if s.value.dtype.element is not s.buffer.dtype.element:
        value = ex.machine.cast(value, s.value.dtype.element, s.buffer.dtype.element)
    mask = ex.mask if s.predicate is None else combine(ex.mask, ex.condition(s.predicate))
    indices = [ex.index(i) for i in s.indices]
    store(ex.view(s.buffer), indices, value, mask)


def _accumulate(ex: Executor, s: tir.BufferStore, sum_: tir.Add) -> bool:
    """``A[i] = A[i] + x`` in place, where that is one affine update: what reductions spend their time on."""
    old = sum_.a
    if (
        type(old) is not tir.BufferLoad
        or old.buffer is not s.buffer
        or old.indices != s.indices
        or s.predicate is not None
    ):
        return False
    if ex.mask is not None or ex.machine.scale != 1 or s.buffer.dtype.element.bits < 16:
        return False
    place = affine_place(ex.view(s.buffer), [ex.index(i) for i in s.indices])
    if place is None or not place.ndim:
        return False
    x = ex.value(sum_.b)
    if not fits(place, x):
        return False
    np.add(place, trim(x, place.ndim), out=place)
    return True


def _if(ex: Executor, s: tir.If) -> None:
    condition = ex.condition(s.condition)
    with ex.masked(condition) as some:
        if some:
            ex.run(s.then_case)
    if s.else_case is not None:
        with ex.masked(lanes.invert(condition)) as some:
            if some:
                ex.run(s.else_case)


def _seq(ex: Executor, s: tir.Seq) -> None:
    for part in s.stmts:
        ex.run(part)


def _let(ex: Executor, s: tir.Let) -> None:
    ex.env[s.var] = ex.let(s.var, s.value)
    ex.run(s.body)


def _assert(ex: Executor, s: tir.Assert) -> None:
    holds = ex.condition(s.condition)
    failing = combine(ex.mask, lanes.invert(holds))
    if active(failing):
        raise InterpretError(
            _message(ex, s, failing), where=ex.name, why=f"assertion {s.condition.script()} does not hold"
        )


def _message(ex: Executor, s: tir.Assert, failing: Any) -> str:
    """The message, ``{0}``, ``{1}``, ... in it replaced by the statement's values, or by the two sides of the comparison, as they are in
    the first lane where it fails."""
    shown = s.values or ((s.condition.a, s.condition.b) if isinstance(s.condition, tir.Compare) else ())
    if not shown or "{0}" not in s.message:
        return s.message
    where, *values = np.broadcast_arrays(True if failing is None else failing, *(lanes.dense(ex.eval(e)) for e in shown))
    first = tuple(np.argwhere(where)[0])
    return s.message.format(*(v[first] for v in values))


def _evaluate(ex: Executor, s: tir.Evaluate) -> None:
    ex.eval(s.value)


def _allocate(ex: Executor, s: tir.Allocate) -> None:
    ex.allocate(s.buffer)
    ex.run(s.body)


def _declare(ex: Executor, s: tir.DeclBuffer) -> None:
    ex.declare(s.buffer, ex.eval(s.buffer.data))
    ex.run(s.body)


def _attr(ex: Executor, s: tir.AttrStmt) -> None:
    var = s.subject.var if isinstance(s.subject, tir.IterVar) else s.subject
    if s.key in ("thread_extent", "virtual_thread") and isinstance(var, tir.Var) and var not in ex.env:
        extent = ex.index(s.value)
        ex.lanes(var, 0, [extent], 1, s.body, None)
        del ex.env[var]
    else:
        ex.run(s.body)


_STATEMENTS: dict[type, Callable] = {
    tir.BufferStore: _store,
    tir.For: Executor.loop,
    tir.While: Executor.while_loop,
    tir.If: _if,
    tir.Seq: _seq,
    tir.Let: _let,
    tir.Assert: _assert,
    tir.Evaluate: _evaluate,
    tir.Allocate: _allocate,
    tir.DeclBuffer: _declare,
    tir.AttrStmt: _attr,
    tir.BlockRealize: Executor.realize,
    tir.Block: Executor.block,
}
