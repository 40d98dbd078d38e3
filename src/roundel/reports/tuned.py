# SPDX-License-Identifier: Apache-2.0
"""What was measured of a model's kernels, candidate by candidate, and what had been expected of each."""

from __future__ import annotations

import math
from typing import Any

from ..ir.errors import RoundelError
from ..ir.module import IRModule
from ..ir.record import Record
from ..strategy.choose import proposals
from ..strategy.pack_constants import constant_params
from ..strategy.pins import is_packed
from ..strategy.program import Program
from ..strategy.records import program_digest
from ..strategy.sketch import Sketch

MOST = 3000  # candidates of a kernel that a page shows, the latest


def trials_of(mod: IRModule, kernel: str, cycles_to_ms: float) -> dict[str, Any] | None:
    """Of one kernel of a module that is not scheduled yet: milliseconds of the ``untuned`` schedule, and ``trials`` in the order in which they were
    measured, each with ``rule``, ``decisions``, ``ms`` (None where it failed, and why in ``error``) and ``expected_ms`` (None where nothing is expected
    of it). None where no candidate of it is in the database that the module is compiled from."""
    func, target, records = mod[kernel], mod.attrs["target"], mod.choices.records
    if records is None or func.root_block is None:
        return None
    constants = constant_params(mod).get(kernel, ()) if is_packed(func) else ()
    found: list[Record] = records.trials(program_digest(Program.of(func, target, constants)))
    if not found:
        return None
    sketches = {sketch.name: sketch for sketch, _ in proposals(func, target, constants)}
    untuned = next((r.default for r in reversed(found) if r.default is not None), None)
    trials = [{"rule": r.sketch, "decisions": dict(r.decisions), "ms": r.seconds * 1e3 if math.isfinite(r.seconds) else None, "error": r.error,
               "expected_ms": _expected(sketches.get(r.sketch), r, cycles_to_ms)} for r in found]
    return {"untuned": None if untuned is None else untuned * 1e3, "trials": trials[-MOST:], "left_out": max(0, len(trials) - MOST)}


def _expected(sketch: Sketch | None, record: Record, cycles_to_ms: float) -> float | None:
    """By today's model of the machine; None for a sketch, or decisions, that are proposed no more."""
    try:
        cycles = None if sketch is None else sketch.expected(record.decisions)
    except (KeyError, ValueError, TypeError, RoundelError):
        return None
    return None if cycles is None else cycles * cycles_to_ms
