# SPDX-License-Identifier: Apache-2.0
"""The table of ATen converters by overload name (``aten.add.Tensor``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Converter = Callable[..., Any]
TABLE: dict[str, Converter] = {}


def converter(*names: str) -> Callable[[Converter], Converter]:
    """Register ``(node: NodeContext, *args, **kwargs) -> value or tuple``; a name without overload covers all its overloads.

    Tensor arguments are graph expressions, sizes ints or index expressions, the rest plain Python values.
    """

    def mark(fn: Converter) -> Converter:
        for name in names:
            TABLE[name if "." in name and not name.startswith("aten.") else name.removeprefix("aten.")] = fn
        return fn

    return mark


operator = converter


def find(name: str) -> Converter | None:
    """The converter of an overload such as ``aten.add.Tensor``, by its full name or without the overload."""
    short = name.removeprefix("aten.")
    return TABLE.get(short) or TABLE.get(short.rsplit(".", 1)[0])
