# SPDX-License-Identifier: Apache-2.0
"""Iterations of a reduction that only meet its neutral element: zeros in a sum of products, -infinity in a maximum."""

from __future__ import annotations

import math

from roundel.arith import Analyzer
from roundel.arith.compare import SLACK
from roundel.arith.int_set import interval
from roundel.ir import Var, free_vars, substitute, tir
from roundel.ir.tir import Block, BlockRealize, Expr, For, IterKind, Range

from . import scopes
from .primitive import BlockToken, Change, Loop, primitive, refuse
from .regions import bindings, domain, inner_loops
from .tree import Tree, conjuncts


@primitive
def drop_neutral(tree: Tree, block: BlockToken, loop: Loop, granule: int = 1) -> Change:
    """Leave out the last iterations of a loop in which a reduction only meets its neutral element.

    for k, i: E[k, i] = select(k <= i, A[k, i], 0)           for k, i: E[k, i] = select(k <= i, A[k, i], 0)
    for io, k, ii:                                      ->   for io, k, ii:
        C[io * 8 + ii] += E[k, io * 8 + ii] * B[k]               T.where(k < io * 8 + 8)
                                                                 C[io * 8 + ii] += E[k, io * 8 + ii] * B[k]

    An operand of the reduction is written by a block of the form ``select(condition, value, neutral)``, or sums up products with what is;
    a zero times anything counts as zero. What is left out is what is neutral for all iterations of the loops inside, rounded so that a multiple of ``granule``
    steps of the reduction stays. The init has to be a block of its own.
    """
    node: Block = tree.nodes[block]
    realize, at = tree.realize(block), tree.nodes[loop]
    if not tree.under(realize, at) or tree.scope(at) is not tree.scope(realize):
        refuse(tree, realize, f"loop {at.loop_var.name} is not around block {node.name} in its scope")
    if node.init is not None:
        refuse(tree, realize, f"block {node.name} has its init inside", hint="decompose_reduction first")
    values = bindings(realize)
    if any(at.loop_var in free_vars(values[iv.var]) for iv in node.iter_vars if iv.kind is IterKind.SPATIAL):
        refuse(tree, realize, f"loop {at.loop_var.name} does not only reduce")
    found = [c for load in _operands(node) for c in _support(tree, realize, *load)]
    limits = [e for c, within in found if (e := _limit(tree, realize, at, substitute(c, values), within, granule)) is not None]
    if not limits:
        refuse(tree, realize, f"nothing says that block {node.name} meets only its neutral element in the end of loop {at.loop_var.name}")
    an = tree.analyzer(at, inside=True)
    predicate = an.simplify(tir.logical_and(realize.predicate, *(at.loop_var < e for e in limits)))
    return Change(tree.edit({realize: realize.replace(predicate=predicate)}))


@primitive
def drop_unused(tree: Tree, loop: Loop) -> Change:
    """Leave out the last iterations of a loop in which only blocks run that make what no other block uses there.

    for k:                                                   for k:
        for j: A[k, j] = ...                           ->        for j: T.where(k < 5), A[k, j] = ...
        for j: T.where(k < 5), C[j] += A[k, j]                   for j: T.where(k < 5), C[j] += A[k, j]

    Blocks that write what is read after the loop all have the same condition, of the form ``k < limit``; it becomes the condition of
    the others, too, what they use from one iteration to the next included.
    """
    at: For = tree.nodes[loop]
    inside = [r for r in tree.children(tree.scope(at)) if tree.under(r, at)]
    others = [r for r in tree.children(tree.scope(at)) if r not in inside]
    local = set(tree.scope(at).alloc_buffers) - {b for r in others for b in scopes.reads_of(r.block)}
    lasting = [r for r in inside if not scopes.writes_of(r.block) <= local]
    inner = {x.loop_var for r in inside for x in inner_loops(tree, r, at)}
    limits = [{c for c in conjuncts(r.predicate) if type(c) in (tir.LT, tir.LE) and c.a is at.loop_var and free_vars(c.b).isdisjoint({at.loop_var, *inner})}
              for r in lasting]
    shared = set.intersection(*limits) if limits else set()
    if not shared:
        refuse(tree, at, f"cannot leave out iterations of loop {at.loop_var.name}", "what is used after it is not made up to one iteration alone")
    limited = {r: r.replace(predicate=tir.logical_and(*shared, r.predicate)) for r in inside if not shared <= set(conjuncts(r.predicate))}
    return Change(tree.edit(limited))


