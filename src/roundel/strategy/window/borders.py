# SPDX-License-Identifier: Apache-2.0
"""Padding that is computed where windows read it: a condition on the loops over the window, which lowering cuts where the condition changes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...ir import tir
from ...ir.annotations import EDGE, WINDOW
from ...ir.errors import ScheduleError
from ...schedule.schedule import Schedule
from ..match.accesses import BlockInfo, conditional, extent_of


def pads(info: BlockInfo) -> bool:
    """Whether a block pads an operand such that every vector lies entirely in the padding or entirely outside of it: the padding then becomes guards
    on loops, and lowering splits the loops there."""
    value = info.block.body.value
    return bool(info.spatial) and type(value) is tir.IfThenElse and type(value.true_value) is tir.BufferLoad and info.spatial[-1].var not in conditional(info)


def skip_border(sch: Schedule, block: Any, info: BlockInfo, looping: Mapping[tir.IterVar, Any]) -> None:
    """Leave out the iterations of loops over a window that lie in the zero padding, by bounds of these loops that depend on the position. ``looping``: the
    loops over axes of the reduction that are not written out."""
    asked = conditional(info)
    border = [loop for axis, loop in looping.items() if axis.var in asked and extent_of(axis) != 1]
    if not border:
        return
    with suppress(ScheduleError):  # not every border is neutral
        sch.skip_zeros(block)
    for loop in border:
        sch.annotate(loop, WINDOW, True)
        sch.annotate(loop, EDGE, True)
