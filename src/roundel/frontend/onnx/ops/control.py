# SPDX-License-Identifier: Apache-2.0
"""ONNX control flow: If, Loop, Scan. What is decided at compile time is inlined, short loops are unrolled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ....arith import Analyzer
from ....ir import graph, tir
from ....ir.dtype import BOOL, INT64
from ...common.recurrent import UNROLLED, Step, at, stacked, written_out
from ..importer import NodeContext
from ..loop_state import LoopState, as_before
from ..packed import PackedBranches, PackedLoop, Run, holds_sequence
from ..registry import converter
from ..run_time_sizes import inner_sizes, sizes_in
from ..values import UnsupportedDataError, Value

_MOST_ROWS = 1 << 31


@converter("If")
def _if(node: NodeContext, condition: Value) -> Any:
    branches = node.attr("then_branch"), node.attr("else_branch")
    known = condition.constant()
    if known is not None:
        return tuple(node.subgraph(branches[0 if known.reshape(-1)[0] else 1], ()))
    packed = _as_tensors(node, branches)
    sequences = [node.importer.sequence(partial(_branch, node, g, packed)) for g in branches]
    if any(a.ndim != b.ndim for a, b in zip(*(s.sinfo.fields for s in sequences), strict=True)):
        chosen = node.importer.decide(node, condition)
        return tuple(node.subgraph(branches[0 if chosen else 1], ()))
    infos = [_either(node, a, b) for a, b in zip(*(s.sinfo.fields for s in sequences), strict=True)]
    flag = condition.expr
    flag = flag if flag.sinfo.ndim == 0 else node.make("reshape", flag, graph.ShapeExpr(()))
    out = node.importer.bb.emit(graph.If(flag, *sequences, graph.TupleInfo(tuple(infos))), "if_")
    fields = [node.importer.bb.emit_named(graph.TupleGetItem(out, k), "if_result") for k in range(len(infos))]
    return tuple(fields) if packed is None else packed.results(fields)


def _as_tensors(node: NodeContext, branches: Sequence[Any]) -> PackedBranches | None:
    """How sequences leave the branches, None where there are none; tried aside, so that nothing of it stays."""
    if not any(o.type.WhichOneof("value") in ("sequence_type", "optional_type", None) for g in branches for o in g.output):
        return None
    values: list[list[Any]] = []
    made: list[PackedBranches] = []

    def attempt() -> graph.Tuple:
        values.extend(node.subgraph(g, ()) for g in branches)
        if any(map(holds_sequence, values)):
            made.append(PackedBranches(node, *values))
        return graph.Tuple(())

    node.importer.sequence(attempt)
    return made[0] if made else None


def _branch(node: NodeContext, body: Any, packed: PackedBranches | None) -> graph.Tuple:
    values = node.subgraph(body, ())
    return graph.Tuple(tuple(node.importer.emit(v.expr) for v in values) if packed is None else tuple(packed.flat(values)))


def _either(node: NodeContext, a: graph.StructInfo, b: graph.StructInfo) -> graph.TensorInfo:
    if a is b:
        return a
    if a.dtype != b.dtype:
        raise node.error(f"the branches give {a.dtype} and {b.dtype}")
    return graph.TensorInfo(None, a.dtype, a.ndim)


def scan_loop(node: NodeContext, length: tir.Expr, state: Sequence[Any], step: Step) -> tuple[list[Any], list[Any]]:
    """``state, ys = step(i, state)`` for i = 0 .. length-1; the last state and the ys, stacked along a new first axis."""
    if isinstance(length, tir.IntImm) and 0 < length.value <= UNROLLED:
        return written_out(node, length.value, state, step)
    return _while(node, length, list(state), step)


def _while(node: NodeContext, length: tir.Expr, state: list[Any], step: Step) -> tuple[list[Any], list[Any]]:
    importer, count = node.importer, len(state)
    counter = graph.Var("i", graph.TensorInfo((), INT64))
    variables = [graph.Var(f"s{k}", s.sinfo) for k, s in enumerate(state)]
    probe = _rows_of(node, importer.sequence(lambda: graph.Tuple(tuple(step(counter, variables)[1]))))
    buffers = [node.make("zeros", graph.ShapeExpr((length, *y.shape)), dtype=y.dtype) for y in probe]
    rows = [graph.Var(f"y{k}", b.sinfo) for k, b in enumerate(buffers)]
    limit = scalar(node, length)

    def body() -> graph.Tuple:
        new, ys = step(counter, list(variables))
        new = [as_before(node, old.sinfo, now) for old, now in zip(variables, new, strict=True)]
        written = [_written(node, r, counter, y) for r, y in zip(rows, ys, strict=True)]
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
    run: Run = partial(node.subgraph, body)
    count = None if trips is None else _most_iterations(node, trips)
    start = None if condition is None else condition.constant()
    if start is not None and not start.reshape(-1)[0]:
        count = 0
    short = (isinstance(count, int) and count <= UNROLLED) or count is None
    decided = condition is None or start is not None
    if decided and short and _can_unroll(node, body, count, state):
        return _unrolled(node, run, count, list(state), len(state))
    if not holds_sequence(state):
        return _rolled(node, run, count, condition, list(state), decided and not short)
    packed = PackedLoop(node, run, state, count)
    return packed.results(_rolled(node, packed.run, count, condition, packed.state, decided))


def _most_iterations(node: NodeContext, trips: Value) -> Any:
    """The number of iterations that are allowed; a negative one allows none."""
    if trips.content is None and trips.constant() is None:
        trips = Value(node.make("maximum", trips.expr, graph.Constant.of(np.int64(0))))
    count = node.ints(trips, "the number of iterations")[0]
    return Analyzer().simplify(tir.max_(count, 0)) if isinstance(count, tir.Expr) else max(int(count), 0)


def _rolled(node: NodeContext, run: Run, count: Any, condition: Value | None, state: list[Value], always: bool) -> Any:
    """A native loop; ``always``: its body alone may say that it ends."""
    if always and count is not None and not any(LoopState(node, run, state).axes) and _never_ends(node, run, state):
        return _counted(node, run, tir.as_index(count), state, len(state))
    return _conditional(node, run, count, condition, state)


def _can_unroll(node: NodeContext, body: Any, count: int | None, state: Sequence[Any]) -> bool:
    """Whether it is known after each iteration if there is another; tried aside, so that nothing of it stays."""
    run: Run = partial(node.subgraph, body)
    if count == 0:
        return len(body.output) == 1 + len(state)
    if count is not None and not holds_sequence(state) and _never_ends(node, run, state):
        return True

    def attempt() -> graph.Tuple:
        _unrolled(node, run, count, list(state), len(state))
        return graph.Tuple(())

    try:
        node.importer.sequence(attempt)
    except UnsupportedDataError:
        return False
    return True


def _never_ends(node: NodeContext, run: Run, state: Sequence[Any]) -> bool:
    """Whether the body always wants another iteration."""
    found: list[Any] = []

    def attempt() -> graph.Tuple:
        inputs = [Value(graph.Var("s", s.expr.sinfo)) for s in state]
        found.append(run((_number(), node.value(np.asarray(True, dtype=object), BOOL), *inputs))[0].constant())
        return graph.Tuple(())

    node.importer.sequence(attempt)
    return found[0] is not None and bool(found[0].reshape(-1)[0])


def _number() -> Value:
    return Value(graph.Var("i", graph.TensorInfo((), INT64)))


def _conditional(node: NodeContext, run: Run, count: Any, condition: Value | None, state: list[Any]) -> Any:
    """A loop that goes on while its body says so, at most ``count`` times where that is given. What it collects is kept in buffers for
    ``count`` iterations, of which those that ran are the result."""
    importer, carried = node.importer, len(state)
    counter, go = graph.Var("i", graph.TensorInfo((), INT64)), graph.Var("go_on", graph.TensorInfo((), BOOL))
    carrier = LoopState(node, run, state)

    def step() -> list[Any]:
        return [v.expr for v in run([Value(v) for v in (counter, go, *carrier.enter())])]

    probe = _rows_of(node, importer.sequence(lambda: graph.Tuple(tuple(step()[1 + carried:]))))
    if probe and (count is None or (isinstance(count, int) and count > _MOST_ROWS)):
        raise node.data_dependent("how many rows a loop without a number of iterations collects")
    limit = None if count is None else scalar(node, count)
    buffers = [node.make("zeros", graph.ShapeExpr((tir.as_index(count), *y.shape)), dtype=y.dtype) for y in probe]
    rows = [graph.Var(f"y{k}", b.sinfo) for k, b in enumerate(buffers)]

    def flag(value: Any) -> Any:
        return value if value.sinfo.ndim == 0 else node.make("reshape", value, graph.ShapeExpr(()))

    def goes_on() -> Any:
        return go if limit is None else node.make("logical_and", go, node.make("less", counter, limit))

    def next_values() -> graph.Tuple:
        more, *out = step()
        out[:carried] = carrier.next(out[:carried])
        written = [_written(node, r, counter, y) for r, y in zip(rows, out[carried:], strict=True)]
        return graph.Tuple((node.make("add", counter, graph.Constant.of(np.int64(1))), flag(more), *out[:carried], *written))

    loop_vars = (counter, go, *carrier.variables, *rows)
    first = graph.Constant.of(np.asarray(True)) if condition is None else flag(condition.expr)
    init = (graph.Constant.of(np.int64(0)), first, *(s.expr for s in state), *buffers)
    info = graph.TupleInfo(tuple(v.sinfo for v in loop_vars))
    out = importer.bb.emit(graph.While(loop_vars, init, importer.sequence(goes_on), importer.sequence(next_values), info), "loop")
    fields = [importer.bb.emit(graph.TupleGetItem(out, k), "loop_result") for k in range(len(loop_vars))]
    fields[2 : 2 + carried] = carrier.leave(fields[2 : 2 + carried])
    if not rows:
        return tuple(fields[2:])
    ran = node.ints(Value(fields[0]), "the iterations that ran", upper=count)[0]
    zero, one = tir.index_const(0), tir.index_const(1)
    parts = [node.make("strided_slice", f, axes=(0,), begin=(zero,), end=(ran,), strides=(one,), assume_inbound=True) for f in fields[2 + carried:]]
    return (*fields[2: 2 + carried], *parts)


def _rows_of(node: NodeContext, body: graph.SeqExpr) -> tuple[graph.TensorInfo, ...]:
    """What an iteration collects; its sizes have to be known before the loop."""
    inner, rows = inner_sizes(node, body), body.sinfo.fields
    if any(v in inner for row in rows for v in sizes_in(row)):
        raise node.data_dependent("the shape of what a loop collects")
    return rows


def _written(node: NodeContext, rows: Any, place: Any, y: Any) -> Any:
    """``rows`` with ``y`` at this place."""
    at_place = node.make("reshape", place, graph.ShapeExpr((tir.index_const(1), tir.index_const(1))))
    return node.make("scatter_nd", rows, at_place, node.make("expand_dims", y, axis=(0,)), reduction="update")


def _unrolled(node: NodeContext, run: Run, count: int | None, state: list[Any], carried: int) -> Any:
    rows: list[list[Any]] = []
    go_on = True
    while go_on and (count is None or len(rows) < count):
        if len(rows) > UNROLLED:
            raise node.data_dependent("how often a loop runs")
        flag, *out = run((node.value(np.asarray(len(rows), dtype=object)), node.value(np.asarray(True, dtype=object), BOOL), *state))
        state, ys = out[:carried], out[carried:]
        rows.append([y.expr for y in ys])
        if count is not None and len(rows) == count:
            break
        known = flag.constant()
        if known is None:
            raise node.data_dependent("whether a loop goes on")
        go_on = bool(known.reshape(-1)[0])
    return (*state, *(stacked(node, column) for column in zip(*rows, strict=True)))


def _counted(node: NodeContext, run: Run, count: tir.Expr, state: list[Any], carried: int) -> Any:
    def step(i: Any, now: list[Any]) -> tuple[list[Any], list[Any]]:
        flag, *out = run((Value(i), node.value(np.asarray(True, dtype=object), BOOL), *map(Value, now)))
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
    axes = [node.axis(a, x.sinfo.ndim) for a, x in zip(axes, xs, strict=True)]
    xs = [node.make("flip", x, axis=a) if back else x for x, a, back in zip(xs, axes, backwards, strict=True)]

    def step(i: Any, now: list[Any]) -> tuple[list[Any], list[Any]]:
        slices = [at(node, x, i, a) for x, a in zip(xs, axes, strict=True)]
        out = [v.expr for v in node.subgraph(body, [Value(v) for v in (*now, *slices)])]
        return out[: len(state)], out[len(state):]

    return scan_loop(node, xs[0].sinfo.shape[axes[0]], state, step)


def _moved(node: NodeContext, y: Any, axis: int) -> Any:
    """The first axis moved to ``axis``."""
    axis = node.axis(axis, y.sinfo.ndim)
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
