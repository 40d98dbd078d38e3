# SPDX-License-Identifier: Apache-2.0
"""How much a model file may grow when it is imported. A few hundred bytes can call functions that call functions, nest loops that are
written out, or call themselves: what an import expands is counted against the options ``max_nodes`` and ``max_depth``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...ir import options
from ...ir.errors import ModelError, UnsupportedError


class Limits:
    """What is left to one import, shared by all graphs and functions in it.

    A node counts each time that it is converted: in every call of its function, in every iteration of a loop that is written out, and
    when a loop's body is tried aside. The nodes that the file holds are free once for each attempt at the whole model.
    """

    def __init__(self, model: Any = None) -> None:
        self.written = 0 if model is None else sum(1 for _ in _nodes(model))
        self.most, self.deepest = options.get("max_nodes"), options.get("max_depth")
        self.left = self.most
        self.path: list[Any] = []

    def begin(self) -> None:
        """The whole model is about to be converted (once more)."""
        self.left += self.written
        self.path = []

    def count(self, where: str, nodes: int = 1) -> None:
        """A node is about to be converted (or so many); raises UnsupportedError when there were too many."""
        self.left -= nodes
        if self.left < 0:
            raise UnsupportedError(f"the model grows too large: its functions and loops expand to more than {self.most} nodes beyond those in the file",
                                   where=where, hint=f"if that is meant, allow more by the option max_nodes (environment ROUNDEL_MAX_NODES={self.most * 10})")

    @contextmanager
    def inside(self, what: Any, where: str) -> Iterator[None]:
        """Go into a function (a hashable key) or a subgraph (None); raises ModelError for a function that calls itself, however many
        others there are between, and UnsupportedError for what is too deep."""
        if what is not None and what in self.path:
            calls = " -> ".join(repr(k[1]) for k in [*(k for k in self.path[self.path.index(what):] if k is not None), what])
            raise ModelError("a function calls itself, so that the model has no end", where=where, why=f"the calls are {calls}")
        self.path.append(what)
        try:
            self.check(len(self.path), where)
            yield
        finally:
            self.path.pop()

    def check(self, depth: int, where: str) -> None:
        """Raises UnsupportedError for a depth beyond the limit."""
        if depth > self.deepest:
            raise UnsupportedError(f"functions, branches and loops are nested more than {self.deepest} deep", where=where,
                                   hint=f"if that is meant, allow more by the option max_depth (environment ROUNDEL_MAX_DEPTH={self.deepest * 4})")


def graphs(model: Any, limits: Limits) -> Iterator[Any]:
    """The model's graph and all that its nodes hold; raises UnsupportedError where they are nested too deeply."""
    waiting = [(model.graph, 1)]
    while waiting:
        g, depth = waiting.pop()
        limits.check(depth, f"graph {g.name!r}")
        yield g
        for node in g.node:
            waiting += [(inner, depth + 1) for inner in _inside(node)]


def _nodes(model: Any) -> Iterator[Any]:
    """Every node of a ModelProto, those of functions, branches and loops included."""
    waiting = [n for holder in (model.graph, *model.functions) for n in holder.node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [n for inner in _inside(node) for n in inner.node]


def _inside(node: Any) -> list[Any]:
    return [g for a in node.attribute for g in ([a.g] if a.HasField("g") else a.graphs)]
