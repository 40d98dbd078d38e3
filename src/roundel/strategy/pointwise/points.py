# SPDX-License-Identifier: Apache-2.0
"""The strategy for scans, scatters and sorts, whose blocks hold several statements: the points of their spatial axes run in parallel, neighbouring
points of the last axis in vectors.

    for i, j: total = 0                        ->      for i, j0 in T.parallel:
              for k: total += x[i, k, j]                   for j1 in T.vectorized(64): total[j1] = 0
                     y[i, k, j] = total                    for k, j1: total[j1] += x[i, k, j0, j1]; ...
"""

from __future__ import annotations

from collections.abc import Iterator

from ...arith import Analyzer
from ...ir import tir
from ...ir.visit import Visitor, free_vars, on, substitute, walk
from ...schedule.schedule import Schedule
from ...target import Target
from ..match.accesses import Access, BlockInfo, extent_of, product
from ..parallelism import parallelize
from ..program import Program
from ..sketch import Applied, Sketch, rule
from .elementwise import schedule_spatial

VECTORS = 4      # side by side: their operations hide each other's latencies, and together they fill cache lines
MANY_VECTORS = 16  # ... of statements that keep one number each, or none: rows are read in longer pieces
ASSUMED = 64     # iterations of a loop whose extent is not a number


@rule
def points(program: Program) -> Iterator[Sketch]:
    """Fits programs of spatial blocks, some of which are statements rather than one store."""
    infos = program.blocks
    if not any(_is_statement(i) for i in infos) or any(i.reduce or not i.block.iter_vars for i in infos):
        return
    if not all(i.is_plain or _is_statement(i) for i in infos):
        return

    def scheduled(sch: Schedule, choice: dict[str, int]) -> Applied:
        for info in infos:
            if info.is_plain:
                schedule_spatial(sch, info, program.target)
            else:
                _schedule(sch, info, program.target)
        return Applied(sch)

    yield Sketch("points", program.schedule, scheduled)


def _is_statement(info: BlockInfo) -> bool:
    return not info.is_plain and not info.reduce and all(i.kind is tir.IterKind.SPATIAL for i in info.block.iter_vars)


def _schedule(sch: Schedule, info: BlockInfo, target: Target) -> None:
    loops = sch.get_loops(sch.get_block(info.name))
    lanes = _lanes(info, target)
    work = _Work(target)
    work.visit(info.block.body)
    cycles = work.cycles
    if lanes > 1:
        outer, vector = sch.split(loops[-1], [None, lanes])
        sch.vectorize(vector)
        loops, cycles = [*loops[:-1], outer], cycles * VECTORS
    parallelize(sch, sch.fuse(*loops) if len(loops) > 1 else loops[0], cycles, target)


def _lanes(info: BlockInfo, target: Target) -> int:
    """How many points along the last axis run in one vector; 1 where their control flow differs, or where they access elements that are not
    contiguous."""
    axis = info.spatial[-1]
    own = {b.data for b in _own_buffers(info)}
    shared = [a for a in info.accesses if a.buffer.data not in own]
    found = [a for a in shared if _is_found(a, own, axis.var)]
    steps = [(a, _step(a, axis.var)) for a in shared if a not in found]
    widest = max((a.buffer.dtype.storage_bits for a in [*found, *(a for a, step in steps if step)]), default=0)
    if not 8 <= widest <= 64 or not _runs_together(info.block.body, axis.var) or any(step is None or (a.is_store and not step) for a, step in steps):
        return 1
    lanes, extent = target.vector_bytes * 8 // widest, extent_of(axis)
    if extent is not None and extent < lanes:
        return 1
    kept = sum(product([n.value if isinstance(n, tir.IntImm) else None for n in b.shape], MANY_VECTORS) for b in _own_buffers(info))
    most = MANY_VECTORS if not found and kept <= 1 else VECTORS
    return lanes * next((k for k in (most, VECTORS) if extent is None or extent >= lanes * k), 1)


def _own_buffers(info: BlockInfo) -> list[tir.Buffer]:
    """Buffers that are private to a point."""
    return [*info.block.alloc_buffers, *(b for n in walk(info.block.body) if type(n) is tir.Block for b in n.alloc_buffers)]


def _is_found(access: Access, own: set[tir.Var], var: tir.Var) -> bool:
    """Whether the element's index is itself loaded from memory."""
    return any(type(n) is tir.BufferLoad and (n.buffer.data in own or var in free_vars(n)) for i in access.indices for n in walk(i))


def _step(access: Access, var: tir.Var) -> int | None:
    """The stride of an access along the variable, where that is 0 or 1 element; else None."""
    if not any(var in free_vars(i) for i in access.indices):
        return 0
    if access.buffer.strides:
        return None
    where = [k for k, i in enumerate(access.indices) if var in free_vars(i)]
    flat = all(isinstance(n, tir.IntImm) and n.value == 1 for n in access.buffer.shape[where[-1] + 1 :])
    index = access.indices[where[0]]
    return 1 if len(where) == 1 and flat and Analyzer().prove_equal(substitute(index, {var: var + 1}) - index, tir.index_const(1)) else None


def _runs_together(body: tir.Stmt, var: tir.Var) -> bool:
    """Whether control flow is uniform over the points: no loop bound and no condition depends on the point or on data."""
    for n in walk(body):
        if type(n) is tir.While or (type(n) is tir.Evaluate and type(n.value) is tir.Call):
            return False
        decides = (n.condition,) if type(n) is tir.If else (n.min, n.extent) if type(n) is tir.For else ()
        if any(var in free_vars(e) or any(type(x) is tir.BufferLoad for x in walk(e)) for e in decides):
            return False
    return True


class _Work(Visitor):
    """Counts roughly how many cycles a statement takes."""

    def __init__(self, target: Target) -> None:
        self.target, self.times, self.cycles = target, 1.0, 0.0

    @on(tir.For)
    def _loop(self, loop: tir.For) -> None:
        outside = self.times
        self.times *= loop.extent.value if isinstance(loop.extent, tir.IntImm) else ASSUMED
        self.visit(loop.body)
        self.times = outside

    @on(tir.BufferStore)
    def _store(self, store: tir.BufferStore) -> None:
        self.cycles += self.target.store_cycles * self.times
