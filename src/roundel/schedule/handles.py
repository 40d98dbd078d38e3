# SPDX-License-Identifier: Apache-2.0
"""Handles of a schedule: names for loops, blocks and sampled values that stay valid while the program changes."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ReferenceType, ref

from roundel.ir import Var
from roundel.ir.dataclass import dataclass
from roundel.ir.errors import ScheduleError
from roundel.ir.tir import Stmt

if TYPE_CHECKING:
    from .schedule import Schedule


class Handle:
    """What a schedule gives for a block or a loop; shows the script of what it stands for now, in the schedule that made it."""

    __slots__ = ("_schedule",)
    what = "handle"

    def __init__(self, schedule: Schedule | None = None) -> None:
        self._schedule: ReferenceType[Schedule] | None = None if schedule is None else ref(schedule)

    def __reduce__(self) -> tuple[type[Handle], tuple[()]]:
        """In another process it is of no schedule; what it stands for is known to the one that is sent along."""
        return type(self), ()

    def __repr__(self) -> str:
        schedule = None if self._schedule is None else self._schedule()
        if schedule is None:
            return f"{self.what} of a schedule"
        try:
            return schedule.get(self).script()
        except HandleError as e:
            return f"{self.what} that is no longer there: {str(e).splitlines()[-1]}"


class BlockRV(Handle):
    """A block of a schedule; stays valid until a primitive removes the block."""

    __slots__ = ()
    what = "block"


class LoopRV(Handle):
    """A loop of a schedule; stays valid until a primitive removes the loop."""

    __slots__ = ()
    what = "loop"


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
