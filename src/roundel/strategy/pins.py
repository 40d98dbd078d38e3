# SPDX-License-Identifier: Apache-2.0
"""Decisions that somebody has made already: the attribute ``decisions`` of a tensor program.

    func.with_attr("decisions", {"sketch": "contraction", "rows": 6})

``sketch`` names the sketch, every other name is a decision of it; what is not named is chosen by the model. ``grain``, the number of
iterations of the parallel loop that a thread takes at once, is a decision of every sketch, and so is ``packed``, whether constants are laid
out as the sketch wants them. Without ``sketch`` the decisions are those of the
first sketch that the compiler would try. Decisions that cannot be had are an error, and never silently another sketch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ..ir import escape, tir
from ..ir.dataclass import dataclass
from ..ir.errors import OptionError, ScheduleError
from ..ir.module import IRModule
from ..passes import pass_
from .parallelism import GRAIN
from .program import Program
from .sketch import Sketch

SKETCH, PACKED = "sketch", "packed"
PINNED_AT = "pinned_at"
"""The attribute that says in messages for what somebody asked: a node or a tensor program."""
MOST_SHOWN = 12  # values in a message


@dataclass(frozen=True)
class Pins:
    """The name of the sketch, or None, and the values of decisions; ``grain`` is one of every sketch."""

    sketch: str | None = None
    decisions: Mapping[str, Any] = field(default_factory=dict)
    grain: int | None = None

    @staticmethod
    def of(func: tir.PrimFunc) -> Pins:
        """Those of a program. Raises ScheduleError for a grain that is no number of iterations."""
        given = func.attrs.get("decisions") or {}
        grain = given.get(GRAIN, 1)
        if isinstance(grain, bool) or not isinstance(grain, int | np.integer) or not 0 < grain < 1 << 63:
            raise ScheduleError(f"{GRAIN} cannot be {escape.value(grain)}", hint="it is a number of iterations, 1 or more")
        return Pins(given.get(SKETCH), {n: v for n, v in given.items() if n not in (SKETCH, GRAIN, PACKED)}, given.get(GRAIN))

    def __bool__(self) -> bool:
        return self.sketch is not None or bool(self.decisions)

    def __str__(self) -> str:
        return ", ".join([*([f"sketch={self.sketch}"] if self.sketch else []), *(f"{n}={v}" for n, v in self.decisions.items())])

    def leaves_out(self, sketch: Sketch) -> bool:
        """Whether another sketch is asked for."""
        return self.sketch is not None and self.sketch != sketch.name

    def choice(self, program: Program, sketch: Sketch) -> dict[str, Any]:
        """A value for each decision of a sketch: what is pinned, and for others the best that goes with it. Raises ScheduleError."""
        chunks = {} if self.grain is None else {GRAIN: int(self.grain)}
        if not self.decisions:
            return sketch.best() | chunks
        table = sketch.candidates
        names = list(table.columns) if table is not None else []
        for name in self.decisions:
            if name not in names:
                hint = f"its decisions are {', '.join([*names, GRAIN])}" + ("" if self.sketch else f"; another sketch is asked for by {SKETCH!r}")
                raise program.error(f"sketch {sketch.name} has no decision {name!r}", hint=hint)
        assert table is not None
        fitting = np.ones(len(table), dtype=bool)
        for name, value in self.decisions.items():
            left = table.columns[name][fitting]
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise program.error(f"{name} of sketch {sketch.name} cannot be {escape.value(value)}", hint=f"{name} can be {_values(left)}")
            fitting &= table.columns[name] == value
            if not fitting.any():
                others = ", ".join(f"{n}={v}" for n, v in self.decisions.items() if n != name)
                what = f"sketch {sketch.name} cannot have {name}={value}" + (f" with {others}" if value in table.columns[name] else "")
                raise program.error(what, hint=f"{name} can be {_values(left)}")
        return table.best(fitting) | chunks


def pin(mod: IRModule, choices: Mapping[str, Mapping[str, Any]]) -> IRModule:
    """The module with decisions pinned: for the names of tensor programs that are not scheduled yet, as ``roundel explain`` prints them, what
    the attribute ``decisions`` is to hold. Raises OptionError where there is no such program."""
    programs = [n for n, f in mod.items() if isinstance(f, tir.PrimFunc) and f.root_block is not None and "scheduled" not in f.attrs]
    for name in choices:
        if name not in programs:
            raise OptionError(f"there is no tensor program {name!r} to be scheduled", hint=f"there are {', '.join(programs)}")
    return mod.with_functions({name: _pinned(mod[name], name, chosen) for name, chosen in choices.items()})


def _pinned(func: tir.PrimFunc, name: str, chosen: Mapping[str, Any]) -> tir.PrimFunc:
    return func.replace(attrs=func.attrs | {"decisions": dict(chosen), PINNED_AT: f"tensor program {name!r}"})


def is_packed(func: tir.PrimFunc) -> bool:
    """Whether constants of a program may be laid out as its sketch wants them."""
    return bool((func.attrs.get("decisions") or {}).get(PACKED, True))


@pass_("pin_programs")
def pin_programs(mod: IRModule) -> IRModule:
    """Pin the decisions that ``rd.compile(choices=...)`` was given for tensor programs, by their names or patterns of them. Raises OptionError
    for those that fit no program."""
    names = [n for n, f in mod.items() if isinstance(f, tir.PrimFunc) and f.root_block is not None]
    for pattern, decisions in mod.choices.pins:
        mod = pin(mod, {name: decisions for name in [n for n in names if fnmatchcase(n, pattern)] or [pattern]})
    return mod


def _values(column: np.ndarray) -> str:
    values = sorted(set(column.tolist()))
    if len(values) > 2 and values == list(range(values[0], values[-1] + 1)):
        return f"{values[0]} to {values[-1]}"
    shown = [str(v) for v in values[:MOST_SHOWN]]
    return ", ".join(shown) + (f", ... {values[-1]}" if len(values) > MOST_SHOWN else "")
