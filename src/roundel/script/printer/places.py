# SPDX-License-Identifier: Apache-2.0
"""Places in a program by path, as ``structural_equal`` reports them: ``.functions.main.body.stmts[1].value``."""

from __future__ import annotations

import re
from typing import Any

from ...ir import tir
from ...ir.node import Node

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


def resolve(root: Any, path: str) -> tuple[Any, Any]:
    """The node at a path, and the statement or function that it is in (itself where it is one). A path that ends in a plain value means
    the node which has it. Raises ValueError where the path leads nowhere."""
    node = owner = value = root
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise ValueError(f"{path!r} is no path: it has steps such as .body and [0]")
        value, at = _next(value, step, path), step.end()
        if isinstance(value, Node):
            node = value
            if isinstance(value, tir.Stmt | tir.BaseFunc):
                owner = value
    return node, owner


def _next(value: Any, step: re.Match, path: str) -> Any:
    try:
        if step[1] is None:
            return value[int(step[2])]
        return value[step[1]] if isinstance(value, dict) else getattr(value, step[1])
    except (AttributeError, KeyError, IndexError, TypeError):
        raise ValueError(f"the path {path!r} leads nowhere: a {type(value).__name__} has no {step[0]}") from None
