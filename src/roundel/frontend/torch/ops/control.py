# SPDX-License-Identifier: Apache-2.0
"""Higher-order operators: cond, while_loop, scan, associative_scan, map, subgraphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....ir import graph, tir
from ....ir.dtype import INT64
from ..importer import NodeContext
from ..registry import converter
from .data_dependent import whole_number
from .math import scalar

Step = Callable[[Any, list[Any]], tuple[list[Any], list[Any]]]
_ONE = tir.index_const(1)


@converter("invoke_subgraph")
def _invoke_subgraph(node: NodeContext, body: Any, _name: Any, *operands: Any) -> Any:
    return tuple(node.importer.inline(body, operands))


@converter("cond")
def _cond(node: NodeContext, condition: Any, then: Any, otherwise: Any, operands: Sequence[Any] = ()) -> Any:
    if isinstance(condition, bool):
        return tuple(node.importer.inline(then if condition else otherwise, operands))
    condition = _as_tensor(node, condition)
    flag = condition if condition.sinfo.ndim == 0 else node.make("reshape", condition, graph.ShapeExpr(()))
    branches = [node.importer.sequence(lambda body=body: _tuple(node, node.importer.inline(body, operands))) for body in (then, otherwise)]
    infos = [a if a is b else graph.TensorInfo(None, a.dtype, a.ndim) for a, b in zip(*(s.sinfo.fields for s in branches), strict=True)]
    out = node.importer.bb.emit(graph.If(flag, *branches, graph.TupleInfo(tuple(infos))), "cond")
    return tuple(node.importer.bb.emit_named(graph.TupleGetItem(out, k), "cond_result") for k in range(len(infos)))


def _tuple(node: NodeContext, values: Sequence[Any]) -> graph.Tuple:
    if not all(isinstance(v, graph.GraphExpr) for v in values):
        raise node.unsupported("a result of a branch or a loop that is not a tensor of real numbers")
    return graph.Tuple(tuple(node.importer.emit(v) for v in values))


def _loop(node: NodeContext, init: Sequence[Any], condition: Callable[[list[Any]], Any], body: Callable[[list[Any]], list[Any]]) -> list[Any]:
    if not all(isinstance(v, graph.GraphExpr) for v in init):
        raise node.unsupported("a loop over what is not a tensor of real numbers")
    variables = [graph.Var(f"s{k}", v.sinfo) for k, v in enumerate(init)]
    test = node.importer.sequence(lambda: node.make("reshape", condition(list(variables)), graph.ShapeExpr(())))
    step = node.importer.sequence(lambda: _tuple(node, body(list(variables))))
    for v, after in zip(variables, step.sinfo.fields, strict=True):
        if v.sinfo is not after:
            raise node.unsupported(f"a loop's state changes from {v.sinfo} to {after}")
    out = node.importer.bb.emit(graph.While(tuple(variables), tuple(init), test, step, graph.TupleInfo(tuple(v.sinfo for v in variables))), "loop")
    return [node.importer.bb.emit(graph.TupleGetItem(out, k), "loop_result") for k in range(len(variables))]


@converter("while_loop")
def _while_loop(node: NodeContext, condition: Any, body: Any, carried: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    def run(body: Any, state: Sequence[Any]) -> list[Any]:
        return [_as_tensor(node, v) for v in node.importer.inline(body, (*numbers(state), *additional))]

    def numbers(state: Sequence[Any]) -> list[Any]:
        """The state with its whole numbers as index expressions."""
        return [v if isinstance(known, graph.GraphExpr) else whole_number(node, v) for v, known in zip(state, carried, strict=True)]

    init = [_as_tensor(node, v) for v in carried]
    out = numbers(_loop(node, init, lambda state: run(condition, state)[0], lambda state: run(body, state)))
    node.importer.sizes.variables.update((str(like.node.expr), v) for like, v in zip(node.value, out, strict=True) if hasattr(like, "node"))
    return tuple(out)


def _as_tensor(node: NodeContext, value: Any) -> Any:
    """A value of the graph as a tensor: also a number or a truth value of sizes."""
    if isinstance(value, tir.Expr) and value.dtype.is_bool:
        number = tir.select(value, tir.index_const(1), tir.index_const(0))
        return node.make("astype", _as_tensor(node, number), dtype="bool")
    if isinstance(value, tir.Expr):
        return node.emit(scalar(value, INT64))
    return graph.Constant.of(np.asarray(value)) if isinstance(value, int) else value


def rows_of_loop(node: NodeContext, length: tir.Expr, state: Sequence[Any], step: Step) -> tuple[list[Any], list[Any]]:
    """``state, ys = step(i, state)`` for i below ``length``: the last state, and the ys along a new first axis."""
    count = len(state)
    counter = graph.Var("i", graph.TensorInfo((), INT64))
    probes = [graph.Var(f"p{k}", s.sinfo) for k, s in enumerate(state)]
    infos = node.importer.sequence(lambda: _tuple(node, step(counter, list(probes))[1])).sinfo.fields
    buffers = [node.make("zeros", graph.ShapeExpr((length, *y.shape)), dtype=y.dtype) for y in infos]
    limit = node.make("reshape", node.make("shape_to_tensor", graph.ShapeExpr((length,))), graph.ShapeExpr(()))

    def body(values: list[Any]) -> list[Any]:
        i, now, rows = values[0], values[1:1 + count], values[1 + count:]
        now, ys = step(i, now)
        place = node.make("reshape", i, graph.ShapeExpr((_ONE, _ONE)))
        written = [node.make("scatter_nd", r, place, node.make("expand_dims", y, axis=(0,)), reduction="update") for r, y in zip(rows, ys, strict=True)]
        return [node.make("add", i, graph.Constant.of(np.int64(1))), *now, *written]

    out = _loop(node, [graph.Constant.of(np.int64(0)), *state, *buffers], lambda values: node.make("less", values[0], limit), body)
    return out[1:1 + count], out[1 + count:]


@converter("scan")
def _scan(node: NodeContext, body: Any, init: Sequence[Any], xs: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    def step(i: Any, state: list[Any]) -> tuple[list[Any], list[Any]]:
        out = node.importer.inline(body, (*state, *(node.make("take", x, i, axis=0) for x in xs), *additional))
        return out[:len(state)], out[len(state):]

    last, ys = rows_of_loop(node, xs[0].sinfo.shape[0], init, step)
    return (*last, *ys)


@converter("associative_scan")
def _associative_scan(node: NodeContext, body: Any, xs: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    first = [node.make("take", x, graph.Constant.of(np.int64(0)), axis=0) for x in xs]
    rest = [node.make("strided_slice", x, axes=(0,), begin=(_ONE,), end=(x.sinfo.shape[0],), strides=(_ONE,)) for x in xs]

    def step(i: Any, state: list[Any]) -> tuple[list[Any], list[Any]]:
        out = node.importer.inline(body, (*state, *(node.make("take", x, i, axis=0) for x in rest), *additional))
        return out, out

    _, ys = rows_of_loop(node, xs[0].sinfo.shape[0] - 1, first, step)
    return tuple(node.make("concat", graph.Tuple((node.make("expand_dims", f, axis=(0,)), y)), axis=0) for f, y in zip(first, ys, strict=True))


@converter("map_impl")
def _map(node: NodeContext, body: Any, xs: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    def step(i: Any, state: list[Any]) -> tuple[list[Any], list[Any]]:
        return [], node.importer.inline(body, (*(node.make("take", x, i, axis=0) for x in xs), *additional))

    return tuple(rows_of_loop(node, xs[0].sinfo.shape[0], [], step)[1])
