# SPDX-License-Identifier: Apache-2.0
"""``tvm.dlight.cpu``: for processors, what `rd.auto_schedule` gives."""

from __future__ import annotations

from typing import Any

from .....schedule.schedule import Schedule
from .....strategy import schedule_program, threads
from ...running import as_target
from .base.schedule_rule import ScheduleRule


def _rule(name: str, fits: Any, doc: str) -> Any:
    def apply(self: Any, func: Any, target: Any, tunable: bool) -> Any:
        from .....driver import target_of

        if not getattr(target, "is_host_like", True) or not fits(func):
            return None
        return Schedule(schedule_program(func, target_of(as_target(target)), name=str(func.attrs.get("global_symbol", "main")))[0])

    return type(name, (ScheduleRule,), {"apply": apply, "__doc__": doc})


CPUScheduleRule = ScheduleRule
GEMV = _rule("GEMV", threads.is_gemv, "Products of a matrix and a vector")
Reduction = _rule("Reduction", lambda func: threads.is_reduction(func) or threads.is_general_reduction(func), "What is reduced")

__all__ = ["GEMV", "CPUScheduleRule", "Reduction"]
