# SPDX-License-Identifier: Apache-2.0
"""ONNX operators whose result's size depends on data: NonZero, Unique, Compress, NonMaxSuppression, Range."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....ir import graph, tir
from ....ops import make
from ....ops.data_dependent import counted, nonzero_of, prefix, unique_of
from ..importer import NodeContext
from ..registry import converter
from ..run_time_sizes import require, sized
from ..values import Value
from .math import const_like
from .strings import unique_text

_ZERO, _ONE = tir.index_const(0), tir.index_const(1)
_SHORT = 1 << 16  # elements of a range that is a constant


@converter("NonZero")
def _nonzero(node: NodeContext, x: Value) -> Any:
    return nonzero_of(node.importer.bb, x.expr)


@converter("Compress")
def _compress(node: NodeContext, x: Value, condition: Value) -> Any:
    data, axis = x.expr, node.attr("axis", None)
    if axis is None:
        data = node.make("reshape", data, graph.ShapeExpr((tir.product_of(data.sinfo.shape),)))
    axis = 0 if axis is None else node.axis(axis, data.sinfo.ndim)
    at = nonzero_of(node.importer.bb, condition.expr)
    return node.make("take", data, node.make("reshape", at, graph.ShapeExpr((at.sinfo.shape[1],))), axis=axis)


@converter("Unique")
def _unique(node: NodeContext, x: Value) -> Any:
    if x.is_text and node.attr("sorted", 1):
        return unique_text(node, x)
    axis = node.attr("axis", None)
    axis = None if axis is None else node.axis(axis, x.expr.sinfo.ndim)
    parts = ("values", "index", "inverse", "counts")
    return tuple(unique_of(node.importer.bb, x.expr, axis=axis, ordered=bool(node.attr("sorted", 1)), parts=parts))


@converter("NonMaxSuppression")
def _non_max_suppression(node: NodeContext, boxes: Value, scores: Value, limit: Value | None = None, overlap: Value | None = None,
                         least: Value | None = None) -> Any:
    if limit is None:
        return graph.Constant.of(np.zeros((0, 3), np.int64))
    one = lambda v: node.make("reshape", v.expr, graph.ShapeExpr((_ONE,)))
    threshold = graph.Constant.of(np.zeros(1, np.float32)) if overlap is None else one(overlap)
    more = () if least is None else (one(least),)
    found = node.make("vision.all_class_non_max_suppression", boxes.expr, scores.expr, one(limit), threshold, *more,
                      center=bool(node.attr("center_point_box", 0)))
    rows, count = (node.emit(graph.TupleGetItem(found, k)) for k in range(2))
    return prefix(node.importer.bb, rows, counted(node.importer.bb, count, rows.sinfo.shape[0], "selected"))


@converter("Range")
def _range(node: NodeContext, start: Value, limit: Value, delta: Value) -> Any:
    parts = (start, limit, delta)
    dtype = start.dtype if start.content is not None else start.expr.sinfo.dtype
    known = [v.constant() for v in parts]
    if all(k is not None for k in known):
        return _known_range(node, *(k.item() for k in known), dtype)
    if dtype.is_int and all(v.content is not None or v.is_constant for v in parts):
        s, e, d = (graph.PrimValue(tir.as_index(node.ints(v, "the range")[0])) for v in parts)
        return node.make("arange", s, e, d, dtype=dtype)
    count = _int_count(node, parts) if dtype.is_int else _float_count(node, parts)
    steps = node.make("arange", graph.PrimValue(_ZERO), graph.PrimValue(count), graph.PrimValue(_ONE), dtype=dtype)
    first, step = (v.expr if v.expr.sinfo.ndim == 0 else node.make("reshape", v.expr, graph.ShapeExpr(())) for v in (start, delta))
    return node.make("add", node.make("multiply", steps, step), first)


def _known_range(node: NodeContext, first: Any, end: Any, step: Any, dtype: Any) -> Any:
    """A range of constants: a constant where it is short, else made when the model runs."""
    if not step or not all(map(math.isfinite, (first, end, step))):
        raise node.error(f"a range from {first} to {end} in steps of {step} has no end")
    count = max(-((first - end) // step) if dtype.is_int else math.ceil((end - first) / step), 0)
    if count <= _SHORT:
        return graph.Constant.of(np.arange(first, end, step, dtype=dtype.numpy))
    if dtype.is_int:
        return node.make("arange", *(graph.PrimValue(tir.as_index(v)) for v in (first, end, step)), dtype=dtype)
    steps = node.make("arange", graph.PrimValue(_ZERO), graph.PrimValue(tir.as_index(count)), graph.PrimValue(_ONE), dtype=dtype)
    scale, start = (graph.Constant.of(np.asarray(v, dtype.numpy)) for v in (step, first))
    return node.make("add", node.make("multiply", steps, scale), start)


def _int_count(node: NodeContext, parts: tuple[Value, Value, Value]) -> tir.Expr:
    """The elements of a range of integers. The difference of the limits may have more bits than they: their quotients are subtracted."""
    s, e, d = (tir.as_index(node.ints(v, what, signed=True)[0]) for v, what in zip(parts, ("start", "limit", "step"), strict=True))
    if isinstance(d, tir.IntImm) and not d.value:
        raise node.error("the step of the range is 0")
    if not isinstance(d, tir.IntImm):
        node.emit(make("assert_op", graph.PrimValue(tir.ne(d, 0)), graph.Tuple(()), format=f"{node.title}: the step of the range is 0"))
    if isinstance(d, tir.IntImm) and d.value > 0 and s is _ZERO:
        return sized(node, tir.ceildiv(tir.max_(e, 0), d), "length")
    more = lambda a, b: tir.select(tir.gt(a, b), _ONE, _ZERO)
    over, under = tir.max_(d, 1), tir.min_(d, -2)  # the least integer divided by -1 is none
    up = tir.floordiv(e, over) - tir.floordiv(s, over) + more(tir.floormod(e, over), tir.floormod(s, over))
    down = tir.floordiv(e, under) - tir.floordiv(s, under) + more(tir.floormod(s, under), tir.floormod(e, under))
    down = tir.select(tir.gt(s, e), tir.select(tir.eq(d, -1), s - e, down), _ZERO)
    return sized(node, tir.select(tir.gt(d, 0), tir.select(tir.gt(e, s), up, _ZERO), down), "length")


def _float_count(node: NodeContext, parts: tuple[Value, Value, Value]) -> tir.Expr:
    s, e, d = (node.make("astype", v.expr, dtype="float64") for v in parts)
    count = node.make("ceil", node.make("divide", node.make("subtract", e, s), d))
    require(node, node.make("isfinite", count), "a range between numbers, in steps other than 0")
    return counted(node.importer.bb, node.make("maximum", count, const_like(0, count)), None, "length")
