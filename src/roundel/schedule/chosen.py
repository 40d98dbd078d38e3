# SPDX-License-Identifier: Apache-2.0
"""What a condition on data chooses or leaves is computed only where it is chosen (only_where_chosen)."""

from __future__ import annotations

import functools

from roundel.ir import Rewriter, free_vars, substitute, tir, walk
from roundel.ir.tir import Block, BlockRealize, BufferLoad, Expr

from . import scopes, sharing
from .dependence import places_under
from .primitive import BlockToken, Change, primitive, refuse
from .regions import bindings, within_buffers
from .tree import Tree, conjuncts


@primitive
def only_where_chosen(tree: Tree, block: BlockToken) -> Change:
    """Run a block only where the block that reads its result chooses it.

    for i, k: A[i] += X[i, k] * Y[k]             for i, k: T.where(not C[i]), A[i] += X[i, k] * Y[k]
    for i: B[i] = select(C[i], D[i], A[i])   ->  for i: B[i] = select(C[i], D[i], A[i])

    One block reads the result, on one side of a choice; its condition is one on the variables that say which element of the result it is,
    and on buffers that are written before. Or all of that block runs under a condition on data that the loops around both decide. Nothing else
    depends on the result, and the condition can be asked, and is the same, where the block runs and where its reader does.
    """
    node: Block = tree.nodes[block]
    realize: BlockRealize = tree.realize(block)
    result = sharing.require_inner_buffer(tree, node, "leave out instances of")
    users = scopes.consumers(tree, node)
    made = [w for w in scopes.writers(tree, tree.scope(realize), result) if result not in scopes.needed_by(w)]
    sharing.require_only_users(tree, realize, result, [realize, *made, *users], f"leave out instances of block {node.name}")
    if len(users) == 1 and (under := _condition_on_data(users[0].predicate)) is not None:
        return _under(tree, realize, users[0], under)
    found = [_chosen(u.block, result) for u in users]
    if len(found) != 1 or found[0] is None:
        refuse(tree, realize, f"nothing says where the result of block {node.name} is not used", "one block has to choose it, or something else")
    condition, load = found[0]
    places = node.body.indices if type(node.body) is tir.BufferStore else ()
    own = {iv.var for iv in node.iter_vars}
    if set(places) - own or len(set(places)) != len(places) or len(places) != len(load.indices):
        refuse(tree, realize, f"block {node.name} does not write one element for each of its variables")
    condition = _Named(dict(zip(load.indices, places, strict=True))).rewrite(condition)
    unknown = {v for v in free_vars(condition) if not v.size} - own
    if unknown:
        names = ", ".join(sorted(v.name for v in unknown))
        refuse(tree, realize, f"the condition {condition.script()} is not one on the elements of {result.name}", f"it depends on {names}")
    return _restricted(tree, realize, users[0], substitute(condition, bindings(realize)), condition)


def _restricted(tree: Tree, realize: BlockRealize, user: BlockRealize, condition: Expr, inside: Expr) -> Change:
    """The block under one more condition, which is ``inside`` for those in the block. It reads what that is made of, so that it stays behind it."""
    reads = [tir.BufferRegion(n.buffer, tuple(tir.Range.point(i) for i in n.indices)) for n in walk(inside) if type(n) is BufferLoad]
    of = tree.memory(realize)
    unknown, memory = f"the condition {condition.script()} is not known yet where block {realize.block.name} runs", {of(region.buffer) for region in reads}
    loops = tree.loops(realize)
    shared = [x for x in tree.loops(user) if x in loops]
    for p in places_under(tree, tree.scope(realize).body):
        if not p.access.store or of(p.access.buffer) not in memory:
            continue
        if any(x in loops and x not in shared for x in p.loops) or tree.order[p.stmt] >= tree.order[realize]:
            refuse(tree, realize, unknown, f"{p.who} writes it later")
    if not within_buffers(tree.analyzer(realize.block, inside=True), [condition]):
        refuse(tree, realize, unknown, "it may ask for what lies outside of a buffer")
    asking = realize.block.replace(reads=(*realize.block.reads, *reads))
    return Change(tree.edit({realize: realize.replace(block=asking, predicate=tir.logical_and(realize.predicate, condition))}))


def _under(tree: Tree, realize: BlockRealize, user: BlockRealize, condition: Expr) -> Change:
    """The block under its reader's condition."""
    unknown = {v for v in free_vars(condition) if not v.size} - {loop.loop_var for loop in tree.loops(realize)}
    if unknown:
        names = ", ".join(sorted(v.name for v in unknown))
        refuse(tree, realize, f"its reader runs where {condition.script()}, which depends on {names}", "compute it under the same loops first")
    return _restricted(tree, realize, user, condition, condition)


def _condition_on_data(predicate: Expr) -> Expr | None:
    """The parts of a predicate that ask for elements of buffers; None if none does."""
    parts = [p for p in conjuncts(predicate) if any(type(n) is BufferLoad for n in walk(p))]
    return functools.reduce(tir.logical_and, parts) if parts else None


def _chosen(user: Block, result: tir.Buffer) -> tuple[Expr, BufferLoad] | None:
    """The condition for which a block uses an element of a buffer, and its load: the only one."""
    loads = {n for n in walk(user.body) if type(n) is BufferLoad and n.buffer is result}
    choices = {n for n in walk(user.body) if type(n) in (tir.IfThenElse, tir.Select) and {n.true_value, n.false_value} & loads}
    if len(loads) != 1 or len(choices) != 1 or user.init is not None:
        return None
    (load,), (choice,) = loads, choices
    if choice.true_value is choice.false_value:
        return None
    first = choice.true_value is load
    rest = _Named({choice: choice.false_value if first else choice.true_value}).rewrite(user.body)
    return None if any(n is load for n in walk(rest)) else (choice.condition if first else tir.logical_not(choice.condition), load)


class _Named(Rewriter):
    """Whole expressions replaced by others."""

    def __init__(self, table: dict[Expr, Expr]) -> None:
        super().__init__()
        self.table = table

    def rewrite(self, node):  # type: ignore[no-untyped-def]
        return self.table[node] if isinstance(node, Expr) and node in self.table else super().rewrite(node)
