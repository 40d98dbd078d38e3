# SPDX-License-Identifier: Apache-2.0
"""Give every tensor program that has no schedule yet one for the module's target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..build.ahead import offer
from ..ir import tir
from ..ir.module import IRModule
from ..passes import pass_
from ..target import Target
from .pack_constants import constant_params, repack
from .rules import RULES, attempt


@pass_("schedule")
def schedule_module(mod: IRModule) -> IRModule:
    """Apply the first schedule rule that fits to each program in block form that is not scheduled, and lay constants out as
    the schedules want them. The attribute ``scheduled`` names the rule."""
    target = mod.attrs.get("target") or Target.host()
    constants = constant_params(mod)
    changes, layouts = {}, {}
    for name, func in mod.items():
        if isinstance(func, tir.PrimFunc) and func.root_block is not None and "scheduled" not in func.attrs:
            changes[name], wanted = schedule_program(func, target, constants.get(name, ()))
            offer(name, changes[name])
            if wanted:
                layouts[name] = wanted
    return repack(mod.with_functions(changes), layouts)


def schedule_program(func: tir.PrimFunc, target: Any, constants: tuple[int, ...] = ()) -> tuple[tir.PrimFunc, Mapping[int, tir.IndexMap]]:
    """The program under the first rule that fits, and the layouts it wants for the constant parameters ``constants``.

    A rule that meets an illegal step, or fails otherwise, is noted in the attribute ``schedule_notes`` and the next one is tried.
    """
    notes: list[str] = []
    for rule in RULES:
        tried = attempt(rule, func, target, constants)
        if tried.applied is not None:
            marks = {"scheduled": rule.__name__, **({"schedule_notes": tuple(notes)} if notes else {})}
            scheduled = tried.schedule.func
            return scheduled.replace(attrs=scheduled.attrs.without("constant_params") | marks), tried.applied.layouts
        if tried.was_dropped:
            notes.append(f"{rule.__name__}: {tried.why_not}")
    raise AssertionError("the last rule takes no step")
