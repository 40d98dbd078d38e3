# SPDX-License-Identifier: Apache-2.0
"""Exact integers: simplification, bounds, proofs, integer sets, affine iteration maps, regions of buffers."""

from .analyzer import Analyzer
from .block_access import block_access
from .bounds import Bounds
from .effects import has_effect, reads_memory
from .int_set import Interval
from .region import (
    between,
    covers,
    disjoint,
    end,
    estimate_region,
    intersect,
    is_point,
    relax_range,
    same_region,
    union,
)

__all__ = ["Analyzer", "Bounds", "Interval", "between", "block_access", "covers", "disjoint", "end", "estimate_region", "has_effect",
           "intersect", "is_point", "reads_memory", "relax_range", "same_region", "union"]
