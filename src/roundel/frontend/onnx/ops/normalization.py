# SPDX-License-Identifier: Apache-2.0
"""ONNX normalisations and softmax."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .... import te
from ....ir import graph, options, tir
from ....ops.loops import for_each, load, store
from ..importer import NodeContext, Value
from ..registry import converter
from .math import const_like


@converter("BatchNormalization")
def _batch_norm_flagged(node: NodeContext, x: Value, scale: Value, bias: Value, mean: Value, var: Value) -> Any:
    """Before opset 7 an attribute tells inference from training."""
    if not node.attr("is_test", 0) or not node.attr("spatial", 1):
        raise node.unsupported("BatchNormalization of opset 6 and older in training, or with statistics of each position")
    return _batch_norm(node, x, scale, bias, mean, var)


@converter("BatchNormalization", since=7)
def _batch_norm(node: NodeContext, x: Value, scale: Value, bias: Value, mean: Value, var: Value) -> Any:
    if node.attr("training_mode", 0):
        return _batch_norm_training(node, x.expr, scale.expr, bias.expr, mean.expr, var.expr)
    out = node.make("nn.batch_norm", x.expr, scale.expr, bias.expr, mean.expr, var.expr, axis=1, epsilon=node.attr("epsilon", 1e-5))
    return node.emit(graph.TupleGetItem(out, 0))


def _batch_norm_training(node: NodeContext, x: Any, scale: Any, bias: Any, mean: Any, var: Any) -> Any:
    """With the batch's own statistics, which also move the running ones."""
    axes, keep = (0, *range(2, x.sinfo.ndim)), node.attr("momentum", 0.9)
    now = node.make("mean", x, axis=axes)
    shaped = _per_channel(node, now, x.sinfo.ndim)
    centred = node.make("subtract", x, shaped)
    spread = node.make("mean", node.make("multiply", centred, centred), axis=axes)

    def moved(old: Any, new: Any) -> Any:
        return node.make("add", node.make("multiply", old, const_like(keep, old)), node.make("multiply", new, const_like(1 - keep, new)))

    inv = node.make("rsqrt", node.make("add", spread, const_like(node.attr("epsilon", 1e-5), spread)))
    out = node.make("multiply", centred, _per_channel(node, node.make("multiply", inv, scale), x.sinfo.ndim))
    return node.make("add", out, _per_channel(node, bias, x.sinfo.ndim)), moved(mean, now), moved(var, spread)


@converter("LayerNormalization")
def _layer_norm(node: NodeContext, x: Value, scale: Value, bias: Value | None = None) -> Any:
    v = x.expr
    axis = node.axis(node.attr("axis", -1), v.sinfo.ndim)
    axes = tuple(range(axis, v.sinfo.ndim))
    eps = node.attr("epsilon", 1e-5)
    if len([o for o in node.node.output if o]) == 1 and v.sinfo.dtype.bits >= 32:
        shape = graph.ShapeExpr(tuple(v.sinfo.shape[a] for a in axes))
        if scale.expr.sinfo.shape == shape.values and (bias is None or bias.expr.sinfo.shape == shape.values):
            beta = bias.expr if bias is not None else node.make("zeros", shape, dtype=v.sinfo.dtype)
            return node.make("nn.layer_norm", v, scale.expr, beta, axes=axes, epsilon=eps)
    wide = node.make("astype", v, dtype="float32") if v.sinfo.dtype.bits < 32 else v
    mean = node.make("mean", wide, axis=axes, keepdims=True)
    centred = node.make("subtract", wide, mean)
    var = node.make("mean", node.make("multiply", centred, centred), axis=axes, keepdims=True)
    inv = node.make("rsqrt", node.make("add", var, const_like(eps, var)))
    out = node.make("astype", node.make("multiply", centred, inv), dtype=v.sinfo.dtype)
    out = node.make("multiply", out, scale.expr)
    out = out if bias is None else node.make("add", out, bias.expr)
    return out, mean, inv


@converter("RMSNormalization")
def _rms_norm(node: NodeContext, x: Value, scale: Value) -> Any:
    v = x.expr
    axes = tuple(range(node.axis(node.attr("axis", -1), v.sinfo.ndim), v.sinfo.ndim))
    wide = node.make("astype", v, dtype="float32") if v.sinfo.dtype.bits < 32 else v
    mean = node.make("mean", node.make("multiply", wide, wide), axis=axes, keepdims=True)
    out = node.make("multiply", wide, node.make("rsqrt", node.make("add", mean, const_like(node.attr("epsilon", 1e-5), mean))))
    return node.make("multiply", node.make("astype", out, dtype=v.sinfo.dtype), scale.expr)


