# SPDX-License-Identifier: Apache-2.0
"""``tvm.dlight.base.schedule_rule``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class ScheduleRule:
    """``apply(func, target, tunable)`` gives a schedule, a list of them, or None where the rule does not fit."""

    def apply(self, func: Any, target: Any, tunable: bool) -> Any:
        """A schedule of the program."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it schedules: define apply(self, func, target, tunable)")

    @staticmethod
    def from_callable(name: str) -> Callable[[Callable[..., Any]], ScheduleRule]:
        """A rule of a function ``(func, target, tunable)``: a decorator."""

        def decorate(function: Callable[..., Any]) -> ScheduleRule:
            return type(name, (ScheduleRule,), {"apply": lambda self, func, target, tunable: function(func, target, tunable)})()

        return decorate


__all__ = ["ScheduleRule"]
