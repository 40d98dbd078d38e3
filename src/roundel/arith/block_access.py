# SPDX-License-Identifier: Apache-2.0
"""What a block's body reads and writes, as regions over the block's iteration variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..ir import Visitor, free_vars, on, substitute, tir, walk
from ..ir.dtype import INT64
from ..ir.tir import Block, Buffer, BufferRegion, Expr, Range, Var
from . import region as rg
from .analyzer import Analyzer
from .effects import reads_memory
from .int_set import interval

Accesses = tuple[tuple[BufferRegion, ...], tuple[BufferRegion, ...]]


def block_access(
    block: Block, buffer_map: Mapping[Var, Buffer] | Iterable[Buffer] = (), an: Analyzer | None = None
) -> Accesses:
    """``(reads, writes)`` of a block's body and init, in order of first access.

    Loops inside the block are run over, nested blocks count with their own regions, indices that depend on memory which
    the block allocates, or has a view of, with the whole dimension. Buffers that the block allocates are left out; a buffer that an updating
    block (one with ``init``) writes is not among its reads. ``buffer_map`` (data pointer or parameter to buffer, or buffers) finds the buffers
    whose pointers go to opaque calls: those are read and written whole.
    """
    buffers = buffer_map.values() if isinstance(buffer_map, Mapping) else buffer_map
    found = _Access(an or Analyzer(), {b.data: b for b in buffers})
    with found.an.scope():
        for iv in block.iter_vars:
            if not (type(iv.dom.extent) is tir.IntImm and iv.dom.extent.value == 1):  # of which the variable stays in regions
                found.an.bind(iv.var, iv.dom)
        found.enter(block)
    reads = found.collect(found.reads, found.local)
    writes = found.collect(found.writes, found.local)
    if block.init is not None:
        written = {w.buffer for w in writes}
        reads = tuple(r for r in reads if r.buffer not in written)
    return reads, writes


def domain_touched(stmt: tir.Stmt, buffer: Buffer, loads: bool = True, stores: bool = True, an: Analyzer | None = None) -> tuple[Range, ...] | None:
    """The box of indices at which a statement loads (and stores) elements of a buffer; None where it does not touch it.

    Loops inside the statement are run over; a dimension without bound counts whole.
    """
    found = _Access(an or Analyzer(), {buffer.data: buffer})
    found.visit(stmt)
    boxes = [side[buffer] for side, wanted in ((found.reads, loads), (found.writes, stores)) if wanted and buffer in side]
    return (boxes[0] if len(boxes) == 1 else rg.union(*boxes, found.an)) if boxes else None


def _in_script(r: Range) -> Range:
    """Numbers of elements are int64, as a script's are, whatever the type of the variables that they were computed from."""
    if type(r.extent) is not tir.IntImm or r.extent.dtype is INT64:
        return r
    return Range(tir.index_const(r.min.value) if type(r.min) is tir.IntImm else r.min, tir.index_const(r.extent.value))