def _per_channel(node: NodeContext, v: Any, ndim: int) -> Any:
    return node.make("reshape", v, graph.ShapeExpr((v.sinfo.shape[0], *(tir.index_const(1) for _ in range(ndim - 2)))))


def normalized(node: NodeContext, x: Any, axes: tuple[int, ...], eps: float) -> Any:
    """``(x - mean) / sqrt(var + eps)`` over the axes."""
    return node.make("nn.layer_norm", x, axes=axes, epsilon=eps, center=False, scale=False)


@converter("InstanceNormalization")
def _instance_norm(node: NodeContext, x: Value, scale: Value, bias: Value) -> Any:
    n = x.expr.sinfo.ndim
    out = normalized(node, x.expr, tuple(range(2, n)), node.attr("epsilon", 1e-5))
    return node.make("add", node.make("multiply", out, _per_channel(node, scale.expr, n)), _per_channel(node, bias.expr, n))


@converter("GroupNormalization")
def _group_norm(node: NodeContext, x: Value, scale: Value, bias: Value) -> Any:
    v, groups = x.expr, node.attr("num_groups")
    batch, channels, *spatial = v.sinfo.shape
    wide = node.make("astype", v, dtype="float32") if v.sinfo.dtype.bits < 32 else v
    split = node.make("reshape", wide, graph.ShapeExpr((batch, tir.index_const(groups), tir.floordiv(channels, groups), *spatial)))
    out = normalized(node, split, tuple(range(2, split.sinfo.ndim)), node.attr("epsilon", 1e-5))
    n = v.sinfo.ndim
    per_group = node.opset < 21
    if per_group:
        def shaped(p: Value) -> Any:
            return node.make("reshape", p.expr, graph.ShapeExpr((tir.index_const(groups), *(tir.index_const(1) for _ in range(n - 1)))))

        out = node.make("add", node.make("multiply", out, shaped(scale)), shaped(bias))
    out = node.make("astype", node.make("reshape", out, graph.ShapeExpr(v.sinfo.shape)), dtype=v.sinfo.dtype)
    if per_group:
        return out
    return node.make("add", node.make("multiply", out, _per_channel(node, scale.expr, n)), _per_channel(node, bias.expr, n))


@converter("LpNormalization")
def _lp_norm(node: NodeContext, x: Value) -> Any:
    axis, p = node.axis(node.attr("axis", -1), x.expr.sinfo.ndim), node.attr("p", 2)
    if p not in (1, 2):
        raise node.error(f"the attribute 'p' is {p}: it must be 1 or 2")
    inner = node.make("abs", x.expr) if p == 1 else node.make("multiply", x.expr, x.expr)
    total = node.make("sum", inner, axis=(axis,), keepdims=True)
    norm = total if p == 1 else node.make("sqrt", total)
    zero = const_like(0, norm)
    return node.make("where", node.make("equal", norm, zero), node.make("multiply", x.expr, zero), node.make("divide", x.expr, norm))


@converter("MeanVarianceNormalization")
def _mvn(node: NodeContext, x: Value) -> Any:
    axes = node.axes(node.attr("axes", [0, 2, 3]), x.expr.sinfo.ndim)
    mean = node.make("mean", x.expr, axis=axes, keepdims=True)
    centred = node.make("subtract", x.expr, mean)
    var = node.make("mean", node.make("multiply", centred, centred), axis=axes, keepdims=True)
    return node.make("divide", centred, node.make("add", node.make("sqrt", var), const_like(1e-9, var)))


_WRITTEN_OUT = 32
"""Channels of a window that are added one by one, which becomes one kernel."""


def _window_sums(node: NodeContext, x: Any, low: int, high: int) -> Any:
    """The sum of each element of axis 1, of the ``low`` before and the ``high`` behind it."""
    width = [0] * (2 * x.sinfo.ndim)
    width[2], width[3] = low, high
    padded = node.make("nn.pad", x, pad_value=const_like(0, x), pad_width=tuple(tir.as_index(w) for w in width), pad_mode="constant")
    total = None
    for k in range(low + high + 1):
        part = node.make("strided_slice", padded, axes=(1,), begin=(tir.as_index(k),), end=(x.sinfo.shape[1] + k,), strides=(tir.index_const(1),))
        total = part if total is None else node.make("add", total, part)
    return total


def _long_window_sums(x: te.Tensor, low: int, high: int) -> te.Tensor:
    """The same for windows of any length, which reach no further than there are elements."""
    most = x.shape[1] - 1
    low, high = tir.min_(low, most), tir.min_(high, most)
    k = te.reduce_axis(low + high + 1, "k")

    def body(n: Any, c: Any, *at: Any) -> tir.Expr:
        there = c + k.var - low
        inside = te.logical_and(there >= 0, there < x.shape[1])
        return te.sum(te.if_then_else(inside, x(n, there, *at), tir.const(0, x.dtype)), axis=k)

    return te.compute(x.shape, body, "window_sums")


