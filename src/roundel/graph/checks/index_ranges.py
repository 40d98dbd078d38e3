# SPDX-License-Identifier: Apache-2.0
"""Ranges of integer tensors, as far as the operators that make them tell: what proves that indices need no check.

A range is a pair of index expressions over the sizes, both included. Integers wrap at the width of their type, so a range that cannot be
shown to fit into the type says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...arith import Analyzer
from ...ir import graph, tir
from ...ir.op import OpDef
from ...ir.positions import Positions
from ..rewriter import is_call

Range = tuple[tir.Expr, tir.Expr]
_DEPTH = 24  # operators that are looked through


class IndexRanges:
    """Ranges of values; ``producer`` gives what a variable is bound to."""

    def __init__(self, producer: Callable[[Any], Any]) -> None:
        self.producer, self.an = producer, Analyzer()
        self.known: dict[graph.Var, Range | None] = {}

    def inside(self, value: Any, wanted: Positions) -> bool:
        """Whether every element of ``value`` is one of the positions."""
        if any(static(n) == 0 for n in value.sinfo.shape):
            return True
        made = self.producer(value)
        if len(wanted.limits) > 1 and is_call(made, "concat") and isinstance(made.args[0], graph.Tuple):
            fields = made.args[0].fields
            if made.attrs["axis"] % value.sinfo.ndim == value.sinfo.ndim - 1 and len(fields) == len(wanted.limits):
                columns = zip(fields, wanted.limits, strict=True)
                return all(static(f.sinfo.shape[-1]) == 1 and self.inside(f, Positions(0, (n,), wanted.negative)) for f, n in columns)
        if len(wanted.limits) > 1 and is_call(made, "permute_dims") and made.attrs["axes"] == (1, 0):
            return self._rows_inside(self.producer(made.args[0]), wanted.limits)
        found = self.of(value)
        return found is not None and all(self._within(found, n, wanted.negative) for n in dict.fromkeys(wanted.limits))

    def _rows_inside(self, made: Any, limits: Sequence[tir.Expr]) -> bool:
        """Whether each row of what an operator makes is below its own limit: positions in a tensor of such a shape."""
        shape = made.args[0].sinfo.shape if is_call(made, "nonzero_to") else None
        return shape is not None and len(shape) == len(limits) and all(self.an.prove(tir.le(n, m)) for n, m in zip(shape, limits, strict=True))

    def _within(self, found: Range, limit: tir.Expr, negative: bool) -> bool:
        low, high = found
        return self.an.prove(tir.le(high, limit - 1)) and self.an.prove(tir.ge(low, 0 - limit if negative else 0))

    def of(self, value: Any, depth: int = 0) -> Range | None:
        """The range of a tensor's elements; None where nothing is known."""
        if isinstance(value, graph.Var):
            if value not in self.known:
                self.known[value] = self._fitting(value, self._of(value, depth))
            return self.known[value]
        return self._of(value, depth)

    def _of(self, value: Any, depth: int) -> Range | None:
        if isinstance(value, graph.Constant):
            return _of_constant(value)
        made = self.producer(value) if isinstance(value, graph.Var) else value
        if depth > _DEPTH or made is None:
            return None
        if isinstance(made, graph.TupleGetItem):
            whole = self.producer(made.tuple_value)
            rule = _PARTS.get(_name(whole))
            return rule(self, whole, made.index, depth + 1) if rule else None
        if isinstance(made, graph.Constant):
            return _of_constant(made)
        rule = _RULES.get(_name(made))
        return rule(self, made, depth + 1) if rule else None

    def _fitting(self, value: Any, found: Range | None) -> Range | None:
        """The range, if the type holds all of it."""
        info = value.sinfo
        if found is None or not isinstance(info, graph.TensorInfo) or info.dtype is None or not info.dtype.is_int:
            return None
        least, most = (0, (1 << info.dtype.bits) - 1) if info.dtype.kind == "uint" else (-(1 << (info.dtype.bits - 1)), (1 << (info.dtype.bits - 1)) - 1)
        (low, _), (_, high) = self.an.bounds(found[0]), self.an.bounds(found[1])
        if info.dtype.bits == 64:  # a sum of sizes is far from wrapping
            return found if high == float("inf") or high <= most else None
        return found if low >= least and high <= most else None

    def join(self, ranges: Sequence[Range | None]) -> Range | None:
        """What holds all of the ranges."""
        if not ranges or any(r is None for r in ranges):
            return None
        out: Range = ranges[0]  # type: ignore[assignment]
        for low, high in ranges[1:]:  # type: ignore[misc]
            out = (self.an.simplify(tir.min_(out[0], low)), self.an.simplify(tir.max_(out[1], high)))
        return out


