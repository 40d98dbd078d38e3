# SPDX-License-Identifier: Apache-2.0
"""Give every tensor program that has no schedule yet one for the module's target."""

from __future__ import annotations

from typing import Any

from ..ir import tir
from ..ir.errors import ScheduleError
from ..ir.module import IRModule
from ..passes import pass_
from ..schedule import Schedule
from ..schedule.rules import RULES
from ..target import Target


@pass_("schedule")
def schedule_module(mod: IRModule) -> IRModule:
    """Apply the first schedule rule that fits to each program in block form that is not scheduled; the attribute ``scheduled``
    names the rule."""
    target = mod.attrs.get("target") or Target.host()
    return mod.with_functions({name: schedule_program(f, target) for name, f in mod.items() if _wants_schedule(f)})


def _wants_schedule(func: Any) -> bool:
    return isinstance(func, tir.PrimFunc) and func.root_block is not None and "scheduled" not in func.attrs


def schedule_program(func: tir.PrimFunc, target: Any) -> tir.PrimFunc:
    """The program under the first rule that fits. A rule that meets an illegal step is noted in the attribute
    ``schedule_notes`` and the next one is tried; without any the loops stay serial."""
    notes: list[str] = []
    for rule in RULES:
        sch = Schedule(func)
        try:
            if rule(sch, target):
                return sch.func.replace(attrs=sch.func.attrs | {"scheduled": rule.__name__})
        except ScheduleError as error:
            notes.append(f"{rule.__name__}: {error.what}")
    return func.replace(attrs=func.attrs | {"scheduled": "serial", **({"schedule_notes": tuple(notes)} if notes else {})})
