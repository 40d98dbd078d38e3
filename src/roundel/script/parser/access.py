# SPDX-License-Identifier: Apache-2.0
"""Reads and writes of a block whose script leaves them out: points where indices are free of inner loops, else whole dimensions."""

from __future__ import annotations

from ...ir import tir
from ...ir.tir import Block, BlockRealize, Buffer, BufferLoad, BufferRegion, BufferStore, Expr, For, Ramp, Range, Var
from ...ir.visit import Visitor, free_vars, on, substitute


class _Access(Visitor):
    def __init__(self) -> None:
        self.reads: dict[Buffer, list[tuple[Range, ...]]] = {}
        self.writes: dict[Buffer, list[tuple[Range, ...]]] = {}
        self.inner: set[Var] = set()
        self.local: set[Buffer] = set()
        self.views: dict[Buffer, BufferRegion] = {}

    def note(self, table: dict[Buffer, list[tuple[Range, ...]]], buffer: Buffer, region: tuple[Range, ...]) -> None:
        if buffer in self.views:
            buffer, region = self.views[buffer].buffer, self.views[buffer].region
        if buffer not in self.local:
            table.setdefault(buffer, []).append(tuple(self.relaxed(r, n) for r, n in zip(region, buffer.shape)))

    def relaxed(self, r: Range, whole: Expr) -> Range:
        used = free_vars(r.min) | free_vars(r.extent)
        if used & self.inner or any(isinstance(n, BufferLoad) for n in _within(r.min)):
            return Range(tir.index_const(0), whole)
        return Range(r.min.base, tir.index_const(r.min.lanes)) if type(r.min) is Ramp else r

    @on(For)
    def _for(self, node: For) -> None:
        self.inner.add(node.loop_var)
        self.generic(node)

    @on(tir.Let)
    def _let(self, node: tir.Let) -> None:
        self.inner.add(node.var)
        self.generic(node)

    @on(tir.Allocate, tir.DeclBuffer)
    def _allocated(self, node: tir.Allocate) -> None:
        self.local.add(node.buffer)
        self.generic(node)

    @on(BufferLoad)
    def _load(self, node: BufferLoad) -> None:
        self.note(self.reads, node.buffer, tuple(Range(i, tir.index_const(1)) for i in node.indices))
        self.generic(node)

    @on(BufferStore)
    def _store(self, node: BufferStore) -> None:
        self.note(self.writes, node.buffer, tuple(Range(i, tir.index_const(1)) for i in node.indices))
        self.generic(node)

    @on(BlockRealize)
    def _realize(self, node: BlockRealize) -> None:
        table = dict(zip((v.var for v in node.block.iter_vars), node.iter_values))
        for value in node.iter_values:
            self.visit(value)
        for where, regions in ((self.reads, node.block.reads), (self.writes, node.block.writes)):
            for r in regions:
                self.note(where, r.buffer, tuple(Range(substitute(d.min, table), substitute(d.extent, table)) for d in r.region))


def _within(expr: Expr) -> list[object]:
    from ...ir.visit import walk

    return list(walk(expr))


def block_access(block: Block) -> tuple[tuple[BufferRegion, ...], tuple[BufferRegion, ...]]:
    """The regions that a block's body reads and writes."""
    access = _Access()
    access.local.update(block.alloc_buffers)
    access.views = {m.buffer: m.source for m in block.match_buffers}
    access.visit(block.body)
    if block.init is not None:
        access.reads = {b: r for b, r in access.reads.items() if b not in access.writes}
        access.visit(block.init)
    return _merged(access.reads), _merged(access.writes)


def _merged(table: dict[Buffer, list[tuple[Range, ...]]]) -> tuple[BufferRegion, ...]:
    out = []
    for buffer, regions in table.items():
        first = regions[0]
        same = [all(_same(first[d], r[d]) for r in regions) for d in range(len(first))]
        out.append(BufferRegion(buffer, tuple(first[d] if same[d] else Range(tir.index_const(0), n) for d, n in enumerate(buffer.shape))))
    return tuple(out)


def _same(a: Range, b: Range) -> bool:
    return a.min is b.min and a.extent is b.extent
