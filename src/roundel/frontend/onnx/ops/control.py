# SPDX-License-Identifier: Apache-2.0
"""ONNX control flow: If, Loop, Scan. What is decided at compile time is inlined, short loops are unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....ir import graph, tir
from ....ir.dtype import BOOL, INT64
from ..importer import NodeContext
from ..registry import converter
from ..values import ListValue, Value

UNROLLED = 64
"""Loops of at most that many iterations, known at compile time, are unrolled."""

Step = Callable[[Any, list[Any]], tuple[list[Any], list[Any]]]


@converter("If")
def _if(node: NodeContext, condition: Value) -> Any:
    branches = node.attr("then_branch"), node.attr("else_branch")
    known = condition.constant()
    if known is not None:
        return tuple(node.subgraph(branches[0 if known.reshape(-1)[0] else 1], ()))
    sequences = [node.importer.sequence(partial(_branch, node, g)) for g in branches]
    if any(a.ndim != b.ndim for a, b in zip(*(s.sinfo.fields for s in sequences), strict=True)):
        chosen = node.importer.decide(node, condition)
        return tuple(node.subgraph(branches[0 if chosen else 1], ()))
    infos = [_either(node, a, b) for a, b in zip(*(s.sinfo.fields for s in sequences), strict=True)]
    flag = condition.expr
    flag = flag if flag.sinfo.ndim == 0 else node.make("reshape", flag, graph.ShapeExpr(()))
    out = node.importer.bb.emit(graph.If(flag, *sequences, graph.TupleInfo(tuple(infos))), "if_")
    return tuple(_settled(node, graph.TupleGetItem(out, k), info) for k, info in enumerate(infos))


def _branch(node: NodeContext, body: Any) -> graph.Tuple:
    return graph.Tuple(tuple(_plain(node, v) for v in node.subgraph(body, ())))


def _plain(node: NodeContext, value: Any) -> Any:
    if isinstance(value, ListValue):
        raise node.data_dependent("which branch gives a sequence")
    return node.importer.emit(value.expr)


def _either(node: NodeContext, a: graph.StructInfo, b: graph.StructInfo) -> graph.TensorInfo:
    if a is b:
        return a
    if a.dtype != b.dtype:
        raise node.error(f"the branches give {a.dtype} and {b.dtype}")
    return graph.TensorInfo(None, a.dtype, a.ndim)


def _settled(node: NodeContext, value: Any, info: graph.TensorInfo) -> Any:
    """A result with a name for each of its dimensions."""
    value = node.importer.bb.emit(value, "if_result")
    if info.shape is not None:
        return value
    dims = tuple(tir.Var(f"d{k}", INT64, True) for k in range(info.ndim))
    return node.importer.bb.match_cast(value, graph.TensorInfo(dims, info.dtype), "if_result")


def at(node: NodeContext, x: Any, i: Any, axis: int = 0) -> Any:
    """Slice ``i`` (a number or a scalar tensor) of ``x`` along ``axis``, without that axis."""
    if not isinstance(i, int):
        return node.make("take", x, i, axis=axis)
    part = node.make("strided_slice", x, axes=(axis,), begin=(tir.index_const(i),), end=(tir.index_const(i + 1),), strides=(tir.index_const(1),))
    return node.make("squeeze", part, axis=(axis,))


def scan_loop(node: NodeContext, length: tir.Expr, state: Sequence[Any], step: Step) -> tuple[list[Any], list[Any]]:
    """``state, ys = step(i, state)`` for i = 0 .. length-1; the last state and the ys, stacked along a new first axis."""
    if isinstance(length, tir.IntImm) and 0 < length.value <= UNROLLED:
        rows: list[list[Any]] = []
        for i in range(length.value):
            state, ys = step(i, list(state))
            rows.append(ys)
        return list(state), [stacked(node, column) for column in zip(*rows, strict=True)]
    return _while(node, length, list(state), step)


def stacked(node: NodeContext, parts: Sequence[Any]) -> Any:
    """Tensors of one shape along a new first axis."""
    return node.make("concat", graph.Tuple(tuple(node.make("expand_dims", p, axis=(0,)) for p in parts)), axis=0)


def _while(node: NodeContext, length: tir.Expr, state: list[Any], step: Step) -> tuple[list[Any], list[Any]]:
    importer, count = node.importer, len(state)
    counter = graph.Var("i", graph.TensorInfo((), INT64))
    variables = [graph.Var(f"s{k}", s.sinfo) for k, s in enumerate(state)]
    probe = importer.sequence(lambda: graph.Tuple(tuple(step(counter, variables)[1])))
    buffers = [node.make("zeros", graph.ShapeExpr((length, *y.shape)), dtype=y.dtype) for y in probe.sinfo.fields]
    rows = [graph.Var(f"y{k}", b.sinfo) for k, b in enumerate(buffers)]
    limit = scalar(node, length)

    def body() -> graph.Tuple:
        new, ys = step(counter, list(variables))
        for old, now in zip(variables, new, strict=True):
            if old.sinfo is not now.sinfo:
                raise node.unsupported("the shape or dtype of a loop's state changes")
        place = node.make("reshape", counter, graph.ShapeExpr((tir.index_const(1), tir.index_const(1))))
        written = [node.make("scatter_nd", r, place, node.make("expand_dims", y, axis=(0,)), reduction="update") for r, y in zip(rows, ys, strict=True)]
        return graph.Tuple((node.make("add", counter, graph.Constant.of(np.int64(1))), *new, *written))

    loop_vars = (counter, *variables, *rows)
    init = (graph.Constant.of(np.int64(0)), *state, *buffers)
    condition = importer.sequence(lambda: node.make("less", counter, limit))
    out = importer.bb.emit(graph.While(loop_vars, init, condition, importer.sequence(body), graph.TupleInfo(tuple(v.sinfo for v in loop_vars))), "loop")
    fields = [importer.bb.emit(graph.TupleGetItem(out, k), "loop_result") for k in range(1, len(loop_vars))]
    return fields[:count], fields[count:]


def scalar(node: NodeContext, value: Any) -> Any:
    """An integer expression as a scalar tensor."""
    return node.value(np.asarray(value, dtype=object).reshape(())).expr


@converter("Loop")
def _loop(node: NodeContext, trips: Value | None, condition: Value | None, *state: Any) -> Any:
    body = node.attr("body")
    carried = len(state)
    count = None if trips is None else node.ints(trips, "the number of iterations")[0]
    start = None if condition is None else condition.constant()
    if condition is not None and start is None:
        raise node.data_dependent("whether a loop starts")
    if start is not None and not start.reshape(-1)[0]:
        count = 0
    if (isinstance(count, int) and count <= UNROLLED) or count is None:
        return _unrolled(node, body, count, list(state), carried)
    if count is not None and any(isinstance(s, ListValue) for s in state):
        raise node.unsupported("a long loop over sequences")
    return _counted(node, body, tir.as_index(count), list(state), carried)


def _unrolled(node: NodeContext, body: Any, count: int | None, state: list[Any], carried: int) -> Any:
    rows: list[list[Any]] = []
    go_on = True
    while go_on and (count is None or len(rows) < count):
        if len(rows) > UNROLLED:
            raise node.data_dependent("how often a loop runs")
        flag, *out = node.subgraph(body, (node.value(np.asarray(len(rows), dtype=object)), node.value(np.asarray(True, dtype=object), BOOL), *state))
        known = flag.constant()
        if known is None:
            raise node.data_dependent("whether a loop goes on")
        state, ys = out[:carried], out[carried:]
        rows.append([y.expr for y in ys])
        go_on = bool(known.reshape(-1)[0])
    if not rows and len(body.output) > 1 + carried:
        raise node.unsupported("a loop that never runs and has scan outputs")
    return (*state, *(stacked(node, column) for column in zip(*rows, strict=True)))


def _counted(node: NodeContext, body: Any, count: tir.Expr, state: list[Any], carried: int) -> Any:
    def step(i: Any, now: list[Any]) -> tuple[list[Any], list[Any]]:
        flag, *out = node.subgraph(body, (Value(i), node.value(np.asarray(True, dtype=object), BOOL), *map(Value, now)))
        known = flag.constant()
        if known is None or not known.reshape(-1)[0]:
            raise node.data_dependent("whether a loop goes on")
        values = [v.expr for v in out]
        return values[:carried], values[carried:]

    last, ys = scan_loop(node, count, [s.expr for s in state], step)
    return (*last, *ys)


@converter("Scan", since=9)
def _scan(node: NodeContext, *inputs: Value) -> Any:
    xs = inputs[len(inputs) - node.attr("num_scan_inputs"):]
    state = inputs[: len(inputs) - len(xs)]
    axes = node.attr("scan_input_axes", [0] * len(xs))
    backwards = node.attr("scan_input_directions", [0] * len(xs))
    body = node.attr("body")
    last, ys = _scanned(node, body, [s.expr for s in state], [x.expr for x in xs], axes, backwards)
    out_backwards = node.attr("scan_output_directions", [0] * len(ys))
    out_axes = node.attr("scan_output_axes", [0] * len(ys))
    ys = [node.make("flip", y, axis=0) if back else y for y, back in zip(ys, out_backwards, strict=True)]
    return (*last, *(_moved(node, y, a) for y, a in zip(ys, out_axes, strict=True)))


def _scanned(node: NodeContext, body: Any, state: list[Any], xs: list[Any], axes: Sequence[int], backwards: Sequence[int]) -> tuple[list[Any], list[Any]]:
    axes = [a % x.sinfo.ndim for a, x in zip(axes, xs, strict=True)]
    xs = [node.make("flip", x, axis=a) if back else x for x, a, back in zip(xs, axes, backwards, strict=True)]

    def step(i: Any, now: list[Any]) -> tuple[list[Any], list[Any]]:
        slices = [at(node, x, i, a) for x, a in zip(xs, axes, strict=True)]
        out = [v.expr for v in node.subgraph(body, [Value(v) for v in (*now, *slices)])]
        return out[: len(state)], out[len(state):]

    return scan_loop(node, xs[0].sinfo.shape[axes[0]], state, step)


def _moved(node: NodeContext, y: Any, axis: int) -> Any:
    """The first axis moved to ``axis``."""
    axis %= y.sinfo.ndim
    order = [*range(1, axis + 1), 0, *range(axis + 1, y.sinfo.ndim)]
    return y if axis == 0 else node.make("permute_dims", y, axes=tuple(order))


@converter("Scan", since=8)
def _batched_scan(node: NodeContext, lengths: Value | None, *inputs: Value) -> Any:
    if lengths is not None:
        raise node.unsupported("sequence lengths of Scan")
    xs = inputs[len(inputs) - node.attr("num_scan_inputs"):]
    state = inputs[: len(inputs) - len(xs)]
    batch = xs[0].expr.sinfo.shape[0]
    if not isinstance(batch, tir.IntImm) or batch.value > UNROLLED:
        raise node.unsupported("a batch of unknown size")
    back = node.attr("directions", [0] * len(xs))
    rows = []
    for b in range(batch.value):
        last, ys = _scanned(node, node.attr("body"), [at(node, s.expr, b) for s in state], [at(node, x.expr, b) for x in xs], [0] * len(xs), back)
        rows.append([*last, *ys])
    return tuple(stacked(node, column) for column in zip(*rows, strict=True))
