# SPDX-License-Identifier: Apache-2.0
"""What a tensor program is expected to take: the one model of costs, for scheduled programs and for candidates that are not scheduled yet.

What runs without a branch in a statement (the innermost loops that are vectorized, unrolled or written out) is its body: instructions are
counted there by what each of them moves with, so that a load that is the same for all rows counts once; loops around it repeat it, and what
is computed again is counted by their trip counts. Bytes that cross into each cache follow from the boxes that the loops sweep (``nest.py``).
Extents may be columns of numbers, one for each candidate.

The longest of these times decides, and a part of the others is added to it, because they do not overlap completely. What a machine takes for
each is in its `Target`; the constants here say how the model puts that together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from ..ir import tir
from ..target import Target
from ..target.target import L2, L3, MEMORY
from .neighbours import neighbours
from .nest import Beside, Nest, chosen, differs, least, most
from .statements import LANES, UNROLLED, Column, Loop, Operation, Statement, Touch, number, statements

NEAR = 8          # elements between neighbours, no more than there are lanes, up to which a few vectors hold all lanes
SHARPNESS = 6.0   # of the maximum of limits: two that are near each other cost more than either
STEP = 3.0        # instructions that count an iteration and ask for the next one
LATENCIES = 2.0   # one after another to start and end a reduction in registers
FOLDED = 2.0      # instructions for each halving of the lanes of a vector of partial sums: a shuffle, an addition
PART = 2.0        # ... for each of several such vectors
ROWS = 2          # written at a time, whose lines come as fast as those of one
SPILLED = 1.3     # times the loads of what neighbours would share, where registers cannot hold it


def expected_time(func: tir.PrimFunc, target: Target, sizes: Mapping[str, int] | None = None, cores: int | None = None) -> float:
    """Seconds of one call of a scheduled program in block form, with its data where earlier calls left it. ``sizes`` are values of symbolic
    dimensions (128 where one is missing), ``cores`` how many threads run parallel loops (default: those of the target)."""
    return expected_cycles(func, target, sizes, cores) / (target.frequency_ghz * 1e9)


def expected_cycles(func: tir.PrimFunc, target: Target, sizes: Mapping[str, int] | None = None, cores: int | None = None) -> float:
    """The same in cycles."""
    threads = target.cores if cores is None else cores
    total = 0.0
    regions = set()
    groups = [tuple(group) for _, group in groupby(statements(func, target, sizes or {}), key=lambda s: s.place or id(s))]
    nests = [nest_of(target, b) for b in groups]
    for beside, nest, others in zip(groups, nests, neighbours([(b[0].place, *n) for b, n in zip(groups, nests, strict=True)]), strict=True):
        spent, found = float(np.max(cycles(target, *beside, others=others, nest=nest))), beside[0]
        if (part := found.part(threads)) < 1:
            spent *= part
            regions.add(found.region)
        total += spent
    return total + target.start_cycles * len(regions)


def least_cycles(func: tir.PrimFunc, target: Target, sizes: Mapping[str, int] | None = None) -> float:
    """What the program in block form, not scheduled, takes on one core at least: its arithmetic and loads in whole vectors, with nothing
    computed or loaded twice, no waiting, and each parameter brought once into the caches that do not hold it."""
    total = 0.0
    for found in statements(func, target, sizes or {}):
        extents = {x.axis: x.extent for x in found.loops}
        lanes = max(1, target.vector_bytes * 8 // max(t.bits for t in found.touches if t.is_store))
        times = lambda moves, extents=extents: math.prod(extents.get(a, 1) for a in moves)
        counts = ([getattr(o, name) * times(o.moves) for o in found.operations] for name in ("instructions", "added"))
        arithmetic = arithmetic_cycles(target, *map(sum, counts))
        loads = sum(times(t.moves) for t in found.touches if not t.is_store) / target.loads
        total += max(arithmetic, loads) / lanes
    given = [math.prod(number(n, sizes or {}) for n in b.shape) * b.dtype.storage_bits / 8 for b in func.buffer_params]
    return float(together(target, total, *traffic_cycles(target, [sum(n for n in given if n > room) for room in capacities(target)])))


def cycles(target: Target, *beside: Statement, pieces: Sequence[Statement] = (), others: Beside | None = None,
           nest: tuple[Nest, list[Touch]] | None = None) -> Column:
    """Of all iterations of a statement, or of several that follow each other in one innermost loop, on one core. ``pieces``: the statement in
    parts whose tiles have one size each, where an axis is no whole number of tiles. ``others``: what else the program does (None: nothing); ``nest``: what
    `nest_of` gives, where that is known."""
    spent = sum(working(target, [s]) for s in pieces) if pieces else working(target, beside)
    moved = traffic(target, *beside, others=others, known=nest)
    made = min(s.share for s in beside)  # of the iterations of the loops that they share
    return made * (spent if moved is None else together(target, spent, *traffic_cycles(target, moved)))


def traffic(target: Target, *beside: Statement, gradual: bool = False, others: Beside | None = None,
            known: tuple[Nest, list[Touch]] | None = None) -> list[Column] | None:
    """Bytes that cross into each cache, as many as take their time beside multiply-adds; None where everything is in registers. ``gradual`` as for
    `Nest.traffic`, ``others`` as for `cycles`, where ``known`` is called ``nest``."""
    nest, touches = known or nest_of(target, beside)
    ways = (0, target.l2_bytes // target.l2_ways, 0)  # the first is small, the last spreads its lines
    if not touches:
        return None
    past = (0, target.past_bytes, target.past_bytes)  # the second-level cache is as fast for lines that lie apart
    if any(s.accumulates for s in beside):
        return nest.traffic(capacities(target), ways, gradual, others, past=past)
    return nest.traffic(capacities(target), ways, True, others, _plain(target, nest, touches, others), between_calls=True, past=past)


def _plain(target: Target, nest: Nest, touches: Sequence[Touch], others: Beside | None) -> list[list[float]]:
    """How much longer lines of each operand take to come into each cache where nothing is summed than beside multiply-adds: what was measured for reading
    and writing from end to end. Rows of which several are written at a time, while nothing comes from so far that is read, wait line by line: a
    transposition's second group of rows took four times as long a line as one that writes its rows in turn."""
    below = nest.boxes
    scattered = [t.is_store and all(np.min(of[k][0]) > ROWS for of in below[-2:]) for k, t in enumerate(touches)]
    out = []
    for (level, beside), room in zip(_beside(target), capacities(target), strict=True):
        stored = target.stored_per_cycle(level) / target.bytes_per_cycle(level)
        near = level != L2 and others is not None and not any(n for n, t in zip(others.left(0, room), touches, strict=True) if not t.is_store)
        late = min(stored, target.scattered_share) if near else stored
        out.append([beside / (1.0 if not t.is_store else late if rows else stored) for t, rows in zip(touches, scattered, strict=True)])
    return out


