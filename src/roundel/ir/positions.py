# SPDX-License-Identifier: Apache-2.0
"""Indices that are data: which operands of an operator hold them, and what is said of one that is out of range."""

from __future__ import annotations

from typing import Any

from .dataclass import dataclass
from .escape import assertion


@dataclass(frozen=True)
class Positions:
    """``operand`` (its number) of an operator holds positions: integers below ``limits``, and at least their negative (counted from the
    end) where ``negative``, else 0. Several limits are one for each element along the operand's last axis. The operator
    reads or writes there: any other integer has to be kept from it.
    """

    operand: int
    limits: tuple[Any, ...]
    negative: bool = True


def message(name: str, rank: int) -> str:
    """What is said of an index, with the places of its value, its position (of ``rank`` numbers), the lowest and the first too high value."""
    at = ", ".join(f"{{{k + 1}}}" for k in range(rank))
    where = f" at position {at if rank == 1 else f'({at})'}" if rank else ""
    return f"{assertion(name)}: index {{0}}{where} is not in [{{{rank + 1}}}, {{{rank + 2}}})"
