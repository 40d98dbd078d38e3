# SPDX-License-Identifier: Apache-2.0
"""The stages of a Winograd convolution as a rule finds them in a program, and the free choices of its schedule."""

from __future__ import annotations

from ...ir.dataclass import dataclass
from ..match.accesses import BlockInfo, extent_of
from ..match.contraction import Contraction
from ..product.register_tile import Tile

DATA_PASSES = 2      # of transformed data that leaves a cache: its lines are read to be owned, and written back
RESULT_PASSES = 3    # of products: the same, and they are read again (what reads data again is counted with the products)
UNROLLED_FMAS = 112  # multiply-adds in the body of the inner loop


@dataclass(frozen=True)
class Stages:
    """The blocks by role; ``products`` is the contraction, ``test`` names the blocks that say which tiles are computed by ``direct``
    from their padded pixels, ``patch``, where there is padding."""

    test: tuple[str, ...]
    patch: str | None
    direct: str
    padding: str | None
    data_columns: BlockInfo
    data: BlockInfo
    products: Contraction
    result_columns: BlockInfo
    result: BlockInfo
    store: BlockInfo

    @property
    def edge(self) -> int:
        """Extent of an input tile along each axis."""
        return extent_of(self.data.spatial[0]) or 0

    @property
    def tile(self) -> int:
        """Extent of an output tile along each axis."""
        return extent_of(self.result.spatial[4]) or 0


@dataclass(frozen=True)
class Blocking:
    """Free choices: ``rows`` of tiles that go through together, ``channels`` (in blocks) of the result per step, whether the data
    of all tiles is transformed first, then for all images (``together``) or for one after the other (``apart``); the register tile, and the most ``steps``
    that are written out in it. ``by_positions``: the products of all tiles and channels are computed, those of each position of the tiles by one thread,
    before any result is transformed."""

    rows: int
    channels: int
    first: bool
    tile: Tile
    together: bool = False
    apart: bool = False
    steps: int = 16
    by_positions: bool = False

    @property
    def depth(self) -> int:
        """The number of loops around the products."""
        return 1 if self.together else 3

    def shares(self, stages: Stages) -> int:
        """Parts of the products that threads can compute at the same time."""
        images, outer, down = (extent_of(a) or 1 for a in stages.result.spatial[:3])
        if self.by_positions:
            return stages.edge**2
        steps = outer // self.channels
        return steps if self.together else images * (down // self.rows) * (1 if self.apart or not self.first else steps)

    def unroll(self, stages: Stages) -> int:
        """Unrolled steps of the reduction in the innermost loop."""
        most = max(1, UNROLLED_FMAS // (self.tile.rows * self.tile.vectors))
        extent = stages.products.extent(stages.products.reduce[1]) or 1
        return max(u for u in range(1, min(most, self.steps) + 1) if extent % u == 0)


def between(stages: Stages, b: Blocking) -> tuple[int, int, int]:
    """Bytes of all transformed data and of all products, and of what stands between the stages at a time."""
    images, outer, down, across, *_, lanes = (extent_of(a) or 1 for a in stages.result.spatial)
    blocks, inner = (extent_of(stages.data.spatial[k]) or 1 for k in (3, 5))
    row = stages.edge**2 * 4 * across
    data, results = (row * down * images * channels for channels in (blocks * inner, outer * lanes))
    if not b.first:
        return data, results, row * b.rows * (blocks * inner + outer * lanes)
    return data, results, row * down * ((1 if b.apart else images) * blocks * inner + (images if b.together else 1) * b.channels * lanes)


def spilled(stages: Stages, b: Blocking, room: float) -> float:
    """Bytes that leave a cache of ``room`` bytes and come back, as data and products pass from stage to stage."""
    data, results, block = between(stages, b)
    return max(0.0, 1.0 - room / block) * (DATA_PASSES * data + RESULT_PASSES * results)