def nest_of(target: Target, beside: Sequence[Statement]) -> tuple[Nest, list[Touch]]:
    """The loops around statements that follow each other in one innermost loop, with what they touch in memory; for each operand one of its touches."""
    touches = [t for s in beside for t in (*s.touches, *([s.result] if s.result else [])) if not t.register]
    operands = {(t.buffer, *((n, *_hashable(steps)) for n, steps in t.operand.sides)): t for t in touches}
    bodies = [_Body(s, target) for s in beside]
    around = max((b.around for b in bodies), key=len)
    inside: dict[Any, Column] = {}
    for body in bodies:
        own: dict[Any, Column] = {}
        for loop in body.straight:
            own[loop.axis] = own.get(loop.axis, 1) * loop.extent
        for axis, extent in own.items():  # some of these loops are around several statements
            inside[axis] = most(inside.get(axis, 1), extent)
    loops = [(x.axis, x.extent) for x in around if differs(x.extent, 1)]
    return Nest(loops, [t.operand for t in operands.values()], inside), list(operands.values())


def _hashable(steps: Mapping[Any, Any] | None) -> list[Any]:
    return [(axis, id(n) if isinstance(n, np.ndarray) else n) for axis, n in (steps or {}).items()]


def working(target: Target, beside: Sequence[Statement]) -> Column:
    """Cycles of a core that waits for no cache but the first and second."""
    bodies = [_Body(s, target) for s in beside]
    around = max((b.around for b in bodies), key=len)
    trips: Column = 1
    before = []
    for loop in around:
        before.append(trips)
        trips = trips * loop.trips
    overhead: Column = 0.0
    innermost: Column = True
    for loop, times in zip(reversed(around), reversed(before), strict=True):
        repeats = loop.trips > 1
        overhead = overhead + times * (target.loop_cycles * loop.trips + target.entry_cycles * (innermost & repeats))
        innermost = innermost & ~np.asarray(repeats)
    spent = trips * _step(bodies, target) + overhead
    for body in bodies:
        spent = (spent + body.ends(trips)) * target.masked ** body.s.edges
    return chosen(trips > 0, spent, 0.0)


