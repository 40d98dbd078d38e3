# SPDX-License-Identifier: Apache-2.0
"""Borders of zeros in a sum of products: the terms that they make zero are left out (skip_zeros)."""

from __future__ import annotations

from roundel.ir import substitute, tir
from roundel.ir.tir import Block, BlockRealize, Expr

from .primitive import BlockToken, Change, primitive, refuse
from .regions import bindings, with_access
from .tree import Tree


@primitive
def skip_zeros(tree: Tree, block: BlockToken) -> Change:
    """Leave out the terms of a sum of products of which a factor lies in a border of zeros; a zero times anything counts as zero.

    for i, k:                                                        for i, k:
        C[i] += T.if_then_else(i + k >= 1, A[i + k - 1], 0) * B[k]  ->   T.where(i + k >= 1)
                                                                         C[i] += A[i + k - 1] * B[k]

    The init has to be a block of its own.
    """
    realize: BlockRealize = tree.realize(block)
    node: Block = realize.block
    if node.init is not None:
        refuse(tree, realize, f"block {node.name} has its init inside", hint="decompose_reduction first")
    found = _product(node.body)
    if found is None:
        refuse(tree, realize, f"block {node.name} does not sum products", "its body is not of the form C = C + a * b")
    conditions: list[Expr] = []
    product = tir.Mul(*(_inside(factor, conditions) for factor in (found.a, found.b)))
    if not conditions:
        refuse(tree, realize, f"no factor in block {node.name} has a border of zeros")
    store = node.body
    total = store.value.replace(**{side: product for side in ("a", "b") if getattr(store.value, side) is found})
    inner = with_access(tree, node.replace(body=store.replace(value=total)))
    values = bindings(realize)
    predicate = tir.logical_and(realize.predicate, *(substitute(c, values) for c in conditions))
    return Change(tree.edit({realize: realize.replace(block=inner, predicate=predicate)}))


def _product(store: tir.Stmt) -> tir.Mul | None:
    """``a * b`` of ``C = C + a * b``."""
    if type(store) is not tir.BufferStore or type(store.value) is not tir.Add:
        return None
    for own, term in ((store.value.a, store.value.b), (store.value.b, store.value.a)):
        if type(own) is tir.BufferLoad and own.buffer is store.buffer and own.indices == store.indices and type(term) is tir.Mul:
            return term
    return None


def _inside(factor: Expr, conditions: list[Expr]) -> Expr:
    """The factor without its border, whose conditions are collected."""
    if type(factor) is tir.Cast:
        return factor.replace(value=_inside(factor.value, conditions))
    if type(factor) is not tir.IfThenElse or type(factor.false_value) is not tir.FloatImm or factor.false_value.value != 0.0:
        return factor
    conditions += _conjuncts(factor.condition)
    return factor.true_value


def _conjuncts(e: Expr) -> list[Expr]:
    return _conjuncts(e.a) + _conjuncts(e.b) if type(e) is tir.And else [e]
