# SPDX-License-Identifier: Apache-2.0
"""How many bytes a loop nest brings into each cache, for columns of candidates.

A loop is given by the axis that it runs over and its extent, an operand by how far its indices move along each axis. What an operand touches
below a loop is a box, whose sides follow from the extents of the loops inside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..ir.dataclass import dataclass

Column = Any  # an array with a value for each candidate, or one number for all


@dataclass(frozen=True)
class Operand:
    """``sides``: for each dimension of the buffer its extent and how far the index moves per step of each axis (an axis by its name
    or number; None where it moves in a way that is not linear: all of the dimension is touched). ``constant``: its contents are known at compile
    time. ``is_packed``: it is laid out so that what a tile reads of it follows each other."""

    sides: tuple[tuple[int, Mapping[Any, int] | None], ...]
    element_bytes: float
    line_bytes: int
    constant: bool = False
    is_packed: bool = False

    @cached_property
    def axes(self) -> frozenset[Any]:
        """Those along which it moves."""
        return frozenset(axis for _, steps in self.sides for axis in steps or ())

    def bytes(self, inner: Mapping[Any, Column]) -> Column:
        """Of the cache lines of the box that loops with these extents (by axis) sweep."""
        pieces, span, _ = self.box(inner)
        return pieces * span

    def room(self, box: tuple[Column, Column, int], way: int) -> Column:
        """Bytes of a cache that hold a box, with so many bytes to a way: a line's place in a way is its address's, so pieces of the box that are
        apart by a power of two share few places."""
        pieces, span, apart = box
        return pieces * (span if self.is_packed or not apart else most(span, math.gcd(apart, way)))

    def crowded(self, inner: Mapping[Any, Column], way: int) -> Column:
        """Bytes of a cache that what these loops sweep needs where its lines share places in a way (a line's place is its address's in the way): as many ways
        as lines meet in a place."""
        if self.is_packed:
            return 0
        met: Column = 1
        stride = self.element_bytes
        for side in reversed(self.sides):
            if side[1] != {} and side[0] != 1:
                met = met * -(-touched_places(side, inner) // max(1, way // math.gcd(int(stride), way)))
            stride *= side[0]
        return met * way

    def box(self, inner: Mapping[Any, Column]) -> tuple[Column, Column, int]:
        """Pieces of the box in memory, bytes of the lines of each, and what divides the distances between them (0: there is one)."""
        return self._box([touched_places(side, inner) for side in self.sides])

    def fetched(self, box: tuple[Column, Column, int], past: int) -> Column:
        """Bytes that come into a cache with a box, where hardware fetches so many past the end of each piece before it sees that the next is elsewhere."""
        pieces, span, apart = box
        if not past or self.is_packed or not apart:
            return pieces * span
        return pieces * (span + least(past, most(apart - span, 0)))

    def boxes(self, axes: Sequence[Any], swept: Sequence[Mapping[Any, Column]]) -> list[tuple[Column, Column, int]]:
        """The box below each of the loops over ``axes`` and below none, the outermost first; ``swept`` are the extents of the loops inside of each. It is
        another one than below the loop inside only if the operand moves with the loop, and so are its sides."""
        touched = [touched_places(side, swept[-1]) for side in self.sides]
        found = [self._box(touched)]
        for axis, inner in zip(reversed(axes), reversed(swept[:-1]), strict=True):
            if axis in self.axes:
                touched = [touched_places(side, inner) if side[1] and axis in side[1] else n for side, n in zip(self.sides, touched)]
                found.append(self._box(touched))
            else:
                found.append(found[-1])
        return found[::-1]

    def _box(self, sides: Sequence[Column]) -> tuple[Column, Column, int]:
        """The box of which so many places of each dimension are met."""
        pieces: Column = 1
        apart = 0
        span: Column = self.element_bytes  # of a piece without gaps of a line or more
        stride = self.element_bytes
        for (extent, steps), touched in zip(reversed(self.sides), reversed(sides)):
            if steps != {} and extent != 1:
                if isinstance(span, np.ndarray):
                    near = stride <= np.maximum(span, self.line_bytes)
                    if near.all():
                        span = span + (touched - 1) * stride
                    elif not near.any():
                        pieces, apart = pieces * touched, math.gcd(apart, int(stride))
                    else:
                        pieces, span = np.where(near, pieces, pieces * touched), np.where(near, span + (touched - 1) * stride, span)
                        apart = math.gcd(apart, int(stride))
                elif stride <= max(span, self.line_bytes):
                    span = span + (touched - 1) * stride
                else:
                    pieces = pieces * touched
                    apart = math.gcd(apart, int(stride))
            stride *= extent
        step = self.line_bytes if self.is_packed else math.gcd(apart, self.line_bytes)  # pieces begin at any multiple of it, and end in another line
        return pieces, -(-span // step) * step + self.line_bytes - step, apart

    def elements(self, inner: Mapping[Any, Column]) -> Column:
        """Of that box."""
        out: Column = 1
        for extent, steps in self.sides:
            if steps is None:
                out = out * extent
            elif steps:
                out = out * _places(steps, inner, extent)
        return out


def touched_places(side: tuple[int, Mapping[Any, int] | None], inner: Mapping[Any, Column]) -> Column:
    """How many places of a dimension loops with these extents meet."""
    extent, steps = side
    return extent if steps is None else _places(steps, inner, extent) if steps and extent != 1 else 1


def _places(steps: Mapping[Any, int], inner: Mapping[Any, Column], extent: int) -> Column:
    """How many places of a dimension loops with these extents meet: those from the first to the last, or fewer where steps leave some out, as the
    taps of a dilated window do."""
    if len(steps) == 1:
        [(axis, step)] = steps.items()
        return least(1 + step * (inner.get(axis, 1) - 1), extent)
    given = [(step, inner.get(axis, 1)) for axis, step in steps.items()]
    between = least(1 + sum(step * (n - 1) for step, n in given), extent)
    return least(between, math.prod(n for _, n in given))


def least(a: Column, b: Column) -> Column:
    """``np.minimum``, for single numbers too."""
    return np.minimum(a, b) if np.ndarray in (type(a), type(b)) else min(a, b)


def differs(column: Column, number: int) -> bool:
    """Whether some value is another."""
    return bool((column != number).any()) if type(column) is np.ndarray else bool(column != number)


def most(a: Column, b: Column) -> Column:
    """``np.maximum``, for single numbers too."""
    return np.maximum(a, b) if np.ndarray in (type(a), type(b)) else max(a, b)


def chosen(condition: Column, a: Column, b: Column) -> Column:
    """``np.where``, for single numbers too, of which most programs are made that nothing is decided about."""
    return np.where(condition, a, b) if any(isinstance(x, np.ndarray) for x in (condition, a, b)) else a if condition else b


Lines = Sequence[Sequence[Column]]  # bytes, for each loop and operand


class Beside(Protocol):
    """What other statements of a program do to the caches that a nest uses. Depths count loops: below ``depth`` of them."""

    def needed(self, depth: int) -> float:
        """Bytes that the others touch in one iteration of so many loops, beyond what the nest itself touches."""

    def left(self, depth: int, capacity: float) -> Sequence[float]:
        """The share of what each operand touches that no earlier statement has left in a cache of that capacity."""


@dataclass(frozen=True)
class Nest:
    """``loops``: axis and extent of each, the outermost first; ``operands``: what they read and write; ``inside``: extents, by axis, of
    the loops below them, in registers."""

    loops: Sequence[tuple[Any, Column]]
    operands: Sequence[Operand]
    inside: Mapping[Any, Column]

    @cached_property
    def boxes(self) -> list[tuple[tuple[Column, Column, int], ...]]:
        """What each operand touches (`Operand.box`) below each of the loops and below none, the outermost first."""
        swept = [dict(self.inside)]
        for axis, extent in reversed(self.loops):
            swept.append({**swept[-1], axis: swept[-1].get(axis, 1) * extent})
        swept.reverse()
        axes = [axis for axis, _ in self.loops]
        return list(zip(*(o.boxes(axes, swept) for o in self.operands), strict=True))

    def traffic(self, capacities: Sequence[float], ways: Sequence[int], gradual: bool = False, beside: Beside | None = None,
                weights: Sequence[Sequence[float]] = (), between_calls: bool = False, past: Sequence[int] = ()) -> list[Column]:
        """Bytes that cross into a cache of each capacity (and bytes of a way, 0 where lines are spread otherwise): where everything below the body
        of a loop fits, that loop brings what it touches once, as its iterations share what they touch together, and each iteration of the
        loops around brings it anew. What fits as a whole is there already, from the call before. ``gradual``: of what does not fit, and comes around
        again and again, a cache keeps the share that it has room for; otherwise nothing, the cautious answer where another decision makes it fit.
        ``between_calls``: so it does from one call to the next. ``beside``: what else the program does in these loops (None: nothing). ``weights``: what
        a byte of each operand counts, for each cache (default: 1). ``past``: bytes that come into each cache behind every piece of a box (default: 0)."""
        boxes = self.boxes
        lines = [[pieces * span for pieces, span, _ in of] for of in boxes]
        fetched = {n: [[o.fetched(box, n) for o, box in zip(self.operands, of, strict=True)] for of in boxes] for n in {*past} if n}
        others = [0.0] * len(boxes) if beside is None else [beside.needed(d) for d in range(len(boxes))]
        trips: list[Column] = [1]
        for _, extent in self.loops:
            trips.append(trips[-1] * extent)
        out = []
        every = [1.0] * len(self.operands)
        for capacity, way, weight, beyond in zip(capacities, ways, weights or [every] * len(ways), past or [0] * len(ways), strict=True):
            brought = come = fetched.get(beyond, lines)
            if beside is not None or weights:
                shares = [weight if beside is None else [w * n for w, n in zip(weight, beside.left(d, capacity), strict=True)] for d in range(len(lines))]
                brought = [[n * share for n, share in zip(of, by, strict=True)] for of, by in zip(come, shares, strict=True)]
            rooms = [[o.room(box, way) for o, box in zip(self.operands, of, strict=True)] for of in boxes] if way else lines
            if way and any(differs(most(room, capacity), capacity) for of in rooms for room in of):
                out.append(self._crowded(capacity, rooms, lines, brought, others, trips, gradual))
            else:
                needed = [sum(of) + n for of, n in zip(rooms, others, strict=True)]
                out.append(_moved(capacity, needed, [sum(of) for of in brought], trips, gradual))
            if between_calls:
                out[-1] = (1.0 - least(1.0, capacity / (sum(lines[0]) + others[0]))) * out[-1]
        return out

    def _crowded(self, capacity: float, rooms: Lines, lines: Lines, brought: Lines, others: Sequence[float], trips: Sequence[Column], gradual: bool) -> Column:
        """The same where lines of some operands lie in so few places that these cannot hold them. They push out each other, and of the rest what is in
        these places: it finds as much room as if they were spread."""
        too_many = [[(room > capacity) & (own <= capacity) for room, own in zip(*of, strict=True)] for of in zip(rooms, lines, strict=True)]
        spread = [n + sum(chosen(c, own, room) for c, own, room in zip(*at, strict=True)) for n, *at in zip(others, too_many, lines, rooms, strict=True)]
        return sum(_moved(capacity, [chosen(c, math.inf, n) for c, n in zip(few, spread, strict=True)], own, trips, gradual)
                   for few, own in zip(zip(*too_many, strict=True), zip(*brought, strict=True), strict=True))


def _moved(capacity: float, needed: Sequence[Column], touched: Sequence[Column], trips: Sequence[Column], gradual: bool) -> Column:
    """Bytes that cross into a cache, of what is touched and needs so much room in it below each loop, the outermost first."""
    moved = touched[-1] * trips[-1]
    for d in reversed(range(1, len(trips))):
        once = touched[d - 1] * trips[d - 1]
        kept = least(1.0, capacity / most(needed[d], 1.0)) if gradual else 0.0
        moved = chosen(needed[d] <= capacity, once, kept * once + (1.0 - kept) * moved)
    return chosen(needed[0] <= capacity, 0.0, moved)
