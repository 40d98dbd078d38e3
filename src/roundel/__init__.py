# SPDX-License-Identifier: Apache-2.0
"""Roundel: a machine-learning compiler. ``compile`` a model, ``load`` a compiled one, ``build`` or ``interpret`` a module."""

import logging
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

__version__ = "0.2.0"

_HOMES = {
    "auto_schedule": "api", "compile": "api", "interpret": "api", "load": "api", "import_model": "api", "import_relay": "api",
    "quantize": "api", "Quantized": "quantizer",
    "explain": "reports.explained", "Explained": "reports.explained", "report": "reports.report",
    "register_func": "runtime.registry", "get_func": "runtime.registry", "Model": "runtime.model", "Executable": "runtime.executable",
    "IRModule": "ir.module", "Target": "target", "Schedule": "schedule", "BlockBuilder": "builder", "RoundelError": "ir.errors",
}
_ROOMS = {"ir", "arith", "runtime", "target", "interp", "script", "te", "builder", "passes", "ops", "intrinsics", "schedule", "lower", "codegen",
          "strategy", "graph", "host", "driver", "frontend", "embed", "api", "cli", "relax", "tir", "compat", "reports", "backends", "pages", "quantizer"}
_FRONTENDS = {"onnx", "torch", "relay"}

__all__ = ["__version__", "build", "tune", *_HOMES]


class _Package(ModuleType):
    """``roundel.build`` is the function although a room has that name too; importing the room must not replace it."""

    @property
    def build(self) -> Any:
        return import_module(".api", __name__).build

    @build.setter
    def build(self, room: ModuleType) -> None:
        """The import system's note of the room, which is found in sys.modules anyway."""

    @property
    def tune(self) -> Any:
        """As ``build``; what the room has can be had from the function, ``roundel.tune.tasks``."""
        return import_module(".api", __name__).tune

    @tune.setter
    def tune(self, room: ModuleType) -> None:
        """As that of ``build``."""


sys.modules[__name__].__class__ = _Package
logging.getLogger(__name__).addHandler(logging.NullHandler())  # what is logged is shown where the program says so


def __getattr__(name: str) -> Any:
    """Everything is imported on first use, so that importing the package costs next to nothing."""
    if name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    elif name in _FRONTENDS:
        value = import_module(f".frontend.{name}", __name__)
    elif name in _ROOMS:
        value = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module 'roundel' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), "build", "tune", *_HOMES, *_ROOMS, *_FRONTENDS})
