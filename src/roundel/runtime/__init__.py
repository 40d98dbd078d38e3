# SPDX-License-Identifier: Apache-2.0
"""Loading and calling what was built: the C runtime, executables, models, the registry of functions."""

from .executable import BoundFunction, Executable
from .loader import load, load_executable
from .metadata import FunctionInfo, TensorInfo
from .model import ForeignModel, Model
from .profile import KernelTime, Profile
from .registry import get_func, has_func, register_func, remove_func
from .timing import Times, time_evaluator

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
