# SPDX-License-Identifier: Apache-2.0
"""Register tiles at the end of a dimension of symbolic size stay whole: rows beyond the end compute the last row again and lanes beyond it
compute zeros, and neither is stored.

    for i in T.unroll(8):                                      for i in T.unroll(8):
        if io * 8 + i < n:                              ->         acc[i, j] += a[io * 8 + i if io * 8 + i < n else n - 1, k] * b[j]
            acc[i, j] += a[io * 8 + i, k] * b[j]

A guard around every row would be evaluated in the innermost loop and keep the tile in memory. (Where the size is a constant, the tile
at the end has code of its own.) Local buffers become large enough for whole tiles, until ``place_allocations`` shrinks them to one tile.
"""

from __future__ import annotations

from roundel.arith import Analyzer
from roundel.ir import Rewriter, Var, on, tir
from roundel.ir.annotations import EDGE
from roundel.ir.visit import free_vars, substitute, walk

from .accesses import interval
from .kernel_pass import kernel_pass
from .statements import StatementRewriter
from .vector_expr import conjuncts
from .whole_vectors import Enlarge


class _Unguard(StatementRewriter):
    """Removes the guards that keep an unrolled row or a lane within bounds from stores to local memory."""

    def __init__(self) -> None:
        self.unrolled: set[Var] = set()
        self.lanes: set[Var] = set()
        self.loops: list[tir.For] = []
        self.analyzer = Analyzer()
        self.ends: dict[tir.Buffer, dict[tuple[int, tir.Expr], None]] = {}  # by dimension, what tiles reach

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        self.unrolled |= {loop.loop_var} if loop.kind is tir.ForKind.UNROLLED else set()
        self.lanes |= {loop.loop_var} if loop.kind is tir.ForKind.VECTORIZED else set()
        self.loops.append(loop)
        out = self.generic(loop)
        self.loops.pop()
        return out

    @on(tir.If)
    def _if(self, stmt: tir.If) -> tir.Stmt:
        store = stmt.then_case
        if stmt.else_case is not None or type(store) is not tir.BufferStore or store.buffer.scope != "local" or not store.value.dtype.is_float:
            return self.generic(stmt)
        rest, value = [], store.value
        for c in conjuncts(stmt.condition):
            clamped = self.clamped(c, store, value)
            if clamped is None:
                rest.append(c)
            else:
                value = clamped
                rest += self.first(c)
        if value is store.value and len(rest) == len(conjuncts(stmt.condition)):
            return stmt
        store = store.replace(value=value)
        for access in (store, *(n for n in walk(value) if type(n) is tir.BufferLoad and n.buffer.scope == "local")):
            self.reach(access)
        return tir.If(tir.logical_and(*rest), store) if rest else store

    def first(self, c: tir.LT) -> list[tir.Expr]:
        """The part of the guard that still has to hold of the tile's first row. It is needed where the loop over tiles is split at its own ``edge``: a tile
        whose first row is out of bounds must not run."""
        names = free_vars(c.a)
        if names & self.lanes or not any(EDGE in x.annotations for x in self.loops if x.loop_var in names):
            return []
        return [self.analyzer.simplify(substitute(c, {x.loop_var: x.min for x in self.loops if x.loop_var in names & self.unrolled}))]

    def reach(self, access: tir.BufferLoad | tir.BufferStore) -> None:
        """Record how far an access reaches without its guard, in dimensions of symbolic size."""
        tile = self.unrolled | self.lanes
        for k, (index, extent) in enumerate(zip(access.indices, access.buffer.shape, strict=True)):
            inner = free_vars(index) & tile
            if type(extent) is tir.IntImm or not inner:
                continue
            box = interval(index, self.loops, self.analyzer)
            if box is not None:
                end = box[1] + 1
            else:  # a tile starts inside of the buffer
                last = {x.loop_var: x.min + x.extent - 1 for x in self.loops if x.loop_var in inner}
                end = extent + substitute(index, last) - substitute(index, {x.loop_var: x.min for x in self.loops if x.loop_var in inner})
            self.ends.setdefault(access.buffer, {})[k, self.analyzer.simplify(end)] = None

    def larger(self, buffer: tir.Buffer) -> tir.Buffer:
        """The buffer with room for whole tiles."""
        shape = list(buffer.shape)
        for k, end in self.ends[buffer]:
            shape[k] = tir.Max(shape[k], end)
        return buffer.replace(shape=tuple(self.analyzer.simplify(n) for n in shape))

    def clamped(self, c: tir.Expr, store: tir.BufferStore, value: tir.Expr) -> tir.Expr | None:
        """The value in a form that is safe to compute without the guard; None where the guard is about more than a row or a lane."""
        if type(c) is not tir.LT or not c.a.is_index or c.a not in store.indices:
            return None
        inner, lanes = free_vars(c.a) & self.unrolled, free_vars(c.a) & self.lanes
        others = [i for i in store.indices if i is not c.a]
        if type(c.b) is tir.IntImm or any(not v.size for v in free_vars(c.b)) or any((inner | lanes) & free_vars(i) for i in others):
            return None
        if lanes:
            return _Mask(c, lanes).rewrite(value)
        if not inner:
            return None
        clamp = _Clamp(c, inner, self.analyzer)
        made = clamp.rewrite(value)
        return made if clamp.fits else None


