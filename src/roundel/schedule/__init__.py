# SPDX-License-Identifier: Apache-2.0
"""Schedules: primitives that transform tensor programs, handles that survive them, traces that replay them."""

from .handles import BlockRV, ExprRV, LoopRV
from .primitive import PRIMITIVES, Change, primitive
from .schedule import Schedule
from .trace import Instruction, Trace

__all__ = ["PRIMITIVES", "BlockRV", "Change", "ExprRV", "Instruction", "LoopRV", "Schedule", "Trace", "primitive"]
