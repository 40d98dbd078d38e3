# SPDX-License-Identifier: Apache-2.0
"""How many bytes a loop nest brings into each cache, for columns of candidates.

A loop is given by the axis that it runs over and its extent, an operand by how far its indices move along each axis. What an operand touches
below a loop is a box, whose sides follow from the extents of the loops inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir import tir
from ..ir.visit import free_vars
from ..target import Target
from .match.accesses import Access

Column = Any  # an array with a value for each candidate, or one number for all


@dataclass(frozen=True)
class Operand:
    """``sides``: for each dimension of the buffer its extent and how far the index moves per step of each axis (an axis by its name
    or number; None where it moves in a way that is not linear: all of the dimension is touched)."""

    sides: tuple[tuple[int, Mapping[Any, int] | None], ...]
    element_bytes: float
    line_bytes: int
    constant: bool = False

    def bytes(self, inner: Mapping[Any, Column]) -> Column:
        """Of the cache lines of the box that loops with these extents (by axis) sweep."""
        pieces: Column = 1
        span: Column = self.element_bytes  # of a piece without gaps of a line or more
        stride = self.element_bytes
        for extent, steps in reversed(self.sides):
            if steps != {} and extent != 1:
                touched: Column = extent
                if steps is not None:
                    touched = _least(1 + sum(step * (inner.get(axis, 1) - 1) for axis, step in steps.items()), extent)
                if isinstance(span, np.ndarray):
                    near = stride <= np.maximum(span, self.line_bytes)
                    pieces, span = np.where(near, pieces, pieces * touched), np.where(near, span + (touched - 1) * stride, span)
                elif stride <= max(span, self.line_bytes):
                    span = span + (touched - 1) * stride
                else:
                    pieces = pieces * touched
            stride *= extent
        return pieces * (-(-span // self.line_bytes) * self.line_bytes)

    def elements(self, inner: Mapping[Any, Column]) -> Column:
        """Of that box."""
        out: Column = 1
        for extent, steps in self.sides:
            if steps is None:
                out = out * extent
            elif steps:
                out = out * _least(1 + sum(step * (inner.get(axis, 1) - 1) for axis, step in steps.items()), extent)
        return out


def _least(a: Column, b: int) -> Column:
    return np.minimum(a, b) if isinstance(a, np.ndarray) else min(a, b)


def operand(access: Access, axes: Mapping[tir.Var, Any], sizes: int, target: Target, constant: bool = False) -> Operand:
    """An access by the axes of its variables. ``sizes``: taken for symbolic dimensions."""
    sides: list[tuple[int, Mapping[Any, int] | None]] = []
    for index, n in zip(access.indices, access.buffer.shape, strict=True):
        steps = linear_steps(index)
        named = None if steps is None else {axes[v]: abs(s) for v, s in steps.items() if v in axes}
        if named is None and not free_vars(index) & axes.keys():
            named = {}
        sides.append((n.value if isinstance(n, tir.IntImm) else sizes, named))
    return Operand(tuple(sides), access.buffer.dtype.storage_bits / 8, target.line_bytes, constant)


def linear_steps(index: tir.Expr) -> dict[tir.Var, int] | None:
    """How far an index moves with each variable, where it is linear in all of them with numbers as factors."""
    if isinstance(index, tir.Var):
        return {index: 1}
    if isinstance(index, tir.IntImm):
        return {}
    if type(index) in (tir.Add, tir.Sub):
        a, b = linear_steps(index.a), linear_steps(index.b)
        if a is None or b is None:
            return None
        sign = 1 if type(index) is tir.Add else -1
        return {v: a.get(v, 0) + sign * b.get(v, 0) for v in {**a, **b}}
    if type(index) is tir.Mul:
        for factor, other in ((index.a, index.b), (index.b, index.a)):
            if isinstance(factor, tir.IntImm):
                found = linear_steps(other)
                return None if found is None else {v: factor.value * s for v, s in found.items()}
    return None


@dataclass(frozen=True)
class Nest:
    """``loops``: axis and extent of each, the outermost first; ``operands``: what they read and write; ``inside``: extents, by axis, of
    the loops below them, in registers."""

    loops: Sequence[tuple[Any, Column]]
    operands: Sequence[Operand]
    inside: Mapping[Any, Column]

    def footprints(self) -> list[list[Column]]:
        """For each depth (0: of the whole nest), the bytes that each operand touches there."""
        inner: dict[Any, Column] = dict(self.inside)
        out = [[o.bytes(inner) for o in self.operands]]
        for axis, extent in reversed(self.loops):
            inner[axis] = inner.get(axis, 1) * extent
            out.append([o.bytes(inner) for o in self.operands])
        return out[::-1]

    def traffic(self, capacities: Sequence[float]) -> list[Column]:
        """Bytes that cross into a cache of each capacity: where everything below the body of a loop fits, that loop brings what it touches
        once, as its iterations share what they touch together, and each iteration of the loops around brings it anew. What fits as
        a whole is there already."""
        footprints = self.footprints()
        needed = [sum(f) for f in footprints]
        trips: list[Column] = [1]
        for _, extent in self.loops:
            trips.append(trips[-1] * extent)
        out = []
        for capacity in capacities:
            moved = needed[-1] * trips[-1]
            for d in reversed(range(1, len(self.loops) + 1)):
                moved = np.where(needed[d] <= capacity, needed[d - 1] * trips[d - 1], moved)
            out.append(np.where(needed[0] <= capacity, 0.0, moved))
        return out
