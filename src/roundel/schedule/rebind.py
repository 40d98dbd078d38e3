# SPDX-License-Identifier: Apache-2.0
"""Replacing loop variables: block bindings and predicates underneath follow, in canonical form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roundel.arith import Analyzer, reads_memory
from roundel.ir import Rewriter, Var, on, substitute, tir
from roundel.ir.tir import BlockRealize, Expr, For, Stmt

from .tree import TRUE, Tree, bind_loop, conjuncts, is_true


class _Settle(Rewriter):
    """Simplifies bindings of the blocks of one scope and puts ``guard`` on them (an If on bare statements)."""

    def __init__(self, facts: Analyzer, values: Analyzer, guard: Expr) -> None:
        self.facts, self.values, self.guard = facts, values, guard

    @on(For)
    def _for(self, loop: For) -> Stmt:
        loop = loop.replace(min=self.values.simplify(loop.min), extent=self.facts.simplify(loop.extent))
        if type(loop.extent) is tir.IntImm:
            return self.inside(loop)
        with self.facts.scope(), self.values.scope():  # that there is an iteration is known in it only
            return self.inside(loop)

    def inside(self, loop: For) -> For:
        """The loop with its body settled."""
        bind_loop(self.facts, loop)
        bind_loop(self.values, loop, units=False)
        return loop.replace(body=self.rewrite(loop.body))

    @on(BlockRealize)
    def _realize(self, realize: BlockRealize) -> Stmt:
        values = tuple(self.values.simplify(v) for v in realize.iter_values)
        predicate = self.facts.simplify(tir.logical_and(realize.predicate, self.guard))
        asked = sorted(conjuncts(predicate), key=reads_memory)  # memory is asked where the others hold, which keep it within its bounds
        return realize.replace(iter_values=values, predicate=TRUE if self.facts.prove(predicate) else tir.logical_and(*asked))

    @on(tir.If)
    def _if(self, stmt: tir.If) -> Stmt:
        if is_true(self.guard) or not reads_memory(stmt.condition):
            return self.generic(stmt)
        outside, self.guard = self.guard, TRUE
        inner = self.generic(stmt)
        self.guard = outside
        return tir.If(outside, inner)  # the condition reads memory that may be there only where the guard holds

    @on(tir.BufferStore, tir.Evaluate, tir.Assert)
    def _leaf(self, stmt: Stmt) -> Stmt:
        return stmt if is_true(self.guard) else tir.If(self.guard, stmt)


def settle(body: Stmt, facts: Analyzer, values: Analyzer, guard: Expr = TRUE) -> Stmt:
    """Bindings and predicates under ``body`` in canonical form, ``guard`` added to the predicates.

    ``facts`` knows all loops around; ``values`` all but those of one iteration, whose variables stay.
    """
    return _Settle(facts, values, guard).rewrite(body)


def rebind(tree: Tree, at: Stmt, body: Stmt, table: Mapping[Var, Expr], loops: list[For], guard: Expr = TRUE) -> Stmt:
    """``body`` under new ``loops`` that stand at ``at``, with variables replaced by ``table``."""
    facts, values = tree.analyzer(at), tree.analyzer(at, units=False)
    for loop in loops:
        bind_loop(facts, loop)
        bind_loop(values, loop, units=False)
    return settle(substitute(body, table), facts, values, guard)


def wrap(loops: list[For], body: Stmt) -> Stmt:
    """Loops around a body, outermost first."""
    for loop in reversed(loops):
        body = loop.replace(body=body)
    return body


def serial(name: str, extent: Any, like: Expr) -> For:
    """A fresh serial loop from 0 without a body yet."""
    v = Var(name, like.dtype)
    return For(v, tir.const(0, like.dtype), extent, tir.ForKind.SERIAL, tir.Seq(()))
