# SPDX-License-Identifier: Apache-2.0
"""A kernel's text at each stage of its way to machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir import tir
from ..ir.errors import OptionError, RoundelError
from ..ir.module import IRModule
from ..ir.visit import walk
from .assembly import working_loop

if TYPE_CHECKING:
    from ..build import Inspection

FORMS = ("script", "llvm", "asm")


def stages(before: IRModule, scheduled: IRModule, kernel: str, schedule: str, assembly: bool = True) -> list[dict[str, str | int | None]]:
    """First to last, each with its ``name``, ``text``, and the position of the stage that it can be compared with (``against``, None where there is
    none). ``before`` and ``scheduled`` are the module before and after its kernels were scheduled by the steps ``schedule``; with ``assembly`` the
    kernel is compiled."""
    found: list[dict[str, str | int | None]] = [{"name": "program", "text": before[kernel].script(), "against": None},
                                                {"name": "schedule", "text": schedule, "against": None}]
    if kernel not in scheduled.functions:
        return found
    found.append({"name": "scheduled", "text": scheduled[kernel].script(), "against": 0})
    try:
        shown = _inspected(scheduled, kernel)
    except RoundelError as error:
        return [*found, {"name": "lowered", "text": f"# {error}", "against": None}]
    found.append({"name": "lowered", "text": shown.script, "against": 2})
    if assembly:
        found.append({"name": "assembly of the inner loop", "text": working_loop(shown.assembly), "against": None})
    return found


def kernel_text(mod: IRModule, kernel: str | None, form: str) -> str:
    """One kernel of a module with schedules in ``script``, as LLVM text (``llvm``) or assembly (``asm``); raises OptionError that lists the kernels."""
    kernels = [n for n, f in mod.items() if f.attrs.get("kind") == "kernel"]
    if kernel not in kernels:
        raise OptionError(f"there is no kernel {kernel!r}" if kernel else f"{form} is shown of one kernel", hint=f"name one with -f: {', '.join(kernels)}")
    if form not in FORMS:
        raise OptionError(f"there is no form {form!r}", hint=", ".join(FORMS))
    if form == "script":
        return mod[kernel].script()
    shown = _inspected(mod, kernel)
    return shown.optimised if form == "llvm" else shown.assembly


def _inspected(mod: IRModule, kernel: str) -> Inspection:
    from ..build import inspect

    return inspect(_alone(mod, kernel), kernel, mod.attrs.get("target"))


def _alone(mod: IRModule, name: str) -> IRModule:
    """The module with one program and those that it calls."""
    wanted: dict[str, tir.BaseFunc] = {}
    todo = [name]
    while todo:
        if (current := todo.pop()) not in wanted and current in mod.functions:
            wanted[current] = mod[current]
            todo += [n.op.name for n in walk(mod[current]) if isinstance(n, tir.Call) and not isinstance(n.op, str)]
    return mod.replace(functions=wanted)