def _operands(block: Block) -> list[tuple[tir.BufferLoad, float]]:
    """Loads of which a reduction takes in the value, or a product with it, and the value that is neutral to it."""
    store = block.body
    if type(store) is not tir.BufferStore:
        return []
    mine = lambda e: type(e) is tir.BufferLoad and e.buffer is store.buffer and e.indices == store.indices
    value = store.value
    if type(value) is tir.Add and mine(value.a):
        parts = [value.b.a, value.b.b] if type(value.b) is tir.Mul else [value.b]
        return [(p, 0.0) for p in map(_uncast, parts) if type(p) is tir.BufferLoad]
    if type(value) is tir.Select and type(value.condition) is tir.LT and mine(value.false_value) and value.condition.a is value.false_value \
            and value.condition.b is value.true_value:
        part = _uncast(value.true_value)
        return [(part, -math.inf)] if type(part) is tir.BufferLoad else []
    return []


def _uncast(e: Expr) -> Expr:
    return _uncast(e.value) if type(e) is tir.Cast else e


_Support = tuple[Expr, dict[Var, Range]]  # a condition, for some of these variables


def _support(tree: Tree, realize: BlockRealize, load: tir.BufferLoad, neutral: float) -> list[_Support]:
    """Conditions of which one does not hold where the loaded element is neutral, as the blocks that write it say."""
    made = scopes.writers(tree, tree.scope(realize), load.buffer)
    store = made[0].block.body if len(made) == 1 else None
    if type(store) is not tir.BufferStore or not all(type(i) is Var for i in store.indices) or len(set(store.indices)) < len(store.indices):
        return []
    at = dict(zip(store.indices, load.indices, strict=True))
    if scopes.is_reduction(made[0].block) and neutral == 0.0 and _starts_at(made[0].block, neutral):
        over = {iv.var: iv.dom for iv in made[0].block.iter_vars if iv.kind is IterKind.REDUCE}
        found = [s for part, zero in _operands(made[0].block) if zero == neutral for s in _support(tree, made[0], part, neutral)]
        return [(substitute(c, at), {**within, **over}) for c, within in found]
    if not scopes.is_complete(made[0].block) or type(store.value) not in (tir.Select, tir.IfThenElse):
        return []
    other = store.value.false_value
    return [(substitute(c, at), {}) for c in conjuncts(store.value.condition)] if type(other) is tir.FloatImm and other.value == neutral else []


def _starts_at(block: Block, value: float) -> bool:
    """Whether a reduction's init is this number."""
    return type(block.init) is tir.BufferStore and type(block.init.value) is tir.FloatImm and block.init.value.value == value


def _limit(tree: Tree, realize: BlockRealize, at: For, c: Expr, within: dict[Var, Range], granule: int) -> Expr | None:
    """The iteration from which on a comparison holds for no iteration of the loops inside and none of the variables ``within``."""
    if type(c) not in SLACK or not c.is_index:
        return None
    an, v = tree.analyzer(at), at.loop_var
    most = interval(an, SLACK[type(c)](c), {**within, **domain(inner_loops(tree, realize, at))}).max
    step = None if most is None else _step(an, most, v)
    if most is None or step is None or step >= 0 or not free_vars(most).isdisjoint(x.loop_var for x in inner_loops(tree, realize, at)):
        return None
    granule = max(granule, -step)
    if granule % step:
        return None
    last = an.simplify(substitute(most, {v: tir.const(0, v.dtype)}))
    return an.simplify((tir.floordiv(last, granule) + 1) * (granule // -step))


def _step(an: Analyzer, e: Expr, v: Var) -> int | None:
    found = an.simplify(substitute(e, {v: v + 1}) - e)
    return found.value if type(found) is tir.IntImm else None
