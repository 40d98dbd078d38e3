# SPDX-License-Identifier: Apache-2.0
"""Everything that stands in the way of compiling a model, in one pass: what cannot be converted is noted and the walk goes on with
what ONNX says about the types of its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from ...builder import BlockBuilder
from ...ir import graph
from ...ir.dataclass import dataclass
from ...ir.errors import RoundelError
from .check import Report, check_model
from .importer import GraphImporter, NodeContext, needs
from .inputs import Dimensions, identifier, input_info, parameter
from .limits import Limits
from .load import load_model
from .model import from_onnx
from .values import Value


@dataclass
class Findings(Report):
    """``invalid``: what ONNX's own checker says; ``problems`` maps (operator, what is wrong) to the names of nodes; ``unexamined``
    counts nodes of which nothing can be said because of those before them."""

    invalid: list[str] = field(default_factory=list)
    problems: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    unexamined: int = 0

    @property
    def ok(self) -> bool:
        """Whether the model can be compiled."""
        return not self.unsupported and not self.problems

    def note(self, kind: str, error: Exception, place: str) -> None:
        """Enter an error of a node, an input or a tensor."""
        what = error.what if isinstance(error, RoundelError) else str(error)
        why = f" ({error.why})" if isinstance(error, RoundelError) and error.why else ""
        self.problems.setdefault((kind, what + why), []).append(place)

    def problem_lines(self) -> list[str]:
        """One line per problem: operator, what, how often, where."""
        out = []
        for (kind, what), places in sorted(self.problems.items()):
            where = ", ".join(places[:5]) + (f" and {len(places) - 5} more" if len(places) > 5 else "")
            out.append(f"{kind}: {' '.join(what.split())}, {len(places)} time{'s' if len(places) > 1 else ''}: {where}")
        return out


def examine(source: Any) -> Findings:
    """All problems of a model (path, bytes or ModelProto); raises ModelError when it cannot be read at all."""
    model, folder = load_model(source)
    checked = check_model(model)
    found = Findings(checked.unsupported, checked.operators, checked.newer, invalid=[*_checker(model, source), *checked.newer])
    if not found.unsupported:
        try:
            from_onnx(source)
            return found
        except RoundelError as error:
            failure = error
    _walk(model, folder, found)
    if found.ok:
        found.note("model", failure, str(failure.where or ""))
    return found


def _checker(model: Any, source: Any) -> list[str]:
    """What ONNX's checker and its inference of types object to."""
    import onnx

    whole = str(source) if isinstance(source, str | Path) else model  # the model of a path has its weights left in the file
    out = []
    for check in (lambda: onnx.checker.check_model(whole), lambda: onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)):
        try:
            check()
        except Exception as error:  # whatever it raises is its finding
            out.append(" ".join(str(error).split())[:300] or type(error).__name__)
    return out


def _inferred_types(model: Any) -> dict[str, Any]:
    import onnx

    try:
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # noted by _checker
        return {}
    return {v.name: v.type for v in (*model.graph.value_info, *model.graph.output)}


def _walk(model: Any, folder: Any, found: Findings) -> None:
    proto = model.graph
    opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    functions = {("" if f.domain == "ai.onnx" else f.domain, f.name): f for f in model.functions}
    scope = Dimensions({})
    initial = {t.name for t in proto.initializer}
    importer = _Examiner(BlockBuilder(), opsets, folder, functions, found, _inferred_types(model), scope)
    importer.limits = Limits(model)
    importer.limits.begin()
    params = []
    for i in proto.input:
        if i.name not in initial:
            try:
                var = graph.Var(identifier(i.name), input_info(i.name, i.type, scope, None))
                params.append(var)
                importer.values[i.name] = parameter(var, i.type)
            except RoundelError as error:
                found.note("input", error, i.name)
                importer.unknown.add(i.name)
    with importer.bb.function("main", params):
        importer.initializers(proto)
        try:
            importer.run(proto)
        except RoundelError as error:  # the order of the nodes: a cycle
            found.note("graph", error, proto.name)
        importer.bb.emit_func_output(graph.Tuple(()))
    made = {o for n in proto.node for o in n.output} | initial | {i.name for i in proto.input}
    for o in proto.output:
        if o.name not in made:
            found.note("output", RoundelError("no node, input or initializer defines it"), o.name)


class _Examiner(GraphImporter):
    """Goes on after an error, with stand-ins for the results of the node."""

    def __init__(self, bb: BlockBuilder, opsets: Mapping[str, int], folder: Any, functions: Mapping[Any, Any], found: Findings, types: Mapping[str, Any],
                 scope: Dimensions) -> None:
        super().__init__(bb, opsets, folder, functions)
        self.found, self.types, self.scope, self.unknown = found, types, scope, set[str]()

    def node(self, node: Any) -> None:
        """Convert one node, or note why not."""
        if any(name in self.unknown for name in needs(node)):
            self.found.unexamined += 1
            self._stand_in(node)
            return
        place = node.name or f"-> {', '.join(node.output)}"
        self._guarded(lambda: GraphImporter.node(self, node), node.op_type, place, lambda: self._stand_in(node))

    def initializers(self, proto: Any) -> None:
        """Bind the constants that can be read."""
        for t in proto.initializer:
            one = type(proto)(name=proto.name, initializer=[t])
            self._guarded(lambda one=one: GraphImporter.initializers(self, one), "initializer", t.name, lambda t=t: self.unknown.add(t.name))

    def decide(self, node: NodeContext, condition: Value) -> bool:
        """Any branch: whether a real import finds one that is valid was seen before."""
        return False

    def _guarded(self, step: Callable[[], None], kind: str, place: str, otherwise: Callable[[], Any]) -> None:
        supported = kind not in {name for _, name, _ in self.found.unsupported}
        try:
            step()
        except RoundelError as error:
            if supported:
                self.found.note(kind, error, place)
            otherwise()
        except (AssertionError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            self.found.note(kind, error, place)
            otherwise()

    def _stand_in(self, node: Any) -> None:
        for name in node.output:
            try:
                info = input_info(name, self.types[name], self.scope, None)
                self.values[name] = parameter(graph.Var(identifier(name), info), self.types[name])
            except (RoundelError, KeyError):
                self.unknown.add(name)
