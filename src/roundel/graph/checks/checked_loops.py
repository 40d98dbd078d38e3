# SPDX-License-Identifier: Apache-2.0
"""Loops over indices that check them.

What is read at an index that is not a position is read at the last one instead; that there was one is told, both in vectors. Before
something is written, a strip of indices is looked at, in vectors; where one of them is not a position, nothing of the strip is written.
So nothing outside is touched, and a result that is not right is not handed out.

    for p in T.parallel(m // 1024):                            for p in range(m // 32):
        found = 0                                                  found = 0
        for j in range(1024 * p, 1024 * (p + 1)):                  for j in range(32 * p, 32 * (p + 1)):
            k = i[j] + n if i[j] < 0 else i[j]                         found |= (i[j] + n) | (n - 1 - i[j])
            found |= k ^ unsigned_min(k, n - 1)                    if found >= 0:
            out[j] = x[unsigned_min(k, n - 1)]                         for j in T.unroll(32): out[i[32 * p + j]] = u[32 * p + j]
        if found != 0: flag = -1                                   else: flag = -1
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from ...arith import Analyzer
from ...ir import tir
from ...ir.annotations import GRAIN, INTERLEAVE
from ...ir.dtype import INT64, VOID, DType
from ...ir.visit import OnceVisitor, Rewriter, free_vars, on, substitute, walk
from ...ops.bounds import limit_of, sign_of_check
from .index_ranges import static

PIECE = 1024
"""Iterations of a parallel loop, at most, after which one thread tells what it found."""

STRIP = 32
"""Indices that are looked at before something is written at them: so few that a processor looks at the next ones while it still writes."""

LINE_BYTES = 64
AHEAD = 2048
"""Bytes between the indices that are looked at and those that are prefetched: some 100 ns of writes."""


class Accesses(OnceVisitor):
    """The loads of a buffer, in variables of loops."""

    def __init__(self, buffer: tir.Buffer) -> None:
        super().__init__()
        self.indices = buffer
        self.values: dict[tir.Var, tir.Expr] = {}
        self.loads: dict[tuple[tir.Expr, ...], None] = {}
        self.dims: dict[tir.Expr, int] = {}  # a loop's variable -> the dimension that it goes over

    def all_once(self) -> bool:
        """Whether the loads are of all elements, each dimension gone over by one loop or by numbers."""
        for d, n in enumerate(self.indices.shape):
            at = {load[d] for load in self.loads}
            first = next(iter(at), None)
            if len(at) == 1 and type(first) is tir.Var and first not in self.dims:
                self.dims[first] = d
            elif not at or {static(i) for i in at} != set(range(static(n) or 0)):
                return False
        return bool(self.dims)

    @on(tir.For)
    def _for(self, loop: tir.For) -> None:
        if static(loop.extent) == 1 and static(loop.min) == 0:
            self.values[loop.loop_var] = tir.index_const(0)
        self.generic(loop)

    @on(tir.BlockRealize)
    def _realize(self, realize: tir.BlockRealize) -> None:
        block = realize.block
        self.values.update({iv.var: substitute(v, self.values) for iv, v in zip(block.iter_vars, realize.iter_values, strict=True)})
        for part in (*realize.iter_values, realize.predicate, *(m.source for m in block.match_buffers), block.init, block.body):
            if part is not None:
                self.visit(part)

    @on(tir.BufferRegion)
    def _region(self, region: tir.BufferRegion) -> None:
        if region.buffer is self.indices:  # under another name: not known
            self.loads[(tir.index_const(-1),) * self.indices.ndim] = None

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> None:
        if load.buffer is self.indices:
            self.loads[tuple(substitute(i, self.values) for i in load.indices)] = None
        self.generic(load)


class Checked(Rewriter):
    """Puts the check of the indices whose loads are known into the loops over them. ``limits``, ``negative``: see ``check_indices``; ``flag``
    gets a negative number where one is not a position. ``lanes``: of the vectors in which strips are looked at, 1 to leave that to LLVM.
    As a rewriter, it has what is read at an index read at a position.
    """

    def __init__(self, accesses: Accesses, limits: tuple[tir.Expr, ...], negative: bool, flag: tir.Buffer, lanes: int) -> None:
        self.indices, self.limits, self.negative, self.flag, self.accesses, self.lanes = accesses.indices, limits, negative, flag, accesses, lanes
        self.found = tir.decl_buffer((), flag.dtype, "found", scope="local")
        self.outside: tuple[tir.Var, ...] = ()  # variables of the loops around

    def within(self, stmt: tir.Stmt) -> tir.Stmt | None:
        """The statement with the check in its loops over the indices; None where other loops are around them, or where an index stands
        for a row: then what is done with it is far more than its check, which is better made for all before."""
        if isinstance(stmt, tir.Seq):
            using = [k for k, s in enumerate(stmt.stmts) if self.uses(s)]
            inner = self.within(stmt.stmts[using[0]]) if len(using) == 1 else None
            return inner and tir.Seq((*stmt.stmts[: using[0]], inner, *stmt.stmts[using[0] + 1 :]))
        if isinstance(stmt, tir.BlockRealize):
            plain = stmt.block.init is None and type(stmt.predicate) is tir.IntImm and bool(stmt.predicate.value)
            inner = self.within(stmt.block.body) if plain else None
            return inner and stmt.replace(block=stmt.block.replace(body=inner))
        if not isinstance(stmt, tir.For) or not self.is_plain(stmt):
            return None
        d, writes = self.accesses.dims.get(stmt.loop_var), self.writes_there(stmt)
        if d is not None and self.is_by_rows(stmt):
            return None
        if d is not None and not writes:
            return self.at_nearest(stmt)
        each = 1 if d is None else static(tir.product_of(self.indices.shape[d + 1 :])) or STRIP
        if each >= STRIP or (d is None and static(stmt.extent) == 1):
            self.outside += (stmt.loop_var,)
            inner = self.within(stmt.body)
            if inner is not None:
                return stmt.replace(body=inner)
        return None if d is None else self.in_strips(stmt, d)

    def uses(self, node: Any) -> bool:
        """Whether the tensor of indices is read there."""
        return any(type(n) is tir.BufferLoad and n.buffer is self.indices for n in walk(node))

    def is_plain(self, loop: tir.For) -> bool:
        """Whether a loop goes over all there is along a dimension, and each iteration for itself."""
        d = self.accesses.dims.get(loop.loop_var)
        whole = d is None or Analyzer().prove_equal(loop.extent, self.indices.shape[d])
        return whole and static(loop.min) == 0 and loop.step is None and loop.thread is None and loop.kind in (tir.ForKind.SERIAL, tir.ForKind.PARALLEL)

    def is_by_rows(self, stmt: tir.Stmt) -> bool:
        """Whether a loop runs for each index."""
        return any(type(n) is tir.For and n.loop_var not in self.accesses.dims and self.uses(n) for n in walk(stmt))

    def writes_there(self, stmt: tir.Stmt) -> bool:
        """Whether a statement writes an element that the indices name."""
        return any(type(n) is tir.BufferStore and any(map(self.uses, n.indices)) for n in walk(stmt))

    def fail(self) -> tir.Stmt:
        """Set the flag that says that some index is out of range."""
        return tir.BufferStore(self.flag, tir.const(-1, self.flag.dtype), ())

    # ---- what is written: strips, looked at before

    def in_strips(self, loop: tir.For, d: int) -> tir.Stmt | None:
        """The loop over dimension ``d``, some iterations at a time: all indices of these are looked at, then they run if all is well."""
        before = {load[:d] for load in self.accesses.loads}
        here, n, each = next(iter(before)), loop.extent, Analyzer().simplify(tir.product_of(self.indices.shape[d + 1 :]))
        if static(each) is None or len(before) > 1 or any(v not in self.outside for i in here for v in free_vars(i)):
            return None  # so many at a time as are not known, or loops over the dimensions before are inside
        grain = loop.annotations.get(GRAIN, 0)
        rows = max(1, STRIP // max(1, static(each)))  # type: ignore[type-var]
        rows = min(rows, max(1, grain)) if loop.kind is tir.ForKind.PARALLEL else rows

        reads = [n for n in walk(loop.body) if type(n) is tir.BufferLoad and n.indices == (loop.loop_var,)]
        beside = dict.fromkeys(n.buffer for n in reads if n.buffer is not self.indices)

        def strip(first: tir.Expr, count: tir.Expr) -> tir.Stmt:
            row = tir.Var(loop.loop_var.name, loop.loop_var.dtype)
            body = substitute(loop.body, {loop.loop_var: tir.cast(first + row, row.dtype)})
            run = _WriteOut(self.uses).rewrite(tir.For(row, tir.index_const(0), count, tir.ForKind.SERIAL, body))
            clear = tir.BufferStore(self.found, tir.const(0, self.flag.dtype), ())
            well = tir.ge(tir.BufferLoad(self.found, ()), 0)
            ahead = [self.fetch(self.indices, first * each, lambda number: (*here, *self.place(d, number))), *(self.fetch(b, first) for b in beside)]
            return tir.Allocate(self.found, tir.seq(clear, self.look(here, first * each, count * each), *ahead, tir.If(well, run, self.fail())))

        number, rest = tir.Var("strip", INT64), Analyzer().simplify(tir.floormod(n, rows))
        whole = loop.replace(loop_var=number, extent=tir.floordiv(n, rows), body=strip(number * rows, tir.index_const(rows)),
                             annotations=loop.annotations | ({GRAIN: max(1, grain // rows)} if grain else {}))
        return whole if static(rest) == 0 else tir.seq(whole, tir.If(tir.gt(rest, 0), strip(n - rest, rest)))

    def look(self, before: tuple[tir.Expr, ...], first: tir.Expr, count: tir.Expr) -> tir.Stmt:
        """Has ``found`` negative if one of ``count`` indices is not a position, from that with the number ``first`` behind ``before`` on."""
        columns, found = len(self.limits), tir.BufferLoad(self.found, ())

        def joined(old: tir.Expr, number: tir.Expr, column: tir.Expr) -> tir.Expr:
            index = tir.BufferLoad(self.indices, (*before, *self.place(len(before), first + number)))
            return tir.call("bitwise_or", old, sign_of_check(index, self.limits, column, self.negative, found.dtype))

        k = tir.Var("k", INT64)
        if self.lanes == 1:
            signs = reduce(lambda old, column: joined(old, k * columns + column, tir.index_const(column)), range(columns), found)
            return tir.For(k, tir.index_const(0), tir.floordiv(count, columns), tir.ForKind.SERIAL, tir.BufferStore(self.found, signs, ()))
        width = self.lanes * columns
        signs = tir.decl_buffer((width,), found.dtype, "signs", scope="local")

        def vector(of: Callable[[tir.Expr], tir.Stmt]) -> tir.For:
            lane = tir.Var("lane", INT64)
            return tir.For(lane, tir.index_const(0), tir.index_const(width), tir.ForKind.VECTORIZED, of(lane))

        def join(lane: tir.Expr) -> tir.Stmt:
            value = joined(tir.BufferLoad(signs, (lane,)), k * width + lane, tir.floormod(lane, columns))
            return tir.If(tir.lt(k * width + lane, count), tir.BufferStore(signs, value, (lane,)))

        turns = Analyzer().simplify(tir.floordiv(count + (width - 1), width))
        clear = vector(lambda lane: tir.BufferStore(signs, tir.const(0, found.dtype), (lane,)))
        all_of = tir.For(k, tir.index_const(0), turns, tir.ForKind.SERIAL if static(turns) is None else tir.ForKind.UNROLLED, vector(join))
        least = vector(lambda lane: tir.BufferStore(self.found, tir.min_(found, tir.BufferLoad(signs, (lane,))), ()))
        return tir.Allocate(signs, tir.seq(clear, all_of, least))

    def fetch(self, buffer: tir.Buffer, first: tir.Expr, place: Callable[[tir.Expr], tuple[tir.Expr, ...]] = lambda number: (number,)) -> tir.Stmt:
        """Prefetches what strips to come read of a buffer, the present one from ``first`` on: a processor that sees many loads, each of them
        a strip further than the last time, would do so late."""
        bytes_each = max(1, buffer.dtype.storage_bits // 8)
        numbers = [first + (AHEAD + line) // bytes_each for line in range(0, STRIP * bytes_each, LINE_BYTES)]
        hint = lambda load: tir.Call("prefetch", (load, tir.const(0, "int32"), tir.const(3, "int32")), VOID)
        return tir.seq(*(tir.Evaluate(hint(tir.BufferLoad(buffer, place(number)))) for number in numbers))

    def place(self, d: int, number: tir.Expr) -> tuple[tir.Expr, ...]:
        """Where the index with a number is in the dimensions from ``d`` on."""
        out: tuple[tir.Expr, ...] = ()
        for size in reversed(self.indices.shape[d + 1 :]):
            number, out = tir.floordiv(number, size), (tir.floormod(number, size), *out)
        return (number, *out)

    # ---- what is only read: at the nearest position

    def at_nearest(self, outer: tir.For) -> tir.Stmt | None:
        """The loops over the indices, one in the other, with what is read at an index read at a position; None where they are not like that."""
        loops, left = [outer], self.accesses.dims.keys() - {outer.loop_var}
        while left:
            inner = loops[-1].body
            if not isinstance(inner, tir.For) or inner.loop_var not in left or not self.is_plain(inner) or inner.kind is not tir.ForKind.SERIAL:
                return None
            loops.append(inner)
            left = left - {inner.loop_var}
        found = tir.BufferLoad(self.found, ())
        moved = [tir.call("bitwise_xor", *self.nearest(tir.BufferLoad(self.indices, at))) for at in self.accesses.loads]
        join = tir.BufferStore(self.found, reduce(lambda a, b: tir.call("bitwise_or", a, b), moved, found), ())
        body = tir.seq(join, self.rewrite(loops[-1].body))
        if len(moved) > 1:  # several vectors at a time would have so much on the way that fewer elements are
            loops[-1] = loops[-1].replace(annotations=loops[-1].annotations | {INTERLEAVE: 1})
        for loop in reversed(loops[1:]):
            body = loop.replace(body=body)

        def piece(loop: tir.For) -> tir.Stmt:
            tell = tir.If(tir.ne(found, 0), self.fail())
            return tir.Allocate(self.found, tir.seq(tir.BufferStore(self.found, tir.const(0, found.dtype), ()), loop, tell))

        outer = loops[0].replace(body=body)
        out = piece(outer) if outer.kind is tir.ForKind.SERIAL else self.pieces(outer, piece)
        some = [tir.gt(n, 0) for n in dict.fromkeys(self.limits) if (static(n) or 0) < 1]
        return tir.If(tir.logical_and(*some), out, self.fail()) if some else out

    def pieces(self, loop: tir.For, of: Callable[[tir.For], tir.Stmt]) -> tir.Stmt:
        """A parallel loop in pieces, of which each thread tells what it found."""
        n, grain = loop.extent, loop.annotations.get(GRAIN, 0)
        rows = min(PIECE, grain) if grain > 0 else 1
        piece, row = tir.Var("piece", INT64), tir.Var(loop.loop_var.name, loop.loop_var.dtype)
        even = static(n) is not None and static(n) % rows == 0  # type: ignore[operator]
        body = substitute(loop.body, {loop.loop_var: tir.cast(piece * rows + row, row.dtype)})
        count = tir.index_const(rows) if even else tir.min_(rows, n - piece * rows)
        part = tir.For(row, tir.index_const(0), count, tir.ForKind.SERIAL, body, annotations=loop.annotations.without(GRAIN))
        return loop.replace(loop_var=piece, extent=tir.floordiv(n + (rows - 1), rows), body=of(part),
                            annotations=loop.annotations.without(INTERLEAVE) | ({GRAIN: max(1, grain // rows)} if grain else {}))

    def nearest(self, load: tir.BufferLoad) -> tuple[tir.Expr, tir.Expr]:
        """An index counted from the beginning, and the same if it is a position, else the last: as unsigned numbers all others are larger."""
        dtype = self.flag.dtype
        index, limit = tir.cast(load, dtype), tir.cast(limit_of(self.limits, load.indices[-1], dtype), dtype)
        start = tir.select(index < 0, index + limit, index) if self.negative else index
        unsigned = DType(f"uint{dtype.bits}")
        return start, tir.cast(tir.min_(tir.cast(start, unsigned), tir.cast(limit - 1, unsigned)), dtype)

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> tir.Expr:
        load = self.generic(load)
        return tir.cast(self.nearest(load)[1], load.dtype) if load.buffer is self.indices else load


class _WriteOut(Rewriter):
    """Writes out short loops over indices: then no branch that a processor could expect wrongly is between the writes of a strip."""

    def __init__(self, uses: Callable[[Any], bool]) -> None:
        self.uses = uses

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        short = loop.kind is tir.ForKind.SERIAL and (static(loop.extent) or STRIP + 1) <= STRIP and self.uses(loop.body)
        return self.generic(loop.replace(kind=tir.ForKind.UNROLLED) if short else loop)
