# SPDX-License-Identifier: Apache-2.0
"""Handles of a schedule: names for loops, blocks and sampled values that stay valid while the program changes."""

from __future__ import annotations

from dataclasses import dataclass

from roundel.ir import Var
from roundel.ir.errors import ScheduleError
from roundel.ir.tir import Stmt


class BlockRV:
    """A block of a schedule; stays valid until a primitive removes the block."""

    __slots__ = ()


class LoopRV:
    """A loop of a schedule; stays valid until a primitive removes the loop."""

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class StmtSRef:
    """Where a handle points now: the loop or block ``stmt``. It does not follow the program when that changes; handles do."""

    stmt: Stmt

    def same_as(self, other: object) -> bool:
        """Whether it is the same reference."""
        return self is other


class HandleError(ScheduleError, IndexError):
    """A handle whose loop or block is gone, or that is of another schedule."""


ExprRV = Var  # a sampled integer is a variable: arithmetic on it gives expressions that primitives take
