# SPDX-License-Identifier: Apache-2.0
"""What a tensor program must do at least, read off the program, and how fast a machine could do it (its roofline).

FLOPs are counted at every store: loops around it times floating-point operations of its value (an elementary function counts as
the polynomial that computes it); what is only used where a condition that is said to be likely does not hold counts for nothing. Bytes are
those that must cross: each operand once, each result once; of a table that is read in few places only these. A kernel can be no faster than
the slower of its arithmetic and its memory traffic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from ..arith import Analyzer
from ..ir import tir
from ..ir.dataclass import dataclass
from ..ir.visit import Rewriter, Visitor, on, statements, substitute, walk
from ..schedule.operations import data_nodes, operations
from ..target import Target
from .match.dot_product import dots, gain
from .match.tile_product import tile_gains

Types = tuple[str, str, str]


@dataclass(frozen=True)
class Cost:
    """Of one call: arithmetic operations; bytes of constant operands, of other operands and results; of the operations those that multiply
    narrow numbers and sum up these products, by the types of the two factors and the sum."""

    flops: float
    constant_bytes: float
    data_bytes: float
    narrow_products: Mapping[Types, float] = field(default_factory=dict, hash=False)

    @property
    def bytes(self) -> float:
        """All that must be read or written."""
        return self.constant_bytes + self.data_bytes

    @property
    def intensity(self) -> float:
        """FLOPs per byte."""
        return self.flops / max(self.bytes, 1.0)


@dataclass(frozen=True)
class Rates:
    """What a number of threads reaches: GFLOP/s, and GB/s for a working set (pairs of largest bytes and rate, smallest first); of products of
    narrow numbers so many times as many operations, by types (``gains``)."""

    gflops: float
    levels: tuple[tuple[float, float], ...]
    gains: Mapping[Types, float] = field(default_factory=dict, hash=False)

    def gbs(self, working_set: float) -> float:
        """The bandwidth of the level that holds so much."""
        return next((rate for size, rate in self.levels if working_set <= size), self.levels[-1][1])


@dataclass(frozen=True)
class Roofline:
    """The least time of one call in seconds, and of its arithmetic and memory traffic alone."""

    compute: float
    memory: float

    @property
    def seconds(self) -> float:
        """The larger of both times."""
        return max(self.compute, self.memory)

    @property
    def limit(self) -> str:
        """``compute`` or ``memory``."""
        return "compute" if self.compute >= self.memory else "memory"


def program_cost(func: tir.PrimFunc, constants: Sequence[int] = (), sizes: Mapping[str, int] | None = None) -> Cost:
    """The cost of a tensor program in block form. ``constants``: positions of buffer parameters that are constants;
    ``sizes``: values of symbolic dimensions by name (1 where one is missing)."""
    usual = func.replace(body=_Usual().rewrite(func.body))
    count = _Count(usual, sizes or {}, _used(usual))
    count.visit(usual.body)
    params, fixed = func.buffer_params, {func.buffer_params[k] for k in constants if k < len(func.buffer_params)}
    sides = {b: count.traffic(b) for b in params}
    constant = sum(n for b, n in sides.items() if b in fixed)
    return Cost(count.flops, constant, sum(sides.values()) - constant, count.narrow_products)


class _Count(Visitor):
    """Walks statements with the number of times that each runs."""

    def __init__(self, func: tir.PrimFunc, sizes: Mapping[str, int], used: set[tir.Buffer]) -> None:
        self.analyzer = Analyzer()
        self.sizes = sizes
        self.used = used
        self.times = 1.0
        self.flops = 0.0
        self.narrow_products: dict[Types, float] = {}
        self.reads: dict[tir.Buffer, float] = {}
        self.writes: dict[tir.Buffer, float] = {}

    def number(self, e: tir.Expr) -> float:
        """The value of a size; of one that varies with a loop around it, the largest."""
        if isinstance(e, tir.IntImm):
            return e.value
        known = {v: tir.index_const(self.sizes.get(v.name, 1)) for v in walk(e) if type(v) is tir.Var and v.size}
        return max(0.0, float(min(self.analyzer.bounds(self.analyzer.simplify(substitute(e, known)))[1], 1e18)))

    @on(tir.For)
    def _loop(self, loop: tir.For) -> None:
        extent = self.number(loop.extent) / (self.number(loop.step) if loop.step is not None else 1)
        outside, self.times = self.times, self.times * extent
        with self.analyzer.scope():
            if extent >= 1 and isinstance(loop.min, tir.IntImm):
                self.analyzer.bind(loop.loop_var, tir.Range(loop.min, tir.index_const(int(extent))))
            self.visit(loop.body)
        self.times = outside

    @on(tir.Block)
    def _block(self, block: tir.Block) -> None:
        self.visit(block.body)  # what init stores are constants

    @on(tir.BufferStore)
    def _store(self, store: tir.BufferStore) -> None:
        if store.buffer not in self.used:
            return
        lanes = store.value.dtype.lanes
        self.writes[store.buffer] = self.writes.get(store.buffer, 0.0) + self.times * lanes
        own, nodes = {store.buffer}, list(data_nodes(store.value))
        narrow = next((t for t in map(_narrow_types, nodes) if t is not None), None)
        for e in nodes:
            if type(e) is not tir.BufferLoad:
                done = self.times * operations(e) * e.dtype.lanes
                self.flops += done
                if narrow is not None:
                    self.narrow_products[narrow] = self.narrow_products.get(narrow, 0.0) + done
            elif e.buffer not in own:
                self.reads[e.buffer] = self.reads.get(e.buffer, 0.0) + self.times * e.dtype.lanes

    def traffic(self, buffer: tir.Buffer) -> float:
        """Bytes of a buffer that must be moved: no more than it has in each direction."""
        size = 1.0
        for n in buffer.shape:
            size *= self.number(n)
        moved = min(size, self.reads.get(buffer, 0.0)) + min(size, self.writes.get(buffer, 0.0))
        return moved * buffer.dtype.bits / 8


class _Usual(Rewriter):
    """What is chosen where likely conditions hold, as all there is."""

    @on(tir.Select, tir.IfThenElse)
    def _choice(self, e: Any) -> Any:
        e = self.generic(e)
        likely = type(e.condition) is tir.Call and e.condition.op == "likely"
        return e.replace(false_value=e.true_value) if likely else e


def _used(func: tir.PrimFunc) -> set[tir.Buffer]:
    """The parameters, and what goes into one of them."""
    loaded: dict[tir.Buffer, set[tir.Buffer]] = {}
    for store in (s for s in statements(func.body) if type(s) is tir.BufferStore):
        loaded.setdefault(store.buffer, set()).update(e.buffer for e in walk(store) if type(e) is tir.BufferLoad)
    used: set[tir.Buffer] = set()
    left = set(func.buffer_params)
    while left:
        used |= left
        left = set().union(*(loaded.get(b, set()) for b in left)) - used
    return used


def _narrow_types(e: tir.Expr) -> Types | None:
    """The types of two numbers and of their product, where both are widened to multiply them."""
    if type(e) is not tir.Mul or type(e.a) is not tir.Cast or type(e.b) is not tir.Cast:
        return None
    return str(e.a.value.dtype), str(e.b.value.dtype), str(e.dtype)


def rates(target: Target, threads: int = 1, measured: Any = None) -> Rates:
    """Of a target's figures, or of a ``Profile`` that was measured on it."""
    share = min(threads, measured.cores if measured else target.cores)
    sizes = (target.l1_bytes * share, target.l2_bytes * share, target.l3_bytes)
    gains = {d.types: gain(target, d.types) for d in dots(target)} | tile_gains(target)
    if measured is None:
        levels = [(size, share * target.bandwidth_gbs(size // share)) for size in sizes if size]
        return Rates(target.peak_gflops("float32", share), (*levels, (float("inf"), min(share * target.dram_gbs, target.all_dram_gbs))), gains)
    inside = zip(sizes, (measured.l1_gbs, measured.l2_gbs, measured.l3_gbs), strict=True)
    of_all = share / measured.cores
    dram = measured.dram_gbs if share == 1 else max(measured.dram_gbs, measured.all_dram_gbs * of_all)
    gflops = measured.gflops if share == 1 else measured.all_gflops * of_all
    return Rates(gflops, (*((size, share * rate) for size, rate in inside if size), (float("inf"), dram)), gains)


def roofline(cost: Cost, machine: Rates, constants: float | None = None) -> Roofline:
    """The bound of one call. ``constants``: bytes of all constants that the model reads in a run (they push each other out of the
    caches, so this decides where they come from; default: those of this program)."""
    from_constants = cost.constant_bytes / machine.gbs(cost.constant_bytes if constants is None else constants)
    counted = cost.flops - sum(done * (1 - 1 / machine.gains.get(types, 1.0)) for types, done in cost.narrow_products.items())
    return Roofline(counted / machine.gflops * 1e-9, (from_constants + cost.data_bytes / machine.gbs(cost.data_bytes)) * 1e-9)
