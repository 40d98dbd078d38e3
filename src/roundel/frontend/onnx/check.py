# SPDX-License-Identifier: Apache-2.0
"""What of a model is not supported, all of it in one report, before any work is done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from ...ir.dataclass import dataclass
from ...ir.errors import ModelError, UnsupportedError
from .functions import has_body
from .registry import NEWEST, find


@dataclass
class Report:
    """``unsupported`` maps (domain, operator, opset) to the names of nodes that use it; ``newer`` says of which operator sets the model's
    version is not known."""

    unsupported: dict[tuple[str, str, int], list[str]] = field(default_factory=dict)
    operators: dict[str, int] = field(default_factory=dict)
    newer: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every operator is known."""
        return not self.unsupported

    def lines(self) -> list[str]:
        """One line per unsupported operator: name, domain, version, how often, where."""
        out = []
        for (domain, name, version), nodes in sorted(self.unsupported.items()):
            where = ", ".join(nodes[:5]) + (f" and {len(nodes) - 5} more" if len(nodes) > 5 else "")
            out.append(f"{domain or 'ai.onnx'}::{name} (opset {version}), {len(nodes)} node{'s' if len(nodes) > 1 else ''}: {where}")
        return out

    def raise_if_unsupported(self) -> None:
        """Raises UnsupportedError that lists everything."""
        if not self.ok:
            raise UnsupportedError(f"the model uses {len(self.unsupported)} operator{'s' if len(self.unsupported) > 1 else ''} that "
                                   "Roundel does not support", why="\n".join("  " + line for line in self.lines()),
                                   hint="supply them with @roundel.onnx.operator(domain, name)")


def check_model(model: Any) -> Report:
    """The report of a ModelProto; knows nothing of shapes, so attribute combinations are judged during import. Raises ModelError for a
    model without outputs, or without a version of the operators."""
    from . import ops  # noqa: F401  (fills the table)

    if not model.graph.output:
        raise ModelError("the model has no outputs", where=f"graph {model.graph.name!r}", why="there is nothing to compute",
                         hint="it may have been cut out of a larger one; name its results in graph.output")
    opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    wrong = [f"{version} of {domain or 'ai.onnx'}" for domain, version in opsets.items() if version < 1]
    if wrong or not opsets:
        raise ModelError(f"there is no version {', '.join(wrong)}" if wrong else "the model says of no version of which operators it is",
                         where="opset_import", hint="versions begin with 1; name one with onnx.helper.make_opsetid")
    functions: dict[tuple[str, str], Any] = {}
    for f in model.functions:
        key = ("" if f.domain == "ai.onnx" else f.domain, f.name)
        if key in functions:
            what = f"the function {f.name!r} of domain {f.domain!r}"
            overloads = {f.overload, functions[key].overload}
            raise UnsupportedError(f"{what} has overloads", why=f"{', '.join(map(repr, sorted(overloads)))}: one function of a name is supported",
                                   hint="give each a name of its own") if len(overloads) > 1 else ModelError(f"{what} is defined twice")
        functions[key] = f
    report = Report(newer=[f"the model is of version {version} of the operator set {domain or 'ai.onnx'}, the newest that is known is {NEWEST[domain]}; "
                           "operators are taken to be as there" for domain, version in opsets.items() if version > NEWEST.get(domain, version)])
    for node in _nodes(model.graph.node, functions, set()):
        domain = "" if node.domain == "ai.onnx" else node.domain
        report.operators[node.op_type] = report.operators.get(node.op_type, 0) + 1
        version = opsets.get(domain, 1)
        if find(domain, node.op_type, version) is None and (domain, node.op_type) not in functions and not has_body(domain, node.op_type, version):
            report.unsupported.setdefault((domain, node.op_type, version), []).append(node.name or "/".join(node.output))
    return report


def _nodes(nodes: Any, functions: dict, seen: set) -> Iterator[Any]:
    for node in nodes:
        yield node
        for a in node.attribute:
            for g in [a.g] if a.HasField("g") else list(a.graphs):
                yield from _nodes(g.node, functions, seen)
        key = ("" if node.domain == "ai.onnx" else node.domain, node.op_type)
        if key in functions and key not in seen:
            seen.add(key)
            yield from _nodes(functions[key].node, functions, seen)
