# SPDX-License-Identifier: Apache-2.0
"""How often a guard of a scheduled program is evaluated once lowering has split the loops around it.

A guard is the condition of a conditional expression, such as that of zero padding. ``lower/partition_loops`` splits a serial loop where a guard that is
linear in the loop's variable begins or ceases to hold for all iterations inside, and puts one test into each iteration of other loops; the larger part
is then free of the guard. It is still evaluated in the iterations at the borders, unless all variables that it depends on belong to unrolled loops,
so that it is a constant there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..arith.compare import SLACK
from ..ir import tir
from ..ir.annotations import EDGE, WINDOW
from ..ir.dataclass import dataclass
from ..ir.visit import free_vars

_CUT, _WRITTEN_OUT = (tir.ForKind.SERIAL, tir.ForKind.PARALLEL), tir.ForKind.UNROLLED
_ENDS = (tir.EQ, tir.NE)
MOST_PLACES = 1 << 16  # of a window over a picture, along one axis, that are counted

Extent = Callable[[Any], int]
Steps = Callable[[tir.Expr], Mapping[Any, float] | None]
First = Callable[[tir.Expr], int]


@dataclass(frozen=True)
class Around:
    """A loop on which a condition depends: how far the difference of the condition's sides moves with an iteration, how many there are, whether it is a
    serial loop of which the difference is linear, and the annotations that say how lowering treats it."""

    step: float
    extent: int
    kind: tir.ForKind
    is_linear: bool = True
    is_edge: bool = False
    is_window: bool = False


def share_evaluated(condition: tir.Expr, loops: Sequence[tir.For], extent: Extent, steps: Steps, first: First) -> float:
    """The share of a statement's iterations in which any part of a guard is evaluated. ``loops`` are those around the statement, the outermost
    first. ``extent`` is that of a loop's variable or of a quotient or remainder of it, ``steps`` says how far an index moves along each of these (None:
    it is not linear), ``first`` what it is in the first iteration of all loops."""
    never = 1.0
    for part in _parts(condition):
        never *= 1.0 - _share(part, loops, extent, steps, first)
    return 1.0 - never


def _parts(condition: tir.Expr) -> list[tir.Expr]:
    return [*_parts(condition.a), *_parts(condition.b)] if type(condition) is tir.And else [condition]


def _share(c: tir.Expr, loops: Sequence[tir.For], extent: Extent, steps: Steps, first: First) -> float:
    if type(c) in _ENDS and c.is_index:  # holds, or does not, at one end of a loop
        moved = steps(c.a - c.b)
        return 1.0 if moved is None or len(moved) != 1 else 1.0 / max(extent(next(iter(moved))), 1)
    if type(c) not in SLACK or not c.is_index:
        return 1.0
    slack = SLACK[type(c)](c)
    moved = steps(slack)
    if moved is None:
        return 1.0
    around = []
    for loop in loops:
        for axis, step in moved.items():
            if step and (axis is loop.loop_var or (not isinstance(axis, tir.Var) and loop.loop_var in free_vars(axis))):
                notes: Mapping[str, Any] = loop.annotations or {}
                is_linear = axis is loop.loop_var and loop.kind is tir.ForKind.SERIAL
                around.append(Around(step, extent(axis), loop.kind, is_linear, EDGE in notes, WINDOW in notes))
    return _evaluated(first(slack), around, True)


def share_inside(predicate: tir.Expr, loops: Sequence[tir.For], extent: Extent, steps: Steps, first: First) -> float:
    """The share of the iterations of ``loops`` that are left where the conditions of a block's predicate on loops over a window shorten these loops,
    since all else that the window reads is padding. Conditions on other loops are those of tiles that are not whole."""
    windows = {x.loop_var for x in loops if WINDOW in (x.annotations or {})}
    within: dict[Any, Any] = {}  # of each window's loop, the conditions on it
    for part in _parts(predicate) if windows else []:
        moved = steps(SLACK[type(part)](part)) if type(part) in SLACK and part.is_index else None
        over = windows & (moved or {}).keys()
        if moved is not None and len(over) == 1 and math.prod(extent(axis) for axis in moved) <= MOST_PLACES:
            within.setdefault(over.pop(), []).append((first(SLACK[type(part)](part)), moved))
    return math.prod(_share_of_places(conditions, extent) for conditions in within.values())


def share_before_ends(predicate: tir.Expr, loops: Sequence[tir.For], extent: Extent, steps: Steps, first: First) -> float:
    """The share of the iterations of ``loops`` that are left where a block's predicate ends them: those of a loop that was split into several may reach
    far beyond its end, if that is a size which only the run knows. Iterations that are written out or vectorized are made if the first of them is."""
    made: dict[frozenset[Any], float] = {}
    kinds = {x.loop_var: x.kind for x in loops if WINDOW not in (x.annotations or {})}
    for part in _parts(predicate):
        moved = steps(SLACK[type(part)](part)) if type(part) in SLACK and part.is_index else None
        if not moved or any(axis not in kinds or step > 0 for axis, step in moved.items()):
            continue
        counted = sorted((-step, extent(axis), axis) for axis, step in moved.items() if step and kinds[axis] in _CUT)
        if counted and all(outer == step * n for (step, n, _), (outer, _, _) in pairwise(counted)):
            left = (first(SLACK[type(part)](part)) // counted[0][0] + 1) / math.prod(n for _, n, _ in counted)
            axes = frozenset(axis for *_, axis in counted)
            made[axes] = min(made.get(axes, 1.0), max(left, 0.0))
    return math.prod(made.values())


def _share_of_places(conditions: Sequence[tuple[float, Mapping[Any, float]]], extent: Extent) -> float:
    """Where all conditions hold: differences in the first iteration, and how far each moves with an iteration of each loop."""
    axes = list(dict.fromkeys(axis for _, moved in conditions for axis in moved))
    places = np.indices([extent(axis) for axis in axes], sparse=True)
    holds = [slack + sum(moved.get(axis, 0) * at for axis, at in zip(axes, places, strict=True)) >= 0 for slack, moved in conditions]
    return float(np.mean(np.logical_and.reduce(np.broadcast_arrays(*holds))))


def _evaluated(slack: float, loops: Sequence[Around], is_known: bool) -> float:
    """The share of iterations in which it is tested whether ``slack``, the difference of the guard's sides in the first of them all, is below zero.
    ``is_known``: the variables of the loops outside are numbers."""
    if slack + _fall(loops) >= 0:
        return 0.0
    for k, loop in enumerate(loops):
        inside = loops[k + 1 :]
        if loop.kind not in _CUT or any(x.is_edge for x in inside) or not (loop.is_linear or inside):
            continue
        others = [*loops[:k], *inside]
        reach = slack + _fall(others)
        kept = -reach / loop.step if loop.step > 0 else reach / -loop.step + 1  # iterations from which on, or up to which, it holds
        lost = min(max(int(-(-kept // 1)), 0), loop.extent) if loop.step > 0 else loop.extent - min(max(int(kept // 1), 0), loop.extent)
        at = (lost - 1) // 2 if loop.step > 0 else loop.extent - 1 - (lost - 1) // 2
        there = slack + loop.step * at
        if not loop.is_linear:
            left = _evaluated(there, others, False)
        elif not others:
            left = 0.0  # each of the parts has one answer
        elif any(x.is_window for x in inside) or all(x.kind is _WRITTEN_OUT for x in others):
            left = _evaluated(there, others, is_known and lost == 1)
        else:
            left = 1.0
        return lost / loop.extent * left
    return 0.0 if is_known and all(x.kind is _WRITTEN_OUT for x in loops) else 1.0


def _fall(loops: Sequence[Around]) -> float:
    """By how much the difference falls at most below that in the first iteration."""
    return sum(min(0.0, x.step * (x.extent - 1)) for x in loops)
