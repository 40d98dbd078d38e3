# SPDX-License-Identifier: Apache-2.0
"""The last tile loses the rows that it does not have: where the iteration of a loop is known, unrolled loops inside end where a guard says.

    for i in range(7, 8):                             for i in range(7, 8):
        for r in T.unroll(14):                            for r in T.unroll(11):
            if i * 14 + r < 109 and i + r + k < 219:  ->      if i + r + k < 219:
                ...                                               ...

Other guards then need to hold for the rows only that are there.
"""

from __future__ import annotations

from roundel.arith import Analyzer
from roundel.arith.compare import SLACK
from roundel.ir import Var, free_vars, on, tir
from roundel.ir.visit import substitute

from .statements import StatementRewriter
from .vector_expr import conjuncts


def trimmed(loop: tir.For) -> tir.For:
    """A loop of one iteration, at a number, with its unrolled loops trimmed; others as they are."""
    if type(loop.min) is not tir.IntImm or type(loop.extent) is not tir.IntImm or loop.extent.value != 1:
        return loop
    return loop.replace(body=_Trim(loop.loop_var, loop.min).rewrite(loop.body))


class _Trim(StatementRewriter):
    def __init__(self, var: Var, value: tir.Expr) -> None:
        self.known, self.an = {var: value}, Analyzer()

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        loop = self.generic(loop)
        guarded = _guarded(loop) if loop.kind is tir.ForKind.UNROLLED and type(loop.extent) is tir.IntImm else None
        if guarded is None:
            return loop
        count, left = loop.extent.value, []
        for guard in conjuncts(guarded.condition):
            holding = self.holding(guard, loop, count)
            count = count if holding is None else holding
            left += [guard] if holding is None else []
        if len(left) == len(conjuncts(guarded.condition)):
            return loop
        return _within(loop, tir.If(tir.logical_and(*left), guarded.then_case) if left else guarded.then_case, count) if count else tir.Seq(())

    def holding(self, guard: tir.Expr, loop: tir.For, count: int) -> int | None:
        """In how many of the first iterations a guard holds, where it holds in no later one and that is known."""
        asked = substitute(guard, self.known) if type(guard) in SLACK else guard
        if type(guard) not in SLACK or free_vars(asked) != {loop.loop_var}:
            return None
        holds = [self.an.simplify(substitute(asked, {loop.loop_var: loop.min + k})) for k in range(count)]
        if not all(type(h) is tir.IntImm for h in holds):
            return None
        first = sum(bool(h.value) for h in holds)  # type: ignore[attr-defined]
        return first if all(h.value for h in holds[:first]) else None  # type: ignore[attr-defined]


def _guarded(loop: tir.For) -> tir.If | None:
    """What is all of a loop's body, but for other loops that are written out, if it is a guard."""
    body = loop.body
    while type(body) is tir.For and body.kind in (tir.ForKind.UNROLLED, tir.ForKind.VECTORIZED):
        body = body.body
    return body if type(body) is tir.If and body.else_case is None else None


def _within(loop: tir.For, body: tir.Stmt, count: int | None = None) -> tir.For:
    """The loop, of ``count`` iterations, with another body in place of that guard."""
    inner = _within(loop.body, body) if type(loop.body) is tir.For else body
    return loop.replace(body=inner) if count is None else loop.replace(body=inner, extent=tir.index_const(count))
