# SPDX-License-Identifier: Apache-2.0
"""Where the intermediate tensors of a call lie in the arena.

Sizes that are constants are placed by decreasing size at the lowest offset free during their lifetime (Pisarchyk and
Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, greedy by size). Symbolic sizes share slots,
one after another behind the constant part; a slot is as large as the largest tensor it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..arith import Analyzer
from ..ir import tir

ALIGNMENT = 64


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
    placed: list[tuple[int, int, Request]] = []  # offset, end
    total = 0
    for r in sorted(requests, key=lambda r: (-r.nbytes.value, r.first)):
        size, at, best = align(r.nbytes.value), 0, None
        room = None
        for offset, end, _ in sorted((p for p in placed if p[2].overlaps(r)), key=lambda p: p[0]):
            if offset - at >= size and (room is None or offset - at < room):
                best, room = at, offset - at
            at = max(at, end)
        at = at if best is None else best
        placed.append((at, at + size, r))
        offsets[r] = tir.index_const(at // ALIGNMENT)
        total = max(total, at + size)
    return total


@dataclass(eq=False)
class _Slot:
    size: tir.Expr  # in units of ALIGNMENT bytes
    members: list[Request]


def _place_symbolic(requests: list[Request], base: int, offsets: dict[Request, tir.Expr]) -> tir.Expr:
    an = Analyzer()
    slots: list[_Slot] = []
    for r in sorted(requests, key=lambda r: r.first):
        size = an.simplify(tir.ceildiv(r.nbytes, ALIGNMENT))
        free = [s for s in slots if not any(m.overlaps(r) for m in s.members)]
        slot = next((s for s in free if s.size is size), None) or next((s for s in free if an.prove(tir.ge(s.size, size))), None)
        if slot is None and free:
            slot = free[0]
            slot.size = an.simplify(tir.max_(slot.size, size))
        if slot is None:
            slot = _Slot(size, [])
            slots.append(slot)
        slot.members.append(r)
    at: tir.Expr = tir.index_const(base // ALIGNMENT)
    for slot in slots:
        for r in slot.members:
            offsets[r] = at
        at = at + slot.size  # not simplified: sums of maxima have no shorter form, and looking for one takes long
    return at
