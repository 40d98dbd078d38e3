# SPDX-License-Identifier: Apache-2.0
"""What holds of the elements up to each: the extreme among them, the logarithm of the sum of their exponentials."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.op import FuseKind, OpDef, register

from .dims import axis_of, fail, tensor_info
from .elementwise import widen
from .loops import for_each, let, load, store


class _Along(OpDef):
    """Base: one pass along ``axis`` for each of the other positions."""

    operands, attributes, kind = ("data",), {"axis": -1}, FuseKind.OPAQUE

    def _info(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        axis_of(self, attrs["axis"], x.ndim, *args)
        return x

    def _pass(self, x: te.Tensor, attrs: Attrs, outputs: Any, scratch: Any, begin: Any, step: Any) -> Any:
        """``begin(state)``, then ``step(element, j, state)``, after which the first state's buffers are written out."""
        axis = attrs["axis"] % len(x.shape)

        def build(ins: Any, outs: Any, state: Any, *point: Any) -> tir.Stmt:
            at = lambda j: (*point[:axis], j, *point[axis:])

            def body(j: Any) -> tir.Stmt:
                write = [store(out, at(j), te.cast(value, out.dtype)) for out, value in zip(outs, self._values(state))]
                return let(load(ins[0], at(j)), lambda v: tir.seq(step(v, j, state), *write))

            return tir.seq(begin(state), for_each([x.shape[axis]], body))

        others = [s for k, s in enumerate(x.shape) if k != axis]
        return te.extern([(x.shape, dtype) for dtype in outputs], [x], build, self.name, over=others, scratch=scratch)

    def _values(self, state: Any) -> list[Any]:
        return [load(s, (0,)) for s in state]


class _Extreme(_Along):
    """The largest (smallest) of the elements up to each along ``axis``, and the last position (int64) that holds it. NaN, once met, stays."""

    num_outputs = 2

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = self._info(args, attrs)
        return graph.TupleInfo((x, x.replace(dtype="int64")))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,), largest = args, self.name == "cummax"
        byte = lambda v: te.cast(v, "int8") if v.dtype.is_bool else v

        def step(v: Any, j: Any, state: Any) -> tir.Stmt:
            best, place = state
            old = load(best, (0,))
            taken = tir.logical_or(byte(v) >= byte(old) if largest else byte(v) <= byte(old), tir.eq(j, 0))
            taken = te.logical_or(taken, te.isnan(v)) if v.dtype.is_float else taken
            return tir.seq(store(place, (0,), te.select(taken, j, load(place, (0,)))), store(best, (0,), te.select(taken, v, old)))

        begin = lambda state: tir.seq(store(state[0], (0,), tir.const(0, x.dtype)), store(state[1], (0,), 0))
        return self._pass(x, attrs, (x.dtype, "int64"), [((1,), x.dtype), ((1,), "int64")], begin, step)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = widen(args[0])
        axis = attrs["axis"] % x.ndim
        values = (np.maximum if self.name == "cummax" else np.minimum).accumulate(x, axis)
        places = np.arange(x.shape[axis]).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
        held = (x == values) | (x != x)
        return values.astype(args[0].dtype), np.maximum.accumulate(np.where(held, places, 0), axis).astype(np.int64)


for _name in ("cummax", "cummin"):
    register(type(_name, (_Extreme,), {"name": _name, "__doc__": _Extreme.__doc__}))


@register
class LogCumSumExp(_Along):
    """log(sum(exp(x))) of the elements up to each along ``axis``, relative to the largest of them, so that nothing overflows."""

    name = "logcumsumexp"

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = self._info(args, attrs)
        if not x.dtype.is_float:
            fail(self, f"the operand is of type {x.dtype}, not a float", *args)
        return x

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,), wide = args, te.accumulator(args[0].dtype)

        def step(v: Any, j: Any, state: Any) -> tir.Stmt:
            top, base, total = state
            v, old = te.cast(v, wide), load(base, (0,))

            def moved(new: Any) -> tir.Stmt:
                kept = load(total, (0,)) * te.exp(tir.min_(old - new, 0.0))
                return tir.seq(store(total, (0,), kept + te.exp(v - new)), store(base, (0,), new))

            now = load(top, (0,))
            return tir.seq(store(top, (0,), tir.max_(now, v)), let(te.select(te.isfinite(now), now, tir.const(0, wide)), moved))

        def begin(state: Any) -> tir.Stmt:
            return tir.seq(store(state[0], (0,), tir.const(float("-inf"), wide)), *(store(s, (0,), tir.const(0, wide)) for s in state[1:]))

        return self._pass(x, attrs, (x.dtype,), [((1,), wide)] * 3, begin, step)

    def _values(self, state: Any) -> list[Any]:
        _, base, total = state
        return [te.log(load(total, (0,))) + load(base, (0,))]

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        with np.errstate(all="ignore"):
            return np.logaddexp.accumulate(widen(args[0]), attrs["axis"]).astype(args[0].dtype)
