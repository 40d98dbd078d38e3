# SPDX-License-Identifier: Apache-2.0
"""How many bytes of constants a model has: whether a run finds those of a layer in a cache that the run before left them in."""

from __future__ import annotations

from ..ir import graph
from ..ir.module import IRModule
from ..ir.visit import walk


def constant_bytes(mod: IRModule) -> int:
    """Bytes of all constants of graph functions, each counted once."""
    found = (n.data for _, f in mod.items() if isinstance(f, graph.Function) for n in walk(f) if type(n) is graph.Constant)
    return sum(data.nbytes for data in {id(data): data for data in found}.values())
