# SPDX-License-Identifier: Apache-2.0
"""Prefetch instructions for what the code after a loop will read.

The hardware's prefetchers stop at the end of a page of memory, so panels of constants that come from memory arrive late. Two annotations
(``ir.annotations``) ask for prefetches by instructions:

``prefetch`` on a loop, with a value ``Prefetch(buffer, ahead, step, passes)``: the innermost serial loop inside that reads ``buffer`` moves
through ``step`` of its elements in each iteration, and each iteration of the annotated loop passes over the same elements again. In pass
p of P, the innermost loop fetches the p-th part of those elements, ``ahead`` elements further on, so that after P passes all of them were
fetched once. P is ``passes``, or the trip count of the annotated loop where that is 0: one that only the run knows decides there how many
lines each iteration fetches, and between which of its steps. The annotated loop may be the innermost one itself.
Where P is known and the last dimensions of the buffer are together a panel of ``ahead`` elements, which several loops go through, they are parts of the next
panel: in each pass the fetches follow each other in memory at an even pace, which hardware keeps up with. A few lines out of each stretch of the
panel are slower, by up to 8 % where ResNet-18's weights come from a far cache.
Where passes are so few that an iteration fetches more than two lines in each, those lines are parts of what lies ``ahead`` of the iteration's own, and the
fetches stand between the steps that are written out: each pass touches the whole panel, and the hardware brings the rest of its pages meanwhile (512
channels on 7 x 15 in vectors of 32 bytes: 2.8 -> 1.7 ms).
A loop between the two with the annotation ``prefetch_pass`` passes over the same elements in each of its iterations too, and multiplies P
by its trip count.

WebAssembly has no instruction for it. There the innermost loop reads (``touch``) as many bytes of the next panel in each iteration as fetch all of it in
all passes: a read that waits for memory holds up what comes after it, so that reads are far apart, and in the order of memory, in which the hardware's
prefetchers run ahead of all but the first in a page. Where there is one pass only, which does much with each byte (it unpacks numbers), all lines of the next
stretch are read at once: one wait for all of them, while arithmetic between the reads would leave room for few. Nothing beyond the buffer is read.

``prefetch_lines`` on a loop, with a value ``PrefetchLines(buffer, ahead)``: the innermost serial loop that reads ``buffer`` (inside of the
annotated loop, or that loop itself) fetches in each iteration one line, ``ahead`` elements beyond the element that it reads first;
successive iterations of the annotated loop fetch successive lines. This brings the next rows of a picture while the present ones are
worked on: these are many short streams, each of which a hardware prefetcher would notice late.
"""

from __future__ import annotations

from roundel.arith import Analyzer
from roundel.ir import Var, decl_buffer, on, tir
from roundel.ir.annotations import PREFETCH, PREFETCH_LINES, PREFETCH_PASS, Prefetch, PrefetchLines
from roundel.ir.dtype import DType
from roundel.ir.visit import substitute, walk
from roundel.target import Target

from .kernel_pass import kernel_pass
from .loop_facts import inside
from .statements import StatementRewriter

NEAR, SECOND = 3, 2  # into all caches; into the second-level cache: of a convolution's panels, which the first does not keep until they are used
MANY_PASSES_LINES = 2  # that an iteration fetches where passes are many
ASSUMED_PASSES = 8
STRETCH_BYTES = 512  # at least, that are read ahead at once where there is no instruction for a prefetch
_CODE = (tir.ForKind.UNROLLED, tir.ForKind.VECTORIZED)


