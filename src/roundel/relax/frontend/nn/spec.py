# SPDX-License-Identifier: Apache-2.0
"""What the methods of a module are exported for: tensors with numbers, expressions or names as dimensions; whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Tensor:
    """A tensor; a dimension that is text is symbolic, and one variable wherever a method's specification has that text."""

    shape: Sequence[Any]
    dtype: str = "float32"


@dataclass(frozen=True)
class Int:
    """A whole number that is known when the model runs; dimensions may be made of it."""


__all__ = ["Int", "Tensor"]
