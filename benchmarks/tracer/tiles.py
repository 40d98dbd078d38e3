# SPDX-License-Identifier: Apache-2.0
"""The register tile of a product: how many rows and vectors of accumulators a processor holds.

Each step of the reduction loads ``vectors`` of one operand and broadcasts ``rows`` elements of the other for
``rows * vectors`` multiply-adds. The broadcasts come from the first-level cache, the vectors stream from the second,
which makes them dearer: so a tile is rather tall than wide.
"""

from __future__ import annotations

from roundel.target import Target

STREAMED = 3.0  # cost of a vector that streams from the second-level cache, in broadcasts
PER_LOAD = 0.1  # what a load costs beside the multiply-adds that hide most of it


def register_tile(target: Target, rows: int, columns: int) -> tuple[int, int]:
    """(rows, vectors) of the tile for a product of ``rows`` by ``columns`` float32.

    It fits the registers, has enough independent multiply-adds to hide their latency, divides the product evenly, and
    of those needs the fewest loads for its multiply-adds.
    """
    lanes = target.lanes("float32")
    best: tuple[float, int, int] | None = None
    for vectors in (v for v in range(1, 5) if columns % (v * lanes) == 0):
        for height in (h for h in range(1, target.vector_registers) if rows % h == 0):
            if height * vectors + vectors + 1 > target.vector_registers:  # one holds the broadcast
                break
            chains = height * vectors
            stall = max(1.0, target.fma_latency * target.fma_ports / chains, (height + vectors) / chains)
            cost = stall * (1 + PER_LOAD * (height + STREAMED * vectors) / chains)
            if best is None or cost < best[0]:
                best = cost, height, vectors
    if best is None:
        raise SystemExit(f"no register tile of {target.cpu} divides {rows} x {columns}")
    return best[1], best[2]


def divisor_up_to(size: int, limit: int, step: int = 1) -> int:
    """The largest divisor of ``size`` that is a multiple of ``step`` and at most ``limit`` (at least ``step``)."""
    return max((d for d in range(step, max(limit, step) + 1, step) if size % d == 0), default=step)
