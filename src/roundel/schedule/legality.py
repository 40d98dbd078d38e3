# SPDX-License-Identifier: Apache-2.0
"""What makes transformations legal: kinds of blocks, dependences between blocks, iterations that may change order."""

from __future__ import annotations

from collections.abc import Sequence

from roundel.arith import Analyzer, disjoint, end, union
from roundel.ir import Buffer, Var, free_vars, substitute, tir, walk
from roundel.ir.tir import Block, BlockRealize, For, IterKind, Stmt

from .primitive import refuse
from .regions import Region, regions_of, touched
from .tree import Tree, child_stmts, is_one

FREE_ORDER = (IterKind.SPATIAL, IterKind.REDUCE)


# --- blocks of a scope


def writes_of(block: Block) -> set[Buffer]:
    """Buffers a block writes."""
    return {r.buffer for r in block.writes}


def reads_of(block: Block) -> set[Buffer]:
    """Buffers a block reads."""
    return {r.buffer for r in block.reads}


def accumulates(block: Block) -> bool:
    """Whether running a block's instance twice could give another result than once."""
    return block.init is not None or bool(reads_of(block) & writes_of(block)) or any(iv.kind is not IterKind.SPATIAL for iv in block.iter_vars)


def is_complete(block: Block) -> bool:
    """Spatial variables only, no init, nothing read back."""
    return block.init is None and all(iv.kind is IterKind.SPATIAL for iv in block.iter_vars) and not reads_of(block) & writes_of(block)


def is_reduction(block: Block) -> bool:
    """An init, spatial and reduce variables only."""
    return block.init is not None and all(iv.kind in FREE_ORDER for iv in block.iter_vars)


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


def writers(tree: Tree, scope: Block, buffer: Buffer) -> list[BlockRealize]:
    """Blocks of a scope that write a buffer, in order."""
    return [r for r in tree.children(scope) if buffer in writes_of(r.block)]


def readers(tree: Tree, scope: Block, buffer: Buffer) -> list[BlockRealize]:
    """Blocks of a scope that read a buffer, in order."""
    return [r for r in tree.children(scope) if buffer in reads_of(r.block)]


def producers(tree: Tree, block: Block) -> list[BlockRealize]:
    """Blocks of the same scope, before this one, that write what it reads (or also writes)."""
    scope, me = tree.scope(tree.realize(block.token)), tree.realize(block.token)
    mine = reads_of(block) | writes_of(block)
    return [r for r in tree.children(scope) if r is not me and tree.order[r] < tree.order[me] and writes_of(r.block) & mine]


def consumers(tree: Tree, block: Block) -> list[BlockRealize]:
    """Blocks of the same scope, after this one, that read what it writes."""
    scope, me = tree.scope(tree.realize(block.token)), tree.realize(block.token)
    return [r for r in tree.children(scope) if r is not me and tree.order[r] > tree.order[me] and reads_of(r.block) & writes_of(block)]



def require_inner_buffer(tree: Tree, block: Block, doing: str) -> Buffer:
    """The one buffer a block writes, which nothing outside of its scope sees."""
    realize = tree.realize(block.token)
    if len(block.writes) != 1:
        refuse(tree, realize, f"cannot {doing} block {block.name}", "it writes several buffers")
    buffer = block.writes[0].buffer
    if buffer not in tree.scope(realize).alloc_buffers:
        refuse(
            tree,
            realize,
            f"cannot {doing} block {block.name}",
            f"its result {buffer.name} is an output, seen outside of this scope",
        )
    return buffer


def require_inner_buffers(tree: Tree, block: Block, doing: str) -> None:
    """All that a block writes is allocated in its scope, and nothing else there writes it."""
    realize = tree.realize(block.token)
    scope = tree.scope(realize)
    for buffer in writes_of(block):
        if buffer not in scope.alloc_buffers:
            refuse(
                tree,
                realize,
                f"cannot {doing} block {block.name}",
                f"its result {buffer.name} is an output, seen outside of this scope",
            )
        others = [w.block.name for w in writers(tree, scope, buffer) if w is not realize]
        if others:
            refuse(tree, realize, f"cannot {doing} block {block.name}", f"block {others[0]} writes {buffer.name} too")


# --- moving a block past others


