# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.frontend.onnx``."""

from __future__ import annotations

from typing import Any

from .....ir.module import IRModule


def from_onnx(model: Any, shape_dict: Any = None, dtype_dict: Any = None, opset: Any = None, keep_params_in_input: bool = False, **_: Any) -> IRModule:
    """The module of an ONNX model"""
    from .....frontend.onnx import from_onnx

    return from_onnx(model)


__all__ = ["from_onnx"]
