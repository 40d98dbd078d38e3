# SPDX-License-Identifier: Apache-2.0
"""apache-tvm-ffi, imported on first use and without PyTorch unless the process has it already.

The package imports torch whenever it is installed, which takes a second that a compiled model has no use for. Tensors
of a torch imported later still pass, through DLPack. Only registered functions need the package: calls go without it.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from ..ir.errors import CallError, RunError


@functools.cache
def load() -> Any:
    """The module ``tvm_ffi``, through which this project's errors pass as what they are."""
    module = _imported()
    for error in (CallError, RunError):
        module.register_error(f"roundel.{error.__name__}", error)
    return module


def _imported() -> Any:
    if "torch" in sys.modules:
        import tvm_ffi

        return tvm_ffi
    sys.modules["torch"] = None  # type: ignore[assignment]  # makes `import torch` an ImportError
    try:
        import tvm_ffi
    finally:
        del sys.modules["torch"]
    return tvm_ffi
