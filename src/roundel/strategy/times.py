# SPDX-License-Identifier: Apache-2.0
"""The cycles that the model of a target expects of a kernel on one core, for columns of candidates: arithmetic, instructions and memory traffic.

The longest of these times decides, and a part of the others is added to it, because they do not overlap completely.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..target import Target
from ..target.target import L2, L3, MEMORY

Column = Any

WINDOW_SHARE = 25 / 56  # of the reorder buffer: instructions beyond those that wait which a core finds work in
SHARPNESS = 6.0   # of the maximum of limits: two that are near each other cost more than either
LOOP = 0.1        # cycles of an iteration that are not hidden
BESIDE_ARITHMETIC = {L2: 0.6, L3: 0.64, MEMORY: 1.0}  # of the rate at which a level is read that is left to loads between multiply-adds
CACHE_SHARE = 0.8 # of a cache that a kernel's own data may fill
L2_ROOM = 0.6    # ... of the second-level cache, where what is fetched ahead waits
EXPOSED = 0.15    # of the shorter times that is not hidden behind the longest


def step_cycles(target: Target, rows: Column, vectors: Column, unroll: Column = 4, steps: Column = np.inf) -> Column:
    """Cycles of one step of a reduction for a register tile of ``rows`` x ``vectors`` accumulators: multiply-adds, their latency, loads
    and broadcasts, instructions. After so many ``steps`` comes the next tile, which does not wait for them."""
    chains = rows * vectors
    folded = (vectors == 1) & (rows > 1)  # a broadcast is an operand of its only multiply-add
    instructions = chains + vectors + np.where(folded, 0, rows) + 3.0 / unroll
    latency = target.fma_latency * exposed(target, instructions * steps)
    limits = (chains / target.fma_ports, latency, (rows + vectors) / target.loads, instructions / target.issue)
    return sum(x**SHARPNESS for x in limits) ** (1.0 / SHARPNESS) + LOOP / unroll


def exposed(target: Target, instructions: Column) -> Column:
    """The share of a delay that so many instructions wait for which those after them do not fill."""
    return 1.0 / (1.0 + WINDOW_SHARE * target.window / instructions)


def streamed_cycles(target: Target, share: float) -> float:
    """A share of the cycles that a vector takes from the second-level cache."""
    return share * target.vector_bytes / target.bytes_per_cycle(L2)


def capacities(target: Target) -> tuple[float, float, float]:
    """Bytes that a kernel's data may take of each cache."""
    return target.l1_bytes * CACHE_SHARE, target.l2_bytes * L2_ROOM, max(target.l3_bytes, target.l2_bytes) * CACHE_SHARE


def traffic_cycles(target: Target, crossing: Sequence[Column]) -> list[Column]:
    """Cycles for the bytes that cross into the first, second and third cache."""
    return [n / (share * target.bytes_per_cycle(level)) for n, (level, share) in zip(crossing, BESIDE_ARITHMETIC.items(), strict=True)]


def together(*times: Column) -> Column:
    """The time of activities that overlap."""
    longest = times[0]
    for t in times[1:]:
        longest = np.maximum(longest, t)
    return longest + EXPOSED * (sum(times) - longest)
