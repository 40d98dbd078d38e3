# SPDX-License-Identifier: Apache-2.0
"""ATen operators composed of simpler ones, written in PyTorch and applied when a program is traced: next to PyTorch's own table.

A function here gets what the operator gets; it may return ``NotImplemented`` to leave a node whole. One file per family.
"""

from __future__ import annotations

from . import elementwise, linalg, moves, neural, search, special
from .table import TABLE, decomposes

__all__ = ["TABLE", "decomposes", "elementwise", "linalg", "moves", "neural", "search", "special"]
