# SPDX-License-Identifier: Apache-2.0
"""``tvm.dlight.base.transform``."""

from __future__ import annotations

from typing import Any

from ......ir.module import IRModule
from ......ir.tir import PrimFunc
from ....target import Target
from ....transform import Pass
from .schedule_rule import ScheduleRule

_MARKS = ("tirx.is_scheduled", "tir.is_scheduled")
"""The attribute of scheduled functions, by its names."""


def ApplyDefaultSchedule(*rules: ScheduleRule) -> Pass:
    """Each tensor program that has no schedule gets that of the first rule which fits; the target is that of the function, else that of the ``with`` around.

    Raises ValueError where there is no target."""

    def apply(mod: IRModule) -> IRModule:
        changed = {}
        for name, func in mod.items():
            if isinstance(func, PrimFunc) and not any(func.attrs.get(mark) for mark in _MARKS):
                found = _first(func, func.attrs.get("target") or Target.current(allow_none=False), rules)
                if found is not None:
                    changed[name] = found.func.with_attr(dict.fromkeys(_MARKS, 1))
        return mod.with_functions(changed)

    return Pass(apply, name="ApplyDefaultSchedule")


def _first(func: Any, target: Any, rules: Any) -> Any:
    for rule in rules:
        found = rule.apply(func, target, False)
        if found is not None:
            return found[0] if isinstance(found, list) else found
    return None


__all__ = ["ApplyDefaultSchedule"]
