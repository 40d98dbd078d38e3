# SPDX-License-Identifier: Apache-2.0
"""What every iteration of a loop reads, and none changes, is computed in the first one alone (run_once)."""

from __future__ import annotations

from roundel.ir import free_vars, tir
from roundel.ir.tir import Block, BlockRealize, For, ForKind

from . import legality
from .primitive import BlockToken, Change, Loop, primitive, refuse
from .tree import Tree


@primitive
def run_once(tree: Tree, block: BlockToken, loop: Loop) -> Change:
    """Run a block in the first iteration of a loop that changes nothing about it; the other iterations read what that one wrote.

    for i, k:                                for i, k:
        B[k] = float32(A[k])                     T.where(i == 0)
        C[i] += X[i, k] * B[k]       ->          B[k] = float32(A[k])
                                                 C[i] += X[i, k] * B[k]

    So the block's work runs beside that of the others, and memory keeps its result; beyond the loop nothing may write that. From then
    on the loop's iterations keep their order.
    """
    realize: BlockRealize = tree.realize(block)
    node: Block = tree.nodes[block]
    at: For = tree.nodes[loop]
    if not tree.under(realize, at) or tree.scope(at) is not tree.scope(realize):
        refuse(tree, realize, f"loop {at.loop_var.name} is not around block {node.name} in its scope")
    if at.kind is not ForKind.SERIAL:
        refuse(tree, at, f"iterations of loop {at.loop_var.name} do not run one after another")
    if not legality.is_complete(node):
        refuse(tree, realize, f"block {node.name} is not complete", "it has other than spatial variables, an init, or reads what it writes")
    legality.require_inner_buffers(tree, node, "run once")
    if any(at.loop_var in free_vars(e) for e in (*realize.iter_values, realize.predicate)):
        refuse(tree, realize, f"block {node.name} differs between iterations of loop {at.loop_var.name}")
    changed = {b for r in tree.realizes(at) for b in legality.writes_of(r.block)} & legality.reads_of(node)
    if changed:
        refuse(tree, realize, f"what block {node.name} reads is written under loop {at.loop_var.name}", ", ".join(b.name for b in changed))
    predicate = tir.logical_and(realize.predicate, tir.eq(at.loop_var, at.min))
    return Change(tree.edit({realize: realize.replace(predicate=predicate)}))
