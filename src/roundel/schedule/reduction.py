# SPDX-License-Identifier: Apache-2.0
"""Reductions: an init of their own (decompose_reduction), and partial results in parallel (rfactor)."""

from __future__ import annotations

from roundel.ir import Var, free_vars, substitute, tir
from roundel.ir.tir import Block, BlockRealize, Expr, For, ForKind, IterKind, Stmt

from .accesses import accesses_of
from .dependence import places_under
from .handed_on import covered
from .inits import may_be_idle, require_init_first, require_no_idle, require_own_results, require_separate_results
from .ordering import require_steady_bounds
from .primitive import BlockToken, Change, Loop, primitive, refuse
from .rebind import serial, wrap
from .regions import bindings, with_access
from .scopes import asked_of
from .tree import Tree, conjuncts, unique_block_name


@primitive
def decompose_reduction(tree: Tree, block: BlockToken, loop: Loop) -> Change:
    """Put the init of a reduction into a block of its own in front of ``loop``; the rest becomes ``<name>_update``.

    for i, k:                              for i:
        with block("C"):                       with block("C_init"): C[vi] = 0
            with init(): C[vi] = 0     ->      for k:
            C[vi] += A[vi, vk]                     with block("C_update"): C[vi] += A[vi, vk]

    In an iteration of ``loop`` every result has its own init, which runs before all else that touches it, alike whether or not it runs
    earlier: nothing else there stores what the init, its condition or its loops' ends are made of.
    """
    node: Block = tree.nodes[block]
    realize = tree.realize(block)
    at: For = tree.nodes[loop]
    if node.init is None:
        refuse(tree, realize, f"block {node.name} has no init to take out")
    if not tree.under(realize, at) or tree.scope(at) is not tree.scope(realize):
        refuse(tree, realize, f"loop {at.loop_var.name} is not around block {node.name} in its scope")
    values = bindings(realize)
    loops = tree.loops(realize)
    inner = loops[loops.index(at) :]
    reducing = {v for iv in node.iter_vars if iv.kind is IterKind.REDUCE for v in free_vars(values[iv.var])}
    reducing &= {x.loop_var for x in loops}
    for x in loops[: loops.index(at)]:
        if x.loop_var in reducing:
            refuse(
                tree,
                realize,
                f"cannot put the init of block {node.name} inside of loop {x.loop_var.name}",
                "that loop reduces, so the init would run again in each of its iterations",
            )
    if tree.conditions(realize, at):
        refuse(tree, realize, f"cannot put the init of block {node.name} in front of loop {at.loop_var.name}", "a condition in the loop says whether it runs")
    require_no_idle(tree, realize, inner, "take out an init")
    require_init_first(tree, realize, f"take out the init of block {node.name}")
    require_own_results(tree, realize, f"take out the init of block {node.name}")
    require_steady_bounds(tree, inner, f"take out the init of block {node.name}")
    require_separate_results(tree, realize, inner, f"take out the init of block {node.name}")
    _require_alone(tree, realize, at)
    start = _init_nest(tree, realize, inner, reducing)
    update = node.replace(init=None, name=unique_block_name(tree, node.name + "_update"))
    update = with_access(tree, update)
    first = tree.edit({realize: realize.replace(block=update)})
    outer = first.nodes[loop]
    changed = first.edit({outer: tir.seq(start, outer)})
    made = next(b.token for b in changed.blocks() if b.token not in tree.nodes)
    return Change(changed, made)


def _require_alone(tree: Tree, realize: BlockRealize, at: For) -> None:
    """Whatever else in the loop touches the result reads what the reduction has finished in the same iteration; nothing there changes what the init
    needs."""
    block, cannot = realize.block, f"cannot put the init of block {realize.block.name} in front of loop {at.loop_var.name}"
    here, of = places_under(tree, at.body), tree.memory(at)
    made_of = {of(a.buffer) for a in accesses_of(block.replace(body=tir.Seq(()))) if not a.store} | {of(b) for b in asked_of(realize)}
    for p in here:
        if p.stmt is not realize and p.access.store and of(p.access.buffer) in made_of:
            refuse(tree, realize, cannot, f"{p.who} stores {p.access.buffer.name} in that loop, which decides the init")
        if type(p.stmt) is not BlockRealize and any(of(p.access.buffer) is of(w.buffer) for w in block.writes):
            refuse(tree, realize, cannot, f"{p.who} also touches {p.access.buffer.name} in that loop")
    for w in block.writes:
        touching = {p.stmt for p in here if of(p.access.buffer) is of(w.buffer)}
        users = [r for r in tree.realizes(at) if r is not realize and r in touching]
        renamed = any(of(p.access.buffer) is of(w.buffer) and p.access.buffer is not w.buffer for p in here)
        if renamed or any(x.buffer is w.buffer for r in users for x in r.block.writes) or (users and not covered(tree, [at], w.buffer, [realize, *users])):
            why = f"{'block ' + users[0].block.name if users else 'it'} also touches {w.buffer.name}{' under another name' if renamed else ''} in that loop"
            refuse(tree, realize, cannot, why)


def _require_loops_of_its_own(tree: Tree, realize: BlockRealize, inner: list[For], used: frozenset[Var]) -> None:
    """The loops that an init needs (``used``) run as they did without the others, each of which has an iteration."""
    others = [x for x in inner if x.loop_var not in used]
    cannot = f"cannot take out the init of block {realize.block.name}"
    for x in inner:
        told = [y.loop_var.name for y in others if y.loop_var in free_vars(x.min) | free_vars(x.extent)]
        if x not in others and told:
            refuse(tree, realize, cannot, f"loop {told[0]}, which the init is not in, says how far its loop {x.loop_var.name} runs")
        if x in others and may_be_idle(tree, x):
            refuse(tree, realize, cannot, f"loop {x.loop_var.name} may have no iteration, and then the init does not run")


def _init_nest(tree: Tree, realize: BlockRealize, inner: list[For], reducing: set[Var]) -> Stmt:
    node = realize.block
    spatial = [iv for iv in node.iter_vars if iv.kind is not IterKind.REDUCE]
    fresh = {iv.var: Var(iv.var.name, iv.var.dtype) for iv in spatial}
    values = bindings(realize)
    used = frozenset().union(*(free_vars(values[iv.var]) for iv in spatial)) if spatial else frozenset()
    used |= free_vars(realize.predicate) - reducing
    _require_loops_of_its_own(tree, realize, inner, used)
    table: dict[Var, Expr] = {}
    nest: list[For] = []
    for x in inner:
        if x.loop_var in used:
            new = serial(x.loop_var.name + "_init", substitute(x.extent, table), x.loop_var).replace(min=substitute(x.min, table))
            kind = x.kind if x.kind in (ForKind.VECTORIZED, ForKind.UNROLLED) else ForKind.SERIAL
            nest.append(new.replace(kind=kind, thread=None))
            table[x.loop_var] = new.loop_var
    predicate = tir.logical_and(*(substitute(c, table) for c in conjuncts(realize.predicate) if not free_vars(c) & (reducing - table.keys())))
    ivs = tuple(iv.replace(var=fresh[iv.var]) for iv in spatial)
    assert node.init is not None
    block = tir.Block(
        ivs,
        (),
        (),
        unique_block_name(tree, node.name + "_init"),
        substitute(node.init, fresh),
        annotations=node.annotations,
    )
    block = with_access(tree, block)
    return wrap(nest, BlockRealize(tuple(substitute(values[iv.var], table) for iv in spatial), predicate, block))


