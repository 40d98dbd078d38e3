# SPDX-License-Identifier: Apache-2.0
"""The stages of a Winograd convolution as a rule finds them in a program, and the free choices of its schedule."""

from __future__ import annotations

from dataclasses import dataclass

from ..match.accesses import BlockInfo, extent_of
from ..match.contraction import Contraction
from ..product.register_tile import Tile

UNROLLED_FMAS = 112  # multiply-adds in the body of the inner loop


@dataclass(frozen=True)
class Stages:
    """The blocks by role; ``products`` is the contraction, ``test`` names the blocks that say which tiles are computed by ``direct``, if any,
    from their padded pixels, ``patch``, where there is padding."""

    test: tuple[str, ...]
    patch: str | None
    direct: str | None
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
    of all tiles is transformed first, then for all images (``together``) or for one after the other (``apart``); the register tile."""

    rows: int
    channels: int
    first: bool
    tile: Tile
    together: bool = False
    apart: bool = False

    @property
    def depth(self) -> int:
        """The number of loops around the products."""
        return 1 if self.together else 3

    def unroll(self, stages: Stages) -> int:
        """Unrolled steps of the reduction in the innermost loop."""
        most = max(1, UNROLLED_FMAS // (self.tile.rows * self.tile.vectors))
        extent = stages.products.extent(stages.products.reduce[1]) or 1
        return max(u for u in range(1, min(most, 16) + 1) if extent % u == 0)
