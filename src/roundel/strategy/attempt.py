# SPDX-License-Identifier: Apache-2.0
"""One rule tried on one program. A rule that cannot schedule a program, whatever the reason, costs speed and never the compilation:
the alternative is dropped, said so, and the next rule is tried.

A step that a primitive calls illegal is a rule's ordinary way to find out that it does not fit, and is logged as information. Any other
exception is a mistake in the rule, and is logged as a warning (logger ``roundel.schedule``), which the tests count as a failure.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..ir import tir
from ..ir.errors import ScheduleError
from ..schedule.schedule import Schedule
from .applied import Applied
from .reduction.inits import separate_inits

Rule = Callable[[Any, Any], Applied | None]

_log = logging.getLogger("roundel.schedule")


@dataclass(frozen=True)
class Attempt:
    """What came of a rule: ``applied`` where it fits (the program is then ``schedule.func``), else why not."""

    schedule: Schedule
    applied: Applied | None
    why_not: str = ""

    @property
    def was_dropped(self) -> bool:
        """Whether the rule took the program for its own and then failed."""
        return self.applied is None and bool(self.why_not)


def attempt(rule: Rule, func: tir.PrimFunc, target: Any, constants: tuple[int, ...] = ()) -> Attempt:
    """Try a rule on a program whose parameters at the positions ``constants`` are constants. Raises nothing but what ends the process."""
    sch = Schedule(func.with_attr("constant_params", constants) if constants else func)
    try:
        applied = rule(sch, target)
        if applied is not None:
            separate_inits(sch)
    except ScheduleError as error:
        _log.info("rule %s is not legal for program %r: %s", rule.__name__, _name(func), error.what)
        return Attempt(sch, None, f"illegal here: {error.what}")
    except Exception as error:  # a mistake in the rule: told, counted by the tests, and no reason to stop
        _log.warning("rule %s failed on program %r and was passed over: %s: %s", rule.__name__, _name(func), type(error).__name__, error, exc_info=True)
        return Attempt(sch, None, f"failed: {type(error).__name__}: {error}")
    return Attempt(sch, applied)


def takes(rule: Rule, func: tir.PrimFunc, target: Any) -> bool:
    """Whether a rule fits a program and all its steps are legal."""
    return attempt(rule, func, target).applied is not None


def _name(func: tir.PrimFunc) -> str:
    return str(func.attrs.get("global_symbol", "a tensor program"))
