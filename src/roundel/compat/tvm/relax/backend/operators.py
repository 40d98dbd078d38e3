# SPDX-License-Identifier: Apache-2.0
"""Patterns of single operators, by table."""

from __future__ import annotations

from typing import Any

from .....ir.op import all_ops
from .....relax.patterns import DFPattern, is_op, wildcard


def patterns_of(prefix: str, table: dict[str, tuple[str, int]]) -> list[tuple[str, DFPattern, dict[str, Any]]]:
    """A pattern ``prefix.name`` for each name of a table that gives an operator and how many operands it has; operators that there are."""
    return [(f"{prefix}.{name}", is_op(f"relax.{op}")(*(wildcard() for _ in range(count))), {}) for name, (op, count) in table.items() if op in all_ops()]


__all__ = ["patterns_of"]