def require_no_conflict(tree: Tree, moving: BlockRealize, passed: list[BlockRealize], doing: str) -> None:
    """The moving block neither feeds, nor is fed by, nor overwrites (or shares outputs with) the blocks it passes."""
    me = moving.block
    for other in passed:
        if other is moving:
            continue
        clash = (writes_of(me) & reads_of(other.block)) | (reads_of(me) & writes_of(other.block))
        clash |= {b for b in writes_of(me) & writes_of(other.block) if not _apart(tree, moving, other, b)}
        if clash:
            names = ", ".join(b.name for b in clash)
            refuse(
                tree,
                moving,
                f"cannot {doing} block {me.name}",
                f"it would move past block {other.block.name}, and both touch {names}",
            )


def _apart(tree: Tree, a: BlockRealize, b: BlockRealize, buffer: Buffer) -> bool:
    an = tree.analyzer(tree.scope(a), inside=True)
    return all(disjoint(x, y, an) for x in _written(tree, a, buffer, None) for y in _written(tree, b, buffer, None))


def _written(tree: Tree, realize: BlockRealize, buffer: Buffer, top: Stmt | None) -> list[Region]:
    return [touched(tree, realize, r, top) for r in regions_of(realize.block, buffer, written=True)]


# --- order of iterations


def check_iterations_independent_of_order(tree: Tree, chain: list[For], doing: str) -> None:
    """Refuses when iterations of directly nested loops must keep their order.

    Blocks below have spatial and reduce variables only, and what one block hands to another stays in one iteration.
    """
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
    for s in _bare(chain[-1].body):
        refuse(tree, chain[0], f"cannot {doing} loops around statements outside of blocks", f"{s!r}"[:200])
    if len(inside) > 1:
        _check_handed_on(tree, chain, inside, doing)


def require_no_idle(tree: Tree, realize: BlockRealize, loops: Sequence[For], doing: str) -> None:
    """A reduction with an init starts anew in each iteration of a loop that none of its variables uses."""
    if realize.block.init is None:
        return
    used = frozenset().union(*map(free_vars, realize.iter_values))
    for x in loops:
        if not is_one(x.extent) and x.loop_var not in used:
            refuse(
                tree,
                realize,
                f"cannot {doing} here",
                f"block {realize.block.name} is computed again in each iteration of {x.loop_var.name}, init included",
            )


def require_all_run(tree: Tree, realize: BlockRealize, loops: Sequence[For], doing: str) -> None:
    """A block that runs in some iterations only of a loop that none of its variables uses (``run_once``) makes something for the others."""
    asked = free_vars(realize.predicate).difference(*map(free_vars, realize.iter_values))
    for x in loops:
        if x.loop_var in asked:
            refuse(tree, realize, f"cannot {doing} here", f"block {realize.block.name} runs in some iterations of {x.loop_var.name} for all of them")


def mixed_loops(realize: BlockRealize) -> frozenset[Var]:
    """Variables that spatial and reduce variables of a block share."""
    sides: dict[bool, set[Var]] = {True: set(), False: set()}
    for iv, v in zip(realize.block.iter_vars, realize.iter_values):
        sides[iv.kind is IterKind.SPATIAL] |= free_vars(v)
    return frozenset(sides[True] & sides[False])


def _used(block: Block) -> set:
    return {n for n in walk(block) if type(n) is tir.Var}


def _bare(stmt: Stmt) -> list[Stmt]:
    out, stack = [], [stmt]
    while stack:
        s = stack.pop()
        if type(s) in (tir.BufferStore, tir.Evaluate):
            out.append(s)
        elif type(s) is not BlockRealize:
            stack.extend(child_stmts(s))
    return out


def _check_handed_on(tree: Tree, chain: Sequence[For], inside: list[BlockRealize], doing: str) -> None:
    """What blocks under nested loops read from each other was written, and finished, in the same iteration."""
    top = chain[-1]
    an = tree.analyzer(top, inside=True)
    for k, reader in enumerate(inside):
        for region in reader.block.reads:
            before = [w for w in inside[:k] if region.buffer in writes_of(w.block)]
            after = [w for w in inside[k + 1 :] if region.buffer in writes_of(w.block)]
            if region.buffer in writes_of(reader.block) and not before:
                continue
            reducing = next((w for w in before if _reduces_over(w, chain)), None)
            if reducing is not None:
                why = f"block {reader.block.name} reads {region.buffer.name}, which block {reducing.block.name} is still reducing there"
                refuse(tree, top, f"cannot {doing} loop {top.loop_var.name}", why)
            if (before or after) and not _covered(tree, an, before, reader, region, top):
                other = (before or after)[0].block.name
                refuse(
                    tree,
                    top,
                    f"cannot {doing} loop {top.loop_var.name}",
                    f"block {reader.block.name} reads {region.buffer.name}, which block {other} writes in another iteration",
                )


