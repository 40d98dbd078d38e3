# SPDX-License-Identifier: Apache-2.0
"""Loads and runs models that Roundel compiled: ``load("model.so")(x)``. Needs NumPy alone; the compiler is the package ``roundel``.

These are the modules of ``roundel.runtime``, so a program that only loads models runs with ``import roundel_runtime as rd``.
"""

from .ir.errors import RoundelError
from .runtime import Executable, FunctionInfo, Model, TensorInfo, get_func, load, register_func
from .version import __version__

__all__ = ["Executable", "FunctionInfo", "Model", "RoundelError", "TensorInfo", "__version__", "get_func", "load", "register_func"]