class _Clamp(Rewriter):
    """Clamps the row at which memory that is not local is loaded: ``row if row < n else n - 1``, also where the index is a multiple of the row plus an
    offset (a window with a stride)."""

    def __init__(self, condition: tir.LT, row_vars: set[Var], analyzer: Analyzer) -> None:
        self.row, self.vars, self.fits, self.analyzer = condition.a, row_vars, True, analyzer
        self.inside = tir.Select(condition, condition.a, condition.b - 1)

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> tir.Expr:
        if load.buffer.scope == "local":
            return load
        return load.replace(indices=tuple(self.index(i) if self.vars & free_vars(i) else i for i in load.indices))

    def index(self, index: tir.Expr) -> tir.Expr:
        """An index at the clamped row."""
        if index is self.row:
            return self.inside
        step = self.steps(index)
        rest = None if step is None else self.analyzer.simplify(index - step * self.row)
        if rest is None or self.vars & free_vars(rest):
            self.fits = False
            return index
        return rest + self.inside * step

    def steps(self, index: tir.Expr) -> int | None:
        """By how much an index grows from one row to the next."""
        (var, *more) = self.vars
        moved = [self.analyzer.simplify(substitute(e, {var: var + 1}) - e) for e in (index, self.row)]
        return moved[0].value if not more and type(moved[0]) is tir.IntImm and type(moved[1]) is tir.IntImm and moved[1].value == 1 else None

    @on(tir.IfThenElse)
    def _choice(self, e: tir.IfThenElse) -> tir.Expr:
        self.fits &= self.vars.isdisjoint(free_vars(e.condition))
        return self.generic(e)


class _Mask(Rewriter):
    """Predicates vector loads from memory that is not local with the condition."""

    def __init__(self, condition: tir.LT, lanes: set[Var]) -> None:
        self.condition, self.lanes = condition, lanes

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> tir.Expr:
        if load.buffer.scope == "local" or not self.lanes & free_vars(load):
            return load
        return tir.if_then_else(self.condition, load, tir.const(0, load.dtype))


@kernel_pass("whole_rows")
def whole_rows(func: tir.PrimFunc) -> tir.PrimFunc:
    """Removes guards on the rows of register tiles from everything but the stores of results."""
    unguard = _Unguard()
    body = unguard.rewrite(func.body)
    if unguard.ends:
        body = Enlarge({b: unguard.larger(b) for b in unguard.ends}).rewrite(body)
    return func.replace(body=body)
