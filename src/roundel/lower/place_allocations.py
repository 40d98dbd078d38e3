# SPDX-License-Identifier: Apache-2.0
"""Memory is allocated where it is used, and only as much as is used there.

    C_local = alloc((768, 768))                      for i0, j0 in T.grid(128, 48):
    for i0, j0 in T.grid(128, 48):                       C_local = alloc((6, 16))
        for i, j in T.grid(6, 16):            ->         for i, j in T.grid(6, 16):
            C_local[i0 * 6 + i, j0 * 16 + j] = ...           C_local[i, j] = ...

An allocation moves into a loop when no value flows from one iteration to another through it: the iterations touch
disjoint places, or an iteration writes all that it reads before it reads it, or the loop is parallel. The iterations of an unrolled loop
share one allocation of registers. Those of an unrolled loop around serial loops share memory only: each iteration gets registers of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from roundel.arith import Analyzer
from roundel.ir import Rewriter, Var, free_vars, on, tir
from roundel.ir.annotations import DIM_ALIGN
from roundel.ir.visit import statements, substitute

from .accesses import Access, Uses, accesses, hull, interval, pinned
from .kernel_pass import kernel_pass
from .loop_facts import inside
from .statements import StatementRewriter
from .tile_operands import TILE

_SHARES = (tir.ForKind.VECTORIZED, tir.ForKind.UNROLLED)


class _Place(StatementRewriter):
    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.uses = Uses()

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        with inside(self.analyzer, loop):
            return self.generic(loop)

    @on(tir.Allocate)
    def _allocate(self, alloc: tir.Allocate) -> tir.Stmt:
        body = self.rewrite(alloc.body)
        if not self.uses(alloc.buffer, body):
            return body
        return self.sink(alloc, body)

    def sink(self, alloc: tir.Allocate, stmt: tir.Stmt) -> tir.Stmt:
        """The allocation moved into ``stmt`` as deep as it may go."""
        move = _MOVES.get(type(stmt))
        moved = None if move is None else move(self, alloc, stmt)
        return self.compact(alloc, stmt) if moved is None else moved

    def into_seq(self, alloc: tir.Allocate, stmt: tir.Seq) -> tir.Stmt | None:
        users = [k for k, s in enumerate(stmt.stmts) if self.uses(alloc.buffer, s)]
        first, last = users[0], users[-1]
        if first == last:
            inner = self.sink(alloc, stmt.stmts[first])
        elif last - first + 1 < len(stmt.stmts):
            inner = self.compact(alloc, tir.seq(*stmt.stmts[first : last + 1]))
        else:
            return None
        return tir.seq(*stmt.stmts[:first], inner, *stmt.stmts[last + 1 :])

    def into_for(self, alloc: tir.Allocate, loop: tir.For) -> tir.Stmt | None:
        if self.uses(alloc.buffer, loop.min) or self.uses(alloc.buffer, loop.extent):
            return None
        with inside(self.analyzer, loop):
            body = self.sink(alloc, loop.body) if self.may_enter(alloc.buffer, loop) else None
        if body is None:
            return None
        one_for_all = loop.kind is tir.ForKind.UNROLLED and type(body) is tir.Allocate and body.buffer.scope != "local"
        if one_for_all and not any(free_vars(n) for n in body.buffer.shape):  # iterations would get one each when they are written out
            return body.replace(body=loop.replace(body=body.body))
        return loop.replace(body=body)

    def may_enter(self, buffer: tir.Buffer, loop: tir.For) -> bool:
        """Whether each iteration can have memory of its own (lanes and unrolled iterations rather share a tile)."""
        if loop.kind is tir.ForKind.PARALLEL:
            return True
        found, escapes = accesses(buffer, loop.body)
        if escapes:
            return False
        if self.disjoint(found, loop.loop_var):
            return loop.kind not in _SHARES or _around_others(loop) or buffer.scope == TILE  # a tile is needed until the next one is loaded
        return self.written_before_read(found)

    def into_if(self, alloc: tir.Allocate, stmt: tir.If) -> tir.Stmt | None:
        if self.uses(alloc.buffer, stmt.condition) or stmt.else_case is not None:
            return None
        return stmt.replace(then_case=self.sink(alloc, stmt.then_case))

    def into_scope(self, alloc: tir.Allocate, stmt: tir.Let | tir.AttrStmt | tir.Allocate) -> tir.Stmt | None:
        if type(stmt) is not tir.Allocate and self.uses(alloc.buffer, stmt.value):
            return None
        return stmt.replace(body=self.sink(alloc, stmt.body))

    def disjoint(self, found: list[Access], var: Var) -> bool:
        """Whether different values of ``var`` touch different places (seen in one dimension)."""
        for parts in zip(*([(i, a.loops) for i in a.indices] for a in found), strict=True):
            boxes = [interval(i, loops, self.analyzer) for i, loops in dict.fromkeys(parts)]
            if any(b is None for b in boxes):
                continue
            box = hull(boxes, self.analyzer)
            if box is None:
                continue
            step = self.analyzer.simplify(substitute(box[0], {var: var + 1}) - box[0])
            if type(step) is tir.IntImm and step.value and self.analyzer.prove(box[1] - box[0] < abs(step.value)):
                return True
        return False

    def written_before_read(self, found: list[Access]) -> bool:
        """Whether every load is of a place that an earlier store of the same iteration has surely written."""
        return all(a.is_store or any(self.covers(s, a) for s in found[:k] if s.is_store) or self.cover([s for s in found[:k] if s.is_store], a)
                   for k, a in enumerate(found))

    def cover(self, stores: list[Access], load: Access) -> bool:
        """Whether stores that happen in any case write all of a box together, row by row, in which the load stays: those of a tile that an
        instruction makes do."""
        sure = [s for s in stores if not s.conditions and all(x in load.loops for x in s.loops)]
        other = [x for x in load.loops if sure and x not in sure[0].loops]
        reads = [interval(r, other, self.analyzer) for r in load.indices]
        boxes = [tuple(interval(i, (), self.analyzer) for i in s.indices) for s in sure]
        if len(sure) < 2 or any(b is None for b in (*reads, *itertools.chain(*boxes))) or any(s.loops != sure[0].loops for s in sure):
            return False
        rows: set[int] = set()  # of the first dimension, from the first row that is read on
        for (first, last), *others in boxes:  # type: ignore[misc]
            row = self.analyzer.simplify(first - reads[0][0])  # type: ignore[index]
            within = all(self.analyzer.prove(w[0] <= r[0]) and self.analyzer.prove(r[1] <= w[1]) for w, r in zip(others, reads[1:], strict=True))
            if first is last and type(row) is tir.IntImm and within:
                rows.add(row.value)
        count = self.analyzer.simplify(reads[0][1] - reads[0][0] + 1)  # type: ignore[index]
        return type(count) is tir.IntImm and rows.issuperset(range(count.value))

    def covers(self, store: Access, load: Access) -> bool:
        fixed: dict[Var, tir.Expr] = {}
        for c in store.conditions:
            if c in load.conditions and free_vars(c).isdisjoint(x.loop_var for x in store.loops if x not in load.loops):
                continue
            first = pinned(c, store.loops)
            if first is None:
                return False
            fixed |= first
        common = [x for x in store.loops if x in load.loops and x.loop_var not in fixed]
        own = [x for x in store.loops if x not in common and x.loop_var not in fixed]
        other = [x for x in load.loops if x not in common]
        indices = tuple(substitute(i, fixed) for i in store.indices)
        if not self.dense(indices, own):
            return False
        for s, r in zip(indices, load.indices, strict=True):
            wrote, reads = interval(s, own, self.analyzer), interval(r, other, self.analyzer)
            if wrote is None or reads is None:
                return False
            if not (self.analyzer.prove(wrote[0] <= reads[0]) and self.analyzer.prove(reads[1] <= wrote[1])):
                return False
        return True

    def dense(self, indices: tuple[tir.Expr, ...], loops: list[tir.For]) -> bool:
        """Whether the loops together visit every place of the box: each index has loops of its own and no gaps."""
        seen: set[Var] = set()
        inner = {x.loop_var: x.extent for x in loops}
        for i in indices:
            i = self.analyzer.simplify(i)
            mine = free_vars(i) & inner.keys()
            if mine & seen or not i.is_index:
                return False
            seen |= mine
            steps = []
            for v in mine:
                step = self.analyzer.simplify(substitute(i, {v: v + 1}) - i)
                if type(step) is not tir.IntImm or step.value <= 0:
                    return False
                steps.append((step.value, inner[v]))
            reach: tir.Expr = tir.index_const(1)
            for step_value, extent in sorted(steps, key=lambda s: s[0]):
                if not self.analyzer.prove(tir.index_const(step_value) <= reach):
                    return False
                reach = reach + step_value * (extent - 1)
        return True

    def compact(self, alloc: tir.Allocate, body: tir.Stmt) -> tir.Stmt:
        """The allocation around ``body``, of the size that ``body`` touches."""
        old = alloc.buffer
        found, escapes = accesses(old, body)
        if escapes or old.strides or not found:
            return alloc.replace(body=body)
        starts, shape = [], []
        for k, dim in enumerate(old.shape):
            start, extent = self.touched(dict.fromkeys((a.indices[k], a.loops) for a in found), dim)
            starts.append(start)
            shape.append(extent)
        strides = aligned_strides(shape, alloc.annotations.get(DIM_ALIGN, ()))
        if not strides and all(a is b for a, b in zip(shape, old.shape, strict=True)):
            return alloc.replace(body=body)
        new = old.replace(shape=tuple(shape), strides=strides, data=Var(old.data.name, old.data.dtype))
        body = _Shift(old, new, starts, self.analyzer).rewrite(body)
        return alloc.replace(buffer=new, body=body, annotations=alloc.annotations.without(DIM_ALIGN))

    def touched(self, parts: Iterable[tuple[tir.Expr, tuple[tir.For, ...]]], dim: tir.Expr) -> tuple[tir.Expr, tir.Expr]:
        """First place and number of places of one dimension; (0, dim) when less cannot be shown."""
        whole = tir.index_const(0), dim
        boxes = [interval(index, loops, self.analyzer) for index, loops in parts]
        if any(b is None for b in boxes):
            return whole
        box = hull(boxes, self.analyzer)
        if box is None:
            return whole
        extent = self.analyzer.simplify(box[1] - box[0] + 1)
        if type(extent) is tir.IntImm:
            return (box[0], extent) if type(dim) is not tir.IntImm or extent.value < dim.value else whole
        if type(dim) is tir.IntImm or not all(v.size for v in free_vars(extent)):
            return whole
        return (box[0], extent) if self.analyzer.prove(extent < dim) else whole


def _around_others(loop: tir.For) -> bool:
    """Whether there are serial loops inside, so that the iterations are not parts of one register tile."""
    return loop.kind is tir.ForKind.UNROLLED and any(type(n) is tir.For and n.kind is tir.ForKind.SERIAL for n in statements(loop.body))


def aligned_strides(shape: list[tir.Expr], asked: tuple) -> tuple[tir.Expr, ...]:
    """Strides of which that of ``axis`` is ``factor * k + offset`` for each (axis, factor, offset); () for none."""
    if not asked:
        return ()
    wanted = {axis: (factor, offset) for axis, factor, offset in asked}
    step: tir.Expr = tir.index_const(1)
    strides = []
    for axis in reversed(range(len(shape))):
        if axis in wanted:
            factor, offset = wanted[axis]
            step = step + tir.floormod(tir.index_const(factor + offset) - tir.floormod(step, factor), factor)
        strides.append(step)
        step = step * shape[axis]
    return tuple(reversed(strides))


_MOVES = {
    tir.Seq: _Place.into_seq,
    tir.For: _Place.into_for,
    tir.If: _Place.into_if,
    tir.Let: _Place.into_scope,
    tir.AttrStmt: _Place.into_scope,
    tir.Allocate: _Place.into_scope,
}


class _Shift(Rewriter):
    """Accesses of ``old`` become accesses of ``new``, which starts at ``starts``."""

    def __init__(self, old: tir.Buffer, new: tir.Buffer, starts: list[tir.Expr], an: Analyzer) -> None:
        self.old, self.new, self.starts, self.analyzer = old, new, starts, an

    def indices(self, indices: tuple[tir.Expr, ...]) -> tuple[tir.Expr, ...]:
        return tuple(self.analyzer.simplify(self.rewrite(i) - s) for i, s in zip(indices, self.starts, strict=True))

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> tir.Expr:
        return (
            tir.BufferLoad(self.new, self.indices(load.indices), load.predicate)
            if load.buffer is self.old
            else self.generic(load)
        )

    @on(tir.BufferStore)
    def _store(self, store: tir.BufferStore) -> tir.Stmt:
        if store.buffer is not self.old:
            return self.generic(store)
        return store.replace(buffer=self.new, indices=self.indices(store.indices), value=self.rewrite(store.value))


@kernel_pass("place_allocations")
def place_allocations(func: tir.PrimFunc) -> tir.PrimFunc:
    """Moves each allocation as deep as possible and makes it as small as possible."""
    return func.replace(body=_Place().rewrite(func.body))
