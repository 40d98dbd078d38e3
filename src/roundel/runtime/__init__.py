# SPDX-License-Identifier: Apache-2.0
"""Loading and calling what was built: the C runtime, executables, models, the registry of functions."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .executable import BoundFunction, Executable
from .loader import load, load_executable
from .metadata import FunctionInfo, TensorInfo
from .model import ForeignModel, Model
from .registry import get_func, has_func, register_func, remove_func

if TYPE_CHECKING:
    from .profile import KernelTime, Profile
    from .timing import Times, time_evaluator

_TIMED = {"KernelTime": "profile", "Profile": "profile", "Times": "timing", "time_evaluator": "timing"}

__all__ = [
    "BoundFunction",
    "Executable",
    "ForeignModel",
    "FunctionInfo",
    "KernelTime",
    "Model",
    "Profile",
    "TensorInfo",
    "Times",
    "get_func",
    "has_func",
    "load",
    "load_executable",
    "register_func",
    "remove_func",
    "time_evaluator",
]


def __getattr__(name: str) -> Any:
    """What measures is imported on first use: a model that is only run needs none of it."""
    if name not in _TIMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_TIMED[name]}", __name__), name)
