# SPDX-License-Identifier: Apache-2.0
"""How many bytes of constants a model has: whether a run finds those of a layer in a cache that the run before left them in."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import graph
from ..ir.constants import ConstData
from ..ir.module import IRModule
from ..ir.node import Node
from ..ir.visit import children

_WITHOUT = (graph.Var, graph.StructInfo)  # constants


def constant_bytes(mod: IRModule) -> int:
    """Bytes of all constants of graph functions, each counted once."""
    return sum(data.nbytes for data in constants_of(mod))


def constants_of(mod: IRModule) -> list[ConstData]:
    """The constants of graph functions, each once."""
    found = (c.data for _, f in mod.items() if isinstance(f, graph.Function) for c in _constants(f))
    return list({id(data): data for data in found}.values())


def _constants(func: graph.Function) -> Iterator[graph.Constant]:
    """The constants of a function. Types have none: they are not entered, that of a tuple is as long as the tuple at each use of it."""
    stack: list[Node] = [func]
    while stack:
        node = stack.pop()
        if isinstance(node, graph.Constant):
            yield node
        elif not isinstance(node, _WITHOUT):
            stack += children(node)
