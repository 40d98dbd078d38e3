# SPDX-License-Identifier: Apache-2.0
"""Exact integers: simplification, bounds, proofs, integer sets, affine iteration maps, regions of buffers."""

from .analyzer import Analyzer
from .bounds import Bounds

__all__ = ["Analyzer", "Bounds"]
