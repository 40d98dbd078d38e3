# SPDX-License-Identifier: Apache-2.0
"""The last tile of a symbolic number of rows is computed in the height that it needs, or little more.

    for io in range((n + 7) // 8):                for io in range((n + 7) // 8):
        for k in range(64):                           if io * 8 + 4 < n:
            for i in T.unroll(8):                         for k in range(64): for i in T.unroll(8): ...
                if io * 8 + i < n: ...       ->       elif io * 8 + 2 < n:
                                                          for k in range(64): for i in T.unroll(4): ...
                                                      else:
                                                          for k in range(64): for i in T.unroll(2): ...

Of few rows (one word, a batch of one) the last tile is all or most of the work. Where all of it is guarded by the number of rows, an iteration beyond
the end does nothing, so that leaving it out changes nothing. ``whole_rows`` then removes the guards. Each height has registers of its own.
"""

from __future__ import annotations

from collections import Counter

from roundel.arith import Analyzer
from roundel.ir import Rewriter, Var, on, tir
from roundel.ir.visit import free_vars, statements, substitute, walk

from .copies import fresh_copy
from .kernel_pass import kernel_pass
from .statements import StatementRewriter
from .vector_expr import conjuncts

LEAST = 3     # rows of a tile that has lower ones


def versions(height: int) -> tuple[int, ...]:
    """The heights in which there are tiles of so many rows, falling: itself, half and a quarter of it, rounded up, and one row."""
    return tuple(sorted({height, -(-height // 2), -(-height // 4), 1}, reverse=True)) if height >= LEAST else (height,)


class _ShortTiles(StatementRewriter):
    def __init__(self, body: tir.Stmt) -> None:
        self.analyzer = Analyzer()
        self.uses = _uses(body)
        self.moved: set[tir.Buffer] = set()

    @on(tir.Allocate)
    def _allocate(self, scope: tir.Allocate) -> tir.Stmt:
        out = self.generic(scope)
        return out.body if scope.buffer in self.moved else out

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        if loop.kind in _CODE or type(loop.extent) is tir.IntImm:
            return self.generic(loop)
        rows, guard = self.tile(loop)
        if not rows or guard is None:
            return self.generic(loop)
        heights = versions(rows[0].extent.value)
        own = [b for b, n in _uses(loop.body).items() if b.scope == "local" and n == self.uses[b]]
        self.moved.update(own)
        whole = loop.body
        for b in own:
            whole = tir.Allocate(b, whole)
        first = substitute(guard.a, {r.loop_var: r.min for r in rows})
        body = self.lowered(whole, rows, heights[-1])
        for low, high in zip(heights[:0:-1], heights[-2::-1], strict=True):
            body = tir.If(self.analyzer.simplify(first + low) < guard.b, self.lowered(whole, rows, high), body)
        return loop.replace(body=body)

    def tile(self, loop: tir.For) -> tuple[list[tir.For], tir.LT | None]:
        """The unrolled loops over the rows of a tile, and a guard of theirs; none where they are no more than a part of what there is to do in them."""
        guards = _row_guards(loop)
        heights = {r.extent.value for r in guards}
        if len({id(g.b) for g in guards.values()}) != 1 or len(heights) != 1 or heights.pop() < LEAST:
            return [], None
        firsts = {self.analyzer.simplify(substitute(g.a, {r.loop_var: r.min})) for r, g in guards.items()}
        repeats = any(s.kind is tir.ForKind.SERIAL and any(t in guards for t in statements(s.body) if type(t) is tir.For)
                      for s in statements(loop.body) if type(s) is tir.For)
        return (list(guards), next(iter(guards.values()))) if len(firsts) == 1 and repeats else ([], None)

    def lowered(self, body: tir.Stmt, rows: list[tir.For], height: int) -> tir.Stmt:
        """A copy of the body with the loops over rows so long."""
        return fresh_copy(_Lower(rows, height).rewrite(body))


class _Lower(Rewriter):
    def __init__(self, rows: list[tir.For], height: int) -> None:
        self.rows, self.height = rows, tir.index_const(height)

    def rewrite(self, node: object) -> object:
        return node if isinstance(node, tir.Expr) else super().rewrite(node)

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        return self.generic(loop.replace(extent=self.height) if loop in self.rows else loop)


_CODE = (tir.ForKind.UNROLLED, tir.ForKind.VECTORIZED)


def _uses(stmt: tir.Stmt) -> Counter[tir.Buffer]:
    """How often buffers are read or written."""
    return Counter(n.buffer for n in walk(stmt) if isinstance(n, tir.BufferLoad | tir.BufferStore))


def _row_guards(loop: tir.For) -> dict[tir.For, tir.LT]:
    """The unrolled loops inside of a loop all of whose statements are guarded by ``loop's row + own variable < number of rows``, with the guard."""
    found = {}
    inside = {n.loop_var if type(n) is tir.For else n.var for n in statements(loop.body) if type(n) in (tir.For, tir.Let)}
    for r in statements(loop.body):
        if type(r) is tir.For and r.kind is tir.ForKind.UNROLLED and type(r.extent) is tir.IntImm:
            guard = next((c for c in _always(r.body) if _is_of_row(c, loop.loop_var) and inside & free_vars(c) == {r.loop_var}), None)
            if guard is not None:
                found[r] = guard
    return found


def _always(stmt: tir.Stmt) -> list[tir.Expr]:
    """Conditions under which alone a statement does anything."""
    if type(stmt) is tir.If and stmt.else_case is None:
        return [*conjuncts(stmt.condition), *_always(stmt.then_case)]
    inside = [s for s in stmt._below() if isinstance(s, tir.Stmt)]
    if not inside:
        return []
    first, *others = map(_always, inside)
    return [c for c in first if all(c in other for other in others)]


def _is_of_row(c: tir.Expr, tile: Var) -> bool:
    """Whether a condition says that a row of a tile is one of those that there are."""
    return type(c) is tir.LT and c.a.is_index and tile in free_vars(c.a) and bool(free_vars(c.b)) and all(v.size for v in free_vars(c.b))


@kernel_pass("short_tiles")
def short_tiles(func: tir.PrimFunc) -> tir.PrimFunc:
    """Tiles of fewer rows at the end of a symbolic number of rows."""
    body = _ShortTiles(func.body).rewrite(func.body)
    return func if body is func.body else func.replace(body=body)
