# SPDX-License-Identifier: Apache-2.0
"""The register tile of a product: how many rows and vectors of accumulators a processor holds.

Each step of the reduction loads ``vectors`` of one operand and broadcasts ``rows`` elements of the other for
``rows * vectors`` multiply-adds. The broadcasts come from the first-level cache, the vectors stream from the second,
which makes them dearer: so a tile is rather tall than wide.
"""

from __future__ import annotations

from roundel.schedule.loops import balanced_heights
from roundel.target import Target

STREAMED = 3.0  # cost of a vector that streams from the second-level cache, in broadcasts
PER_LOAD = 0.1  # what a load costs beside the multiply-adds that hide most of it
SECOND_NEST = 0.02  # what a second height of tiles costs


def register_tile(target: Target, rows: int, columns: int) -> tuple[int, int]:
    """(rows, vectors) of the tile for a product of ``rows`` by ``columns`` float32.

    It fits the registers, has enough independent multiply-adds to hide their latency, and of those needs the fewest
    loads for its multiply-adds. Where its height does not divide ``rows``, a balanced split makes some tiles lower.
    """
    lanes = target.lanes("float32")
    tiles = [
        (height, vectors)
        for vectors in range(1, 5)
        for height in range(1, min(rows, target.vector_registers) + 1)
        if columns % (vectors * lanes) == 0 and height * vectors + vectors + 1 <= target.vector_registers
    ]
    return min(tiles, key=lambda tile: _cost(target, rows, *tile))


def _cost(target: Target, rows: int, height: int, vectors: int) -> float:
    """Time of a multiply-add, in the least possible."""
    parts = balanced_heights(rows, height)
    total = sum(count * h * vectors * _tile_cost(target, h, vectors) for count, h in parts)
    return total / (rows * vectors) + (SECOND_NEST if len(parts) > 1 else 0)


def _tile_cost(target: Target, height: int, vectors: int) -> float:
    chains, loads = height * vectors, height + vectors
    busy = max(1.0, target.fma_latency * target.fma_ports / chains, loads / chains)  # latency; two loads per cycle
    return busy * (1 + PER_LOAD * (height + STREAMED * vectors) / chains)


def divisor_up_to(size: int, limit: int, step: int = 1) -> int:
    """The largest divisor of ``size`` that is a multiple of ``step`` and at most ``limit`` (at least ``step``)."""
    return max((d for d in range(step, max(limit, step) + 1, step) if size % d == 0), default=step)
