# SPDX-License-Identifier: Apache-2.0
"""What the statements of a program do to each other in the caches: they share the room, and find there what earlier ones have brought.

Statements share loops as they share places: the outermost so many. Of those in one iteration of the loops that they share, what each touches is a box of
each buffer; where two boxes of a buffer meet, the later statement finds lines that the earlier one has brought, unless too much lies between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ..ir import tir
from ..ir.dataclass import dataclass
from ..ir.visit import free_vars
from .nest import Nest, touched_places
from .statements import Touch

EDGE = 50  # one of so many elements of a box is left where it has more than is touched

_Group = tuple[tuple[tir.Var, ...], Nest, list[Touch]]


def neighbours(groups: Sequence[_Group]) -> list[Neighbours | None]:
    """For each group of statements with one innermost loop, in the order of the program, what the others do: the variables of its loops, the nest and a
    touch for each of its operands. None where there are no others."""
    program = _Program(tuple(groups))
    return [Neighbours(program, k) if len(groups) > 1 else None for k in range(len(groups))]


@dataclass(frozen=True)
class _Box:
    """Of a buffer, from the first to behind the last place in each dimension; whole lines in the last one."""

    buffer: Any
    nbytes: float
    ranges: tuple[tuple[float, float], ...]

    def share_in(self, other: _Box) -> float:
        """The share of it that is in another one."""
        if self.buffer is not other.buffer or len(self.ranges) != len(other.ranges):
            return 0.0
        share = 1.0
        for (begin, end), (first, last) in zip(self.ranges, other.ranges, strict=True):
            share *= max(0.0, min(end, last) - max(begin, first)) / max(end - begin, 1.0)
        return share


@dataclass(frozen=True)
class _Run:
    """Groups that share some loops, by their numbers in the order of the program, between which others may stand: the boxes of each in one iteration of
    these loops, and the bytes of which no earlier one touches."""

    groups: list[int]
    boxes: list[list[_Box]]

    @cached_property
    def fresh(self) -> list[float]:
        """Bytes that each is the first to touch."""
        return [sum(b.nbytes * max(0.0, 1.0 - sum(b.share_in(e) for of in self.boxes[:k] for e in of)) for b in own) for k, own in enumerate(self.boxes)]

    def own(self, group: int) -> float:
        """Bytes that a group touches."""
        return sum(b.nbytes for b in self.of(group))

    def of(self, group: int) -> list[_Box]:
        """The boxes of a group."""
        return self.boxes[self.groups.index(group)]

    def between(self, first: int, last: int) -> float:
        """Bytes that the groups from one to another one touch."""
        return self.own(first) + sum(self.fresh[self.groups.index(first) + 1 : self.groups.index(last) + 1])


class _Program:
    def __init__(self, groups: tuple[_Group, ...]) -> None:
        self.groups = groups
        self.runs: dict[tuple[tir.Var, ...], _Run] = {}

    def run(self, loops: tuple[tir.Var, ...]) -> _Run:
        """Those inside of the loops over these variables."""
        if loops not in self.runs:
            inside = [k for k, (place, _, _) in enumerate(self.groups) if place[: len(loops)] == loops]
            self.runs[loops] = _Run(inside, [self._boxes(k, len(loops)) for k in inside])
        return self.runs[loops]

    def _boxes(self, group: int, shared: int) -> list[_Box]:
        place, nest, touches = self.groups[group]
        swept = dict(nest.inside)
        for axis, extent in nest.loops:
            if position(place, axis) >= shared:
                swept[axis] = swept.get(axis, 1) * extent
        return [_Box(t.buffer, float(t.operand.bytes(swept)), _ranges(t, swept)) for t in touches]


class Neighbours:
    """What all other statements of a program do beside one group (`roundel.strategy.nest.Beside`)."""

    def __init__(self, program: _Program, group: int) -> None:
        self.program, self.group = program, group
        self.place, nest, _ = program.groups[group]
        self.shared = [0, *(position(self.place, axis) + 1 for axis, _ in nest.loops)]  # variables of the loops around, by depth

    def needed(self, depth: int) -> float:
        """As the protocol says."""
        run = self.program.run(self.place[: self.shared[depth]])
        return max(0.0, sum(run.fresh) - run.own(self.group))

    def left(self, depth: int, capacity: float) -> list[float]:
        """As the protocol says: what is in the same iteration of the loop that sweeps the box goes with it, what is before that loop has to be
        still there."""
        run = self.program.run(self.place[: self.shared[depth]])
        body = self.place[: self.shared[depth + 1]] if depth + 1 < len(self.shared) else None
        there = []
        for k in (k for k in run.groups if k < self.group):
            is_inside = body is not None and self.program.groups[k][0][: len(body)] == body
            if is_inside or run.between(k, self.group) <= capacity:
                there += run.of(k)
        found = [max(0.0, 1.0 - sum(own.share_in(e) for e in there)) for own in run.of(self.group)]
        return [0.0 if EDGE * n < 1 else n for n in found]


def position(place: Sequence[tir.Var], axis: Any) -> int:
    """Which of the loops around a statement an axis belongs to, a quotient or remainder of its variable perhaps; behind all where it is none of them."""
    found = axis if isinstance(axis, tir.Var) else next(iter(free_vars(axis)))
    return place.index(found) if found in place else len(place)


def _ranges(t: Touch, swept: dict[Any, Any]) -> tuple[tuple[float, float], ...]:
    out = []
    for (extent, steps), first in zip(t.operand.sides, t.first, strict=True):
        begin = first if steps is not None and extent > 1 else 0
        out.append((float(begin), float(begin + touched_places((extent, steps), swept))))
    if out:
        line = max(1, int(t.operand.line_bytes / t.operand.element_bytes))
        extent, (begin, end) = t.operand.sides[-1][0], out[-1]
        whole = (begin // line * line, min(-(-end // line) * line, max(extent, end)))
        out[-1] = whole if extent > line else (0.0, float(extent))
    return tuple(out)