def check_writes_apart(tree: Tree, loop: For, doing: str) -> None:
    """Refuses when two blocks under a loop write one buffer, and some iteration could touch what another one wrote."""
    inside = tree.realizes(loop.body)
    later = Var(loop.loop_var.name, loop.loop_var.dtype)
    with tree.analyzer(loop, inside=True).scope() as an:
        an.bind(later, tir.Range(loop.loop_var + 1, loop.min + loop.extent - loop.loop_var - 1))
        for k, first in enumerate(inside):
            for second in inside[k + 1 :]:
                for buffer in writes_of(first.block) & writes_of(second.block):
                    boxes = [[touched(tree, r, w, loop, an) for w in regions_of(r.block, buffer, written=True)] for r in (first, second)]
                    if not all(disjoint([substitute(x, {loop.loop_var: later}) for x in a], b, an) for a in boxes[0] for b in boxes[1]):
                        why = f"a later iteration of block {first.block.name} may overwrite what block {second.block.name} wrote to {buffer.name}"
                        refuse(tree, loop, f"cannot {doing} these loops", why)


def _reduces_over(realize: BlockRealize, chain: Sequence[For]) -> bool:
    """Whether some of the loops are part of a variable that reduces."""
    loops = {x.loop_var for x in chain}
    return any(iv.kind is not IterKind.SPATIAL and free_vars(v) & loops for iv, v in zip(realize.block.iter_vars, realize.iter_values))


def _covered(tree: Tree, an: Analyzer, before: list[BlockRealize], reader: BlockRealize, region: tir.BufferRegion, top: For) -> bool:
    wanted = touched(tree, reader, region, top, an)
    pieces = [p for w in before for p in _written(tree, w, region.buffer, top)]
    if any(_holds(an, p, wanted, region.buffer) for p in pieces):
        return True
    joined: Region | None = pieces[0] if pieces else None
    for p in pieces[1:]:
        joined = _join(an, joined, p) if joined is not None else None
    return joined is not None and _holds(an, joined, wanted, region.buffer)


def _holds(an: Analyzer, outer: Region, inner: Region, buffer: Buffer) -> bool:
    """Whether ``outer`` provably holds what of ``inner`` lies in the buffer."""
    return all(
        (an.prove(x.min <= y.min) or an.prove(x.min <= 0)) and (an.prove(end(y) <= end(x)) or an.prove(n <= end(x)))
        for x, y, n in zip(outer, inner, buffer.shape)
    )


def _join(an: Analyzer, a: Region, b: Region) -> Region | None:
    """The union of two boxes where it is a box that could be shown: neighbours along one dimension."""
    differing = [k for k, (x, y) in enumerate(zip(a, b)) if not (an.prove_equal(x.min, y.min) and an.prove_equal(x.extent, y.extent))]
    if not differing:
        return a
    k = differing[0]
    return None if len(differing) > 1 or not an.prove(b[k].min <= end(a[k])) else union(a, b, an)


def _private(tree: Tree, realize: BlockRealize, loop: For) -> bool:
    """A whole reduction into a buffer that only blocks under the loop touch: each iteration has its own."""
    scope = tree.scope(realize)
    mine = writes_of(realize.block)
    if not is_reduction(realize.block) or not mine <= set(scope.alloc_buffers):
        return False
    return all(tree.under(r, loop) for b in mine for r in (*writers(tree, scope, b), *readers(tree, scope, b)))


def check_parallel(tree: Tree, loop: For, doing: str, reduce_too: bool = False) -> None:
    """Refuses unless the loop's iterations touch different elements: it binds to spatial variables only, and blocks
    that accumulate see each of their instances once."""
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
                hint="rfactor makes a reduction loop spatial",
            )
        if not users and accumulates(r.block) and r.block.iter_vars and not _private(tree, r, loop):
            refuse(
                tree,
                loop,
                f"cannot {doing} loop {loop.loop_var.name}",
                f"its iterations would all accumulate into the same elements in block {r.block.name}",
            )
        if not r.block.iter_vars and loop.loop_var in _used(r.block):
            refuse(
                tree,
                loop,
                f"cannot {doing} loop {loop.loop_var.name}",
                f"block {r.block.name} uses it without a binding, so it may do anything",
            )
    inside = tree.realizes(loop.body)
    if len(inside) > 1:
        _check_handed_on(tree, [loop], inside, doing)
