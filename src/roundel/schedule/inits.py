# SPDX-License-Identifier: Apache-2.0
"""Whether each result of a reduction is started once, before it is summed up, and finished before it is used."""

from __future__ import annotations

from collections.abc import Sequence

from roundel.arith import reads_memory
from roundel.ir import Buffer, Var, free_vars, substitute, tir
from roundel.ir.tir import BlockRealize, Expr, For, IterKind

from .accesses import INIT, accesses_of, variables_of
from .dependence import instance_conflicts, same_instance
from .handed_on import reads_what_it_stores
from .limits import has_iterations
from .primitive import refuse
from .regions import run_domain
from .scopes import mixed_loops, writes_of
from .sharing import require_own_condition, require_single_names
from .tree import Tree, conjuncts, is_one, is_true


def require_no_idle(tree: Tree, realize: BlockRealize, loops: Sequence[For], doing: str) -> None:
    """A reduction with an init starts anew in each iteration of a loop that does not show in its variables."""
    if realize.block.init is None:
        return
    used: set = set(realize.iter_values)
    many = [x for x in loops if x.loop_var not in used and not is_one(x.extent)]
    if many and any(type(v) is not Var and not free_vars(v).isdisjoint(x.loop_var for x in many) for v in realize.iter_values):
        used = same_instance(tree, realize)
    for x in many:
        if x.loop_var not in used:
            refuse(
                tree,
                realize,
                f"cannot {doing} here",
                f"block {realize.block.name} is computed again in each iteration of {x.loop_var.name}, init included",
            )


def may_be_idle(tree: Tree, loop: For) -> bool:
    """Whether a loop may have no iteration where no size is 0."""
    return not has_iterations(loop.extent, tree.analyzer(loop))


def _starts(tree: Tree, realize: BlockRealize) -> dict[Var, Expr]:
    return {x.loop_var: x.min for x in tree.loops(realize)}


def require_start(tree: Tree, realize: BlockRealize, doing: str) -> None:
    """The loops of a reduction begin where its domain does, which is where its init runs."""
    starts, an = _starts(tree, realize), tree.analyzer(realize)
    for iv, v in zip(realize.block.iter_vars, realize.iter_values):
        if iv.kind is IterKind.REDUCE and not an.prove_equal(substitute(v, starts), iv.dom.min):
            refuse(tree, realize, f"cannot {doing}", f"{iv.var.name} does not begin where its domain does, so that the init does not run")
    reducing = {v for iv, e in zip(realize.block.iter_vars, realize.iter_values) if iv.kind is IterKind.REDUCE for v in free_vars(e) & starts.keys()}
    for x in tree.loops(realize):
        if x.loop_var not in reducing and (free_vars(x.min) | free_vars(x.extent)) & reducing:
            refuse(tree, realize, f"cannot {doing}", f"a loop that reduces says how far {x.loop_var.name} runs, so that some results may have no init")


def require_init_first(tree: Tree, realize: BlockRealize, doing: str) -> None:
    """The init of a reduction runs once for each of its results: conditions hold at the start of the reduction, which one iteration is.

    (A condition on sizes alone says that there is nothing to reduce over; then the result is the init.)
    """
    require_own_condition(tree, realize, doing)
    asked_by_init = variables_of(realize.block.init) if realize.block.init is not None else ()
    for iv in realize.block.iter_vars:
        if iv.kind is IterKind.REDUCE and iv.var in asked_by_init:
            refuse(tree, realize, f"cannot {doing}", f"its init depends on what it reduces over, {iv.var.name}")
    reducing = [v for iv, v in zip(realize.block.iter_vars, realize.iter_values) if iv.kind is IterKind.REDUCE]
    mine = {v: first for v, first in _starts(tree, realize).items() if any(v in free_vars(e) for e in reducing)}
    asked = tir.logical_and(*(c for c in conjuncts(realize.predicate) if not free_vars(c).isdisjoint(mine)))
    at_start = tree.analyzer(realize).simplify(substitute(asked, mine))
    require_start(tree, realize, doing)
    mixed = mixed_loops(realize) & {x.loop_var for x in tree.loops(realize) if not is_one(x.extent)}
    if mixed and run_domain(tree, realize) is None:
        names = ", ".join(v.name for v in mixed)
        refuse(tree, realize, f"cannot {doing}", f"{names} is part of a variable that reduces and of one that does not, so that some results may have no init")
    if not is_true(at_start) and (reads_memory(at_start) or not all(v.size for v in free_vars(at_start))):
        refuse(tree, realize, f"cannot {doing}", f"the condition {asked.script()} may leave out the start of the reduction, and the init with it")
    if any(type(v) is not Var for v in reducing):
        twice = set(mine) - same_instance(tree, realize)
        if twice:
            names = ', '.join(v.name for v in twice)
            refuse(tree, realize, f"cannot {doing}", f"different iterations of {names} may be one of its instances: its init may run twice")


def require_told_init(tree: Tree, realize: BlockRealize, buffer: Buffer, loops: Sequence[For], doing: str) -> None:
    """What the init of a reduction reads of a buffer is there although a loop has no iteration: then the init runs alone."""
    init = realize.block.init
    idle = [x.loop_var.name for x in loops if may_be_idle(tree, x)] if init is not None and any(a.buffer is buffer for a in accesses_of(init)) else []
    if idle:
        refuse(tree, realize, f"cannot {doing}", f"the init of block {realize.block.name} reads {buffer.name} also where loop {idle[0]} has no iteration")


def require_own_results(tree: Tree, realize: BlockRealize, doing: str) -> None:
    """Each instance of a reduction reads of its results only what it stores itself: the init of others may come first."""
    for b in writes_of(realize.block):
        if not reads_what_it_stores(realize.block, b):
            refuse(tree, realize, f"cannot {doing}", f"block {realize.block.name} reads elements of {b.name} that other instances of it store")


def require_separate_results(tree: Tree, realize: BlockRealize, loops: Sequence[For], doing: str) -> None:
    """Iterations of loops that do not reduce have results of their own: no one's init may start what another one sums up."""
    variables = {x.loop_var for x in loops if not is_one(x.extent)}
    apart = {iv.var for iv, v in zip(realize.block.iter_vars, realize.iter_values) if iv.kind is not IterKind.REDUCE and free_vars(v) & variables}
    require_single_names(tree, realize, doing)
    for a, b, differing, _ in instance_conflicts(realize.block):
        if INIT in (a.update, b.update) and apart.intersection(differing):
            why = f"instances of block {realize.block.name} with another {' or '.join(v.name for v in differing)} store the same elements of {a.buffer.name}"
            refuse(tree, realize, f"cannot {doing}", why)


def require_single_updates(tree: Tree, realize: BlockRealize, doing: str) -> None:
    """A reduction with an init updates once: no loop that does not show in its variables lies inside of one that reduces."""
    if realize.block.init is None:
        return
    reducing = {v for iv, value in zip(realize.block.iter_vars, realize.iter_values) if iv.kind is not IterKind.SPATIAL for v in free_vars(value)}
    loops = tree.loops(realize)
    first = next((k for k, x in enumerate(loops) if x.loop_var in reducing and not is_one(x.extent)), len(loops))
    require_no_idle(tree, realize, loops[first:], doing)
