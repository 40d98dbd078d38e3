# SPDX-License-Identifier: Apache-2.0
"""The register tile of a product: how many rows and vectors of accumulators a processor holds.

Each step of the reduction loads ``vectors`` of one operand and broadcasts ``rows`` elements of the other for
``rows * vectors`` multiply-adds. The broadcasts come from the first-level cache, the vectors stream from the second, which
makes them dearer: so a tile is rather tall than wide.
"""

from __future__ import annotations

from dataclasses import dataclass

STREAMED = 3.0  # cost of a vector that streams from the second-level cache, in broadcasts


@dataclass(frozen=True)
class Machine:
    """What of a processor decides the tile."""

    vector_bits: int
    vector_registers: int
    fma_latency: int = 4
    fma_ports: int = 2
    broadcast_operand: bool = False  # multiply-add takes a broadcast from memory, without a register for it

    @property
    def lanes(self) -> int:
        """float32 lanes of a vector."""
        return self.vector_bits // 32


def register_tile(machine: Machine, rows: int, columns: int) -> tuple[int, int]:
    """(rows, vectors) of the tile for a product of ``rows`` by ``columns`` float32: fits the registers, hides the latency,
    divides the product where it can, and needs the fewest loads for its multiply-adds."""
    best: tuple[float, int, int] | None = None
    for vectors in range(1, 5):
        for height in range(1, machine.vector_registers):
            spare = 0 if machine.broadcast_operand else 1
            if height * vectors + vectors + spare > machine.vector_registers:
                break
            chains = height * vectors
            stall = max(1.0, machine.fma_latency * machine.fma_ports / chains)
            waste = padded(rows, height) * padded(columns, vectors * machine.lanes)
            loads = (height + STREAMED * vectors) / (height * vectors)
            cost = stall * waste * (1 + 0.1 * loads)
            if best is None or cost < best[0]:
                best = cost, height, vectors
    assert best is not None
    return best[1], best[2]


def padded(size: int, tile: int) -> float:
    """Work with whole tiles, relative to the work that there is."""
    return -(-size // tile) * tile / size
