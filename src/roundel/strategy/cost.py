# SPDX-License-Identifier: Apache-2.0
"""What a scheduled tensor program is expected to take: one model for the programs of all rules, and for candidates that are not scheduled yet.

What runs without a branch in a statement (the innermost loops that are vectorized or unrolled) is its body: instructions are counted there
by what each of them moves with, so that a load that is the same for all rows counts once; loops around it repeat it, and what is computed
again is counted by their trip counts. Bytes that cross into each cache follow from the boxes that the loops sweep (``nest.py``). Extents may
be columns of numbers, one for each candidate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ..ir import tir
from ..target import Target
from .nest import Nest
from .product.register_tile import rows_in_cache
from .statements import LANES, UNROLLED, Column, Loop, Statement, Touch, number, statements
from .times import LOOP, SHARPNESS, capacities, exposed, together, traffic_cycles

NEAR = 4            # elements between neighbours up to which a few vectors hold all lanes
GATHERED = 2.0      # instructions for each lane that is loaded by itself
MISSED = 8.0        # ... and more where the places of neighbours push each other out of the first-level cache
FORWARDING = 1.0    # cycles from a store to a load of the same place
ENTRY = 2.0         # cycles to start and end an innermost loop
REGION = 0.1        # of the work that pays for a parallel region: what starting threads takes
SEEN = 0.5          # of a chain of operations that those of the next one do not run beside
STORES = 1.0        # of a cycle


def expected_time(func: tir.PrimFunc, target: Target, sizes: Mapping[str, int] | None = None, cores: int | None = None) -> float:
    """Seconds of one call of a scheduled program in block form, with its data where earlier calls left it. ``sizes`` are values of symbolic
    dimensions (128 where one is missing), ``cores`` how many threads run parallel loops (default: those of the target)."""
    return expected_cycles(func, target, sizes, cores) / (target.frequency_ghz * 1e9)


def expected_cycles(func: tir.PrimFunc, target: Target, sizes: Mapping[str, int] | None = None, cores: int | None = None) -> float:
    """The same in cycles."""
    threads = target.cores if cores is None else cores
    total = 0.0
    regions = set()
    for _, group in groupby(statements(func, target, sizes or {}), key=lambda s: s.place or id(s)):
        beside = tuple(group)
        spent, found = float(np.max(cycles(target, *beside))), beside[0]
        if threads > 1 and found.chunks > 1:
            spent *= -(-found.chunks // threads) / found.chunks
            regions.add(found.region)
        total += spent
    return total + REGION * target.region_cycles * len(regions)


def least_cycles(func: tir.PrimFunc, target: Target, sizes: Mapping[str, int] | None = None) -> float:
    """What the program in block form, not scheduled, takes on one core at least: its arithmetic and loads in whole vectors, with nothing
    computed or loaded twice, no waiting, and each parameter brought once into the caches that do not hold it."""
    total = 0.0
    for found in statements(func, target, sizes or {}):
        extents = {x.axis: x.extent for x in found.loops}
        lanes = max(1, target.vector_bytes * 8 // max(t.bits for t in found.touches if t.is_store))
        times = lambda moves, extents=extents: math.prod(extents.get(a, 1) for a in moves)
        arithmetic = sum(o.instructions * times(o.moves) for o in found.operations) / target.fma_ports
        loads = sum(times(t.moves) for t in found.touches if not t.is_store) / target.loads
        total += max(arithmetic, loads) / lanes
    given = [math.prod(number(n, sizes or {}) for n in b.shape) * b.dtype.storage_bits / 8 for b in func.buffer_params]
    return float(together(total, *traffic_cycles(target, [sum(n for n in given if n > room) for room in capacities(target)])))


def cycles(target: Target, *beside: Statement) -> Column:
    """Of all iterations of a statement, or of several that follow each other in one innermost loop, on one core."""
    bodies = [_Body(s, target) for s in beside]
    around = max((b.around for b in bodies), key=len)
    trips: Column = 1
    overhead: Column = 0.0
    for k, loop in enumerate(around):
        trips = trips * loop.extent
        overhead = overhead + trips * (LOOP if k == len(around) - 1 else LOOP + ENTRY * (k == len(around) - 2))
    spent = trips * _step(bodies, around[-1] if around else Loop(None, 1), target) + overhead
    touches = [t for s in beside for t in s.touches if not t.register]
    operands = list({(t.buffer, *((n, tuple((a or {}).items())) for n, a in t.operand.sides)): t.operand for t in touches}.values())
    if not operands:
        return spent
    inside: dict[Any, Column] = {}
    for body in bodies:
        for loop in body.loops:
            inside[loop.axis] = inside.get(loop.axis, 1) * loop.extent
    crossing = Nest([(x.axis, x.extent) for x in around if np.any(x.extent != 1)], operands, inside).traffic(capacities(target))
    return together(spent, *traffic_cycles(target, crossing))


def _step(bodies: Sequence[_Body], innermost: Loop, target: Target) -> Column:
    """Cycles of one iteration: whatever limits it, registers that do not suffice included."""
    arithmetic, loads, stores, kept = (sum(parts) for parts in zip(*(b.work() for b in bodies), strict=True))
    spilled = np.maximum(kept + 2 - target.vector_registers, 0.0)
    loads, stores = loads + spilled, stores + spilled
    everything = arithmetic + loads + stores + 2.0
    waiting = [b.waiting(everything, innermost) for b in bodies]
    limits = [arithmetic / target.fma_ports, loads / target.loads, stores / STORES, everything / target.issue, *waiting]
    return sum(np.maximum(x, 1e-9) ** SHARPNESS for x in limits) ** (1.0 / SHARPNESS)


class _Body:
    """The straight code of a statement."""

    def __init__(self, s: Statement, target: Target) -> None:
        self.s, self.target = s, target
        cut = len(s.loops)
        while cut and s.loops[cut - 1].kind in (UNROLLED, LANES):
            cut -= 1
        self.around, self.loops = s.loops[:cut], s.loops[cut:]
        self.lanes: Column = 1
        self.lane_axis: Any = None
        for loop in self.loops:
            if loop.kind == LANES:
                self.lanes, self.lane_axis = loop.extent, loop.axis
        self._times: dict[frozenset[Any], Column] = {}

    def times(self, moves: frozenset[Any]) -> Column:
        """How many different values there are in the body of what moves so."""
        if moves not in self._times:
            n: Column = 1
            for loop in self.loops:
                if loop.kind == UNROLLED and loop.axis in moves:
                    n = n * loop.extent
            self._times[moves] = n
        return self._times[moves]

    def registers(self, moves: frozenset[Any], bits: int) -> Column:
        """Vector registers of one such value."""
        if self.lane_axis is None or self.lane_axis not in moves:
            return 1
        return -(-self.lanes * max(bits, 8) // (self.target.vector_bytes * 8))

    def work(self) -> tuple[Column, Column, Column, Column]:
        """Arithmetic, loads and stores, and registers that hold what the statement makes."""
        arithmetic: Column = 0.0
        loads: Column = 0.0
        stores: Column = 0.0
        kept: Column = 0.0
        for o in self.s.operations:
            arithmetic = arithmetic + o.instructions * self.times(o.moves) * self.registers(o.moves, o.bits)
        for t in self.s.touches:
            if t.register:
                kept = kept + (self.times(t.moves) * self.registers(t.moves, t.bits) if t.is_store else 0.0)
                continue
            moved, shuffled = self._accesses(t)
            arithmetic = arithmetic + self.times(t.moves) * shuffled
            if t.is_store:
                stores = stores + self.times(t.moves) * moved
            else:
                loads = loads + self.times(t.moves) * moved
        return arithmetic, loads, stores, kept

    def _accesses(self, t: Touch) -> tuple[Column, Column]:
        """Loads or stores of one value, and instructions that put its lanes together."""
        if self.lane_axis is None or self.lane_axis not in t.moves:
            return 1, 0
        whole = self.registers(t.moves, t.bits)
        if t.lane == 1:  # a vector that does not begin at a multiple of its length lies in two lines now and then
            aligned = (t.pitch * np.ones_like(self.lanes)) % self.lanes == 0
            return np.where(aligned, whole, whole * (1 + min(self.target.vector_bytes / self.target.line_bytes, 1))), 0
        if t.lane is not None and 0 < abs(t.lane) <= NEAR and not t.is_store:
            return whole * abs(t.lane), whole * abs(t.lane)
        apart = None if t.lane is None else abs(t.lane) * t.bits // 8
        missed = MISSED * (self.lanes > rows_in_cache(self.target, apart))
        return self.lanes, self.lanes * (GATHERED - 1 + missed)

    def waiting(self, instructions: Column, innermost: Loop) -> Column:
        """For accumulators: each is updated once for every value that goes into it, one after another."""
        store = next((t for t in self.s.touches if t.is_store), None)
        if not self.s.accumulates or store is None or innermost.axis in store.moves:
            return 0.0
        everything = frozenset(x.axis for x in self.loops if x.kind == UNROLLED)
        updates = self.times(everything) / self.times(store.moves & everything)
        latency = self.target.fma_latency + (0.0 if store.register else FORWARDING)
        return updates * latency * exposed(self.target, np.maximum(instructions * innermost.extent * SEEN, 1.0))
