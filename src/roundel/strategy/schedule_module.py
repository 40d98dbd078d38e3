# SPDX-License-Identifier: Apache-2.0
"""Give every tensor program that has no schedule yet one for the module's target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..build.ahead import offer
from ..ir import tir
from ..ir.module import IRModule
from ..passes import pass_
from ..target import Target
from .choose import choose
from .pack_constants import constant_params, repack
from .pins import is_packed
from .records import Records
from .sketch import Applied


@pass_("schedule")
def schedule_module(mod: IRModule) -> IRModule:
    """Schedule each program in block form that has no schedule yet by the first of its alternatives that fits, and lay constants out as the
    schedules want them. The attribute ``scheduled`` names the sketch.

    What was measured, according to the records of the module's choices, is taken as it is; a record that does not fit is warned of."""
    target = mod.attrs.get("target") or Target.host()
    constants = constant_params(mod)
    changes, layouts, known = {}, {}, {}
    for name, func in mod.items():
        if isinstance(func, tir.PrimFunc) and func.root_block is not None and "scheduled" not in func.attrs:
            packed = constants.get(name, ()) if is_packed(func) else ()
            rule, applied, notes = _taken(func, target, packed, records=mod.choices.records, name=name)
            changes[name] = finished(rule, applied, notes)
            known[name] = {"rule": rule, "decisions": dict(applied.decisions)}
            offer(name, changes[name])
            if applied.layouts:
                layouts[name] = applied.layouts
    return repack(mod.with_functions(changes), layouts).replace(choices=mod.choices.with_kernels(known)) if changes else mod


def schedule_program(func: tir.PrimFunc, target: Target, constants: tuple[int, ...] = (),
                     pins: Mapping[str, Any] | None = None, records: Records | None = None,
                     name: str = "main") -> tuple[tir.PrimFunc, Mapping[int, tir.IndexMap]]:
    """The program under the first alternative that fits, and the layouts it wants for the constant parameters ``constants``. ``records`` as for
    ``choose``; ``name`` is what messages call it.

    Alternatives that were dropped, because a step was illegal or something failed, are noted in the attribute ``schedule_notes``. Raises
    ScheduleError where decisions are pinned (``pins``, or the attribute ``decisions``) that cannot be had.
    """
    rule, applied, notes = _taken(func, target, constants, pins, records, name)
    return finished(rule, applied, notes), applied.layouts


def _taken(func: tir.PrimFunc, target: Target, constants: tuple[int, ...] = (), pins: Mapping[str, Any] | None = None, records: Records | None = None,
           name: str = "main") -> tuple[str, Applied, list[str]]:
    """The first alternative that fits: its sketch's name, what that makes of the program, and which others were dropped."""
    notes: list[str] = []
    for found in choose(func, target, constants, pins, records=records):
        if found.applied is not None:
            if found.record is not None and records is not None:
                records.taken(name, found.record)
            return found.name, found.applied, notes
        if found.was_dropped:
            notes.append(f"{found.name}: {found.why_not}")
        if found.record is not None and records is not None:
            records.tell(f"kernel {name} is not compiled from its record ({found.record.origin}): {found.why_not}")
    raise AssertionError("the last rule takes no step")


def finished(name: str, applied: Applied, notes: Sequence[str] = ()) -> tir.PrimFunc:
    """The program of a sketch with the marks of one that is scheduled."""
    marks = {"scheduled": name, **({"schedule_notes": tuple(notes)} if notes else {})}
    return applied.func.replace(attrs=applied.func.attrs.without("constant_params") | marks)
