# SPDX-License-Identifier: Apache-2.0
"""What every iteration of a loop reads, and none changes, is computed in the first one alone (run_once)."""

from __future__ import annotations

from roundel.arith import reads_memory
from roundel.ir import free_vars, tir
from roundel.ir.tir import Block, BlockRealize, For, ForKind

from . import ordering, scopes, sharing
from .accesses import variables_of
from .dependence import conflict, places_under
from .primitive import BlockToken, Change, Loop, primitive, refuse
from .regions import inner_loops
from .tree import Tree


@primitive
def run_once(tree: Tree, block: BlockToken, loop: Loop) -> Change:
    """Run a block in the first iteration of a loop that changes nothing about it; the other iterations read what that one wrote.

    for i, k:                                for i, k:
        B[k] = float32(A[k])                     T.where(i == 0)
        C[i] += X[i, k] * B[k]       ->          B[k] = float32(A[k])
                                                 C[i] += X[i, k] * B[k]

    So the block's work runs beside that of the others, and memory keeps its result; beyond the loop nothing may write that. From then
    on the loop's iterations keep their order. The block does the same in all of them: under no condition in the loop, in loops as long in each, from
    what no iteration stores; it stores no element twice, with different values; and into one memory, which is not each iteration's own in a loop inside
    that runs them together.
    """
    realize: BlockRealize = tree.realize(block)
    node: Block = tree.nodes[block]
    at: For = tree.nodes[loop]
    if not tree.under(realize, at) or tree.scope(at) is not tree.scope(realize):
        refuse(tree, realize, f"loop {at.loop_var.name} is not around block {node.name} in its scope")
    if at.kind is not ForKind.SERIAL:
        refuse(tree, at, f"iterations of loop {at.loop_var.name} do not run one after another")
    if not scopes.is_complete(node):
        refuse(tree, realize, f"block {node.name} is not complete", "it has other than spatial variables, an init, or reads what it writes")
    sharing.require_inner_buffers(tree, node, "run once")
    if any(at.loop_var in free_vars(e) for e in (*realize.iter_values, realize.predicate)):
        refuse(tree, realize, f"block {node.name} differs between iterations of loop {at.loop_var.name}")
    inner = inner_loops(tree, realize, at)
    if tree.conditions(realize, at) or any(free_vars(e) & {at.loop_var} or reads_memory(e) for x in inner for e in (x.min, x.extent)):
        refuse(tree, realize, f"how much of block {node.name} runs differs between iterations of loop {at.loop_var.name}")
    here = places_under(tree, at.body)
    needed = {p.access.buffer for p in here if p.stmt is realize and not p.access.store}
    changed = sorted({p.access.buffer.name for p in here if p.access.store and p.access.buffer in needed})
    if changed:
        refuse(tree, realize, f"what block {node.name} reads is written under loop {at.loop_var.name}", ", ".join(changed))
    for p in here if inner else ():
        twice = conflict(tree, inner, p, p) if p.stmt is realize and p.access.store else None
        if twice is not None and any(x.loop_var in variables_of(realize) for x in twice.loops):
            refuse(tree, realize, f"what block {node.name} makes does not last for an iteration of loop {at.loop_var.name}", twice.why)
    together = [x for x in inner if x.kind in ordering.TOGETHER and len(tree.realizes(x)) > 1]
    if together:
        why = f"iterations of loop {together[0].loop_var.name} run together, so that each has its own memory for what blocks in it make for each other"
        refuse(tree, realize, f"block {node.name} does not keep what it makes for the next iteration of loop {at.loop_var.name}", why)
    predicate = tir.logical_and(realize.predicate, tir.eq(at.loop_var, at.min))
    return Change(tree.edit({realize: realize.replace(predicate=predicate)}))
