# SPDX-License-Identifier: Apache-2.0
"""Commutative reducers as values: how two (tuples of) values combine, for attributes about cross-thread reductions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..node import Node, node
from .expr import Expr, Var
from .ops import cast, const


@node
class CommReducer(Node):
    """``results`` over the variables ``lhs`` and ``rhs``; ``identity`` are the values that change nothing."""

    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    results: tuple[Expr, ...]
    identity: tuple[Expr, ...]

    @staticmethod
    def from_func(combine: Callable[..., Any], identity: Sequence[Any]) -> CommReducer:
        """From a Python function of all left and then all right values; raises TypeError when their number differs."""
        start = tuple(const(i) for i in identity)
        names = list(inspect.signature(combine).parameters)
        if len(names) != 2 * len(start):
            raise TypeError(f"a reducer with {len(start)} identities takes {2 * len(start)} values, this one takes {len(names)}")
        variables = tuple(Var(n, i.dtype) for n, i in zip(names, (*start, *start)))
        out = combine(*variables)
        items = tuple(out) if isinstance(out, list | tuple) else (out,)
        if len(items) != len(start):
            raise TypeError(f"a reducer with {len(start)} identities gives as many values, this one gives {len(items)}")
        results = tuple(cast(const(e), i.dtype) for e, i in zip(items, start))
        return CommReducer(variables[: len(start)], variables[len(start) :], results, start)
