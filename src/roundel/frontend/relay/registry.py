# SPDX-License-Identifier: Apache-2.0
"""The table of converters by Relay's names of operators (``nn.conv2d``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Converter = Callable[..., Any]
TABLE: dict[str, Converter] = {}


def converter(*names: str) -> Callable[[Converter], Converter]:
    """Register ``(node: NodeContext, *operands) -> value or tuple``. Operands are graph expressions, or tuples of them."""

    def mark(fn: Converter) -> Converter:
        for name in names:
            TABLE[name] = fn
        return fn

    return mark


operator = converter
"""The name under which users supply operators: ``@roundel.relay.operator("vision.roi_pool")``; it replaces a converter of that name."""


def find(name: str) -> Converter | None:
    """The converter of an operator."""
    from . import ops  # noqa: F401  (fills the table)

    return TABLE.get(name)
