# SPDX-License-Identifier: Apache-2.0
"""The reference interpreter: runs any module at any stage with NumPy, and is the oracle that everything else is
compared with.
"""

from .compare import Difference, compare
from .runtime import Runtime, interpret, run_prim_func
from .shadow import Shadow, Shadowed, shadow_call

__all__ = ["Difference", "Runtime", "Shadow", "Shadowed", "compare", "interpret", "run_prim_func", "shadow_call"]
