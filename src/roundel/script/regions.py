# SPDX-License-Identifier: Apache-2.0
"""Index arithmetic that parser and printer must agree on: ``start:stop`` against (start, extent), slices as vectors."""

from __future__ import annotations

from typing import Any

from ..arith import Analyzer
from ..ir import tir, walk
from ..ir.scalable import lanes_of
from ..ir.tir import Add, Buffer, BufferLoad, BufferRegion, Expr, IntImm, Ramp, Range


def extent_between(start: Any, stop: Any) -> Expr:
    """``stop - start`` as a script means it: what was added to ``start``, or the difference of constants."""
    start, stop = tir.as_index(start), tir.as_index(stop)
    if isinstance(start, IntImm) and start.value == 0:
        return stop
    if type(stop) is Add and start in (stop.a, stop.b):
        return stop.b if stop.a is start else stop.a
    difference = tir.sub(stop, start)
    return difference if isinstance(difference, IntImm) else _simplified(difference)


def _simplified(expr: Expr) -> Expr:
    """The expression with equal terms cancelled; itself where that makes it no shorter."""
    shorter = Analyzer().simplify(expr)
    return shorter if sum(1 for _ in walk(shorter)) < sum(1 for _ in walk(expr)) else expr


def index_of(buffer: Buffer, items: tuple[Any, ...]) -> Any:
    """``buffer[items]``: a load, a vector load where a slice has a step, or a region where there are slices."""
    if len(items) != len(buffer.shape):
        raise IndexError(f"buffer {buffer.name} has {len(buffer.shape)} dimensions, {len(items)} indices given")
    if any(isinstance(i, slice) and i.step is not None for i in items):
        return BufferLoad(
            buffer,
            tuple(
                _vector(i, n) if isinstance(i, slice) else tir.as_index(_scalar(i)) for i, n in zip(items, buffer.shape)
            ),
        )
    if any(isinstance(i, slice | Range) for i in items):
        return BufferRegion(buffer, tuple(_range(i, n) for i, n in zip(items, buffer.shape)))
    return BufferLoad(buffer, tuple(tir.as_index(_scalar(i)) for i in items))


def _scalar(item: Any) -> Any:
    return as_value(item) if isinstance(item, BufferRegion) else item


def _range(item: Any, extent: Expr) -> Range:
    if isinstance(item, Range):
        return item
    if not isinstance(item, slice):
        return Range.point(tir.as_index(item))
    start = tir.as_index(0 if item.start is None else item.start)
    return Range(start, extent_between(start, extent if item.stop is None else item.stop))


def _vector(item: slice, extent: Expr) -> Expr:
    start, step = (
        tir.as_index(0 if item.start is None else item.start),
        tir.as_index(1 if item.step is None else item.step),
    )
    span = extent_between(start, extent if item.stop is None else item.stop)
    if not isinstance(span, IntImm) or not isinstance(step, IntImm):
        raise ValueError(f"the slice of a vector has a constant length and step, not {span!r} by {step!r}")
    return ramp(start, step, -(-span.value // step.value))


def ramp(start: Expr, step: Any, lanes: int) -> Expr:
    """The vector index; one lane is a scalar."""
    return start if lanes == 1 else Ramp(start, tir.cast(step, start.dtype), lanes)


def as_value(region: BufferRegion) -> BufferLoad:
    """A region used as a value: a vector load (extents constant, one of them more than 1)."""
    return BufferLoad(region.buffer, vector_indices(region))


def operand(value: Any) -> Any:
    """A slice of a buffer as a vector; anything else as it is."""
    return as_value(value) if isinstance(value, BufferRegion) else value


def vector_indices(region: BufferRegion) -> tuple[Expr, ...]:
    """Indices of a region used as a vector; raises ValueError where its length is not constant."""
    out = []
    for r in region.region:
        try:
            out.append(ramp(r.min, 1, lanes_of(r.extent)))
        except TypeError:
            raise ValueError(f"a slice of buffer {region.buffer.name} used as a value must have a constant length") from None
    return tuple(out)


def as_region(value: Any) -> BufferRegion:
    """A load or region as a region; raises TypeError for anything else."""
    if isinstance(value, BufferRegion):
        return value
    if isinstance(value, Buffer):
        return BufferRegion.full(value)
    if not isinstance(value, BufferLoad):
        raise TypeError(f"expected a region of a buffer such as A[i, 0:16], not {value!r}")
    return BufferRegion(value.buffer, tuple(_index_range(i) for i in value.indices))


def _index_range(index: Expr) -> Range:
    if type(index) is Ramp and isinstance(index.stride, IntImm):
        return Range(index.base, tir.index_const((index.lanes - 1) * index.stride.value + 1))
    return Range.point(index)
