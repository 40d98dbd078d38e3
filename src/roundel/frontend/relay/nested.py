# SPDX-License-Identifier: Apache-2.0
"""Values of Relay are tensors and tuples of values; branches, loops and the model itself hand on flat tuples of tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...ir import graph
from ...ir.errors import UnsupportedError


def tensors(value: Any) -> Iterator[graph.GraphExpr]:
    """The tensors of a value in order; raises UnsupportedError for a function."""
    if isinstance(value, tuple):
        for v in value:
            yield from tensors(v)
    elif isinstance(value, graph.GraphExpr):
        yield value
    else:
        raise UnsupportedError("a function is the result of a branch, a loop or the model", why="a compiled model gives tensors")


def form(value: Any) -> Any:
    """How a value is nested: tuples of forms, None for a tensor."""
    return tuple(map(form, value)) if isinstance(value, tuple) else None


def nested(shape: Any, fields: Iterator[Any]) -> Any:
    """The value of a form whose tensors are the next of ``fields``."""
    return next(fields) if shape is None else tuple(nested(s, fields) for s in shape)