def _step(bodies: Sequence[_Body], target: Target) -> Column:
    """Cycles of one iteration: whatever limits it, registers that do not suffice included."""
    arithmetic, added, loads, stores, kept, folded = (sum(parts) for parts in zip(*(b.work for b in bodies), strict=True))
    ahead = target.operands_ahead * sum(b.work[2] for b in bodies if b.s.accumulates)
    spilled = most(kept + most(ahead, 1.0) - target.vector_registers, 0.0)
    loads, stores = loads + spilled, stores + spilled
    everything = arithmetic + loads + stores - folded + STEP
    limits = [arithmetic_cycles(target, arithmetic, added), loads / target.loads, stores / target.stores, everything / target.issue,
              *(b.waiting(everything) for b in bodies)]
    late = sum(b.late() + b.crowded() for b in bodies)
    return sum(most(x, 1e-9) ** SHARPNESS for x in limits) ** (1.0 / SHARPNESS) + late


def arithmetic_cycles(target: Target, instructions: Column, added: Column) -> Column:
    """Of so many instructions on vectors, of which ``added`` only add floats: some machines do these elsewhere, beside the others."""
    if not target.add_ports:
        return instructions / target.fma_ports
    return most((instructions - added) / target.fma_ports, added / target.add_ports)


def exposed(target: Target, instructions: Column) -> Column:
    """The share of a delay that so many instructions wait for which those after them do not fill."""
    return 1.0 / (1.0 + target.window_share * target.window / instructions)


def capacities(target: Target) -> tuple[float, float, float]:
    """Bytes that a kernel's data may take of each cache."""
    return target.l1_bytes * target.cache_room, target.l2_bytes * target.l2_room, max(target.l3_bytes, target.l2_bytes) * target.cache_room


def traffic_cycles(target: Target, crossing: Sequence[Column]) -> list[Column]:
    """Cycles for the bytes that cross into the first, second and third cache."""
    return [n / (share * target.bytes_per_cycle(level)) for n, (level, share) in zip(crossing, _beside(target), strict=True)]


def _beside(target: Target) -> tuple[tuple[int, float], ...]:
    """The levels that data come from, and the share of the rate of each beside multiply-adds."""
    return (L2, target.l2_beside), (L3, target.l3_beside), (MEMORY, target.memory_beside)


def together(target: Target, *times: Column) -> Column:
    """The time of activities that overlap."""
    longest = times[0]
    for t in times[1:]:
        longest = most(longest, t)
    return longest + target.exposed * (sum(times) - longest)


def beside_cold(target: Target, working: Column, waiting: Column) -> Column:
    """The time of work with constants that nothing has touched before: where both take equally long, ``cold_exposed`` of either is not hidden by the other,
    and the shorter one of them is, the less of it."""
    longest = most(most(working, waiting), 1e-9)
    if not target.cold_exposed:
        return longest
    power = 1.0 / math.log2(1.0 + target.cold_exposed)
    return longest * (1.0 + (least(working, waiting) / longest) ** power) ** (1.0 / power)


