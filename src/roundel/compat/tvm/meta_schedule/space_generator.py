# SPDX-License-Identifier: Apache-2.0
"""``tvm.meta_schedule.space_generator``: the schedules that are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ....schedule import Schedule, sketches
from ....strategy import Rule, from_open


class ScheduleFn:
    """Those that a function of a schedule makes, with every value of what it samples; the compiler's own choice is tried too."""

    def __init__(self, sch_fn: Callable[[Schedule], Any], **_: Any) -> None:
        self.sch_fn = sch_fn

    def rule(self) -> Rule:
        """As a rule of `rd.strategy`."""
        name = getattr(self.sch_fn, "__name__", "schedule")

        def propose(program: Any) -> Iterator[Any]:
            for k, opened in enumerate(sketches(program.func, self.sch_fn)):
                yield from_open(f"{name}_{k}" if k else name, program, opened)

        return Rule(name, propose)


class PostOrderApply:
    """Those that Roundel's rules make."""

    def __init__(self, **_: Any) -> None:
        pass


def rules_of(space: Any) -> Any:
    """What ``rd.tune`` takes for a space."""
    if isinstance(space, ScheduleFn):
        return [space.rule()]
    return [ScheduleFn(space).rule()] if callable(space) else "all"


__all__ = ["PostOrderApply", "ScheduleFn"]
