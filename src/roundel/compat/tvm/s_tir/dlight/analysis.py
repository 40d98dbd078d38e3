# SPDX-License-Identifier: Apache-2.0
"""``tvm.dlight.analysis``."""

from __future__ import annotations

from .....schedule.schedule import Schedule
from .....strategy.threads import BlockInfo, block_infos
from .....strategy.threads import inlined as _inlined

SBlockInfo = BlockInfo


def normalize_prim_func(sch: Schedule) -> list[BlockInfo] | None:
    """The blocks of a program in order, None where it has none"""
    return block_infos(sch) or None


def try_inline(sch: Schedule, blocks: list[BlockInfo]) -> list[BlockInfo]:
    """The blocks that are left when those that can be are computed where they are read"""
    return _inlined(sch, blocks)


__all__ = ["BlockInfo", "SBlockInfo", "normalize_prim_func", "try_inline"]
