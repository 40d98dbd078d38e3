# SPDX-License-Identifier: Apache-2.0
"""The table of decompositions by overload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

TABLE: dict[Any, Callable[..., Any]] = {}


def decomposes(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function for overloads (``copysign.Tensor``; without overload: all that exist; ``torch_nn::name`` where it is not one of
    ATen's); names this PyTorch lacks are passed over."""

    def mark(fn: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            base, _, overload = name.partition(".")
            library, _, base = base.rpartition("::")
            packet = getattr(getattr(torch.ops, library or "aten"), base, None)
            for each in [overload] if overload else packet.overloads() if packet is not None else []:
                if not each.endswith("out") and hasattr(packet, each):
                    TABLE[getattr(packet, each)] = fn
        return fn

    return mark
