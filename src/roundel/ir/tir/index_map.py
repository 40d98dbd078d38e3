# SPDX-License-Identifier: Apache-2.0
"""Index maps: functions from indices to indices, for layouts and schedule primitives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..dtype import INT64
from ..node import Node, node
from .expr import Expr, Var
from .ops import as_index


@node
class IndexMap(Node):
    """``final_indices`` as expressions over ``initial_indices``. ``separators`` mark where axes are cut (as in ``IndexMap.AXIS_SEPARATOR``)."""

    initial_indices: tuple[Var, ...]
    final_indices: tuple[Expr, ...]
    separators: tuple[int, ...] = ()

    AXIS_SEPARATOR = "axis_separator"

    @staticmethod
    def from_func(fn: Callable[..., Any], ndim: int | None = None) -> IndexMap:
        """From a Python function of index variables, e.g. ``lambda i, j: (i // 4, j, i % 4)``; ``*args`` need ``ndim``."""
        names: list[str] = []
        for p in inspect.signature(fn).parameters.values():
            if p.kind is inspect.Parameter.VAR_POSITIONAL:
                names += [f"{p.name}_{k}" for k in range((ndim or 0) - len(names))]
            else:
                names.append(p.name)
        variables = tuple(Var(n, INT64) for n in names)
        out = fn(*variables)
        items: Sequence[Any] = out if isinstance(out, list | tuple) else (out,)
        exprs: list[Expr] = []
        cuts: list[int] = []
        for item in items:
            if isinstance(item, str):
                cuts.append(len(exprs))
            else:
                exprs.append(as_index(item))
        return IndexMap(variables, tuple(exprs), tuple(cuts))

    def map_indices(self, indices: Sequence[Any]) -> tuple[Expr, ...]:
        """The map applied to index expressions."""
        from ..visit import substitute

        table = dict(zip(self.initial_indices, map(as_index, indices), strict=True))
        return tuple(substitute(f, table) for f in self.final_indices)
