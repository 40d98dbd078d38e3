# SPDX-License-Identifier: Apache-2.0
"""How cores behave beyond their widths and rates: what they hide, what lines cost that nobody fetched ahead, how much of a cache is of use.

No manual tells these figures. Those of `OUT_OF_ORDER` were fitted to measurements on Zen 5 (``python -m benchmarks.decisions``), and every other machine is
given them by name in the table of its architecture, or others; none has them because nothing was said.
"""

from __future__ import annotations

from ..ir.dataclass import dataclass


@dataclass(frozen=True)
class Behaviour:
    """Of one core. Shares are of what the same machine does elsewhere, from 0 to 1."""

    loop_cycles: float
    """Cycles of an iteration of a loop that nothing hides."""
    result_cycles: float
    """Cycles to complete a vector of results: its first value, what is fused after it, its store."""
    store_cycles: float
    """Cycles of a statement that stores one number."""
    move_cycles: float
    """Cycles to copy one element to another place by itself."""
    division_instructions: float
    """Instructions that a division takes as long as."""
    ordered_instructions: float
    """Instructions of a largest or smallest number that keeps NaN."""
    masked: float
    """Times as long that a piece takes which is not whole."""
    window_share: float
    """The share of the reorder buffer in which a core finds work beyond instructions that wait."""
    exposed: float
    """The share of the shorter of computing and moving data that the longer does not hide."""
    strided_exposed: float
    """The share of the time of a line from the second-level cache that is waited for, where it does not follow the line before."""
    first_exposed: float
    """The same of a line of constants from memory when it is read first."""
    l2_beside: float
    """The share of the rate of the second-level cache that loads between multiply-adds reach."""
    l3_beside: float
    """... of the last cache."""
    memory_beside: float
    """... of memory."""
    weights_share: float
    """The share of the rate of memory at which panels of weights are read."""
    elementwise_share: float
    """The share of the rate of the second-level cache at which elements are read, worked on and written."""
    copied_share: float
    """The share of the rate of the last cache at which an operand is copied into panels."""
    scattered_share: float
    """The share of a level's rate at which lines are written and read that lie in many places at once."""
    cache_room: float
    """The share of a cache that a kernel's own data may fill."""
    l2_room: float
    """... of the second-level cache, where what is fetched ahead waits."""
    stages_room: float
    """... of the second-level cache, for what several stages hand to each other."""
    panel_room: float
    """... of the second-level cache, for a panel that streams through it beside the arithmetic."""
    near_times: float
    """Times the first-level cache, of a panel or block of weights so small that the next one, fetched meanwhile, is still near when it is used."""
    far_panels_share: float
    """The share of the rate of memory at which larger ones arrive; 1 where that was not measured, or nothing can be fetched ahead."""
    waiting_room: float
    """... of the second-level cache, for products that wait to be summed up."""
    scattered_room: float
    """... of the second-level cache, for rows that lie far apart."""
    l3_room: float
    """... of the last cache, for data that every panel reads."""
    page_bytes: int
    """Bytes of a page, at whose end hardware stops to fetch ahead."""
    past_bytes: int
    """Bytes from the last cache and from memory that arrive behind the end of a piece that is read: lines that hardware fetches ahead, or with their
    neighbours (pieces of a line took 1.7 times as long a line as data without gaps where every second line was left out, 2.8 to 3.1 times where more were)."""
    block_passes: int
    """Passes over a panel of a convolution's weights from which on it pays to take the panel in blocks: each block is waited for in the first of them."""
    far_times: float
    """Times the second-level cache, of a picture of which each panel of weights finds the next block of channels too far away."""
    ahead_bytes: int
    """Bytes that a fetch is ahead of its use, at least."""
    span_cycles: float
    """Cycles to begin a span of keys for a vector of rows in attention: loops that are entered anew, sums that are scaled."""
    tail_cycles: float
    """Cycles for a vector of rows of a block of keys that is not full."""
    edge_cycles: float
    """Cycles for a vector of scores of which a mask hides some."""
    unrolled_steps: int
    """Steps of a reduction that are written out one after another, at most: 1 where a compiler that comes later computes several of them mixed, for which
    registers do not suffice."""
    loaded_ahead: float
    """Of the vectors that a step of a product reads, the share that LLVM loads while the step before is under way, where steps are written out: these take
    registers from sums."""
    operands_ahead: float
    """Of the operands that a step of a product loads beside these, the share that is in registers before it multiplies: 0 where each is loaded where it is
    used, 1 where a compiler that comes later puts all loads first. Sums for which no register is left go through memory in each step."""
    tiles_started_cycles: float
    """Cycles that pass at the ends of a block of products in tile registers: the latency of its last products, and of getting going."""
    tiles_copied_cycles: float
    """Cycles for elements that are copied together into the rows of such tiles."""
    factors_room: float
    """The share of the last cache that sums of quarters of the data may fill, in Strassen's algorithm."""


def _fitted(**others: float) -> Behaviour:
    """What was fitted on Zen 5, with ``others`` instead."""
    figures: dict[str, float] = {
        "loop_cycles": 0.1, "result_cycles": 1.5, "store_cycles": 2.0, "move_cycles": 1.5, "division_instructions": 8.0, "ordered_instructions": 2.0,
        "masked": 1.01, "window_share": 25 / 56, "exposed": 0.15, "strided_exposed": 0.4, "first_exposed": 0.527, "l2_beside": 0.6,
        "l3_beside": 0.64, "memory_beside": 1.0, "weights_share": 8 / 9, "elementwise_share": 0.25, "copied_share": 0.533, "scattered_share": 0.3,
        "cache_room": 0.8, "l2_room": 0.6, "stages_room": 0.75, "panel_room": 0.25, "near_times": 1.6, "far_panels_share": 0.8,
        "waiting_room": 0.2, "scattered_room": 0.2, "l3_room": 0.4,
        "page_bytes": 4096, "past_bytes": 128, "block_passes": 24, "far_times": 4.0, "ahead_bytes": 4096, "span_cycles": 400.0,
        "tail_cycles": 700.0, "edge_cycles": 45.0, "unrolled_steps": 16, "loaded_ahead": 0.5, "operands_ahead": 0.0,
        "tiles_started_cycles": 60.0, "tiles_copied_cycles": 3.5, "factors_room": 0.5,
    }
    return Behaviour(**figures | others)  # type: ignore[arg-type]


OUT_OF_ORDER = _fitted()
"""Of cores that look far ahead, with masks or without, whose vectors have no largest number that keeps NaN: those of x86-64."""
OUT_OF_ORDER_ZEN = _fitted(loaded_ahead=0.0)
"""... of which LLVM orders instructions so that no sum leaves its register."""
OUT_OF_ORDER_ARM = _fitted(ordered_instructions=1.0, loaded_ahead=0.0)
"""... of AArch64, whose FMAX keeps NaN."""
IN_ORDER = _fitted(loop_cycles=1.0, window_share=1.0, exposed=0.5, strided_exposed=1.0, first_exposed=1.0, far_panels_share=1.0, loaded_ahead=0.0)
"""Of cores that wait where data is late: what others hide behind arithmetic adds to it. Estimated, not measured."""
PORTABLE = _fitted(unrolled_steps=1, far_panels_share=1.0, operands_ahead=1.0)
"""Of WebAssembly, which runs on whichever of these there is. LLVM puts what is used once before its use (its pass RegStackify), also across steps; TurboFan,
V8's compiler of WebAssembly until 2024 (node 20 and 22), puts a block's loads, which are in one chain of effects, ahead of its arithmetic."""
