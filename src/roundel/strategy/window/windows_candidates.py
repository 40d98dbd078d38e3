# SPDX-License-Identifier: Apache-2.0
"""The decisions of a reduction over windows, and the cycles that the model of the target expects of each combination of them.

``neighbours`` is the number of results along the last axis but one that are accumulated together, ``vectors`` the number of vectors of each.
``straight`` is the number of reduction axes, counted from the innermost, that are unrolled completely; the others stay loops. In unrolled code
neighbours share the loads of overlapping windows; a loop over the rows of a window makes less code, and can leave out rows of padding.
``order`` is 1 where the loop over groups of vectors stands outside of all others, so that the rows that windows share are still near when the
next ones come, and 0 where it stands inside, so that what lies side by side in memory is read together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...ir.tir import IterVar
from ...ir.visit import free_vars
from ...target import Target
from ..candidates import Candidates, Columns, combinations
from ..cost import cycles
from ..match.accesses import BlockInfo, conditional, extent_of
from ..statements import ASSUMED, LANES, UNROLLED, Loop, in_registers, statement_of

MOST_NEIGHBOURS, MOST_VECTORS = 16, 8
MOST_STEPS = 64        # that are written out
MOST_CODE = 512        # operations of straight code
BORDERS = 2            # of a window's axis, each with code of its own where it is written out
GUESSES = 2            # branches of a loop over a window that are guessed wrong at a border, where fewer of its iterations are left


def candidates(info: BlockInfo, lanes: int, target: Target) -> Candidates:
    """Every choice whose accumulators fit the registers."""
    last, before = extent_of(info.spatial[-1]), extent_of(info.spatial[-2]) if len(info.spatial) > 1 else 1
    narrow = last is not None and last <= lanes
    vectors = (1,) if narrow else (1, 2, 4) if last is None else range(1, min(MOST_VECTORS, -(-last // lanes)) + 1)
    neighbours = (1, 2, 4, 8) if before is None else range(1, min(MOST_NEIGHBOURS, before) + 1)

    written = _written(info)
    known = next((k for k, i in enumerate(reversed(info.reduce)) if extent_of(i) is None), len(info.reduce))
    straight = [k for k in range(known, -1, -1) if not k or written[k] > written[k - 1]]

    def legal(t: Columns) -> np.ndarray:
        chains, steps = t["neighbours"] * t["vectors"], written[t["straight"]]
        return (chains + 3 <= target.vector_registers) & ((t["straight"] == 0) | ((steps <= MOST_STEPS) & (steps * chains <= MOST_CODE)))

    order = (0, 1) if last is not None and last > lanes and any(_shares(info, axis) for axis in info.spatial[:-1]) else (0,)
    table = combinations({"neighbours": neighbours, "vectors": vectors, "straight": straight, "order": order}, legal)
    return Candidates(table, np.maximum(_cycles(info, lanes, target, table), 1.0))  # nothing at all where an extent is 0


def _written(info: BlockInfo) -> np.ndarray:
    """Steps of so many axes of the reduction, from the innermost."""
    return np.cumprod([1.0, *(extent_of(i) or ASSUMED for i in reversed(info.reduce))])


def _cycles(info: BlockInfo, lanes: int, target: Target, t: Columns) -> Any:
    """Of the nest that each candidate becomes (``windows._schedule``)."""
    axes = {axis.var: k for k, axis in enumerate(info.block.iter_vars)}
    statement = in_registers(statement_of(info.block, axes[info.spatial[-1].var], target, has_guards=False))
    extent = lambda axis: ASSUMED if extent_of(axis) is None else extent_of(axis)
    *others, last = info.spatial
    beside = others.pop() if others else None
    around = [Loop(axes[i.var], extent(i)) for i in others]
    reduce = [Loop(axes[i.var], extent(i), written=np.where(t["straight"] > k, extent(i), 1)) for k, i in enumerate(reversed(info.reduce))][::-1]
    vectors = [Loop(axes[last.var], t["vectors"], UNROLLED), Loop(axes[last.var], lanes, LANES)]
    across = -(-extent(last) // (t["vectors"] * lanes))
    first, then = (Loop(axes[last.var], np.where(t["order"] == k, across, 1)) for k in (1, 0))

    def nest(groups: Any, neighbours: Any) -> tuple[Loop, ...]:
        rows = [] if beside is None else [Loop(axes[beside.var], groups)]
        inside = [] if beside is None else [Loop(axes[beside.var], neighbours, UNROLLED)]
        return (*(x for x in (first, *around, *rows, then, *reduce) if np.any(x.extent != 1)), *inside, *vectors)

    side = 1 if beside is None else extent(beside)
    rest = side % t["neighbours"]
    statement = replace(statement, edges=1 * (rest > 0) + BORDERS * _meets_border(info, t["straight"]))
    pieces = [replace(statement, loops=nest(*n)) for n in ((side // t["neighbours"], t["neighbours"]), (1 * (rest > 0), np.maximum(rest, 1)))]
    groups = -(-side // t["neighbours"])
    places = across * math.prod(extent_of(i) or ASSUMED for i in others) * np.minimum(groups, BORDERS)
    spent = cycles(target, replace(statement, loops=nest(groups, t["neighbours"])), pieces=pieces)
    return spent + places * GUESSES * target.wrong_branch * sum(_loops_at_border(info, t["straight"], beside))


def _loops_at_border(info: BlockInfo, straight: np.ndarray, beside: IterVar | None) -> Iterator[Any]:
    """How often a tile at a border begins the innermost loop over the window, if this leaves out other iterations there than elsewhere."""
    asked = conditional(info)
    for k, axis in enumerate(reversed(info.reduce)):
        if beside is not None and axis.var in asked and _shares(info, beside, axis):
            outside = math.prod(extent_of(i) or ASSUMED for i in info.reduce[: len(info.reduce) - k - 1])
            yield np.where(straight == k, outside, 0)


def _shares(info: BlockInfo, axis: IterVar, *window: IterVar) -> bool:
    """Whether windows that are neighbours along an axis overlap, along one of these axes of the reduction (default: any)."""
    among = {i.var for i in window or info.reduce}
    return any(axis.var in names and not among.isdisjoint(names) for a in info.loads for index in a.indices for names in [free_vars(index)])


def _meets_border(info: BlockInfo, straight: np.ndarray) -> Any:
    """Whether an axis of the window, other than the innermost, is written out that meets a border."""
    asked = conditional(info)
    met = [k for k, axis in enumerate(reversed(info.reduce), 1) if axis.var in asked and k > 1]
    return straight >= met[0] if met else np.zeros(len(straight), dtype=bool)
