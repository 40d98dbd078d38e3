# SPDX-License-Identifier: Apache-2.0
"""ONNX reductions, cumulative sums, argmax and top-k."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....ir import graph, tir
from ..importer import NodeContext, Value
from ..registry import converter
from .math import const_like


def _axes(node: NodeContext, x: graph.GraphExpr, axes: Value | None) -> tuple[int, ...] | None:
    """Axes of a reduction (None: nothing to do)."""
    given = node.static_ints(axes, "the reduced axes") if axes is not None else node.attr("axes", [])
    if not given and node.attr("noop_with_empty_axes", 0):
        return None
    return node.axes(given, x.sinfo.ndim) or tuple(range(x.sinfo.ndim))


def _reduction(build: Callable[[NodeContext, Any, tuple[int, ...], bool], Any], elementwise: Callable[[NodeContext, Any], Any]) -> Callable[..., Any]:
    def convert(node: NodeContext, x: Value, axes: Value | None = None) -> Any:
        where = _axes(node, x.expr, axes)
        if where is None:
            return elementwise(node, x.expr)
        return build(node, x.expr, where, bool(node.attr("keepdims", 1)))

    return convert


def _plain(op: str) -> Callable[..., Any]:
    def build(node: NodeContext, x: Any, axes: tuple[int, ...], keep: bool) -> Any:
        if not x.sinfo.dtype.is_bool:
            return node.make(op, x, axis=axes, keepdims=keep)
        return node.make("astype", node.make(op, node.make("astype", x, dtype="uint8"), axis=axes, keepdims=keep), dtype="bool")

    return build


def _of(inner: Callable[[NodeContext, Any], Any], op: str, outer: Callable[[NodeContext, Any], Any] = lambda node, x: x) -> Callable[..., Any]:
    return lambda node, x, axes, keep: outer(node, node.make(op, inner(node, x), axis=axes, keepdims=keep))


def _log_sum_exp(node: NodeContext, x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    top = node.make("max", x, axis=axes, keepdims=True)
    safe = node.make("where", node.make("isfinite", top), top, const_like(0, top))
    total = node.make("sum", node.make("exp", node.make("subtract", x, safe)), axis=axes, keepdims=True)
    out = node.make("add", node.make("log", total), safe)
    return out if keep else node.make("squeeze", out, axis=axes)


def _square(node: NodeContext, x: Any) -> Any:
    return node.make("multiply", x, x)


def _itself(node: NodeContext, x: Any) -> Any:
    return x


for _name, (_build, _alone) in {
    "ReduceSum": (_plain("sum"), _itself), "ReduceMean": (_plain("mean"), _itself), "ReduceMax": (_plain("max"), _itself),
    "ReduceMin": (_plain("min"), _itself), "ReduceProd": (_plain("prod"), _itself),
    "ReduceL1": (_of(lambda n, x: n.make("abs", x), "sum"), lambda n, x: n.make("abs", x)),
    "ReduceL2": (_of(_square, "sum", lambda n, x: n.make("sqrt", x)), lambda n, x: n.make("abs", x)),
    "ReduceSumSquare": (_of(_square, "sum"), _square),
    "ReduceLogSum": (_of(_itself, "sum", lambda n, x: n.make("log", x)), lambda n, x: n.make("log", x)),
    "ReduceLogSumExp": (_log_sum_exp, _itself),
}.items():
    converter(_name)(_reduction(_build, _alone))


def _arg(op: str) -> Callable[..., Any]:
    def convert(node: NodeContext, x: Value) -> Any:
        axis, keep = node.axis(node.attr("axis", 0), x.expr.sinfo.ndim), bool(node.attr("keepdims", 1))
        for size in x.expr.sinfo.shape[axis:][:1]:
            node.same_size(tir.max_(size, 1), size, "the axis must have at least one element, it has fewer")
        if not node.attr("select_last_index", 0):
            return node.make(op, x.expr, axis=axis, keepdims=keep)
        flipped = node.make("flip", x.expr, axis=axis)
        found = node.make(op, flipped, axis=axis, keepdims=keep)
        return node.make("subtract", node.number(x.expr.sinfo.shape[axis] - 1), found)

    return convert


converter("ArgMax")(_arg("argmax"))
converter("ArgMin")(_arg("argmin"))


@converter("CumSum")
def _cumsum(node: NodeContext, x: Value, axis: Value) -> Any:
    k = node.axis(node.static_ints(axis, "the axis")[0], x.expr.sinfo.ndim)
    v = x.expr
    if node.attr("reverse", 0):
        v = node.make("flip", v, axis=k)
    out = node.make("cumsum", v, axis=k, exclusive=bool(node.attr("exclusive", 0)))
    return node.make("flip", out, axis=k) if node.attr("reverse", 0) else out


@converter("TopK")
def _topk(node: NodeContext, x: Value, k: Value | None = None) -> Any:
    """Before opset 10 ``k`` is an attribute."""
    axis = node.axis(node.attr("axis", -1), x.expr.sinfo.ndim)
    count = tir.as_index(node.attr("k")) if k is None else node.ints(k, "k", upper=x.expr.sinfo.shape[axis])[0]
    out = node.make("topk", x.expr, k=count, axis=axis, ret_type="both", largest=bool(node.attr("largest", 1)), dtype="int64")
    return node.emit(graph.TupleGetItem(out, 0)), node.emit(graph.TupleGetItem(out, 1))
