# SPDX-License-Identifier: Apache-2.0
"""The reference interpreter: runs any module at any stage with NumPy, and is the oracle that everything else is compared with."""

from .runtime import Runtime, interpret, run_prim_func

__all__ = ["Runtime", "interpret", "run_prim_func"]
