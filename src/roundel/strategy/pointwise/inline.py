# SPDX-License-Identifier: Apache-2.0
"""Which blocks are computed where their result is read: three policies, for three kinds of programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.errors import ScheduleError
from ...schedule import Schedule
from ..match.accesses import BlockInfo, blocks_of, extent_of


def inline_producers(sch: Schedule, keep: Sequence[str] = ()) -> None:
    """Inline every block without reduction into its consumers, where it is neither an output nor to be kept."""
    for info in blocks_of(sch.func):
        if info.is_plain and not info.reduce and info.name not in keep:
            block = sch.get_block(info.name)
            if sch.get_consumers(block) and not is_output(sch, info):
                try:
                    sch.compute_inline(block)
                except ScheduleError:
                    continue  # stays a block of its own, which is right, only slower


def is_output(sch: Schedule, info: BlockInfo) -> bool:
    """Whether a block writes a parameter of the program."""
    outputs = set(sch.func.buffer_params)
    return any(a.buffer in outputs for a in info.stores)


def inline_cheap(sch: Schedule) -> None:
    """Inline spatial blocks that are read over their own domain, when they are cheap or read once."""
    for info in blocks_of(sch.func):
        if info.reduce or any(a.buffer in sch.func.buffer_params for a in info.stores):
            continue
        block = sch.get_block(info.name)
        users = [BlockInfo(sch.get(b)) for b in sch.get_consumers(block)]
        same = all(_volume(u) == _volume(info) for u in users)
        if users and same and (len(users) == 1 or info.cost < 4):
            try:
                sch.compute_inline(block)
            except ScheduleError:
                continue  # stays a stage of its own


def _volume(info: BlockInfo) -> Any:
    return tuple(a.dom.extent for a in info.block.iter_vars if extent_of(a) != 1)


def inline_moves(sch: Schedule, names: Sequence[str]) -> None:
    """Inline these blocks into the blocks that read them, the last one first."""
    for name in reversed(names):
        try:
            sch.compute_inline(sch.get_block(name))
        except ScheduleError:
            continue  # stays a block of its own, which is right, only slower