def rows_in_cache(target: Target, row_bytes: int | None) -> int:
    """How many rows that are so far apart the first-level cache holds a line of: rows apart by a multiple of a way (mostly 4 KiB) share one set
    of lines (a set is picked by the address within a way), a third of which other operands need."""
    if not row_bytes or row_bytes % target.line_bytes:
        return target.vector_registers
    sets = max(target.l1_bytes // target.l1_ways // target.line_bytes, 1)
    distinct = sets // math.gcd(row_bytes // target.line_bytes, sets)
    return max(distinct * target.l1_ways * 2 // 3, 4)


class _Body:
    """The straight code of a statement."""

    def __init__(self, s: Statement, target: Target) -> None:
        self.s, self.target = s, target
        cut = len(s.loops)
        while cut and s.loops[cut - 1].kind in (UNROLLED, LANES):
            cut -= 1
        self.around, self.straight = s.loops[:cut], s.loops[cut:]
        written = tuple(Loop(x.axis, x.written, UNROLLED) for x in self.around if differs(x.written, 1))
        self.loops = (*written, *self.straight)
        self.lanes: Column = 1
        self.lane_axis: Any = None
        for loop in self.loops:
            if loop.kind == LANES:
                self.lanes, self.lane_axis = loop.extent, loop.axis
        self.unrolled = frozenset(x.axis for x in self.loops if x.kind == UNROLLED)
        self.store = next((t for t in s.touches if t.is_store), None)
        moves = self.store.moves if self.store is not None else frozenset()
        cut = next((k for k in range(len(self.around), 0, -1) if self.around[k - 1].axis in moves), 0)
        self.tiles, self.reducing = self.around[:cut], self.around[cut:]
        self._times: dict[frozenset[Any], Column] = {}

    def times(self, moves: frozenset[Any]) -> Column:
        """How many different values there are in the body of what moves so."""
        moves = moves & self.unrolled
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

    @cached_property
    def work(self) -> tuple[Column, ...]:
        """Arithmetic, and what of it only adds; loads and stores; registers that hold what the statement makes; loads that are part of an arithmetic
        instruction."""
        arithmetic: Column = 0.0
        added: Column = 0.0
        loads: Column = 0.0
        stores: Column = 0.0
        kept: Column = 0.0
        moves = self.store.moves if self.store is not None else frozenset()
        for t in self.s.touches:
            if t.register:  # of what is loaded from registers, those of one step
                kept = kept + self.times(t.moves if t.is_store else t.moves & moves) * self.registers(t.moves, t.bits)
        for o in self.s.operations:
            times = self._computed(o, kept) * self.registers(o.moves, o.bits)
            arithmetic = arithmetic + o.instructions * times
            added = added + o.added * times if o.added else added
        for t in self.s.touches:
            if t.register:
                continue
            moved, shuffled = self._accesses(t)
            if t.is_store:
                stores = stores + self.times(t.moves) * moved
            else:
                loads = loads + self._distinct(t, kept) * moved
            arithmetic = arithmetic + self.times(t.moves) * shuffled
        return arithmetic, added, loads, stores, kept, self._folded()

    def _computed(self, o: Operation, kept: Column) -> Column:
        """How many different values of an operation: of what is shared, one."""
        read = next((t for t in self.s.touches if t.buffer is o.source and t.moves == o.moves and not (t.is_store or t.register)), None)
        if o.source is None or read is None:
            return self.times(o.moves)
        return self._distinct(read, kept, self.target.mask_registers if o.is_test else 0)

    def _distinct(self, t: Touch, kept: Column, masks: int = 0) -> Column:
        each = self.times(t.moves)
        along = [a for a in t.moves & self.unrolled if a != self.lane_axis]
        if not any(len(s.keys() & set(along)) > 1 for _, s in t.operand.sides if s):
            return each
        extents = {a: self.times(frozenset([a])) for a in along}
        vectors = self.times(t.moves & frozenset([self.lane_axis]))  # beside each other
        distinct = least(t.operand.elements(extents) * vectors, each)
        inner = next((x.axis for x in reversed(self.loops) if x.axis in along and self.store is not None and x.axis not in self.store.moves), None)
        waiting = self._kept_for_later(t, inner, extents) * vectors * self.registers(t.moves, t.bits)
        if not self.target.mask_registers and any(o.is_test and o.source is t.buffer for o in self.s.operations):
            waiting = 2 * waiting  # what the test said waits as well
        room = masks or most(self.target.vector_registers - kept - 2, 0.0)
        held = least(1.0, room / most(waiting, 1.0))
        return chosen(distinct < each, held * distinct + (1.0 - held) * SPILLED * each, each)

    def _kept_for_later(self, t: Touch, inner: Any, extents: Mapping[Any, Column]) -> Column:
        """Values of one load that wait in registers for a later step of the innermost reduction, as neighbours read there what others read before: of the
        steps between, each leaves those that are still to be read."""
        spatial = {a: n for a, n in extents.items() if self.store is not None and a in self.store.moves}
        own = t.operand.elements(spatial)
        for _, steps in t.operand.sides:
            near = [a for a in spatial if steps and steps.get(a)]
            if inner is not None and steps and steps.get(inner) and len(near) == 1:
                step, by = int(steps[inner]), int(steps[near[0]])
                common = math.gcd(step, by)
                later = most(spatial[near[0]] - step // common, 0)  # of the neighbours, those whose value another one reads
                return own + (by // common - 1) * later * (own / most(spatial[near[0]], 1))
        return own

    def _folded(self) -> Column:
        """Loads of values that are used once are operands of the instruction that uses them, where the machine has such."""
        if not self.target.folds_loads or not self.s.operations:
            return 0.0
        used = max((o.moves for o in self.s.operations), key=len)
        uses = self.times(used)
        found: Column = 0.0
        for t in self.s.touches:
            whole = self.lane_axis in t.moves
            if not (t.is_store or t.register) and (t.lane == 1 if whole else self.target.folds_broadcasts or self.lane_axis is None):
                found = most(found, chosen(self.times(t.moves) == uses, uses * self.registers(t.moves, t.bits), 0.0))
        return found

    def _accesses(self, t: Touch) -> tuple[Column, Column]:
        """Loads or stores of one value, and instructions that put its lanes together."""
        if self.lane_axis is None or self.lane_axis not in t.moves:
            return 1, 0
        whole = self.registers(t.moves, t.bits)
        if t.lane == 1:  # where vectors may begin anywhere, some lie in two lines
            width = least(self.lanes * t.bits // 8, self.target.vector_bytes)
            pitch = 0 if t.operand.is_packed else math.gcd(*(int(n) for a, n in t.steps.items() if n is not None and a != self.lane_axis))
            aligned = np.gcd(pitch * t.bits // 8, width)
            return whole * (1 + (width - aligned) / self.target.line_bytes), 0
        if t.lane is not None and 0 < abs(t.lane) <= NEAR and not t.is_store and np.all(abs(t.lane) <= most(self.lanes, 4)):
            return whole * abs(t.lane), whole * abs(t.lane)
        apart = None if t.lane is None else abs(t.lane) * t.bits // 8
        missed = self.target.miss_cycles * (self.lanes > rows_in_cache(self.target, apart))
        return self.lanes, self.lanes * (self.target.gather_instructions - 1 + missed)

    def chain(self) -> Column:
        """How many iterations go into one accumulator one after another."""
        steps: Column = 1
        for loop in self.reducing:
            steps = steps * loop.trips
        return steps

    def waiting(self, instructions: Column) -> Column:
        """For accumulators: each is updated once for every value that goes into it, one after another."""
        if not self.s.accumulates or self.store is None or (self.around and self.around[-1].axis in self.store.moves):
            return 0.0
        updates = self.times(self.unrolled) / self.times(self.store.moves)
        latency = self.target.fma_latency + (0.0 if self.store.register else self.target.forwarding)
        seen = exposed(self.target, most(instructions * self.chain(), 1.0))
        if not self.s.in_parts:
            return updates * latency * seen
        one_by_one = sum(o.instructions for o in self.s.operations) * self.target.fma_latency * exposed(self.target, instructions)
        return most(updates * latency, one_by_one)  # what follows a sum along a row needs it

    def crowded(self) -> Column:
        """For sums in registers whose steps are written out: LLVM loads vectors of the next step before the last one is over, and where no register is
        left for them, some sum goes through memory in each step (of tiles of 31 registers, 9 x 3 took 1.2 times as long as with single steps, and up to
        2.2 times)."""
        if not self.s.accumulates or self.store is None or not self.store.register:
            return 0.0
        steps = self.times(self.unrolled - self.store.moves)
        loaded: Column = 0
        cut: Column = 0
        for t in self.s.touches:
            if not t.is_store and self.lane_axis in t.moves and t.buffer is not self.store.buffer:
                loaded = loaded + self.times(t.moves & self.store.moves)
                cut = cut if t.operand.is_packed else most(cut, self.s.edges)
        needed = self.times(self.store.moves) * self.registers(self.store.moves, self.store.bits) + loaded + 1
        room = self.target.vector_registers
        is_full = (needed <= room) & (needed + self.target.loaded_ahead * (loaded + cut) > room)  # (larger tiles spill anyway)
        return chosen((steps > 1) & is_full, steps * (self.target.fma_latency + self.target.forwarding), 0.0)

    def late(self) -> Column:
        """For lines that come from the second-level cache, or from memory, while nothing asks for them ahead."""
        late: Column = 0.0
        if not self.s.accumulates or self.store is None or not self.reducing:
            return late
        line = self.target.line_bytes
        near, far = (line / self.target.bytes_per_cycle(level) for level in (L2, MEMORY))
        for t in self.s.touches:
            if t.is_store or t.register:
                continue
            if self.lane_axis in t.moves:
                if t.lane and abs(t.lane) <= NEAR and len(self._swept(t)) > 1:
                    late = late + abs(t.lane) * self.times(t.moves) * self._strided(t) * self._line(t, near, far)
                continue
            rows = [t.steps[a] for a in t.moves & self.unrolled & self.store.moves]
            if rows and None not in rows:
                apart = math.gcd(*map(int, rows)) * t.bits // 8
                late = late + most(self.times(t.moves & self.store.moves) - rows_in_cache(self.target, apart), 0) * near
        return late

    def _swept(self, t: Touch) -> dict[Any, float]:
        """How far a touch moves along each axis that is reduced."""
        return {x.axis: abs(t.steps[x.axis]) for x in self.reducing if t.steps.get(x.axis) and differs(x.extent, 1)}

    def _strided(self, t: Touch) -> Column:
        """Whether the innermost loop is another one than that along which vectors follow each other in memory."""
        swept = self._swept(t)
        first = min(swept, key=swept.__getitem__)
        out: Column = False
        open_: Column = True
        for loop in reversed(self.reducing):
            out = out | (open_ & (np.asarray(loop.extent) > 1) & (loop.axis != first))
            open_ = open_ & (np.asarray(loop.extent) <= 1)
        return out

    def _line(self, t: Touch, near: float, far: float) -> Column:
        """Cycles for one line of a panel, those of memory on the average over its uses."""
        inner: dict[Any, Column] = {}
        for loop in (*self.reducing, *self.straight):
            inner[loop.axis] = inner.get(loop.axis, 1) * loop.extent
        room = most(t.operand.bytes(inner), t.operand.crowded(inner, self.target.l1_bytes // self.target.l1_ways))
        cost = chosen(room > self.target.l1_bytes, self.target.strided_exposed * near, 0.0)
        if not t.operand.constant:
            return cost
        uses: Column = 1
        for loop in self.tiles:
            if loop.axis not in t.moves:
                uses = uses * loop.trips
        return cost + self.target.first_exposed * far / most(uses, 1)

    def ends(self, trips: Column) -> Column:
        """For the reductions in registers of all tiles: to start them and to end them."""
        result, store = self.s.result, self.store
        if result is None or store is None:
            return 0.0
        chain = self.chain()
        kept = self.times(store.moves) * self.registers(store.moves, store.bits)
        stored, shuffled = (1, 0) if self.s.in_parts else self._accesses(result)
        is_plain = result.lane == 1 or self.s.in_parts
        each = self.target.result_cycles * self.registers(store.moves, store.bits) if is_plain else stored / self.target.stores + shuffled
        waiting = exposed(self.target, chain * self.times(self.unrolled))
        latency = LATENCIES * self.target.fma_latency
        if self.s.in_parts:  # the one vector that is left is another statement's
            return trips / most(chain, 1) * (FOLDED * np.log2(most(self.lanes, 2)) + PART * kept / self.target.fma_ports + latency * waiting)
        return trips / most(chain, 1) * (latency + each * kept) * waiting
