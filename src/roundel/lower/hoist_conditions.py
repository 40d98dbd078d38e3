# SPDX-License-Identifier: Apache-2.0
"""Conditions move out of the loops in which they do not change.

for j in range(n):                 if i < m:
    if i < m:               ->         for j in range(n):
        C[i, j] = ...                      C[i, j] = ...

A condition on data that is marked as likely leaves a loop as well: each case gets a copy of the loop, both without branches.

for j in range(n):                           if likely(E[i]):
    C[i, j] = select(likely(E[i]), x, y) ->      for j in range(n): C[i, j] = x
                                             else:
                                                 for j in range(n): C[i, j] = y

Neighbouring statements under the same condition on data are merged under one condition, so that a value which one leaves in registers for
the next does not have to be kept across a branch:

if not likely(E[i]): x = A[i]          if likely(E[i]): C[i] = y
if likely(E[i]): C[i] = y          ->  else: x = A[i]; C[i] = x
else: C[i] = x
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

from roundel.ir import Rewriter, free_vars, on, tir
from roundel.ir.visit import statements, walk

from .kernel_pass import kernel_pass
from .remembered import expressions, remembered
from .statements import StatementRewriter
from .vector_expr import conjuncts


def _stable(condition: tir.Expr, loop: tir.For) -> bool:
    """Whether a condition is invariant in the loop: the loop writes nothing that it loads."""
    if loop.loop_var in free_vars(condition) or any(type(n) is tir.Call and n.op != "likely" for n in walk(condition)):
        return False
    loaded = {n.buffer for n in walk(condition) if type(n) is tir.BufferLoad}
    return not loaded or loaded.isdisjoint(n.buffer for n in statements(loop.body) if type(n) is tir.BufferStore)


@remembered
def _likely_in(e: tir.Expr) -> tuple[tir.Expr, ...]:
    own = (e,) if type(e) is tir.Call and e.op == "likely" else ()
    return own + tuple(n for below in e._below() for n in _likely_in(below))


def _likely(stmt: tir.Stmt) -> Iterator[tir.Expr]:
    """The conditions that are marked as likely."""
    return (n for e in expressions(stmt) for n in _likely_in(e))


def _always(body: tir.Stmt, choices: Set[tir.Expr]) -> list[tir.Expr]:
    """Those choices of a loop's body that are made whatever other conditions hold, and whose variables are defined before the loop."""
    found = [n for n in _likely(body) if n in choices]
    if not found:
        return found
    inside = list(statements(body))
    own = {n.loop_var if type(n) is tir.For else n.var for n in inside if type(n) in (tir.For, tir.Let)}
    guarded = {n for s in inside if type(s) is tir.If for case in (s.then_case, s.else_case) if case is not None for n in _likely(case)}
    return [n for n in found if n not in guarded and own.isdisjoint(free_vars(n))]


class _Hoist(StatementRewriter):
    """``choices`` are the conditions on data that are marked as likely."""

    def __init__(self, choices: Set[tir.Expr]) -> None:
        super().__init__()
        self.choices = choices

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        loop = self.generic(loop)
        return loop if loop.kind is tir.ForKind.PARALLEL else self.split(self.hoisted(loop))

    def split(self, loop: tir.Stmt) -> tir.Stmt:
        """A copy of the loop for each case of a condition that is invariant in it."""
        if not self.choices or type(loop) is not tir.For:
            return loop
        made = next((n for n in _always(loop.body, self.choices) if _stable(n, loop)), None)
        if made is None:
            return loop
        return tir.If(made, *(loop.replace(body=_Decided(made, case).rewrite(loop.body)) for case in (True, False)))

    def hoisted(self, loop: tir.For) -> tir.Stmt:
        """The loop inside of the conditions that were inside of it."""
        inner = loop.body
        if type(inner) is not tir.If or inner.else_case is not None:
            return loop
        parts = conjuncts(inner.condition)
        out = [c for c in parts if _stable(c, loop)]
        if not out:
            return loop
        stay = [c for c in parts if not _stable(c, loop)]
        body = tir.If(tir.logical_and(*stay), inner.then_case) if stay else inner.then_case
        return tir.If(tir.logical_and(*out), loop.replace(body=body))

    @on(tir.Seq)
    def _seq(self, seq: tir.Seq) -> tir.Stmt:
        """Merges neighbouring statements under the same condition on data."""
        out: list[tir.Stmt] = []
        for stmt in self.generic(seq).stmts:
            both = _together(out[-1], stmt) if out else None
            out[len(out) - (both is not None) :] = [both or stmt]
        return tir.seq(*out)

    @on(tir.If)
    def _if(self, stmt: tir.If) -> tir.Stmt:
        """Nested conditions become one."""
        stmt = self.generic(stmt)
        inner = stmt.then_case
        if stmt.else_case is None and type(inner) is tir.If and inner.else_case is None and not _loads(inner.condition):
            return tir.If(tir.And(stmt.condition, inner.condition), inner.then_case)
        return stmt


class _Decided(Rewriter):
    """Rewrites code in which a condition is known to hold, or known not to."""

    def __init__(self, condition: tir.Expr, holds: bool) -> None:
        super().__init__()
        self.condition, self.holds = condition, holds

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, tir.Expr) and node == self.condition:
            return tir.const(self.holds, "bool")
        node = super().rewrite(node)
        if type(node) is tir.If and type(node.condition) is tir.IntImm:
            return node.then_case if node.condition.value else node.else_case or tir.Seq(())
        if type(node) is tir.Select and type(node.condition) is tir.IntImm:
            return node.true_value if node.condition.value else node.false_value
        return node


def _together(a: tir.Stmt, b: tir.Stmt) -> tir.Stmt | None:
    """Two statements merged under one condition, where both have the same condition and the first does not change its value; else None."""
    if type(a) is not tir.If or type(b) is not tir.If:
        return None
    (condition, *first), (other, *second) = _cases(a), _cases(b)
    loaded = {n.buffer for n in walk(condition) if type(n) is tir.BufferLoad}
    if condition is not other or not loaded or not loaded.isdisjoint(n.buffer for n in statements(a) if type(n) is tir.BufferStore):
        return None
    yes, no = (tir.seq(*(s for s in pair if s is not None)) if any(pair) else None for pair in zip(first, second, strict=True))
    return tir.If(tir.Not(condition), no) if yes is None else tir.If(condition, yes, no)


def _cases(stmt: tir.If) -> tuple[tir.Expr, tir.Stmt | None, tir.Stmt | None]:
    """The condition without a negation, the statement for where it holds, and the one for where it does not."""
    if type(stmt.condition) is tir.Not:
        return stmt.condition.a, stmt.else_case, stmt.then_case
    return stmt.condition, stmt.then_case, stmt.else_case


def _loads(e: tir.Expr) -> bool:
    return any(type(n) in (tir.BufferLoad, tir.Call) for n in walk(e))


@kernel_pass("hoist_conditions")
def hoist_conditions(func: tir.PrimFunc) -> tir.PrimFunc:
    """Moves loop-invariant conditions out of their loops."""
    choices = {n for n in _likely(func.body) if _loads(n.args[0])}
    return func.replace(body=_Hoist(choices).rewrite(func.body))
