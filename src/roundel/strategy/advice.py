# SPDX-License-Identifier: Apache-2.0
"""What to tell somebody who builds a program that nobody scheduled."""

from __future__ import annotations

from ..ir import tir
from ..ir.escape import short_name
from ..ir.module import IRModule
from ..ir.tir import BaseFunc
from ..ir.warning import warn
from .program import is_unscheduled

MUCH = 1 << 22  # iterations of a loop nest: what takes milliseconds, so that a schedule is worth a thought


def warn_of_plain_loops(mod: IRModule | BaseFunc) -> None:
    """Warn, once for each place of the user's program, of large tensor programs whose loops would run as they are written."""
    functions = list(mod.items()) if isinstance(mod, IRModule) else [(str(mod.attrs.get("global_symbol", "main")), mod)]
    if not all(isinstance(func, tir.PrimFunc) for _, func in functions):
        return  # graph functions go through the pipeline, which schedules what they call
    names = [short_name(name) for name, func in functions if _iterations(func.body) >= MUCH and is_unscheduled(func)]
    if names:
        which = f"{names[0]} has" if len(names) == 1 else f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''} have"
        warn(f"{which} no schedule: loops run as they are written, on one core; rd.auto_schedule(...) gives what the compiler would choose")


def _iterations(body: tir.Stmt) -> int:
    """Of the deepest chain of loops around a statement, at known sizes; those of unknown loops count once."""
    inside = max((_iterations(c) for c in body._below() if isinstance(c, tir.Stmt)), default=1)
    extent = body.extent if isinstance(body, tir.For) else None
    return inside * (max(1, int(extent.value)) if isinstance(extent, tir.IntImm) else 1)