class _Access(Visitor):
    def __init__(self, an: Analyzer, pointers: dict[Var, Buffer]) -> None:
        self.an, self.pointers = an, pointers
        self.dom: dict[Var, Range] = {}
        self.lets: dict[Var, Expr] = {}
        self.conditions: list[Expr] = []
        self.views: dict[Buffer, BufferRegion] = {}
        self.local: set[Buffer] = set()
        self.reads: dict[Buffer, tuple[Range, ...]] = {}
        self.writes: dict[Buffer, tuple[Range, ...]] = {}
        self.met: set[Expr] = set()  # expressions whose loads are recorded as they are where the visit is

    def enter(self, block: Block) -> None:
        """Visit the block whose accesses are asked for."""
        self.local.update(block.alloc_buffers)
        for m in block.match_buffers:
            self.views[m.buffer] = m.source
            self.pointers[m.buffer.data] = m.buffer
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)

    def collect(self, found: dict[Buffer, tuple[Range, ...]], local: set[Buffer]) -> tuple[BufferRegion, ...]:
        """The regions of buffers from outside."""
        return tuple(BufferRegion(b, tuple(map(_in_script, r))) for b, r in found.items() if b not in local)

    # --- recording

    def record(self, found: dict[Buffer, tuple[Range, ...]], buffer: Buffer, ranges: Iterable[Range]) -> None:
        """Adds a region to those of a buffer (views are taken back to what they view)."""
        box = tuple(self.an_range(r, buffer.shape[k]) for k, r in enumerate(ranges))
        source = self.views.get(buffer)
        if source is not None:
            box = _in_source(self.an, source, box)
            buffer = source.buffer
        old = found.get(buffer)
        found[buffer] = box if old is None else rg.union(old, box, self.an)

    def an_range(self, r: Range, size: Expr) -> Range:
        """A range with the loops inside the block run over; the whole dimension where that has no bound."""
        if self.lets:
            r = Range(substitute(r.min, self.lets), substitute(r.extent, self.lets))
        known = rg.relax_range(self.an, r, self.dom, self.conditions)
        return Range.of(size) if known is None or self.hidden(known) else known

    def hidden(self, r: Range) -> bool:
        """Whether a range depends on memory of which only the block sees this name."""
        if not (self.local or self.views) or not (reads_memory(r.min) or reads_memory(r.extent)):
            return False
        return any(type(n) is tir.BufferLoad and (n.buffer in self.local or n.buffer in self.views) for e in (r.min, r.extent) for n in walk(e))

    def points(self, buffer: Buffer, indices: tuple[Expr, ...]) -> list[Range]:
        """Ranges of one access."""
        out = []
        for index, size in zip(indices, buffer.shape, strict=True):
            if index.dtype.is_float:  # of no use as a bound
                out.append(Range.of(size))
                continue
            if index.dtype.lanes == 1:
                out.append(Range(index, tir.IntImm(1, index.dtype)))
                continue
            lanes = interval(self.an, index, {})
            out.append(
                rg.between(self.an, lanes.min, lanes.max + 1)
                if lanes.min is not None and lanes.max is not None
                else Range.of(size)
            )
        return out

    def whole(self, buffer: Buffer) -> None:
        """A pointer to the buffer escapes to an opaque call."""
        full = BufferRegion.full(buffer).region
        self.record(self.reads, buffer, full)
        self.record(self.writes, buffer, full)

    # --- visiting

    def visit(self, node: Any) -> None:
        """Dispatch on the node's type; index expressions touch no memory, and expressions are shared: each is visited once where it is."""
        if not isinstance(node, Expr):
            super().visit(node)
        elif not node.is_index and node not in self.met:
            super().visit(node)
            self.met.add(node)

    def generic(self, node: Any) -> None:
        """Visit the children."""
        for child in node._below():
            self.visit(child)

    @on(tir.BufferLoad)
    def _load(self, e: tir.BufferLoad) -> None:
        self.record(self.reads, e.buffer, self.points(e.buffer, e.indices))
        self.generic(e)

    @on(tir.BufferStore)
    def _store(self, s: tir.BufferStore) -> None:
        self.record(self.writes, s.buffer, self.points(s.buffer, s.indices))
        self.generic(s)

    @on(tir.Var)
    def _variable(self, v: Var) -> None:
        if v.dtype.is_handle and v in self.pointers:
            self.whole(self.pointers[v])

    @on(tir.Call)
    def _call(self, e: tir.Call) -> None:
        if e.op == "address_of" and type(e.args[0]) is tir.BufferLoad:
            self.whole(e.args[0].buffer)
            for i in e.args[0].indices:
                self.visit(i)
            return
        self.generic(e)

    @on(tir.For)
    def _loop(self, loop: tir.For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self.dom, self.met = {**self.dom, loop.loop_var: self._domain(loop)}, set()
        self.visit(loop.body)
        self.dom, self.met = {v: r for v, r in self.dom.items() if v is not loop.loop_var}, set()

    def _domain(self, loop: tir.For) -> Range:
        return Range(substitute(loop.min, self.lets), substitute(loop.extent, self.lets))

    @on(tir.Let)
    def _let(self, s: tir.Let) -> None:
        self.visit(s.value)
        self.lets, self.met = {**self.lets, s.var: substitute(s.value, self.lets)}, set()
        self.visit(s.body)

    @on(tir.If)
    def _if(self, s: tir.If) -> None:
        self.visit(s.condition)
        self.under(s.condition, s.then_case)
        if s.else_case is not None:
            self.under(s.condition, s.else_case, holds=False)

    @on(tir.IfThenElse)
    def _if_then_else(self, e: tir.IfThenElse) -> None:
        self.visit(e.condition)
        self.under(e.condition, e.true_value)
        self.under(e.condition, e.false_value, holds=False)

    def under(self, condition: Expr, node: Any, holds: bool = True) -> None:
        """Visit where a condition holds, or does not; it tightens the loops that run there, not the block's own variables."""
        condition = substitute(condition, self.lets)
        if self.dom.keys().isdisjoint(free_vars(condition)):
            self.visit(node)
            return
        self.conditions.append(self.an.simplify(condition if holds else tir.logical_not(condition)))
        outside, self.met = self.met, set()
        self.visit(node)
        self.conditions.pop()
        self.met = outside

    @on(tir.Allocate)
    def _allocate(self, s: tir.Allocate) -> None:
        self.local.add(s.buffer)
        self.met = set()
        self.visit(s.body)

    @on(tir.BlockRealize)
    def _realize(self, s: tir.BlockRealize) -> None:
        for v in s.iter_values:
            self.visit(v)
        self.visit(s.predicate)
        block = s.block
        reads, writes = (
            (block.reads, block.writes) if block.reads or block.writes else block_access(block, self.pointers, self.an)
        )
        table = {iv.var: substitute(v, self.lets) for iv, v in zip(block.iter_vars, s.iter_values, strict=True)}
        self.conditions.append(self.an.simplify(substitute(s.predicate, self.lets)))
        for found, regions in ((self.reads, reads), (self.writes, writes)):
            for r in regions:
                box = [substitute(x, table) for x in r.region]
                self.record(found, r.buffer, box)
                for x in box:  # where A[index[i]] is, index[i] tells
                    self.visit(x.min)
                    self.visit(x.extent)
        self.conditions.pop()


def _in_source(an: Analyzer, source: BufferRegion, box: tuple[Range, ...]) -> tuple[Range, ...]:
    """A region of a view as a region of what it views (leading dimensions of the source may be missing in the view)."""
    lead = len(source.region) - len(box)
    if lead < 0:
        return source.region
    return (
        *source.region[:lead],
        *(Range(an.simplify(tir.add(s.min, r.min)), r.extent) for s, r in zip(source.region[lead:], box, strict=True)),
    )
