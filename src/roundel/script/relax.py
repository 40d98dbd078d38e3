# SPDX-License-Identifier: Apache-2.0
"""The names of graph functions: ``from roundel.script import relax as R``."""

from __future__ import annotations

from .parser.entry import function

__all__ = ["function"]
