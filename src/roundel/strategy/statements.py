# SPDX-License-Identifier: Apache-2.0
"""What the model of costs looks at: each store of a program with the loops around it, what it loads and what it computes.

``statements(func)`` reads them off a program in block form, scheduled or not. ``statement_of`` is one of a block whose loops are still to be
chosen. What is only used where a condition that is said to be likely does not hold counts for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from ..ir import tir
from ..ir.annotations import GRAIN
from ..ir.dataclass import dataclass
from ..ir.visit import free_vars
from ..target import Target
from .functions import CHOICES, instructions
from .guards import share_before_ends, share_evaluated, share_inside
from .nest import Operand
from .parallelism import busiest_part

Column = Any  # an array with a value for each candidate, or one number for all
SERIAL, UNROLLED, LANES = "serial", "unrolled", "lanes"
PARTS = "parts"    # the axis of partial sums

ASSUMED = 128      # extent of what is not a number
LOOKED_UP = 16     # elements between neighbours whose place is looked up


@dataclass(frozen=True)
class Loop:
    """A loop of a statement; several may run over one axis, the outer ones in larger steps. ``written``: how many of the iterations of a serial
    loop are written out one after another."""

    axis: Any
    extent: Column
    kind: str = SERIAL
    written: Column = 1

    @property
    def trips(self) -> Column:
        """Iterations of the loop that is left."""
        return self.extent if isinstance(self.written, int) and self.written == 1 else self.extent / self.written


@dataclass(frozen=True)
class Touch:
    """A load or store. ``lane``: elements from one lane to the next (None: anywhere). ``moves``: the axes it moves along.
    ``register``: it is one of the registers' tile. ``steps``: elements that it moves along each axis (None: anywhere). ``first``: where it begins in each
    dimension."""

    operand: Operand
    moves: frozenset[Any]
    lane: int | None
    is_store: bool
    register: bool
    bits: int
    buffer: Any = None
    steps: Mapping[Any, float | None] = field(default_factory=dict)
    first: tuple[int, ...] = ()


@dataclass(frozen=True)
class Operation:
    """Instructions that compute one value of a statement, for a vector or a scalar. ``source``: the buffer of the one load that it is computed of alone:
    once for neighbours whose windows share what they read. ``is_test``: it says which lanes of that load are numbers. ``added``: of the instructions those
    that only add floats, which some machines do elsewhere."""

    instructions: float
    moves: frozenset[Any]
    bits: int
    source: Any = None
    is_test: bool = False
    added: float = 0.0


@dataclass(frozen=True)
class Statement:
    """A store with what it loads and computes, and the loops around it, the outermost first. ``accumulates``: whether it
    adds to what it stored before. ``region``: the parallel loop around it, of so many ``iterations``, of which a thread has at least
    a ``grain``. ``place``: the variables of its loops, but for those that are vectorized or unrolled. ``result``: where sums that are
    kept in registers go once they are complete; ``in_parts``: these are vectors of partial sums, which are added first. ``edges``: of
    how many axes some pieces are not whole. ``share``: of the iterations those that are made, where a window reaches into padding that
    is left out."""

    loops: tuple[Loop, ...]
    touches: tuple[Touch, ...]
    operations: tuple[Operation, ...]
    accumulates: bool = False
    region: Any = None
    iterations: int = 1
    grain: int = 1
    place: tuple[tir.Var, ...] = ()
    result: Touch | None = None
    in_parts: bool = False
    edges: Column = 0
    share: float = 1.0

    def part(self, threads: int) -> float:
        """The part of its iterations that the busiest of so many threads has."""
        return busiest_part(self.iterations, threads, self.grain)


def statements(func: tir.PrimFunc, target: Target, sizes: Mapping[str, int]) -> list[Statement]:
    """Those of a program, in order. ``sizes``: values of symbolic dimensions by name (``ASSUMED`` where one is missing)."""
    reader = _Reader(func, sizes, target)
    reader.read(func.body, ())
    return reader.statements()


def statement_of(block: tir.Block, lane_axis: int, target: Target, has_guards: bool = True, sizes: Mapping[str, int] = MappingProxyType({})) -> Statement:
    """The store of a block whose loops are still to be chosen: what it touches and computes, by the positions of the block's axes. ``has_guards``:
    its conditions are evaluated for each element; otherwise loops are split where they change. ``sizes`` as for `statements`."""
    reader = _Reader(None, sizes, target)
    site = _Site((), block.body, {axis.var: {k: 1} for k, axis in enumerate(block.iter_vars)}, _NONE, _ALWAYS)
    read = _Accesses(reader, site, {})
    read.lanes = lane_axis
    read.extents = {k: reader.number(axis.dom.extent) for k, axis in enumerate(block.iter_vars)}
    return Statement((), read.touches(), read.operations(has_guards), read.accumulates())


def in_registers(s: Statement) -> Statement:
    """A sum that is kept in registers until it is complete."""
    store = next(t for t in s.touches if t.is_store)
    return replace(s, touches=(replace(store, register=True), *(t for t in s.touches if t.buffer is not store.buffer)), result=store)


def in_parts(s: Statement, axis: Any, width: Column) -> Statement:
    """A sum along an axis as ``width`` sums, each of every ``width``-th value; the axis ``PARTS`` counts these."""
    def parted(t: Touch) -> Touch:
        if axis not in t.moves:
            return t
        cut = lambda steps: steps and ({**steps, axis: steps[axis] * width, PARTS: steps[axis]} if steps.get(axis) else steps)
        operand = replace(t.operand, sides=tuple((n, cut(steps)) for n, steps in t.operand.sides))
        return replace(t, operand=operand, moves=t.moves | {PARTS}, steps={**t.steps, PARTS: t.steps[axis]})

    store = next(t for t in s.touches if t.is_store)
    touches = (replace(store, moves=store.moves | {PARTS}), *(parted(t) for t in s.touches if t is not store))
    operations = tuple(replace(o, moves=o.moves | {PARTS}) if axis in o.moves else o for o in s.operations)
    return replace(s, touches=touches, operations=operations, in_parts=True)


_NONE: Mapping[Any, Any] = MappingProxyType({})
_ALWAYS = tir.const(True, "bool")


@dataclass
class _Site:
    """A store in the program: its loops (with where each is in the tree), and its accesses by the axes of these."""

    loops: tuple[tir.For, ...]
    store: tir.BufferStore
    values: Mapping[tir.Var, dict[Any, float] | None]
    first: Mapping[tir.Var, int]  # the values of variables in the first iteration of all loops, where it is not 0
    predicate: tir.Expr           # of the block around it
    is_network: bool = False      # it is part of an instruction's description: from registers to registers


@dataclass
class _Reader:
    func: tir.PrimFunc | None
    sizes: Mapping[str, int]
    target: Target
    sites: list[_Site] = field(default_factory=list)
    middle: dict[tir.Var, int] = field(default_factory=dict)  # of the values that a loop's variable takes
    views: dict[tir.Buffer, tir.Buffer] = field(default_factory=dict)  # of private memory, in blocks that an instruction's network computes

    def number(self, e: tir.Expr) -> int:
        """The value of an extent."""
        return number(e, self.sizes, self.middle)

    def read(self, stmt: Any, loops: tuple[tir.For, ...], values: Mapping[tir.Var, Any] = _NONE, first: Mapping[tir.Var, int] = _NONE,
             predicate: tir.Expr = _ALWAYS, is_network: bool = False) -> None:
        """Find all stores of a statement."""
        kind = type(stmt)
        if kind is tir.For:
            self.middle[stmt.loop_var] = max(1, self.number(stmt.extent) // 2)
            begins = at_first(stmt.min, first, self.sizes)
            self.read(stmt.body, (*loops, stmt), values, {**first, stmt.loop_var: begins} if begins else first, predicate, is_network)
        elif kind is tir.BlockRealize:
            extents = {x.loop_var: self.number(x.extent) for x in loops}
            bound = list(zip((i.var for i in stmt.block.iter_vars), stmt.iter_values, strict=True))
            inner = {**values, **{var: steps(v, values, extents) for var, v in bound}}
            begun = {**first, **{var: at_first(v, first, self.sizes) for var, v in bound}}
            self.views |= {m.buffer: m.source.buffer for m in stmt.block.match_buffers if m.buffer.scope == "local"}
            if stmt.block.init is not None:
                self.read(stmt.block.init, self._before(stmt, loops), inner, begun)
            self.read(stmt.block.body, loops, inner, begun, stmt.predicate, is_network or any(m.buffer in self.views for m in stmt.block.match_buffers))
        elif kind is tir.BufferStore:
            self.sites.append(_Site(loops, stmt, values, first, predicate, is_network))
        elif kind is tir.Seq:
            for s in stmt.stmts:
                self.read(s, loops, values, first, predicate, is_network)
        else:
            for name in ("body", "then_case", "else_case"):
                part = getattr(stmt, name, None)
                if part is not None:
                    self.read(part, loops, values, first, predicate, is_network)

    def _before(self, realize: tir.BlockRealize, loops: tuple[tir.For, ...]) -> tuple[tir.For, ...]:
        """The loops around an init once it stands in front of what reduces."""
        reducing = {v for i, value in zip(realize.block.iter_vars, realize.iter_values, strict=True) if i.kind is tir.IterKind.REDUCE for v in free_vars(value)}
        return tuple(x for x in loops if x.loop_var not in reducing)

    def statements(self) -> list[Statement]:
        """All of them that usually run, in order."""
        homes, used = self._homes(), self._used()
        return [_statement(self, site, homes) for site in self.sites if site.store.buffer in used]

    def _used(self) -> set[tir.Buffer]:
        """The parameters, and what usually goes into one of them."""
        loaded: dict[tir.Buffer, list[tir.Buffer]] = {}
        for site in self.sites:
            loaded.setdefault(site.store.buffer, []).extend(e.buffer for e in _loads(site.store))
        for view, whole in self.views.items():
            loaded.setdefault(whole, []).append(view)
            loaded.setdefault(view, []).append(whole)
        used: set[tir.Buffer] = set()
        left = [b for b in loaded if self.func is None or b in self.func.buffer_params]
        while left:
            buffer = left.pop()
            if buffer not in used:
                used.add(buffer)
                left += loaded.get(buffer, [])
        return used

    def _homes(self) -> dict[Any, int]:
        """For each buffer that is no parameter, how many loops all its uses share: memory is that of one iteration of these."""
        given = set(self.func.buffer_params if self.func is not None else ())
        uses: dict[Any, Any] = {}
        for site in self.sites:
            for e in (site.store, *_loads(site.store)):
                if e.buffer not in given:
                    uses.setdefault(e.buffer, []).append(site.loops)
        return {b: _shared(chains) for b, chains in uses.items()}


_FOLDS: dict[type, Callable[[int, int], int]] = {
    tir.Add: lambda a, b: a + b, tir.Sub: lambda a, b: a - b, tir.Mul: lambda a, b: a * b,
    tir.FloorDiv: lambda a, b: a // max(b, 1), tir.FloorMod: lambda a, b: a % max(b, 1), tir.Min: min, tir.Max: max,
}


def number(e: tir.Expr, sizes: Mapping[str, int], middle: Mapping[tir.Var, int] = MappingProxyType({})) -> int:
    """The value of an extent, one at least. ``middle``: typical values of loops' variables."""
    if isinstance(e, tir.IntImm):
        return max(1, e.value)
    if isinstance(e, tir.Var):
        return middle[e] if e in middle else sizes.get(e.name, ASSUMED)
    if type(e) in _FOLDS:
        return max(1, _FOLDS[type(e)](number(e.a, sizes, middle), number(e.b, sizes, middle)))
    return ASSUMED


