# SPDX-License-Identifier: Apache-2.0
"""A model's graph as it was imported, for drawing: its nodes, what flows between them, the modules that they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..graph.rewriter import operands, site_of
from ..ir import graph
from ..ir.escape import short_name

_LONGEST = 40  # nodes that are folded into one where the model names no modules


def network(func: graph.Function, kernels: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """``nodes`` in topological order, each with ``name``, ``op`` (the operators that it became), ``out`` (dtype and shape of its result), ``path`` (the
    names of the modules around it, outermost first), ``kernels`` (that compute it) and ``kind`` (input, node or output); ``edges`` as pairs of
    positions in ``nodes``. ``kernels``: the names of nodes by kernel, as of ``roundel explain``."""
    made = _Network({})
    for p in func.params:
        made.source[p] = [made.add(p.name, "input", "", p.sinfo, ())]
    bindings = list(_bindings(func.body))
    for b in bindings:
        made.bind(b)
    for k, value in enumerate(_results(func.body)):
        at = made.add(f"output {k}" if k else "output", "output", "", value.sinfo, ())
        made.edges.update(dict.fromkeys((s, at) for s in made.sources(value)))
    by_node: dict[str, list[str]] = {}
    for kernel, nodes in kernels.items():
        for node in nodes:
            by_node.setdefault(node, []).append(kernel)
    for node in made.nodes:
        node["kernels"] = by_node.get(node["name"], [])
    _fold_chains(made.nodes)
    return {"nodes": [node | {"name": short_name(node["name"])} for node in made.nodes], "edges": [list(e) for e in made.edges if e[0] != e[1]]}


class _Network:
    def __init__(self, source: dict[graph.Var, list[int]]) -> None:
        self.source = source
        self.at: dict[str, int] = {}  # the node of a name
        self.nodes: list[dict[str, Any]] = []
        self.edges: dict[tuple[int, int], None] = {}

    def add(self, name: str, kind: str, op: str, info: Any, path: Sequence[str]) -> int:
        self.nodes.append({"name": name, "kind": kind, "op": op, "out": type_text(info), "path": list(path), "kernels": []})
        return len(self.nodes) - 1

    def bind(self, binding: graph.Binding) -> None:
        """Put a binding to its node: a model's node may have become several of them."""
        value, name = binding.value, site_of(binding)
        if isinstance(value, graph.Var | graph.TupleGetItem | graph.Tuple):
            self.source[binding.var] = self.sources(value)
            return
        op = _operator(value)
        here = self.at.get(name)
        if here is None:
            here = self.at[name] = self.add(name, "node", op, value.sinfo, _path(binding, name))
        else:
            node = self.nodes[here]
            node["op"], node["out"] = f"{node['op']}, {op}", type_text(value.sinfo)
        self.source[binding.var] = [here]
        self.edges.update(dict.fromkeys((s, here) for s in self.sources(value)))

    def sources(self, value: Any) -> list[int]:
        """The nodes that a value is made of."""
        if isinstance(value, graph.Var):
            return self.source.get(value, [])
        found = [s for child in operands(value) for s in self.sources(child)]
        return list(dict.fromkeys(found))


def _bindings(body: Any) -> Iterator[graph.Binding]:
    for block in getattr(body, "blocks", ()):
        yield from block.bindings


def _results(body: Any) -> list[Any]:
    value = body.body if isinstance(body, graph.SeqExpr) else body
    return list(value.fields) if isinstance(value, graph.Tuple) else [value]


def _operator(value: Any) -> str:
    """What a value is computed by, in a word."""
    if isinstance(value, graph.Call):
        name = getattr(value.op, "name", "") or type(value.op).__name__
        called = next((a.name for a in value.args if isinstance(a, graph.GlobalVar | graph.ExternFunc)), "") if name.startswith("call_") else ""
        return f"{name} {called}".strip()
    return type(value).__name__.lower()


def _path(binding: graph.Binding, name: str) -> tuple[str, ...]:
    """The modules around a node: in ONNX by the slashes of its name, in PyTorch as the exported program says."""
    if "/" in name:
        return tuple(part for part in name.split("/")[:-1] if part)
    where = binding.span.file.rpartition(" in ")[2] if binding.span is not None and " in " in binding.span.file else ""
    return tuple(part for part in where.split(".") if part)


def type_text(info: Any) -> str:
    """The type and shape of a tensor, or of each in a tuple, such as ``float32[n, 3]``."""
    if isinstance(info, graph.TupleInfo):
        return ", ".join(map(type_text, info.fields))
    if isinstance(info, graph.TensorInfo):
        sizes = "?" if info.shape is None else ", ".join(map(str, info.shape))
        return f"{info.dtype or '?'}[{sizes}]"
    return ""


def _fold_chains(nodes: list[dict[str, Any]]) -> None:
    """Give a model whose nodes name no modules groups of neighbours, so that a large one can be drawn at all."""
    plain = [n for n in nodes if n["kind"] == "node"]
    if len(plain) <= _LONGEST or any(n["path"] for n in plain):
        return
    for begin in range(0, len(plain), _LONGEST):
        part = plain[begin : begin + _LONGEST]
        for node in part:
            node["path"] = [f"nodes {begin + 1} to {begin + len(part)}"]
