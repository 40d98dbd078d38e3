# SPDX-License-Identifier: Apache-2.0
"""``tvm_ffi`` as TVM's programs use it: comparison of modules, functions by name, shapes. The table of functions is that of apache-tvm-ffi itself."""

from __future__ import annotations

from ..ir import structural_equal, structural_hash
from .tvm.functions import get_global_func, register_object
from .tvm.functions import register_func as register_global_func
from .tvm.runtime import Shape

Array = tuple
"""What functions with several results return."""

__all__ = ["Array", "Shape", "get_global_func", "register_global_func", "register_object", "structural_equal", "structural_hash"]
