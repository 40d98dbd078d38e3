# SPDX-License-Identifier: Apache-2.0
"""Whether instances of a block, and iterations of loops, may run in another order or at the same time; ``dependence`` finds what speaks against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

from roundel.ir import Buffer, Token, Var, free_vars
from roundel.ir.tir import Block, BlockRealize, For, ForKind, IterKind

from .accesses import memory_of, told_by
from .dependence import Place, conflicts, instance_conflicts, known, places_under, stays_before
from .handed_on import reduces_over
from .inits import require_no_idle, require_start
from .primitive import refuse
from .scopes import FREE_ORDER, _used, bare_statements, is_complete, is_reduction, mixed_loops, reads_of, writes_of
from .sharing import require_single_names
from .tree import Tree

TOGETHER = (ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.THREAD_BINDING)  # loops whose iterations run at the same time


def require_pure(tree: Tree, block: Block, doing: str) -> None:
    """The block computes its outputs from its inputs alone: complete, or a reduction with its init."""
    if not is_complete(block) and not is_reduction(block):
        why = "it reads back what it writes" if reads_of(block) & writes_of(block) else "it has opaque or ordered iteration variables"
        refuse(
            tree,
            tree.realize(block.token),
            f"cannot {doing} block {block.name}",
            why + ", and is no reduction with an init",
        )
    require_true_axes(tree, block, doing)


def require_true_axes(tree: Tree, block: Block, doing: str) -> None:
    """The instances of a block may run in any order: they touch different elements, or only update what they reduce into."""
    require_single_names(tree, tree.realize(block.token), doing)
    kinds = {iv.var: iv.kind for iv in block.iter_vars}
    for a, b, differing, any_order in instance_conflicts(block):
        if not any_order or any(kinds[v] is not IterKind.REDUCE for v in differing):
            did = "reads" if not (a.store and b.store) else "also stores"
            names = ", ".join(v.name for v in differing)
            why = f"an instance stores elements of {a.buffer.name} that another one, with another {names}, {did}: their order matters"
            refuse(tree, tree.realize(block.token), f"cannot {doing} block {block.name}", why)


def require_steady_bounds(tree: Tree, loops: Sequence[For], doing: str) -> None:
    """No memory that is stored in nested loops says how far they run: they may ask for it again, or ask once only."""
    bounds = [e for x in loops for e in (x.min, x.extent)]
    if all(e.is_index for e in bounds):
        return
    of = tree.memory(loops[0])
    told = told_by((), *bounds, of=of)
    changed = [p for p in places_under(tree, loops[0].body) if p.access.store and of(p.access.buffer) in told]
    if changed:
        refuse(tree, loops[0], f"cannot {doing}", f"{changed[0].access.buffer.name} says how far a loop runs, and {changed[0].who} stores it there")


def check_order(tree: Tree, chain: list[For], order: list[For]) -> None:
    """Refuses to put directly nested loops into another order unless iterations that depend on each other stay in theirs."""
    _check_blocks_reordered(tree, chain, "reorder")
    require_steady_bounds(tree, chain, "reorder these loops")
    for c in conflicts(tree, chain):
        if not c.any_order and [x for x in order if x in c.loops] != list(c.loops):
            refuse(tree, chain[0], "cannot reorder these loops", f"{c.why}, and their order would change")


def check_merged(tree: Tree, loop: For, parts: Sequence[set[Token]]) -> None:
    """Refuses a loop that was made of several, whose blocks are ``parts``, where an iteration would use what a later one makes, or overwrite it.

    What was done by any iteration of an earlier loop came before all iterations of the later ones.
    """
    _check_blocks_reordered(tree, [loop], "merge")
    places = places_under(tree, loop.body)
    of = {t: k for k, part in enumerate(parts) for t in part}
    part = {p.stmt: of[tree.realizes(p.stmt)[0].block.token] for p in places}  # (a condition's is that of the blocks under it)
    _require_stays_before(tree, loop, places, lambda a, b: part[a.stmt] < part[b.stmt], "merge these loops")


def require_moved_in_order(tree: Tree, moved: BlockRealize, chain: Sequence[For], doing: str) -> None:
    """Refuses a program with a block in nested loops (``chain``) that stood behind them, where an iteration of it would use what a later one makes,
    or overwrite what that one uses: what they did came before all of it."""
    for x in chain:
        _require_stays_before(tree, x, places_under(tree, x.body), lambda a, b: a.stmt is not moved and b.stmt is moved, doing)


def _require_stays_before(tree: Tree, loop: For, places: list[Place], apart: Callable[[Place, Place], bool], doing: str) -> None:
    """No iteration of a loop has the second of two places (``apart``) touch what the first one touches in a later one."""
    together: dict[Var, list[Place]] = {}  # those of one memory
    of = tree.memory(loop)
    for p in places if tree.analyzer(loop).bounds(loop.extent)[1] > 1 else ():
        together.setdefault(of(p.access.buffer), []).append(p)
    stored = {of(p.access.buffer) for p in places if p.access.store}
    for memory, found in together.items():
        mine = [known(p, stored, of) for p in found] if memory in stored else []
        for a, b in permutations(mine, 2):
            if apart(a, b) and not stays_before(tree, loop, a, b, places):
                what = f"{a.who} and {b.who} touch elements of {a.access.buffer.name} in iterations whose order would change"
                refuse(tree, loop, f"cannot {doing}", what)


def _check_blocks_reordered(tree: Tree, chain: list[For], doing: str) -> None:
    inside = tree.realizes(chain[-1].body)
    for r in inside:
        for iv in r.block.iter_vars:
            if iv.kind not in FREE_ORDER:
                refuse(
                    tree,
                    chain[0],
                    f"cannot {doing} loops around block {r.block.name}",
                    f"its variable {iv.var.name} is {iv.kind.value}",
                )
        if r.block.init is not None and len([x for x in chain if reduces_over(r, [x])]) > 1:
            require_start(tree, r, f"{doing} loops around block {r.block.name}")
        if r.block.init is not None and mixed_loops(r) & {x.loop_var for x in chain}:
            refuse(
                tree,
                chain[0],
                f"cannot {doing} loops around block {r.block.name}",
                "a loop is part of a spatial and of a reduce variable, so the init might not come first",
            )
        require_no_idle(tree, r, chain, doing)
        require_all_run(tree, r, chain, doing)
        if not r.block.iter_vars and any(x.loop_var in _used(r.block) for x in chain):
            refuse(
                tree,
                chain[0],
                f"cannot {doing} loops around block {r.block.name}",
                "it is opaque: it uses the loop variables without bindings",
            )
    for s in bare_statements(chain[-1].body):
        refuse(tree, chain[0], f"cannot {doing} loops around statements outside of blocks", f"{s!r}"[:200])


def require_all_run(tree: Tree, realize: BlockRealize, loops: Sequence[For], doing: str) -> None:
    """A block that runs in some iterations only of a loop that none of its variables uses (``run_once``) makes something for the others."""
    asked = free_vars(realize.predicate).difference(*map(free_vars, realize.iter_values))
    for x in loops:
        if x.loop_var in asked:
            refuse(tree, realize, f"cannot {doing} here", f"block {realize.block.name} runs in some iterations of {x.loop_var.name} for all of them")


def check_parallel(tree: Tree, loop: For, doing: str, reduce_too: bool = False, own: Sequence[str] | None = None) -> None:
    """Refuses unless the loop's iterations may run at the same time: it binds to spatial variables only (to ``reduce_too`` as asked), and no
    iteration touches what another one stores. Of memory made here, each iteration has its own (``own``: only in these scopes)."""
    for r in tree.realizes(loop.body):
        require_all_run(tree, r, [loop], doing)
        users = [iv for iv, v in zip(r.block.iter_vars, r.iter_values) if loop.loop_var in free_vars(v)]
        wrong = [iv for iv in users if iv.kind is not IterKind.SPATIAL and not (reduce_too and iv.kind is IterKind.REDUCE)]
        if wrong:
            refuse(
                tree,
                loop,
                f"cannot {doing} loop {loop.loop_var.name}",
                f"in block {r.block.name} it binds to {wrong[0].var.name}, which is {wrong[0].kind.value} and not spatial",
                hint="rfactor makes a reduction loop spatial" if wrong[0].kind is IterKind.REDUCE else "",
            )
        if not r.block.iter_vars and loop.loop_var in _used(r.block):
            refuse(
                tree,
                loop,
                f"cannot {doing} loop {loop.loop_var.name}",
                f"block {r.block.name} uses it without a binding, so it may do anything",
            )
    for c in conflicts(tree, [loop], own):
        if not (reduce_too and c.any_order and reduces_over(c.first.stmt, [loop])):  # type: ignore[arg-type]
            refuse(tree, loop, f"cannot {doing} loop {loop.loop_var.name}", c.why)


def require_no_races(tree: Tree, buffer: Buffer, doing: str) -> None:
    """Iterations that run at the same time, around blocks that touch a buffer, do not get into each other's way in it (in blocks of blocks too)."""
    together = [x for x in tree.nodes.values() if type(x) is For and x.kind in TOGETHER]
    for loop in together:
        if not any(buffer.data in memory_of(r.block) for r in tree.realizes(loop)):
            continue
        for c in conflicts(tree, [loop], loop.own_scopes):
            if c.first.access.buffer is buffer and not (c.any_order and reduces_over(c.first.stmt, [loop])):  # type: ignore[arg-type]
                refuse(tree, loop, f"cannot {doing}: iterations of {loop.loop_var.name}, which run at the same time, share {buffer.name}", c.why)
