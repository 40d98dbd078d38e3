# SPDX-License-Identifier: Apache-2.0
"""The tables of a code generator: which function writes which kind of node or intrinsic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def writes(table: dict, *keys: Any) -> Callable:
    """Registers a function as the writer of these node types or intrinsics."""

    def mark(fn: Callable) -> Callable:
        for k in keys:
            table[k] = fn
        return fn

    return mark
