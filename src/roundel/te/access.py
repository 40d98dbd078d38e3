# SPDX-License-Identifier: Apache-2.0
"""Which regions of buffers the body of a fresh block reads and writes."""

from __future__ import annotations

from collections.abc import Sequence

from roundel.ir import tir
from roundel.ir.visit import Visitor, free_vars, on

Accesses = dict[tir.Buffer, list[tuple[tir.Expr, ...]]]
Regions = tuple[tir.BufferRegion, ...]


class _Collect(Visitor):
    def __init__(self) -> None:
        self.reads: Accesses = {}
        self.writes: Accesses = {}
        self.seen: set[tir.Expr] = set()

    def visit(self, node: object) -> None:
        if isinstance(node, tir.Expr):
            if node in self.seen:
                return
            self.seen.add(node)
        super().visit(node)  # type: ignore[arg-type]

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> None:
        self.reads.setdefault(load.buffer, []).append(load.indices)
        self.generic(load)

    @on(tir.BufferStore)
    def _store(self, store: tir.BufferStore) -> None:
        self.writes.setdefault(store.buffer, []).append(store.indices)
        self.generic(store)


def access_regions(
    body: tir.Stmt, init: tir.Stmt | None, private: Sequence[tir.Buffer] = ()
) -> tuple[Regions, Regions]:
    """What one instance of a block reads and writes: points where every access has the same index made of the block's
    variables, whole dimensions elsewhere. What a reduction's update reads back is not a read.
    """
    found = _Collect()
    found.visit(body)
    inner = _Inner(body).variables
    reads, writes = found.reads, found.writes
    if init is not None:
        reads = {b: at for b, at in reads.items() if b not in writes}
    of = lambda side: tuple(_region(b, at, inner) for b, at in side.items() if b not in private)
    return of(reads), of(writes)


class _Inner(Visitor):
    """Variables that change inside the block."""

    def __init__(self, body: tir.Stmt) -> None:
        self.variables: set[tir.Var] = set()
        self.visit(body)

    @on(tir.For)
    def _loop(self, loop: tir.For) -> None:
        self.variables.add(loop.loop_var)
        self.generic(loop)

    @on(tir.Let)
    def _let(self, let: tir.Let) -> None:
        self.variables.add(let.var)
        self.generic(let)


def _region(buffer: tir.Buffer, accesses: list[tuple[tir.Expr, ...]], inner: set[tir.Var]) -> tir.BufferRegion:
    dims = []
    for d, extent in enumerate(buffer.shape):
        first = accesses[0][d]
        fixed = all(a[d] is first for a in accesses) and first.is_index and not (free_vars(first) & inner)
        dims.append(tir.Range(first, tir.index_const(1)) if fixed else tir.Range(tir.index_const(0), extent))
    return tir.BufferRegion(buffer, tuple(dims))
