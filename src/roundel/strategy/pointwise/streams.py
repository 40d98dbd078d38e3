# SPDX-License-Identifier: Apache-2.0
"""Data that no cache holds: results that are stored past the caches, and rows that are prefetched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...ir import tir
from ...ir.annotations import PREFETCH, STREAMED, Prefetch
from ...schedule import Schedule
from ...target import Target
from ..match.accesses import Access, BlockInfo, extent_of


def bytes_of(buffer: tir.Buffer) -> int:
    """Bytes of a buffer of known shape; 0 of any other."""
    if not all(isinstance(n, tir.IntImm) for n in buffer.shape):
        return 0
    return math.prod(n.value for n in buffer.shape) * buffer.dtype.storage_bits // 8


def stream(sch: Schedule, info: BlockInfo, loop: Any, target: Target) -> None:
    """Use non-temporal stores for a block's result inside of a loop, where the result is an output larger than the caches: an ordinary store to a
    line that is not in the cache reads the line first, and evicts another that may still be needed."""
    buffer = info.stores[0].buffer
    if buffer in sch.func.buffer_params and bytes_of(buffer) >= max(target.l3_bytes, 4 * target.l2_bytes):
        sch.annotate(loop, STREAMED, True)


def fetch_ahead(sch: Schedule, infos: Sequence[BlockInfo], far: int, target: Target) -> None:
    """Prefetch the next row of a large input (of more than ``far`` bytes) while the most expensive of the stages that read a row runs."""
    found = [(i, a) for i in infos for a in i.loads if _is_large(sch, i, a, far)]
    if not found:
        return
    info, access = max(found, key=lambda pair: pair[0].cost)
    loops = sch.get_loops(sch.get_block(info.name))
    if len(loops) < 2 or sch.get(loops[-1]).kind is not tir.ForKind.VECTORIZED:
        return
    row, width = extent_of(info.block.iter_vars[-1]), sch.get(loops[-1]).extent.value
    ahead = row * -(-target.ahead_bytes * 8 // (access.buffer.dtype.storage_bits * row))
    sch.annotate(loops[-2], PREFETCH, Prefetch(access.buffer.name, ahead, step=width, passes=1))


def _is_large(sch: Schedule, info: BlockInfo, access: Access, far: int) -> bool:
    """Whether an access reads rows of known length of an input with at least that many bytes."""
    axis = info.block.iter_vars[-1]
    return (access.buffer in sch.func.buffer_params and bytes_of(access.buffer) > far and access.steps(axis.var, 1)
            and extent_of(axis) is not None)
