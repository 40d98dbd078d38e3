# SPDX-License-Identifier: Apache-2.0
"""The Relay frontend: ``from_relay`` reads the graphs that TVM 0.8 to 0.14 wrote, as text or JSON, and ``operator`` supplies converters."""

from typing import Any

__all__ = ["from_relay", "load_params", "operator"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    homes = {"from_relay": "load", "load_params": "arrays", "operator": "registry"}
    if name in homes:
        return getattr(import_module(f"{__name__}.{homes[name]}"), name)
    raise AttributeError(name)
