# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.frontend``."""

from __future__ import annotations

from .....ir.module import IRModule
from .....relax.frontend import detach_params as _detach_params
from .....relax.frontend import nn
from ...runtime import Tensor, tensor
from . import onnx, torch


def detach_params(mod: IRModule) -> tuple[IRModule, dict[str, list[Tensor]]]:
    """The module without the values of its parameters, and those values by function: `roundel.relax.frontend.detach_params`"""
    without, values = _detach_params(mod)
    return without, {name: list(map(tensor, arrays)) for name, arrays in values.items()}


__all__ = ["detach_params", "nn", "onnx", "torch"]
