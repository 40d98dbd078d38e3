# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.training.utils``."""

from __future__ import annotations

from typing import Any

from .....graph.gradient import register_te_gradient
from .....training import append_loss
from ...transform import Pass


def AppendLoss(func_name: str, loss_function: Any, num_backbone_outputs: int = 1, new_func_name: str | None = None) -> Pass:
    """A function ``NAME_loss``, the model with its loss: `roundel.training.append_loss`"""
    return Pass(lambda mod: append_loss(mod, func_name, loss_function, num_backbone_outputs, new_func_name), name="AppendLoss")


__all__ = ["AppendLoss", "register_te_gradient"]