def static(dim: Any) -> int | None:
    """A dimension that is a number."""
    return dim.value if isinstance(dim, tir.IntImm) else None


def _name(made: Any) -> str:
    return made.op.name if isinstance(made, graph.Call) and isinstance(made.op, OpDef) else ""


def _of_constant(value: graph.Constant) -> Range | None:
    dtype = value.data.dtype
    if not dtype.is_int:
        return None
    array = value.data.numpy()
    return (tir.index_const(int(array.min())), tir.index_const(int(array.max()))) if array.size else None


def _same(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    return ranges.of(call.args[0], depth)


def _all(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    fields = call.args[0].fields if isinstance(call.args[0], graph.Tuple) else ()
    return ranges.join([ranges.of(f, depth) for f in fields])


def _extent(call: graph.Call) -> tir.Expr | None:
    """How many positions the axis of an operator has."""
    shape, axis = call.args[0].sinfo.shape, call.attrs["axis"]
    return None if shape is None else tir.product_of(shape) if axis is None else shape[axis % len(shape)]


def _below(limit: tir.Expr | None) -> Range | None:
    return None if limit is None else (tir.index_const(0), Analyzer().simplify(limit - 1))


def _arg(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    n = _extent(call)
    return _below(n) if n is not None and ranges.an.prove(tir.ge(n, 1)) else None


def _arange(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    values = [a.value for a in call.args if isinstance(a, graph.PrimValue)]
    start, end, step = (tir.index_const(0), values[0], tir.index_const(1)) if len(values) == 1 else (*values, tir.index_const(1))[:3] if values else (None,) * 3
    if end is None or not end.dtype.is_int or not start.dtype.is_int:
        return None
    return (start, ranges.an.simplify(end - 1)) if (static(step) or 0) > 0 else None


def _where(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    condition, a, b = call.args
    less, added = ranges.producer(condition), ranges.producer(a)
    if is_call(less, "less") and is_call(added, "add") and less.args[0] is b and _is_zero(less.args[1]) and b in added.args:
        inner, n = ranges.of(b, depth), ranges.of(added.args[1] if added.args[0] is b else added.args[0], depth)
        if inner is not None and n is not None and n[0] is n[1] and ranges._within(inner, n[0], True):
            return _below(n[0])  # where(i < 0, i + n, i)
    return ranges.join([ranges.of(a, depth), ranges.of(b, depth)])


def _is_zero(value: Any) -> bool:
    return isinstance(value, graph.Constant) and value.data.dtype.is_int and not value.data.numpy().any()


def _two(ranges: IndexRanges, call: graph.Call, depth: int) -> tuple[Range, Range] | None:
    a, b = (ranges.of(v, depth) for v in call.args[:2])
    return None if a is None or b is None else (a, b)


def _add(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    both = _two(ranges, call, depth)
    return both and (ranges.an.simplify(both[0][0] + both[1][0]), ranges.an.simplify(both[0][1] + both[1][1]))


def _subtract(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    both = _two(ranges, call, depth)
    return both and (ranges.an.simplify(both[0][0] - both[1][1]), ranges.an.simplify(both[0][1] - both[1][0]))


def _multiply(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    both = _two(ranges, call, depth)
    if both is None or any(static(both[1][k]) is None or static(both[1][k]) < 0 for k in (0, 1)) or both[1][0] is not both[1][1]:  # type: ignore[operator]
        return None
    return tuple(ranges.an.simplify(e * both[1][0]) for e in both[0])  # type: ignore[return-value]


def _floor_mod(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    by = ranges.of(call.args[1], depth)
    return _below(by[1]) if by is not None and ranges.an.prove(tir.ge(by[0], 1)) else None


def _minimum(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    both = [r for r in (ranges.of(v, depth) for v in call.args[:2]) if r is not None]
    if len(both) == 2:
        return tuple(ranges.an.simplify(tir.min_(a, b)) for a, b in zip(*both, strict=True))  # type: ignore[return-value]
    return (tir.index_const(-(1 << 63)), both[0][1]) if both else None


def _maximum(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    both = [r for r in (ranges.of(v, depth) for v in call.args[:2]) if r is not None]
    if len(both) == 2:
        return tuple(ranges.an.simplify(tir.max_(a, b)) for a, b in zip(*both, strict=True))  # type: ignore[return-value]
    return (both[0][0], tir.index_const((1 << 63) - 1)) if both else None


def _clip(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    low, high = (a.value if isinstance(a, graph.PrimValue) else None for a in call.args[1:3])
    return (low, high) if low is not None and high is not None and low.dtype.is_int and high.dtype.is_int and ranges.an.prove(low <= high) else None


def _checked(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    limits = call.args[1].values if isinstance(call.args[1], graph.ShapeExpr) else ()
    if not limits:
        return None
    most = limits[0] if len(limits) == 1 else ranges.an.simplify(_largest(limits))
    signed = call.attrs["negative"] and call.args[0].sinfo.dtype.kind == "int"
    return (0 - most if signed else tir.index_const(0)), ranges.an.simplify(most - 1)


def _largest(limits: Sequence[tir.Expr]) -> tir.Expr:
    out = limits[0]
    for n in limits[1:]:
        out = tir.max_(out, n)
    return out


def _full(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    return ranges.of(call.args[1], depth)


def _shape(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    values = call.args[0].values if isinstance(call.args[0], graph.ShapeExpr) else ()
    return ranges.join([(v, v) for v in values])


def _zero(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    return tir.index_const(0), tir.index_const(0)


def _nonzero(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    shape = call.args[0].sinfo.shape
    return None if shape is None else _below(_largest(shape) if shape else tir.index_const(1))


def _slice(ranges: IndexRanges, call: graph.Call, depth: int) -> Range | None:
    """Of the positions of nonzero elements, one row are those along one axis."""
    x, axes, begin, end = call.args[:4]
    made = ranges.producer(x)
    if is_call(made, "nonzero_to") and [static(a) for a in axes.values] == [0] and static(begin.values[0]) is not None:
        first, shape = static(begin.values[0]), made.args[0].sinfo.shape
        if static(end.values[0]) == first + 1 and first < len(shape):  # type: ignore[operator]
            return _below(shape[first])
    return ranges.of(x, depth)


def _topk(ranges: IndexRanges, whole: graph.Call, part: int, depth: int) -> Range | None:
    return _below(_extent(whole)) if part == 1 else ranges.of(whole.args[0], depth)


def _groups(ranges: IndexRanges, whole: graph.Call, part: int, depth: int) -> Range | None:
    return _below(whole.args[0].sinfo.shape[0]) if part < 2 else None


_RULES: dict[str, Callable[[IndexRanges, graph.Call, int], Range | None]] = {
    **dict.fromkeys(("astype", "reshape", "expand_dims", "squeeze", "flatten", "permute_dims", "broadcast_to", "flip", "repeat",
                     "tile", "take", "gather_elements", "gather_nd", "max", "min", "sort"), _same),
    "strided_slice": _slice, "concat": _all, "stack": _all, "where": _where, "add": _add, "subtract": _subtract, "multiply": _multiply, "floor_mod": _floor_mod,
    "minimum": _minimum, "maximum": _maximum, "clip": _clip, "check_indices": _checked, "arange": _arange, "full": _full,
    "zeros": _zero, "zeros_like": _zero, "argmax": _arg, "argmin": _arg, "argsort": lambda r, c, d: _below(_extent(c)), "nonzero_to": _nonzero,
    "shape_to_tensor": _shape,
}
_PARTS: dict[str, Callable[[IndexRanges, graph.Call, int, int], Range | None]] = {"topk": _topk, "unique_groups": _groups}
