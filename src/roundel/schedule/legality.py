# SPDX-License-Identifier: Apache-2.0
"""What makes transformations legal: kinds of blocks, dependences between blocks, iterations that may change order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import permutations

from roundel.arith import disjoint, reads_memory
from roundel.ir import Buffer, Token, Var, free_vars, substitute, tir, walk
from roundel.ir.tir import Block, BlockRealize, Expr, For, ForKind, IterKind, Stmt

from .accesses import INIT, accesses_of, loads_of, memory_of, told_by, variables_of
from .dependence import Place, conflicts, instance_conflicts, known, name_of, places_under, same_instance, stays_before, touched_besides
from .handed_on import reads_what_it_stores, reduces_over
from .limits import has_iterations
from .primitive import refuse
from .regions import regions_of, regions_read, run_domain, touched
from .tree import Tree, child_stmts, conjuncts, is_one, is_true

FREE_ORDER = (IterKind.SPATIAL, IterKind.REDUCE)
TOGETHER = (ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.THREAD_BINDING)  # loops whose iterations run at the same time


# --- blocks of a scope


def writes_of(block: Block) -> set[Buffer]:
    """Buffers a block writes."""
    return {r.buffer for r in block.writes}


def reads_of(block: Block) -> set[Buffer]:
    """Buffers a block reads."""
    return {r.buffer for r in regions_read(block)}


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


def writers(tree: Tree, scope: Block, buffer: Buffer) -> list[BlockRealize]:
    """Blocks of a scope that write a buffer, in order."""
    return [r for r in tree.children(scope) if buffer in writes_of(r.block)]


def readers(tree: Tree, scope: Block, buffer: Buffer) -> list[BlockRealize]:
    """Blocks of a scope that read a buffer, or of which it decides whether and where they run, in order."""
    return [r for r in tree.children(scope) if buffer in needed_by(r)]


def asked_of(realize: BlockRealize) -> set[Buffer]:
    """Buffers on whose contents it depends whether and where a block runs."""
    return {a.buffer for a in loads_of(*realize.iter_values, realize.predicate)}


def needed_by(realize: BlockRealize) -> set[Buffer]:
    """Buffers that a block reads, or whose contents decide whether and where it runs."""
    return reads_of(realize.block) | asked_of(realize)


def require_own_condition(tree: Tree, realize: BlockRealize, doing: str) -> None:
    """What a block stores does not decide whether and where its instances run."""
    for buffer in asked_of(realize) & writes_of(realize.block):
        refuse(tree, realize, f"cannot {doing}", f"whether or where block {realize.block.name} runs depends on {buffer.name}, which it stores")


def later_readers(tree: Tree, realize: BlockRealize, buffer: Buffer, but: Sequence[BlockRealize] = ()) -> list[BlockRealize]:
    """Blocks of the same scope that read a buffer after a block (in a loop around both, in the same iteration or a later one), ``but`` some."""
    around = tree.loops(realize)
    found = [r for r in tree.children(tree.scope(realize)) if r is not realize and r not in but and buffer in needed_by(r)]
    return [r for r in found if tree.order[r] > tree.order[realize] or any(x in around for x in tree.loops(r))]


def producers(tree: Tree, block: Block) -> list[BlockRealize]:
    """Blocks of the same scope, before this one, that write what it reads (or also writes), or what decides whether and where it runs."""
    scope, me = tree.scope(tree.realize(block.token)), tree.realize(block.token)
    mine = needed_by(me) | writes_of(block)
    return [r for r in tree.children(scope) if r is not me and tree.order[r] < tree.order[me] and writes_of(r.block) & mine]


def consumers(tree: Tree, block: Block) -> list[BlockRealize]:
    """Blocks of the same scope, after this one, that read what it writes, or of which that decides whether and where they run."""
    scope, me = tree.scope(tree.realize(block.token)), tree.realize(block.token)
    return [r for r in tree.children(scope) if r is not me and tree.order[r] > tree.order[me] and needed_by(r) & writes_of(block)]


def require_only_users(tree: Tree, realize: BlockRealize, buffer: Buffer, users: Sequence[BlockRealize], doing: str) -> None:
    """Nothing in the scope but these blocks touches the memory of a buffer: no other block, condition, or statement outside of blocks, and none of
    these to know whether and where it runs."""
    found = touched_besides(tree.scope(realize).body, buffer, users)
    if found is not None:
        refuse(tree, realize, f"cannot {doing}", f"{name_of(found)} also touches {buffer.name}")
    asking = [r.block.name for r in users if buffer in asked_of(r)]
    if asking:
        refuse(tree, realize, f"cannot {doing}", f"whether and where block {asking[0]} runs depends on {buffer.name}")



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
            f"it is an output block: its result {buffer.name} is seen outside of this scope",
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
                f"it is an output block: its result {buffer.name} is seen outside of this scope",
            )
        others = [w.block.name for w in writers(tree, scope, buffer) if w is not realize]
        if others:
            refuse(tree, realize, f"cannot {doing} block {block.name}", f"it is no complete block: block {others[0]} writes {buffer.name} too")


# --- moving a block past others


def require_own_elements(tree: Tree, realize: BlockRealize, doing: str) -> None:
    """A block that reads what it stores reads the very elements that its instance stores, and each instance runs once, so that none sees what
    another one did, or itself before."""
    if realize.block.init is not None or any(iv.kind is not IterKind.SPATIAL for iv in realize.block.iter_vars):
        refuse(tree, realize, f"cannot {doing}", f"block {realize.block.name} reduces into what it would read")
    require_own_condition(tree, realize, doing)
    once = same_instance(tree, realize)
    for x in tree.loops(realize):
        if x.loop_var not in once:
            why = f"block {realize.block.name} runs again in each iteration of {x.loop_var.name} and would read what it stored"
            refuse(tree, realize, f"cannot {doing}", why)
    if type(realize.block.body) is not tir.BufferStore:
        refuse(tree, realize, f"cannot {doing}", f"block {realize.block.name} is more than one store, and would read what it stored")
    found = accesses_of(realize.block)
    for store in found:
        for load in found:
            same = all(x.min is y.min and x.extent is y.extent for x, y in zip(store.region, load.region))
            if store.store and not load.store and load.buffer is store.buffer and not same:
                why = f"block {realize.block.name} would read elements of {store.buffer.name} that other instances of it overwrite"
                refuse(tree, realize, f"cannot {doing}", why)


def passed(tree: Tree, moving: BlockRealize, place: Stmt) -> list[BlockRealize]:
    """Blocks of the scope that a block changes places with when it goes from its loops to ``place`` (a block or a loop): those between
    the two, and those in loops around one of them only."""
    low, high = sorted((tree.order[moving], tree.order[place]))
    here, there = tree.loops(moving), [*tree.loops(place), *([place] if type(place) is For else [])]
    tops = [next((x for x in a if x not in b), None) for a, b in ((here, there), (there, here))]
    spanned = {r for x in tops if x is not None for r in tree.realizes(x)}
    found = tree.children(tree.scope(moving))
    return [r for r in found if r is not moving and r is not place and (low < tree.order[r] < high or r in spanned)]


def require_no_conflict(tree: Tree, moving: BlockRealize, passed: list[BlockRealize], doing: str) -> None:
    """The moving block neither feeds, nor is fed by, nor overwrites (or shares outputs with) the blocks it passes."""
    me = moving.block
    require_only_blocks(tree, moving, writes_of(me), needed_by(moving), f"{doing} block {me.name}")
    for other in passed:
        if other is moving:
            continue
        clash = (writes_of(me) & needed_by(other)) | (needed_by(moving) & writes_of(other.block))
        clash |= {b for b in writes_of(me) & writes_of(other.block) if not _apart(tree, moving, other, b)}
        if clash:
            names = ", ".join(b.name for b in clash)
            refuse(
                tree,
                moving,
                f"cannot {doing} block {me.name}",
                f"it would move past block {other.block.name}, and both touch {names}",
            )


def require_only_blocks(tree: Tree, realize: BlockRealize, stored: set[Buffer], read: set[Buffer], doing: str) -> None:
    """No statement outside of blocks stores what the block touches, or loads what it stores; and no other name of that memory is used in the scope."""
    require_no_alias(tree, realize, stored | read, doing)
    for s in bare_statements(tree.scope(realize).body):
        for a in accesses_of(s):
            if a.buffer in stored or (a.store and a.buffer in read):
                refuse(tree, realize, f"cannot {doing}", f"a statement outside of blocks touches {a.buffer.name}")
    for a in loads_of(*asked_around(tree.scope(realize).body)) if stored else ():
        if a.buffer in stored:
            refuse(tree, realize, f"cannot {doing}", f"a condition outside of blocks reads {a.buffer.name}")


def require_no_alias(tree: Tree, realize: BlockRealize, buffers: Collection[Buffer], doing: str) -> None:
    """No view that a block around made, and no other declaration of the same memory, is touched beside buffers in the scope of a block."""
    of = tree.memory(realize)
    memory, body = {of(b): b for b in buffers}, tree.scope(realize).body
    outside = {a.buffer for s in bare_statements(body) if not _comes_first(tree, s) for a in accesses_of(s)} | {a.buffer for a in loads_of(*asked_around(body))}
    for other in outside | {b for x in tree.children(tree.scope(realize)) for b in writes_of(x.block) | needed_by(x)}:
        mine = memory.get(of(other))
        if mine is not None and mine is not other and other not in buffers:
            refuse(tree, realize, f"cannot {doing}", f"{other.name} is another name of the memory of {mine.name}")
    require_single_names(tree, realize, doing)


def _comes_first(tree: Tree, s: Stmt) -> bool:
    """Whether a statement runs once before all blocks of its scope and what is declared for them, as those that fill a constant do."""
    first = min((tree.order[r] for r in tree.children(tree.scope(s))), default=-1)
    return tree.order[s] < first and not tree.loops(s) and not any(type(a) is tir.DeclBuffer for a in tree.ancestors(s))


def require_single_names(tree: Tree, realize: BlockRealize, doing: str) -> None:
    """A block touches no memory under two names, those of views that blocks around made."""
    of, touched = tree.memory(realize), writes_of(realize.block) | needed_by(realize)
    if len({of(b) for b in touched}) < len(touched):
        refuse(tree, realize, f"cannot {doing}", f"block {realize.block.name} touches one memory under two names")


def asked_around(stmt: Stmt) -> list[Expr]:
    """The conditions, bounds and values of the statements around blocks."""
    out, stack = [], [stmt]
    while stack:
        s = stack.pop()
        if type(s) is not BlockRealize:
            out += [e for name in ("condition", "min", "extent", "value") if isinstance(e := getattr(s, name, None), Expr) and child_stmts(s)]
            stack.extend(child_stmts(s))
    return out


def _apart(tree: Tree, a: BlockRealize, b: BlockRealize, buffer: Buffer) -> bool:
    an = tree.analyzer(tree.scope(a), inside=True)
    boxes = [[touched(tree, r, w, None) for w in regions_of(r.block, buffer, written=True)] for r in (a, b)]
    return all(disjoint(x, y, an) for x in boxes[0] for y in boxes[1])


# --- order of iterations


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


def require_all_run(tree: Tree, realize: BlockRealize, loops: Sequence[For], doing: str) -> None:
    """A block that runs in some iterations only of a loop that none of its variables uses (``run_once``) makes something for the others."""
    asked = free_vars(realize.predicate).difference(*map(free_vars, realize.iter_values))
    for x in loops:
        if x.loop_var in asked:
            refuse(tree, realize, f"cannot {doing} here", f"block {realize.block.name} runs in some iterations of {x.loop_var.name} for all of them")


def mixed_loops(realize: BlockRealize) -> frozenset[Var]:
    """Variables that a block's variables of different kinds share."""
    found: dict[Var, set[IterKind]] = {}
    for iv, value in zip(realize.block.iter_vars, realize.iter_values):
        for v in free_vars(value):
            found.setdefault(v, set()).add(iv.kind)
    return frozenset(v for v, kinds in found.items() if len(kinds) > 1)


def _used(block: Block) -> set:
    return {n for n in walk(block) if type(n) is tir.Var}


def leaves(stmt: Stmt) -> list[Stmt]:
    """The blocks (realizes) and the statements outside of blocks at or under a statement, in order."""
    out, stack = [], [stmt]
    while stack:
        s = stack.pop()
        inside = () if type(s) is BlockRealize else child_stmts(s)
        if not inside:
            out.append(s)
        stack.extend(reversed(inside))
    return out


def bare_statements(stmt: Stmt) -> list[Stmt]:
    """The stores and calls outside of blocks at or under a statement."""
    return [s for s in leaves(stmt) if type(s) in (tir.BufferStore, tir.Evaluate)]


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
