# SPDX-License-Identifier: Apache-2.0
"""Where the intermediate tensors of a call lie in the arena.

Sizes that are constants are placed by decreasing size at the lowest offset free during their lifetime (Pisarchyk and
Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, greedy by size). Symbolic sizes share slots,
one after another behind the constant part; a slot is as large as the largest tensor it holds. Which slot fits best is judged by
the sizes' values at some points; what holds at all of them is proved, so that slots are rarely maxima of several sizes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arith import Analyzer, numpy_function
from ..ir import free_vars, tir
from ..ir.dataclass import dataclass
from ..ir.errors import ArithError

ALIGNMENT = 64
_POINTS = 16


@dataclass(eq=False)
class Request:
    """``nbytes`` (an index expression) needed from step ``first`` to step ``last``, both included."""

    nbytes: tir.Expr
    first: int
    last: int

    def overlaps(self, other: Request) -> bool:
        """Whether both are needed at some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass
class Plan:
    """Offsets in the order of the requests, in units of ``ALIGNMENT`` bytes (so that no offset of elements needs a division),
    and the bytes needed in all."""

    units: list[tir.Expr]
    total: tir.Expr

    @property
    def offsets(self) -> list[tir.Expr]:
        """In bytes."""
        return [u * ALIGNMENT for u in self.units]


def align(nbytes: int) -> int:
    """Rounded up to the arena's alignment."""
    return (nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def plan(requests: Sequence[Request]) -> Plan:
    """Offsets such that requests needed at the same time never share a byte."""
    static = [r for r in requests if isinstance(r.nbytes, tir.IntImm)]
    offsets: dict[Request, tir.Expr] = {}
    total = _place_static(static, offsets)
    end = _place_symbolic([r for r in requests if not isinstance(r.nbytes, tir.IntImm)], total, offsets)
    return Plan([offsets[r] for r in requests], end * ALIGNMENT)


def _place_static(requests: list[Request], offsets: dict[Request, tir.Expr]) -> int:
    ordered = sorted(requests, key=lambda r: (-r.nbytes.value, r.first))
    first, last = (np.asarray([getattr(r, end) for r in ordered], np.int64) for end in ("first", "last"))
    begins, ends = np.zeros((2, len(ordered)), np.int64)  # of those that are placed
    for k, r in enumerate(ordered):
        size = align(r.nbytes.value)
        there = np.flatnonzero((first[:k] <= last[k]) & (first[k] <= last[:k]))  # at some step both are needed
        there = there[np.argsort(begins[there], kind="stable")]
        taken = np.maximum.accumulate(np.concatenate(([0], ends[there])))  # below it there is no room before the next
        rooms = begins[there] - taken[:-1]
        fitting = np.flatnonzero(rooms >= size)
        begins[k] = taken[fitting[np.argmin(rooms[fitting])]] if fitting.size else taken[-1]
        ends[k] = begins[k] + size
        offsets[r] = tir.index_const(int(begins[k]) // ALIGNMENT)
    return int(ends.max(initial=0))


class _Slot:
    """Memory that tensors share one after the other, as large as the largest of ``sizes`` (in units of ALIGNMENT bytes)."""

    def __init__(self, r: Request, size: tir.Expr, values: Any) -> None:
        self.members, self.sizes, self.values = [r], {size: values}, values

    def free(self, r: Request) -> bool:
        return not any(m.overlaps(r) for m in self.members)

    def add(self, an: Analyzer, r: Request, size: tir.Expr, values: Any) -> None:
        """Make room for a tensor. A size stays where none is known to be larger; what some point refutes is not tried."""
        self.members.append(r)
        if size in self.sizes or any(_at_least(an, s, at, size, values) for s, at in self.sizes.items()):
            return
        self.sizes = {s: at for s, at in self.sizes.items() if not _at_least(an, size, values, s, at)} | {size: values}
        self.values = np.maximum(self.values, values)


def _at_least(an: Analyzer, large: tir.Expr, values: Any, small: tir.Expr, others: Any) -> bool:
    return bool((values >= others).all()) and an.is_le(an.sum(small) - an.sum(large))


def _place_symbolic(requests: list[Request], base: int, offsets: dict[Request, tir.Expr]) -> tir.Expr:
    an = Analyzer()
    slots: list[_Slot] = []
    values = _at_points([r.nbytes for r in requests])
    for r in sorted(requests, key=lambda r: r.first):
        size, value = an.simplify(tir.ceildiv(r.nbytes, ALIGNMENT)), -(-values[r.nbytes] // ALIGNMENT)
        # The slot that has to grow least, and of those that need not grow the smallest.
        slot = min((s for s in slots if s.free(r)), key=lambda s: (np.maximum(value - s.values, 0).sum(), s.values.sum()), default=None)
        if slot is None:
            slots.append(_Slot(r, size, value))
        else:
            slot.add(an, r, size, value)
    at: tir.Expr = tir.index_const(base // ALIGNMENT)
    for slot in slots:
        offsets.update(dict.fromkeys(slot.members, at))
        at = at + functools.reduce(tir.max_, slot.sizes)  # not simplified: sums of maxima have no shorter form, and looking for one takes long
    return at


def _at_points(sizes: list[tir.Expr]) -> dict[tir.Expr, Any]:
    """Values where the variables have some sizes from 1 to 2000; zeros for what is no closed form of them."""
    variables = sorted({v for e in sizes for v in free_vars(e)}, key=lambda v: v.name)
    points = np.exp2(np.random.default_rng(0).uniform(0, 11, (len(variables), _POINTS))).astype(np.int64)
    out = {}
    for e in sizes:
        try:
            (found,) = numpy_function([e], variables)(*points)
        except ArithError:
            found = 0
        out[e] = np.broadcast_to(np.asarray(found, np.int64), (_POINTS,))
    return out
