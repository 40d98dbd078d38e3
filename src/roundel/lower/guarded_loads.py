# SPDX-License-Identifier: Apache-2.0
"""The part of a condition that loads memory is asked only where the rest of the condition holds, which may be what keeps the load within bounds.

    if i < n and flags[i] > 0:            if i < n:
        y[i] = x[i]                ->         if flags[i] > 0:
                                                  y[i] = x[i]

Python's ``and`` asks so; a processor's instruction takes both operands as they are. A load that is within bounds whatever the rest says stays, and so
does one that moves with none of the variables in the rest.
"""

from __future__ import annotations

from roundel.arith import Analyzer, reads_memory
from roundel.ir import Rewriter, on, tir
from roundel.ir.visit import free_vars, walk

from .kernel_pass import kernel_pass
from .loop_facts import inside
from .vector_expr import conjuncts


class _InTurn(Rewriter):
    """Splits the conditions of statements and of lazy choices."""

    def __init__(self) -> None:
        self.analyzer = Analyzer()

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        with inside(self.analyzer, loop):
            return self.generic(loop)

    @on(tir.If)
    def _if(self, stmt: tir.If) -> tir.Stmt:
        stmt = self.generic(stmt)
        steps = self.steps(conjuncts(stmt.condition))
        if len(steps) == 1 or stmt.else_case is not None:
            condition = self.lazy(stmt.condition)
            return stmt if condition is stmt.condition else stmt.replace(condition=condition)
        body = stmt.then_case
        for step in reversed(steps):
            body = tir.If(tir.logical_and(*map(self.lazy, step)), body)
        return body

    @on(tir.IfThenElse)
    def _choice(self, e: tir.IfThenElse) -> tir.Expr:
        e = self.generic(e)
        condition = self.lazy(e.condition)
        return e if condition is e.condition else e.replace(condition=condition)

    def lazy(self, condition: tir.Expr) -> tir.Expr:
        """The condition with choices where one operand is not to be asked unless another lets it."""
        if type(condition) is tir.Not:
            inner = self.lazy(condition.a)
            return condition if inner is condition.a else tir.Not(inner)
        if type(condition) is tir.Or:
            both = self.steps([condition.a, condition.b])
            return condition if len(both) == 1 else tir.IfThenElse(self.lazy(both[0][0]), tir.const(True, "bool"), self.lazy(both[1][0]))
        *before, last = self.steps(conjuncts(condition))
        if not before:
            return condition
        made = tir.logical_and(*map(self.lazy, last))
        for step in reversed(before):
            made = tir.IfThenElse(tir.logical_and(*map(self.lazy, step)), made, tir.const(False, "bool"))
        return made

    def steps(self, parts: list[tir.Expr]) -> list[list[tir.Expr]]:
        """The parts of a condition in groups, each of which may be asked at once where those before it hold. What reads no memory comes first."""
        steps: list[list[tir.Expr]] = [[]]
        for part in sorted(parts, key=reads_memory):
            moved = {v for load in self.loads(part) for v in free_vars(load)}
            if any(free_vars(other) & moved for other in steps[-1]):
                steps.append([])
            steps[-1].append(part)
        return steps

    def loads(self, e: tir.Expr) -> list[tir.BufferLoad]:
        """The loads in an expression that are not known to be within bounds."""
        return [n for n in walk(e) if type(n) is tir.BufferLoad and not self.is_within(n)]

    def is_within(self, load: tir.BufferLoad) -> bool:
        """Whether the loops alone keep the indices within the buffer."""
        return all(self.analyzer.prove(tir.logical_and(i >= 0, i < n)) for i, n in zip(load.indices, load.buffer.shape, strict=True))


@kernel_pass("guarded_loads")
def guarded_loads(func: tir.PrimFunc) -> tir.PrimFunc:
    """Conditions on data that a part of the same condition guards are asked behind it."""
    return func.replace(body=_InTurn().rewrite(func.body))