class _Prefetch(StatementRewriter):
    def __init__(self, target: Target) -> None:
        self.an = Analyzer()
        self.line_bytes, self.page_bytes, self.has_prefetch = target.line_bytes, target.page_bytes, target.has_prefetch
        self.passes: list[tir.For] = []
        self.lines: tir.For | None = None
        self.shared: dict[tuple[int, tir.Expr], tuple[Var, Var]] = {}

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        outer, lines = self.passes, self.lines
        if PREFETCH_LINES in loop.annotations:
            self.lines = loop
        if PREFETCH in loop.annotations:
            self.passes = [loop]
        elif outer and PREFETCH_PASS in loop.annotations and type(loop.extent) is tir.IntImm:
            self.passes = [*outer, loop]
        with inside(self.an, loop):
            out = self.generic(loop)
            if (self.passes or self.lines) and out.kind not in _CODE and not _serial_inside(out):
                out = self.insert(out, self.passes) if self.passes else out
                out = self.insert_lines(out, self.lines) if self.lines and self.has_prefetch else out
        self.passes, self.lines = outer, lines
        return out if self.passes else self.sharing(out)

    def sharing(self, stmt: tir.Stmt) -> tir.Stmt:
        """A statement behind the variables that it uses."""
        for (lines, trips), variables in self.shared.items():
            for var, value in zip(variables, _shares(lines, trips), strict=True):
                stmt = tir.Let(var, value, stmt)
        self.shared = {}
        return stmt

    def insert(self, loop: tir.For, passes: list[tir.For]) -> tir.Stmt:
        name, ahead, step, given, panel, apart = Prefetch.of(passes[0].annotations)
        found = _first_read(loop, name, {loop.loop_var: loop.min}, panel or ahead)
        if found is None:
            return loop
        flat, at, within = found
        line = self.line(flat)
        number, trips = passes[0].loop_var - passes[0].min, tir.index_const(given) if given else passes[0].extent
        for inner in passes[1:]:
            number, trips = number * inner.extent.value + inner.loop_var - inner.min, self.an.simplify(trips * inner.extent.value)
        if not self.has_prefetch and given == 1 and passes[-1].loop_var is loop.loop_var:
            return self.streaming(loop, flat, at, step)
        if not self.has_prefetch:
            return self.touching(loop, flat, at if within is None else at - within, within, number, trips, ahead, step)
        lines = -(-step // line)
        if type(trips) is not tir.IntImm:
            start = at + ahead
            if panel and within is not None and apart != panel:  # the next piece is another panel's first one
                start += tir.select(within + ahead >= panel, tir.index_const(apart - panel), tir.index_const(0))
            return self.spread(loop, flat, start, number, trips, lines)
        count = -(-lines // trips.value)
        if count > MANY_PASSES_LINES and trips.value > 1:
            return self.few(loop, flat, at + ahead, number % -(-lines // count), count)
        number = number % -(-lines // count)
        turn, start, cache = number * loop.extent + loop.loop_var - loop.min, at, NEAR
        if within is not None and ahead % step == 0 and trips.value != 1:
            cache = NEAR if _number(loop.extent) == ahead // step else SECOND
            turn, start = number * (ahead // step) + within // step + loop.loop_var - loop.min, at - within
        share = Var("share", DType("int64"))
        where = self.an.simplify(start + ahead + turn * (count * line)) + share * line
        wanted = tir.For(share, tir.index_const(0), tir.index_const(count), tir.ForKind.UNROLLED, _fetch(flat, where, cache))
        return loop.replace(body=tir.DeclBuffer(flat, tir.seq(wanted, loop.body)))

    def streaming(self, loop: tir.For, flat: tir.Buffer, start: tir.Expr, step: int) -> tir.Stmt:
        """The loop; where a stretch of the buffer begins, reads of all lines of the next stretch come first."""
        extent, size = _number(loop.extent), _number(flat.shape[0])
        if extent is None or size is None or flat.elem_offset is not None:
            return loop
        moved = extent * step  # elements
        stretch = -(-STRETCH_BYTES * 8 // (flat.dtype.storage_bits * moved)) * moved
        line = self.line(flat)
        share = Var("line", DType("int64"))
        where = tir.min_(start + stretch, size - stretch) + share * line
        read = tir.Evaluate(tir.Call("touch", (tir.BufferLoad(flat, (self.an.simplify(where),)),), DType("void")))
        lines = tir.For(share, tir.index_const(0), tir.index_const(stretch // line), tir.ForKind.UNROLLED, read)
        begins = tir.EQ(self.an.simplify(tir.floormod(start, stretch)), tir.index_const(0))
        return tir.DeclBuffer(flat, tir.seq(tir.If(begins, lines), loop)) if size >= 2 * stretch else loop

    def touching(self, loop: tir.For, flat: tir.Buffer, start: tir.Expr, within: tir.Expr | None, number: tir.Expr, trips: tir.Expr, ahead: int,
                 step: int) -> tir.For:
        """The loop with a read in each iteration, of a byte of the next panel. Passes whose number only the run knows are taken for `ASSUMED_PASSES`."""
        each, extent, size = flat.dtype.storage_bits / 8, _number(loop.extent), _number(flat.shape[0])
        passes = trips.value if type(trips) is tir.IntImm else ASSUMED_PASSES
        moved = int(step * each)  # bytes that an iteration moves through
        apart = -(-moved // passes)
        if not 1 < passes <= moved or extent is None or size is None or not moved or flat.elem_offset is not None:
            return loop
        number = tir.floordiv(number * moved, passes) if passes > moved else tir.min_(number, passes - 1)
        steps = number * (extent if within is None else ahead // step) + (0 if within is None else tir.floordiv(within, step))
        nbytes = int(size * each)
        first = self.an.simplify(tir.floordiv((start + ahead) * flat.dtype.storage_bits, 8) + steps * apart)
        where = tir.min_(first, nbytes - extent * apart) + (loop.loop_var - loop.min) * apart
        seen = decl_buffer((nbytes,), "uint8", flat.name, data=flat.data, scope=flat.scope)
        read = tir.Evaluate(tir.Call("touch", (tir.BufferLoad(seen, (where,)),), DType("void")))
        return loop.replace(body=tir.DeclBuffer(seen, tir.seq(read, loop.body)))

    def spread(self, loop: tir.For, flat: tir.Buffer, start: tir.Expr, number: tir.Expr, trips: tir.Expr, lines: int) -> tir.For:
        """Where passes are many, an iteration fetches one line or two. Where they are few, memory is what is waited for: fetches stand between the steps
        that are written out, so that they do not wait for a place all at once, and one more reaches into the next page, where the
        hardware's prefetchers begin again. There are as many as one pass needs; of more passes, some fetch the same line. (A loop of as
        many as are needed would stand between the registers of one iteration and those of the next.)"""
        line = self.line(flat)
        count, parts = self.shares(lines, trips)
        turn = tir.min_(number, parts - 1) * loop.extent + loop.loop_var - loop.min
        first = self.an.simplify(start + turn * (count * line))
        written = _written_out(loop.body)
        steps, step = (written.extent.value, written.loop_var - written.min) if written else (1, tir.index_const(0))
        each = -(-lines // steps)
        apart = tir.floordiv(count * line + (each * steps - 1), each * steps)
        few = count > MANY_PASSES_LINES
        share = tir.If(few, tir.seq(*(_fetch(flat, first + (step + k * steps) * apart) for k in range(each))))
        beyond = tir.If(few, _fetch(flat, first + self.page_bytes // self.line_bytes * line))
        always = [_fetch(flat, first + k * line) for k in range(MANY_PASSES_LINES)]
        body = tir.seq(*always, beyond, *((share, loop.body) if written is None else (_Within(written, share).rewrite(loop.body),)))
        return loop.replace(body=tir.DeclBuffer(flat, body))

    def few(self, loop: tir.For, flat: tir.Buffer, start: tir.Expr, number: tir.Expr, count: int) -> tir.For:
        """Where passes are few, and an iteration fetches ``count`` lines in each, into the second-level cache, because the first does not keep a panel that
        is passed over a few times beside the next one. Fetches stand between the steps that are written out."""
        line, written = self.line(flat), _written_out(loop.body)
        steps, step = (written.extent.value, written.loop_var - written.min) if written else (1, tir.index_const(0))
        first = self.an.simplify(start + (number * loop.extent + loop.loop_var - loop.min) * (count * line))
        each, gap = -(-count // steps), max(steps // count, 1)
        share = tir.seq(*(_fetch(flat, first + (tir.floordiv(step, gap) * each + k) * line, SECOND) for k in range(each)))
        if gap > 1:
            share = tir.If(tir.EQ(tir.floormod(step, gap), tir.index_const(0)), share)
        body = tir.seq(share, loop.body) if written is None else _Within(written, share).rewrite(loop.body)
        return loop.replace(body=tir.DeclBuffer(flat, body))

    def shares(self, lines: int, trips: tir.Expr) -> tuple[Var, Var]:
        """Variables for `_shares`: computed in front of the annotated loop, where many addresses would choose between the same numbers each."""
        if (lines, trips) not in self.shared:
            self.shared[lines, trips] = Var("count", DType("int64")), Var("parts", DType("int64"))
        return self.shared[lines, trips]

    def line(self, buffer: tir.Buffer) -> int:
        """Elements of a line."""
        return self.line_bytes * 8 // buffer.dtype.storage_bits

    def insert_lines(self, loop: tir.For, turns: tir.For) -> tir.For:
        """One line in each iteration of the loop; ``turns`` is around it or the loop itself."""
        name, ahead = PrefetchLines.of(turns.annotations)
        found = _first_read(loop, name, {turns.loop_var: turns.min})
        if found is None:
            return loop
        flat, at, _ = found
        where = self.an.simplify(at + ahead + (turns.loop_var - turns.min) * self.line(flat))
        return loop.replace(body=tir.DeclBuffer(flat, tir.seq(_fetch(flat, where), loop.body)))


def _shares(lines: int, passes: tir.Expr) -> tuple[tir.Expr, tir.Expr]:
    """How many lines, of so many, an iteration fetches in each pass, and in how many passes all are fetched then, where the run knows the number of
    passes."""
    count, parts = tir.index_const(lines), tir.index_const(1)
    for most in sorted({-(-lines // n) for n in range(2, lines + 1)}, reverse=True):
        needed = tir.index_const(-(-lines // most))
        count, parts = tir.select(passes >= needed, tir.index_const(most), count), tir.select(passes >= needed, needed, parts)
    return count, parts


def _first_read(loop: tir.For, name: str, start: dict[tir.Var, tir.Expr], panel: int = 0) -> tuple[tir.Buffer, tir.Expr, tir.Expr | None] | None:
    """The buffer in one dimension, which of its elements the loop's body reads first where variables have the values of ``start``, and where that
    is in its panel, if the last dimensions together have as many elements as a ``panel``."""
    load = next((n for n in walk(loop.body) if type(n) is tir.BufferLoad and n.buffer.name == name), None)
    if load is None:
        return None
    straight = {n.loop_var: n.min for n in walk(loop.body) if type(n) is tir.For}
    buffer, at, size, within = load.buffer, tir.index_const(0), tir.index_const(1), None
    for i, n in zip(reversed(load.indices), reversed(buffer.shape), strict=True):
        at, size = at + i * size, size * n
        if _number(size) == panel and within is None:
            within = substitute(at, straight | start)
    flat = decl_buffer((tir.product_of(buffer.shape),), buffer.dtype, name, data=buffer.data, elem_offset=buffer.elem_offset, scope=buffer.scope)
    return flat, substitute(at, straight | start), within


def _number(e: tir.Expr) -> int | None:
    return e.value if type(e) is tir.IntImm else None


def _written_out(stmt: tir.Stmt) -> tir.For | None:
    """The unrolled loop that is all of a statement, if there is one."""
    while type(stmt) in (tir.Allocate, tir.DeclBuffer, tir.Let, tir.AttrStmt):
        stmt = stmt.body
    return stmt if type(stmt) is tir.For and stmt.kind is tir.ForKind.UNROLLED and type(stmt.extent) is tir.IntImm else None


class _Within(StatementRewriter):
    """Puts a statement at the start of a loop's body."""

    def __init__(self, loop: tir.For, first: tir.Stmt) -> None:
        self.loop, self.first = loop, first

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        return loop.replace(body=tir.seq(self.first, loop.body)) if loop is self.loop else self.generic(loop)


def _fetch(flat: tir.Buffer, where: tir.Expr, cache: int = NEAR) -> tir.Stmt:
    return tir.Evaluate(tir.Call("prefetch", (tir.BufferLoad(flat, (where,)), tir.const(0, "int32"), tir.const(cache, "int32")), DType("void")))


def _serial_inside(loop: tir.For) -> bool:
    return any(type(n) is tir.For and n.kind not in _CODE for n in walk(loop.body))


@kernel_pass("prefetch", for_target=True)
def prefetch(func: tir.PrimFunc, target: Target) -> tir.PrimFunc:
    """Prefetch instructions where loops are annotated with ``prefetch`` or ``prefetch_lines``, for the lines of the target's caches."""
    body = _Prefetch(target).rewrite(func.body)
    return func if body is func.body else func.replace(body=body)
