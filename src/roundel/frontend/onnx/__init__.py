# SPDX-License-Identifier: Apache-2.0
"""The ONNX frontend: ``from_onnx`` and the hook to supply operators, ``operator``."""

from typing import Any

from .registry import operator

__all__ = ["check_model", "from_onnx", "operator"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    homes = {"from_onnx": "model", "check_model": "check"}
    if name in homes:
        return getattr(import_module(f"{__name__}.{homes[name]}"), name)
    raise AttributeError(name)
