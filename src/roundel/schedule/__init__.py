# SPDX-License-Identifier: Apache-2.0
"""Schedules: primitives that transform tensor programs, handles that survive them, traces that replay them."""

from roundel.ir.errors import ScheduleError

from .decisions import OPEN, Decision
from .features import Features, Stage, Touch
from .handles import BlockRV, ExprRV, HandleError, LoopRV, StmtSRef
from .picture import Picture, picture
from .primitive import PRIMITIVES, Change, primitive
from .schedule import Schedule
from .sketch import Sketch, sketches
from .trace import Instruction, Trace

__all__ = [
    "OPEN",
    "PRIMITIVES",
    "BlockRV",
    "Change",
    "Decision",
    "ExprRV",
    "Features",
    "HandleError",
    "Instruction",
    "LoopRV",
    "Picture",
    "Schedule",
    "ScheduleError",
    "Sketch",
    "Stage",
    "StmtSRef",
    "Touch",
    "Trace",
    "picture",
    "primitive",
    "sketches",
]
