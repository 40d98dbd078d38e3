# SPDX-License-Identifier: Apache-2.0
"""A whole ONNX model as a module: its inputs and their dimensions, its graph, its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...builder import BlockBuilder
from ...graph.tidy.convert_to_dataflow import convert_to_dataflow
from ...ir import graph, tir
from ...ir.attrs import Attrs
from ...ir.errors import ModelError, RoundelError
from ...ir.module import IRModule
from ...ir.warning import warn
from ...runtime import text
from .declared import check_between, check_default, check_shape, check_type
from .folder import ModelFolder
from .importer import Decisions, GraphImporter, NodeContext
from .inputs import Dimensions, fixed_value, identifier, input_info, parameter
from .limits import Limits
from .load import load_model
from .stacked import exact
from .strings import holds_text, is_text, leaves, text_leaves
from .values import EmptyOptional, ListValue, MapValue, StackedValue, UndecidedError

_ATTEMPTS = 32


def from_onnx(source: Any, *, dims: Mapping[str, int] | None = None, shapes: Mapping[str, Sequence[Any]] | None = None,
              constants: Mapping[str, np.ndarray] | None = None) -> IRModule:
    """An ONNX model (path, bytes or ModelProto) as a module with the graph function ``main``.

    ``dims`` fixes symbolic dimensions by name (``{"batch": 1}``); ``shapes`` gives inputs other shapes;
    ``constants`` gives inputs fixed values, which are then no parameters any more. Raises ModelError for
    broken models and UnsupportedError, which lists everything unsupported, before any work is done.
    """
    from . import ops  # noqa: F401  (fills the table)
    from .check import check_model

    model, folder = load_model(source)
    report = check_model(model)
    report.raise_if_unsupported()
    for newer in report.newer:
        warn(newer)
    limits = Limits(model)
    made = _with_decisions(lambda decisions: _convert(model, folder, dims or {}, shapes or {}, constants or {}, decisions, limits))
    return convert_to_dataflow(made)


def _with_decisions(convert: Callable[[Decisions], IRModule]) -> IRModule:
    """Convert; where the branches of an If give tensors of different ranks (exporters write ``squeeze`` so), assume the first branch
    with which the rest of the model is valid. Raises the first error when no assumption helps."""
    first: RoundelError | None = None
    waiting: list[tuple[bool, ...]] = [()]
    for _ in range(_ATTEMPTS):
        if not waiting:
            break
        made = waiting.pop()
        try:
            return convert(Decisions(made))
        except UndecidedError as error:
            waiting += [(*made, False), (*made, True)]
            first = first or error
        except RoundelError as error:
            first = first or error
    assert first is not None
    raise first


def _convert(model: Any, folder: ModelFolder | None, dims: Mapping[str, int], given: Mapping[str, Any], constants: Mapping[str, np.ndarray],
             decisions: Decisions, limits: Limits) -> IRModule:
    opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    functions = {("" if f.domain == "ai.onnx" else f.domain, f.name): f for f in model.functions}
    bb = BlockBuilder()
    proto = model.graph
    fixed = dict(constants)
    initial = {t.name for t in proto.initializer}
    absent = {i.name for i in proto.input if i.name in given and given[i.name] is None}
    inputs = [i for i in proto.input if i.name not in initial and i.name not in fixed and i.name not in absent]
    scope = Dimensions(dims)
    params = [graph.Var(identifier(i.name), input_info(i.name, i.type, scope, given.get(i.name))) for i in inputs]
    scope.check()
    importer = GraphImporter(bb, opsets, folder, functions)
    importer.decisions, importer.limits, importer.sizes = decisions, limits, frozenset(scope.variables.values())
    limits.begin()
    with text.recorded() as strings, bb.function("main", params, attrs=Attrs(global_symbol="main", input_names=tuple(i.name for i in inputs),
                                                 output_names=tuple(o.name for o in proto.output))):
        importer.initializers(proto)
        for i in proto.input:
            if i.name in initial:
                check_default(i, importer.values[i.name])
        importer.values.update({name: fixed_value(value) for name, value in fixed.items()})
        for info, var in zip(inputs, params, strict=True):
            importer.values[info.name] = parameter(var, info.type)
        importer.values.update({name: EmptyOptional() for name in absent})
        importer.run(proto)
        outputs = [_result(importer, o) for o in proto.output]
        for o in proto.output:
            check_type(f"output {o.name!r}", o, importer.values[o.name])
            if not dims and not given:
                check_shape(f"output {o.name!r}", o, importer.values[o.name])
        if not dims and not given:
            check_between(proto.value_info, importer.values)
        bb.emit_func_output(bb.emit(outputs[0] if len(outputs) == 1 else graph.Tuple(tuple(outputs)), "result"))
    mod = bb.get()
    notes = {**_input_notes(importer, inputs, params), **_output_notes(importer, proto.output, outputs), "texts": tuple(strings),
             "python": tuple(importer.python), "decided_branches": decisions.used}
    main = mod["main"]
    return mod.with_functions({"main": main.replace(attrs=main.attrs | {k: v for k, v in notes.items() if v})})


def _result(importer: GraphImporter, info: Any) -> graph.GraphExpr:
    value = importer.values.get(info.name)
    if value is None:
        raise ModelError(f"output {info.name!r} is not defined by any node", where="the model's graph")
    if isinstance(value, StackedValue):
        return importer.emit(exact(NodeContext.of_graph(importer, info.name), value).rows)
    if isinstance(value, ListValue):
        return graph.Tuple(tuple(importer.emit(v.expr) for v in value.items))
    return value.expr


def _input_notes(importer: GraphImporter, inputs: Sequence[Any], params: Sequence[graph.Var]) -> dict[str, Any]:
    """Which tensors of the inputs are strings, which are the items of a sequence (with the type and the shape of an item, -1 for what is
    not fixed)."""
    texts: list[Any] = []
    sequences: list[Any] = []
    at = 0
    for info, var in zip(inputs, params, strict=True):
        texts += [at + k for k, text in enumerate(text_leaves(info.type, var.sinfo)) if text]
        if isinstance(value := importer.values[info.name], StackedValue):
            sequences.append((at, str(value.item.dtype), *(d.value if isinstance(d, tir.IntImm) else -1 for d in value.item.shape)))
        at += leaves(var.sinfo)
    return {"text_inputs": tuple(texts), "sequence_inputs": tuple(sequences)}


def _output_notes(importer: GraphImporter, infos: Sequence[Any], outputs: Sequence[graph.GraphExpr]) -> dict[str, Any]:
    """Which tensors of the outputs are strings, rows of maps, items of a sequence."""
    found: dict[str, list[Any]] = {"text_outputs": [], "maps": [], "sequence_outputs": []}
    at = 0
    for info, expr in zip(infos, outputs, strict=True):
        value, count = importer.values[info.name], leaves(expr.sinfo)
        if is_text(info.type) or holds_text(value):
            found["text_outputs"] += range(at, at + count)
        if isinstance(value, MapValue):
            found["maps"].append((at, value.keys))
        elif isinstance(value, StackedValue):
            found["sequence_outputs"].append(at)
        at += count
    return {k: tuple(v) for k, v in found.items()}
