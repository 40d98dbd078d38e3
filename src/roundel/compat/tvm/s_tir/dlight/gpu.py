# SPDX-License-Identifier: Apache-2.0
"""``tvm.dlight.gpu``: rules for targets with threads; each fits a kind of program, ``Fallback`` all. The mapping is the same: an element, a thread."""

from __future__ import annotations

from typing import Any

from .....strategy import threads
from .base.schedule_rule import ScheduleRule


def _rule(name: str, fits: Any, doc: str) -> Any:
    def apply(self: Any, func: Any, target: Any, tunable: bool) -> Any:
        if getattr(target, "is_host_like", False) or not fits(func):
            return None
        most = int(dict(getattr(target, "attrs", ())).get("max_threads_per_block", threads.MOST_THREADS))
        return threads.bind_threads(func, most)

    return type(name, (ScheduleRule,), {"apply": apply, "__doc__": doc})


GPUScheduleRule = ScheduleRule
Matmul = _rule("Matmul", threads.is_matmul, "Products of two matrices")
GEMV = _rule("GEMV", threads.is_gemv, "Products of a matrix and a vector")
LowBatchGEMV = _rule("LowBatchGEMV", threads.is_gemv, "As GEMV")
Reduction = _rule("Reduction", threads.is_reduction, "One operand is reduced")
GeneralReduction = _rule("GeneralReduction", threads.is_general_reduction, "Several reductions, one after another")
Transpose = _rule("Transpose", threads.is_transpose, "Elements at permuted axes")
RMSNorm = _rule("RMSNorm", threads.is_rms_norm, "Divided by the root of the mean square")
Fallback = _rule("Fallback", lambda func: True, "Every program of plain blocks")

__all__ = ["GEMV", "Fallback", "GPUScheduleRule", "GeneralReduction", "LowBatchGEMV", "Matmul", "RMSNorm", "Reduction", "Transpose"]
