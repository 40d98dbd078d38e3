# SPDX-License-Identifier: Apache-2.0
"""Borders of zeros in a sum, of least numbers in a maximum: terms that change nothing are left out (skip_zeros)."""

from __future__ import annotations

from roundel.ir import substitute, tir
from roundel.ir.tir import Block, BlockRealize, Expr
from roundel.te import max_value, min_value

from .primitive import BlockToken, Change, primitive, refuse
from .regions import bindings, with_access
from .tree import Tree, conjuncts

_NEUTRAL = {tir.Add: lambda dtype: tir.const(0, dtype), tir.Max: min_value, tir.Min: max_value}


@primitive
def skip_zeros(tree: Tree, block: BlockToken) -> Change:
    """Leave out the terms of a sum, or of a sum of products, that lie in a border of zeros; a zero times anything counts as zero.
    Likewise those of a maximum that are the least number, and of a minimum that are the greatest.

    for i, k:                                                        for i, k:
        C[i] += T.if_then_else(i + k >= 1, A[i + k - 1], 0) * B[k]  ->   T.where(i + k >= 1)
                                                                         C[i] += A[i + k - 1] * B[k]

    The init has to be a block of its own.
    """
    realize: BlockRealize = tree.realize(block)
    node: Block = realize.block
    if node.init is not None:
        refuse(tree, realize, f"block {node.name} has its init inside", hint="decompose_reduction first")
    side = _term(node.body)
    if side is None:
        refuse(tree, realize, f"block {node.name} does not sum up, nor look for the most or the least", "its body is not of the form C = C + a")
    conditions: list[Expr] = []
    store = node.body
    term, neutral = getattr(store.value, side), _NEUTRAL[type(store.value)](store.value.dtype)
    if type(store.value) is tir.Add and type(term) is tir.Mul:
        term = tir.Mul(*(_inside(factor, _NEUTRAL[tir.Add](factor.dtype), conditions) for factor in (term.a, term.b)))
    else:
        term = _inside(term, neutral, conditions)
    if not conditions:
        refuse(tree, realize, f"no term of block {node.name} has a border of zeros, or of what else changes nothing")
    inner = with_access(tree, node.replace(body=store.replace(value=store.value.replace(**{side: term}))))
    values = bindings(realize)
    predicate = tir.logical_and(realize.predicate, *(substitute(c, values) for c in conditions))
    return Change(tree.edit({realize: realize.replace(block=inner, predicate=predicate)}))


def _term(store: tir.Stmt) -> str | None:
    """Which operand of ``C = C + a`` is ``a``."""
    if type(store) is not tir.BufferStore or type(store.value) not in _NEUTRAL:
        return None
    for own, side in ((store.value.a, "b"), (store.value.b, "a")):
        if type(own) is tir.BufferLoad and own.buffer is store.buffer and own.indices == store.indices:
            return side
    return None


def _inside(e: Expr, neutral: Expr, conditions: list[Expr]) -> Expr:
    """The operand without its border, whose conditions are collected."""
    if type(e) is tir.Cast and getattr(neutral, "value", None) == 0:
        return e.replace(value=_inside(e.value, tir.const(0, e.value.dtype), conditions))
    if type(e) is not tir.IfThenElse or e.false_value is not neutral:
        return e
    conditions += conjuncts(e.condition)
    return e.true_value


