# SPDX-License-Identifier: Apache-2.0
"""ONNX operators about shapes: Shape, Size, Constant, ConstantOfShape, Range, Reshape, Expand, ..."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....arith import Analyzer
from ....ir import graph, tir
from ....ir.constants import ConstData
from ..importer import NodeContext, Value
from ..registry import converter
from ..run_time_sizes import check, sized, unsure


@converter("Shape")
def _shape(node: NodeContext, x: Value) -> Any:
    shape = x.content.shape if x.content is not None else x.expr.sinfo.shape
    if shape is None:
        raise node.unsupported("the rank of the input is not known")
    return node.value(list(shape)[slice(node.attr("start", 0), node.attr("end", None))])


@converter("Size")
def _size(node: NodeContext, x: Value) -> Any:
    return node.value(tir.product_of(x.expr.sinfo.shape))


@converter("Constant")
def _constant(node: NodeContext) -> Any:
    if "value" in node._attrs:
        data = node.attr("value")
        return graph.Constant(data, graph.TensorInfo(data.shape, data.dtype))
    for name, dtype in (("value_float", "float32"), ("value_int", "int64"), ("value_floats", "float32"), ("value_ints", "int64")):
        if name in node._attrs:
            return graph.Constant.of(np.asarray(node.attr(name), dtype))
    raise node.unsupported("constants that are strings or sparse are not supported")


def dims(values: list[Any]) -> graph.ShapeExpr:
    """Ints and expressions as a shape."""
    return graph.ShapeExpr(tuple(tir.as_index(v) for v in values))


@converter("ConstantOfShape")
def _constant_of_shape(node: NodeContext, shape: Value) -> Any:
    data = node.attr("value", ConstData(np.zeros(1, np.float32)))
    fill = graph.Constant.of(data.numpy().reshape(()))
    return node.make("full", dims(node.ints(shape, "the shape")), fill, dtype=data.dtype)


@converter("Reshape")
def _reshape_attribute(node: NodeContext, x: Value) -> Any:
    return _reshape_to(node, x, node.attr("shape"), False)


@converter("Reshape", since=5)
def _reshape(node: NodeContext, x: Value, shape: Value) -> Any:
    return _reshape_to(node, x, node.ints(shape, "the new shape", signed=True), bool(node.attr("allowzero", 0)))


def _reshape_to(node: NodeContext, x: Value, wanted: list[Any], allow_zero: bool) -> Any:
    have = x.expr.sinfo.shape
    out: list[Any] = []
    for i, d in enumerate(wanted):
        if isinstance(d, int) and d == 0 and not allow_zero:
            if i >= len(have):
                raise node.error(f"dimension {i} of the new shape copies one that the input does not have")
            d = have[i]
        out.append(d)
    if any(map(unsure, out)):
        return node.make("reshape", x.expr, dims(_run_time_shape(node, have, out, allow_zero)))
    unknown = [i for i, d in enumerate(out) if isinstance(d, int) and d == -1]
    if len(unknown) > 1:
        raise node.error(f"the new shape {wanted} has more than one -1")
    if unknown:
        out[unknown[0]] = _quotient(node, tir.product_of(have), tir.product_of([tir.as_index(d) for i, d in enumerate(out) if i != unknown[0]]))
    if allow_zero and 0 in [d for d in out if isinstance(d, int)]:  # R.reshape's 0 copies a dimension; here nothing is left to reshape
        node.same_size(tir.product_of(have), 0, "the new shape is empty, and x is not")
        return node.make("zeros", dims(out), dtype=x.expr.sinfo.dtype)
    return node.make("reshape", x.expr, dims(out))


def _run_time_shape(node: NodeContext, have: Any, wanted: list[Any], allow_zero: bool) -> list[tir.Expr]:
    """What 0 and -1 mean in a new shape of which some numbers are known only when the model runs."""
    wanted = [tir.as_index(d) for d in wanted]
    if not allow_zero:
        wanted = [tir.select(tir.eq(d, 0), have[i], d) if unsure(d) and i < len(have) else d for i, d in enumerate(wanted)]
    rest = tir.product_of([tir.select(tir.eq(d, -1), 1, d) for d in wanted])
    inferred = tir.floordiv(tir.product_of(have), tir.max_(rest, 1))
    return [sized(node, tir.select(tir.eq(d, -1), inferred, d), f"dim_{i}") for i, d in enumerate(wanted)]


def _quotient(node: NodeContext, total: tir.Expr, rest: tir.Expr) -> tir.Expr:
    an = Analyzer()
    if isinstance(rest, tir.IntImm) and rest.value == 0:
        return tir.index_const(0)
    out = an.simplify(tir.floordiv(total, rest))
    if isinstance(total, tir.IntImm) and isinstance(rest, tir.IntImm) and total.value % rest.value:
        raise node.error(f"{total.value} elements cannot be reshaped: the other dimensions take {rest.value}")
    return out


@converter("Flatten")
def _flatten(node: NodeContext, x: Value) -> Any:
    shape = x.expr.sinfo.shape
    axis = node.axis(node.attr("axis", 1), len(shape), end=True)
    return node.make("reshape", x.expr, dims([tir.product_of(shape[:axis]), tir.product_of(shape[axis:])]))


@converter("Squeeze")
def _squeeze_attribute(node: NodeContext, x: Value) -> Any:
    return _squeeze_axes(node, x, node.attr("axes", None))


@converter("Squeeze", since=13)
def _squeeze(node: NodeContext, x: Value, axes: Value | None = None) -> Any:
    return _squeeze_axes(node, x, None if axes is None else node.static_ints(axes, "the axes"))


def _squeeze_axes(node: NodeContext, x: Value, axes: list[int] | None) -> Any:
    for k, size in enumerate(x.expr.sinfo.shape if axes is None else ()):
        if not isinstance(size, tir.IntImm) and not Analyzer().prove(tir.ne(size, 1)):
            is_one = tir.select(tir.eq(size, 1), tir.index_const(1), tir.index_const(0))
            check(node, is_one, tir.index_const(0), f"squeeze_without_axes_where_dimension_{k}_is_1")
    return node.make("squeeze", x.expr, axis=None if axes is None else node.axes(axes, x.expr.sinfo.ndim))


@converter("Unsqueeze")
def _unsqueeze_attribute(node: NodeContext, x: Value) -> Any:
    return node.make("expand_dims", x.expr, axis=_added(node, x, node.attr("axes")))


@converter("Unsqueeze", since=13)
def _unsqueeze(node: NodeContext, x: Value, axes: Value) -> Any:
    return node.make("expand_dims", x.expr, axis=_added(node, x, node.static_ints(axes, "the axes")))


def _added(node: NodeContext, x: Value, axes: list[int]) -> tuple[int, ...]:
    """Axes of the result, which has that many dimensions more."""
    return node.axes(axes, x.expr.sinfo.ndim + len(axes))


@converter("Expand")
def _expand(node: NodeContext, x: Value, shape: Value) -> Any:
    have, wanted = list(x.expr.sinfo.shape), node.ints(shape, "the shape")
    rank = max(len(have), len(wanted))
    have, wanted = [1] * (rank - len(have)) + have, [1] * (rank - len(wanted)) + wanted
    known = shape.content is not None or shape.is_constant
    out = [(h if isinstance(w, int) and w == 1 else w) if known else _expanded(node, tir.as_index(h), w, k)
           for k, (h, w) in enumerate(zip(have, map(tir.as_index, wanted) if not known else wanted, strict=True))]
    return node.make("broadcast_to", x.expr, dims(out))


def _expanded(node: NodeContext, have: tir.Expr, wanted: tir.Expr, k: int) -> tir.Expr:
    """A dimension expanded to a size that only the run can tell: that size, or its own where 1 is asked for."""
    if isinstance(have, tir.IntImm) and have.value == 1:
        return wanted
    check(node, tir.select(tir.eq(wanted, 1), have, wanted), have, f"expand_{k}")
    return have


@converter("EyeLike")
def _eye_like(node: NodeContext, x: Value) -> Any:
    from ..load import dtype_of

    dtype = dtype_of(node.attr("dtype")) if node.attr("dtype", None) else x.expr.sinfo.dtype
    rows, cols = x.expr.sinfo.shape
    i = _ramp(node, rows, (rows, 1), node.attr("k", 0))
    j = _ramp(node, cols, (1, cols), 0)
    return node.make("astype", node.make("equal", i, j), dtype=dtype)


def _ramp(node: NodeContext, n: Any, shape: tuple[Any, ...], start: int) -> Any:
    values = node.make("arange", graph.PrimValue(tir.as_index(start)), graph.PrimValue(n + start), graph.PrimValue(tir.index_const(1)), dtype="int64")
    return node.make("reshape", values, dims(list(shape)))
