# SPDX-License-Identifier: Apache-2.0
"""The last step of lowering: functions are marked as kernels, and checked to be flat."""

from __future__ import annotations

from roundel.ir import tir

from .flat import check_flat
from .kernel_pass import kernel_pass


@kernel_pass("mark_kernels")
def mark_kernels(func: tir.PrimFunc) -> tir.PrimFunc:
    """``kind="kernel"``, after the check that nothing is left that code generation could not take."""
    check_flat(func)
    return func if func.attrs.get("kind") == "kernel" else func.with_attr("kind", "kernel")