def at_first(e: tir.Expr, first: Mapping[tir.Var, int], sizes: Mapping[str, int] = MappingProxyType({})) -> int:
    """The value of an index in the first iteration of every loop, ``first`` says where variables begin that do not at 0. ``sizes`` as for `number`."""
    kind = type(e)
    if kind is tir.IntImm:
        return e.value
    if kind is tir.Var:
        return first.get(e, sizes.get(e.name, ASSUMED) if e.size else 0)
    return _FOLDS[kind](at_first(e.a, first, sizes), at_first(e.b, first, sizes)) if kind in _FOLDS else 0


def _shared(chains: Sequence[tuple[tir.For, ...]]) -> int:
    count = min(map(len, chains))
    return next((k for k in range(count) if any(c[k] is not chains[0][k] for c in chains)), count)


def steps(e: tir.Expr, values: Mapping[tir.Var, Any], extents: Mapping[Any, int] = MappingProxyType({})) -> dict[Any, float] | None:
    """How far an index moves with each axis: loop variables, and quotients and remainders of them, which are axes of their own. None where
    it is looked up, or otherwise not linear."""
    kind = type(e)
    if kind is tir.IntImm:
        return {}
    if isinstance(e, tir.Var):
        return values[e] if e in values else {} if e.size else {e: 1}
    if kind in (tir.Add, tir.Sub):
        a, b = steps(e.a, values, extents), steps(e.b, values, extents)
        if a is None or b is None:
            return None
        sign = 1 if kind is tir.Add else -1
        out = dict(a)
        for axis, n in b.items():
            out[axis] = out.get(axis, 0) + sign * n
        return out
    if kind is tir.Mul:
        for factor, other in ((e.a, e.b), (e.b, e.a)):
            if isinstance(factor, tir.IntImm):
                found = steps(other, values, extents)
                return None if found is None else {axis: factor.value * n for axis, n in found.items()}
        return None
    if kind in (tir.FloorDiv, tir.FloorMod) and isinstance(e.b, tir.IntImm):
        found = steps(e.a, values, extents)
        if found is None:
            return None
        if isinstance(e.a, tir.Var | tir.FloorDiv) and not any(v in values for v in free_vars(e.a)):
            return {e: 1} if found else {}
        whole = {axis: n for axis, n in found.items() if n % e.b.value == 0}
        rest = {axis: n for axis, n in found.items() if axis not in whole}
        if kind is tir.FloorMod:
            return rest
        rest = {axis: n for axis, n in rest.items() if e.b.value % (abs(n) * _extent(axis, extents))}  # others stay below the divisor
        inside = sum(abs(n) * (_extent(axis, extents) - 1) for axis, n in rest.items()) < e.b.value
        return {axis: n // e.b.value for axis, n in whole.items()} | ({} if inside else {axis: n / e.b.value for axis, n in rest.items()})
    if kind is tir.Cast:
        return steps(e.value, values, extents)
    return None if free_vars(e) else {}


def _extent(axis: Any, extents: Mapping[Any, int]) -> int:
    """Of an axis, which may be a quotient or remainder of another."""
    if axis in extents:
        return extents[axis]
    if type(axis) is tir.FloorMod:
        return axis.b.value
    return -(-_extent(axis.a, extents) // axis.b.value) if type(axis) is tir.FloorDiv else ASSUMED


def _statement(reader: _Reader, site: _Site, homes: Mapping[Any, int]) -> Statement:
    """A store as the model sees it."""
    loops: list[Loop] = []
    digits: dict[Any, list[Any]] = {}
    read = _Accesses(reader, site, homes)
    touches = read.touches()
    for axis in read.axes:
        if not isinstance(axis, tir.Var):
            digits.setdefault(next(iter(free_vars(axis))), []).append(axis)
    region, iterations, grain = None, 1, 1
    for loop in site.loops:
        kind, extent = _KINDS.get(loop.kind, SERIAL), reader.number(loop.extent)
        if loop.kind is tir.ForKind.PARALLEL:
            told = (loop.annotations or {}).get(GRAIN, 1)
            region, iterations, grain = loop.loop_var, extent, max(1, int(getattr(told, "value", told)))
        parts = digits.get(loop.loop_var)
        loops += [Loop(loop.loop_var, extent, kind)] if parts is None else _digits(parts, extent, kind)
    place = tuple(x.loop_var for x in site.loops if x.kind not in _KINDS)
    ordered = sorted(loops, key=lambda x: x.kind == LANES)  # statements inside of a loop over lanes are widened one by one
    return Statement(tuple(ordered), touches, read.operations(), read.accumulates(), region, iterations, grain, place, share=read.share())


def _digits(parts: Sequence[Any], extent: int, kind: str) -> list[Loop]:
    """A fused loop as loops over its quotients and remainders, the coarsest first; those that nothing moves with included."""
    var = next(iter(free_vars(parts[0])))
    out, above = [], extent
    for low, part in sorted(((_divisor(p), p) for p in parts), key=lambda pair: -pair[0]):
        size = min(-(-above // low), part.b.value) if type(part) is tir.FloorMod else -(-above // low)
        if size * low < above:
            out.append(Loop(tir.FloorDiv(var, tir.index_const(size * low)), -(-above // (size * low)), kind))
        out.append(Loop(part, max(1, size), kind))
        above = min(above, low)
    return [*out, Loop(tir.FloorMod(var, tir.index_const(above)), above, kind)] if above > 1 else out


def _divisor(part: Any) -> int:
    if type(part) is tir.FloorMod:
        return _divisor(part.a) if type(part.a) is tir.FloorDiv else 1
    return part.b.value


class _Accesses:
    """The loads, stores and operations of one store."""

    def __init__(self, reader: _Reader, site: _Site, homes: Mapping[Any, int]) -> None:
        self.reader, self.site, self.homes = reader, site, homes
        self.lanes = next((x.loop_var for x in reversed(site.loops) if x.kind is tir.ForKind.VECTORIZED), None)
        self.straight = {x.loop_var for x in site.loops if x.kind in (tir.ForKind.VECTORIZED, tir.ForKind.UNROLLED)}
        self.extents: dict[Any, int] = {x.loop_var: reader.number(x.extent) for x in site.loops}
        self.axes: dict[Any, None] = {}
        self.memo: dict[Any, frozenset[Any]] = {}

    def touches(self) -> tuple[Touch, ...]:
        """Each different access once."""
        store = self.site.store
        own = [e for e in _loads(store) if e.buffer is store.buffer and e.indices == store.indices]
        others = [e for e in _loads(store) if e not in own]
        made = [self._touch(store, True), *(self._touch(e, False) for e in others)]
        if own and not made[0].register:
            made.append(self._touch(own[0], False))
        if self.site.is_network:  # its values pass through registers that the stores around it count
            made = [t for t in made if not t.register]
        return tuple(made)

    def _touch(self, e: Any, is_store: bool) -> Touch:
        home = self.homes.get(e.buffer)
        outside = {x.loop_var for x in self.site.loops[: home or 0]}
        sides: list[tuple[int, Any]] = []
        moves: set[Any] = set()
        around: set[Any] = set()  # those included that only say whose memory it is
        offset: dict[Any, float | None] = {}
        size = 1
        for index, n in zip(reversed(e.indices), reversed(e.buffer.shape), strict=True):
            found = steps(index, self.site.values, self.extents)
            extent = self.reader.number(n)
            if found is not None:
                around |= {a for a, s in found.items() if s}
                found = {a: s for a, s in found.items() if s and not (outside and free_vars(a) & outside)}
                moves |= found.keys()
                for a, s in found.items():
                    before = offset.get(a, 0)
                    offset[a] = None if before is None else before + s * size
            else:  # looked up: each value of what it depends on is somewhere else
                known = [a for a in self._inside(index) if a not in outside]
                moves |= set(known)
                offset |= dict.fromkeys(known)
                found = dict.fromkeys(known, 1 if size > 1 else LOOKED_UP)
            if home is not None:  # memory is made no larger than what is used of it
                extent = int(min(extent, 1 + sum(abs(s) * (self.extents.get(a, ASSUMED) - 1) for a, s in found.items())))
            sides.append((extent, {a: abs(s) for a, s in found.items()}))
            size *= extent
        self.axes |= dict.fromkeys(moves)
        register = e.buffer.scope == "local" and all(a in self.straight for a in moves) and None not in offset.values()
        lane = offset.get(self.lanes, 0)
        if e.buffer.scope == "local" and lane:  # lanes of private memory lie side by side
            lane = 1
        element = e.buffer.dtype.storage_bits
        operand = Operand(tuple(reversed(sides)), element / 8, self.reader.target.line_bytes)
        first = tuple(at_first(index, self.site.first, self.reader.sizes) for index in e.indices)
        return Touch(operand, frozenset(moves | around), None if lane is None else int(lane), is_store, register, element, e.buffer, offset, first)

    def _inside(self, e: tir.Expr) -> set[Any]:
        """The axes that an index that is not linear depends on."""
        out: set[Any] = set()
        for v in free_vars(e):
            found = self.site.values.get(v, {} if v.size else {v: 1})
            out |= found.keys() if found is not None else set()
        return out

    def moves(self, e: tir.Expr) -> frozenset[Any]:
        """The axes that a value depends on."""
        if e not in self.memo:
            self.memo[e] = frozenset(self._inside(e))
        return self.memo[e]

    def operations(self, has_guards: bool = True) -> tuple[Operation, ...]:
        """What is computed, each different value once."""
        def parts(e: tir.Expr) -> list[tir.Expr]:
            fused = self._fused(e)
            inner = [] if type(e) is tir.BufferLoad else children(e)
            return inner if fused is None else [*(x for x in inner if x is not fused), fused.a, fused.b]

        found = []
        for e in each([self.site.store.value], parts):
            tested, tests = self._tests(e)
            if tests:
                found.append(Operation(tests, self.moves(tested), e.dtype.bits, self._source(tested), is_test=True))
            if count := self._instructions(e, has_guards) - tests:
                added = count if type(e) in SUMS and e.dtype.is_float and self._fused(e) is None else 0.0
                found.append(Operation(count, self.moves(e), e.dtype.bits, self._source(e), added=added))
        return tuple(found)

    def _tests(self, e: tir.Expr) -> tuple[tir.Expr, float]:
        """The operand of a largest or smallest number that is tested for being one before the choice, and how many instructions that takes: of what was
        stored before it is known."""
        if type(e) not in (tir.Max, tir.Min) or not e.dtype.is_float:
            return e, 0.0
        own = self.site.store.buffer
        operand = next((x for x in (e.a, e.b) if type(x) is not tir.BufferLoad or x.buffer is not own), e.b)
        return operand, self.reader.target.ordered_instructions - 1.0

    def _source(self, e: tir.Expr) -> Any:
        """The buffer of the only load that a value depends on, where it depends on nothing else."""
        loads = [x for x in each([e], _usual_parts) if type(x) is tir.BufferLoad]
        return loads[0].buffer if len(loads) == 1 and self.moves(e) == self.moves(loads[0]) else None

    def _instructions(self, e: tir.Expr, has_guards: bool) -> float:
        """Of one node, as a mean over the iterations."""
        if type(e) not in CHOICES:
            return instructions(e, self.reader.target)
        return instructions(e, self.reader.target) * self._evaluated(e.condition) if has_guards or type(e) is not tir.IfThenElse else 0.0

    def _evaluated(self, condition: tir.Expr) -> float:
        """The share of iterations in which a condition is evaluated; of a statement whose loops are still to be chosen, all."""
        if not self.site.loops:
            return 1.0
        moved, first = lambda e: steps(e, self.site.values, self.extents), lambda e: at_first(e, self.site.first, self.reader.sizes)
        return share_evaluated(condition, self.site.loops, lambda axis: _extent(axis, self.extents), moved, first)

    def share(self) -> float:
        """The share of the iterations in which no window's loop is in the padding, and none is beyond its end."""
        moved, first = lambda e: steps(e, self.site.values, self.extents), lambda e: at_first(e, self.site.first, self.reader.sizes)
        where = (self.site.predicate, self.site.loops, lambda axis: _extent(axis, self.extents), moved, first)
        return share_inside(*where) * share_before_ends(*where)

    def _fused(self, e: tir.Expr) -> Any:
        """The product that is one instruction with the sum it goes into."""
        if type(e) not in SUMS or not e.dtype.is_float:
            return None
        return next((x for x in (e.a, e.b) if type(x) is tir.Mul and self.moves(x) == self.moves(e)), None)

    def accumulates(self) -> bool:
        """Whether what was stored before goes into what is stored."""
        return any(e.buffer is self.site.store.buffer for e in _loads(self.site.store))


SUMS = (tir.Add, tir.Sub)
_KINDS = {tir.ForKind.UNROLLED: UNROLLED, tir.ForKind.VECTORIZED: LANES}


def children(e: tir.Expr) -> list[tir.Expr]:
    """The values that a node is usually computed from; conditions and indices count for nothing."""
    if _is_likely(e):
        return [e.true_value]
    return _parts(e, (n for n in e._children if n != "condition") if type(e) in CHOICES else e._children)


def _is_likely(e: Any) -> bool:
    """Whether a choice is said to have its first value almost always."""
    return type(e) in CHOICES and type(e.condition) is tir.Call and e.condition.op == "likely"


def each(roots: Sequence[tir.Expr], parts: Callable[[tir.Expr], Sequence[tir.Expr]]) -> Iterator[tir.Expr]:
    """Each different expression among the roots, their parts, the parts of these and so on, once."""
    seen: set[tir.Expr] = set()
    left = list(roots)
    while left:
        e = left.pop()
        if e not in seen:
            seen.add(e)
            yield e
            left += parts(e)


@lru_cache(maxsize=1024)  # statements are never changed
def _loads(store: tir.BufferStore) -> tuple[tir.BufferLoad, ...]:
    """Each different load of a store that usually happens, those in indices and conditions included."""
    roots = [e for e in (store.value, *store.indices) if not e.is_index]
    return tuple(e for e in each(roots, _usual_parts) if type(e) is tir.BufferLoad)


def _usual_parts(e: tir.Expr) -> list[tir.Expr]:
    """What a node is made of and may have loads, but for what is seldom chosen."""
    found = [e.condition, e.true_value] if _is_likely(e) else _parts(e, e._children)
    return [x for x in found if not x.is_index]


def _parts(e: tir.Expr, names: Iterable[str]) -> list[tir.Expr]:
    values = [getattr(e, name) for name in names]
    return [x for v in values for x in (v if isinstance(v, tuple) else (v,)) if isinstance(x, tir.Expr)]