@converter("LRN")
def _lrn(node: NodeContext, x: Value) -> Any:
    size, alpha, beta, bias = node.attr("size"), node.attr("alpha", 1e-4), node.attr("beta", 0.75), node.attr("bias", 1.0)
    if size < 1:
        raise node.error(f"windows of {size} channels")
    v = x.expr
    squares = node.make("multiply", v, v)
    low, high = (size - 1) // 2, size // 2
    total = _window_sums(node, squares, low, high) if size <= _WRITTEN_OUT else node.te(partial(_long_window_sums, low=low, high=high), squares)
    base = node.make("add", node.make("multiply", total, const_like(alpha / size, v)), const_like(bias, v))
    return node.make("divide", v, node.make("power", base, const_like(beta, v)))


def _softmax(op: str) -> Callable[..., Any]:
    def convert(node: NodeContext, x: Value) -> Any:
        axis = node.axis(node.attr("axis", -1), x.expr.sinfo.ndim)
        if op == "nn.softmax" and x.expr.sinfo.dtype.bits < 32:
            return _stepwise_softmax(node, x.expr, axis)
        return node.make(op, x.expr, axis=axis)

    return convert


def _stepwise_softmax(node: NodeContext, x: Any, axis: int) -> Any:
    """As the standard's function defines it for types of less than 32 bits: every step is rounded to that type; with strict
    accuracy every addition of bfloat16 numbers too, as in the standard's reference."""
    axes = (axis,)
    raised = node.make("exp", node.make("subtract", x, node.make("max", x, axis=axes, keepdims=True)))
    if x.sinfo.dtype == "bfloat16" and options.get("accuracy") == "strict":
        total = node.te(_rounded_sum, raised, axes[0])
    else:
        total = node.make("sum", raised, axis=axes, keepdims=True)
    return node.make("divide", raised, total)


def _rounded_sum(x: Any, axis: int) -> Any:
    """The sum along an axis, one addition after the other, each rounded to the type of ``x``."""
    shape = (*x.shape[:axis], tir.index_const(1), *x.shape[axis + 1:])

    def build(ins: Any, outs: Any, scratch: Any, *at: Any) -> tir.Stmt:
        (data,), (out,) = ins, outs
        term = lambda k: te.cast(load(data, (*at[:axis], k, *at[axis + 1:])), "float32")
        add = lambda k: store(out, at, te.cast(te.cast(load(out, at), "float32") + term(k), x.dtype))
        return tir.seq(store(out, at, tir.const(0.0, x.dtype)), for_each([x.shape[axis]], add, "k"))

    return te.extern([(shape, x.dtype)], [x], build, "rounded_sum", over=shape)


def _hardmax(node: NodeContext, x: graph.GraphExpr, axis: int) -> graph.GraphExpr:
    """1 at the first of the largest elements, 0 elsewhere."""
    shape = x.sinfo.shape
    axis %= len(shape)
    ordinal = node.make("arange", *(graph.PrimValue(tir.as_index(v)) for v in (0, shape[axis], 1)), dtype="int64")
    places = node.make("reshape", ordinal, graph.ShapeExpr(tuple(shape[axis] if k == axis else tir.index_const(1) for k in range(len(shape)))))
    return node.make("astype", node.make("equal", node.make("argmax", x, axis=axis, keepdims=True), places), dtype=x.sinfo.dtype)


@converter("Hardmax", since=13)
def _hardmax_of_axis(node: NodeContext, x: Value) -> Any:
    return _hardmax(node, x.expr, node.axis(node.attr("axis", -1), x.expr.sinfo.ndim))


def _flat(build: Callable[[NodeContext, graph.GraphExpr, int], graph.GraphExpr]) -> Callable[..., Any]:
    """Before opset 13 the input is seen as a matrix, cut at ``axis``."""

    def convert(node: NodeContext, x: Value) -> Any:
        shape = x.expr.sinfo.shape
        axis = node.axis(node.attr("axis", 1), len(shape), end=True)
        if axis == len(shape) - 1:
            return build(node, x.expr, -1)
        flat = node.make("reshape", x.expr, graph.ShapeExpr((tir.product_of(shape[:axis]), tir.product_of(shape[axis:]))))
        return node.make("reshape", build(node, flat, -1), graph.ShapeExpr(shape))

    return convert


converter("Hardmax")(_flat(_hardmax))
for _name, _op in (("Softmax", "nn.softmax"), ("LogSoftmax", "nn.log_softmax")):
    converter(_name)(_flat(lambda node, x, axis, op=_op: node.make(op, x, axis=axis)))
    converter(_name, since=13)(_softmax(_op))
