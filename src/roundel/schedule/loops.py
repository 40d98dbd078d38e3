# SPDX-License-Identifier: Apache-2.0
"""Loop structure: split, fuse, reorder, partition, merge, unit loops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from roundel.arith import Analyzer, reads_memory
from roundel.ir import Token, free_vars, tir, walk
from roundel.ir.tir import Expr, For, ForKind, IterKind, Stmt

from .decisions import holds_always
from .inits import require_no_idle
from .ordering import check_merged, check_order, require_steady_bounds
from .primitive import Change, Factor, Loop, Target, primitive, refuse
from .rebind import rebind, serial, wrap
from .tree import TRUE, Tree, child_stmts, fresh_copy, is_one, unique_block_name


def require_plain(tree: Tree, loop: For, doing: str) -> None:
    """A loop that is bound to threads or annotated is not restructured."""
    if loop.kind is ForKind.THREAD_BINDING or loop.annotations:
        refuse(
            tree,
            loop,
            f"cannot {doing} loop {loop.loop_var.name}",
            f"it is bound to {loop.thread}" if loop.thread else f"it has annotations {loop.annotations}",
        )
    if loop.step is not None and not is_one(loop.step):
        refuse(tree, loop, f"cannot {doing} loop {loop.loop_var.name}", f"its step is {loop.step}")
    require_steady_bounds(tree, [loop], f"{doing} loop {loop.loop_var.name}")


def infer_factors(tree: Tree, loop: For, factors: Sequence[Any]) -> tuple[list[Expr], bool]:
    """Factors with the missing one filled in, and whether their product is exactly the extent."""
    missing = [k for k, f in enumerate(factors) if f is None]
    if len(missing) > 1 or not factors:
        refuse(
            tree,
            loop,
            f"cannot split loop {loop.loop_var.name} by {list(factors)}",
            "one factor at most may be left out (None)",
        )
    an = tree.analyzer(loop)
    known = [tir.cast(tir.as_index(f), loop.loop_var.dtype) for f in factors if f is not None]
    for f in known:
        if an.bounds(f)[1] < 1:
            refuse(tree, loop, f"cannot split loop {loop.loop_var.name} by {list(factors)}", "a factor is not positive")
    product = an.simplify(tir.product_of(known))
    rest = tir.floormod(loop.extent, product)
    exact = an.prove_equal(rest, 0) or holds_always(tree.decisions, tir.eq(rest, 0))
    if not missing:
        if not an.prove(product >= loop.extent) and not holds_always(tree.decisions, product >= loop.extent):
            refuse(
                tree,
                loop,
                f"cannot split loop {loop.loop_var.name} by {list(factors)}",
                f"the product {product!r} of the factors {'is less than' if type(product) is tir.IntImm else 'may be less than'} the extent {loop.extent!r}; "
                "None in place of one of them takes what is left",
            )
        return known, an.prove_equal(product, loop.extent)
    quotient = an.simplify((tir.floordiv if exact else tir.ceildiv)(loop.extent, product))
    return [*known[: missing[0]], quotient, *known[missing[0] :]], exact


@primitive
def split(
    tree: Tree,
    loop: Loop,
    factors: Sequence[Factor],
    preserve_unit_iters: bool = True,
    disable_predication: bool = False,
    mode: str = "tile",
) -> Change:
    """Split a loop into a nest of loops, outermost factor first; one factor may be None.

        for i in range(n):            for i_0, i_1 in T.grid(ceildiv(n, 4), 4):
            S(i)                  ->      if i_0 * 4 + i_1 < n:  # only where 4 does not divide n
                                              S(i_0 * 4 + i_1)

    ``mode="balanced"`` takes one factor f (``[None, f]``) and makes sibling nests of constant height and no condition:
    n = f*a + g*b with g = f - 1 (or both lower, as even as possible), and gives back ``[i_0, i_1, j_0, j_1]``
    (two loops only, when f divides n). For a symbolic n a third nest takes an n too small for that, one by one.

    Iterations keep their order. Where factors do not divide n, nothing is read from memory to know whether and where statements run that
    would be read beyond n; where nests are cut, no reduction with an init is; no loop stores what says how far it runs.
    """
    node: For = tree.nodes[loop]
    require_plain(tree, node, "split")
    if mode == "balanced":
        return _split_balanced(tree, node, factors)
    if mode != "tile":
        refuse(tree, node, f"split has no mode {mode!r}", hint="tile or balanced")
    extents, exact = infer_factors(tree, node, factors)
    if exact and tree.decisions:
        tree = tree.assuming(tir.eq(tir.product_of(extents), node.extent))
    nested = [serial(f"{node.loop_var.name}_{k}", e, node.loop_var) for k, e in enumerate(extents)]
    body = split_body(tree, node, nested, exact or disable_predication, preserve_unit_iters)
    kept = [x for x in nested if preserve_unit_iters or not is_one(x.extent)] or nested[:1]
    changed = tree.edit({node: wrap(kept, body)})
    gone = f"split into {', '.join(x.loop_var.name for x in kept)}"
    return Change(changed, [x.token for x in kept], {loop: gone})


def split_body(tree: Tree, node: For, nested: list[For], exact: bool, keep_units: bool) -> Stmt:
    """The loop's body with its variable composed of those of ``nested``."""
    at: Expr = tir.const(0, node.loop_var.dtype)
    for x in nested:
        at = at * x.extent + (x.loop_var if keep_units or not is_one(x.extent) else tir.const(0, x.loop_var.dtype))
    guard = TRUE if exact else at < node.extent
    asked = [] if exact else [e for e in _asked_before(node) if reads_memory(e)]
    if asked:
        why = f"{asked[0].script()} would be read where the loop has no iteration"
        refuse(tree, node, f"cannot split loop {node.loop_var.name} by factors that do not divide it", why)
    return rebind(tree, node, node.body, {node.loop_var: node.min + at}, nested, guard)


def _asked_before(loop: For) -> list[Expr]:
    """What says in each iteration of a loop, before anything in it asks for a condition, whether and where statements run: all but constants of it."""
    moving, found, stack = {loop.loop_var}, [], [loop.body]
    while stack:
        s = stack.pop()
        if type(s) is tir.BlockRealize:
            asked, inside = (*s.iter_values, s.predicate), ()
        elif type(s) in (tir.If, tir.BufferStore, tir.Evaluate, tir.Assert):
            asked, inside = (), child_stmts(s)
        else:
            asked, inside = [e for name in ("min", "extent", "condition", "value") if isinstance(e := getattr(s, name, None), Expr)], child_stmts(s)
        mine = [e for e in asked if not moving.isdisjoint(free_vars(e))]
        found += mine
        if mine and type(s) in (For, tir.Let):
            moving.add(s.loop_var if type(s) is For else s.var)
        stack += inside
    return found


def balanced_heights(extent: int, factor: int) -> list[tuple[int, int]]:
    """``extent`` as at most two (count, height) pairs with heights <= factor, as even as possible, larger first."""
    tiles = -(-extent // factor)
    if tiles == 0:
        return []
    low, more = divmod(extent, tiles)
    return [(c, h) for c, h in ((more, low + 1), (tiles - more, low)) if c and h]


def _split_balanced(tree: Tree, node: For, factors: Sequence[Any]) -> Change:
    if len(factors) != 2 or factors[0] is not None or not isinstance(_plain(factors[1]), int):
        refuse(tree, node, "a balanced split takes factors [None, height] with a constant height")
    height = _plain(factors[1])
    if height < 1:
        refuse(tree, node, f"cannot split loop {node.loop_var.name} by {list(factors)}", "a factor is not positive")
    an = tree.analyzer(node)
    constant = an.value(node.extent)
    if constant is not None:
        parts = [(tir.const(c, node.loop_var.dtype), tir.const(h, node.loop_var.dtype)) for c, h in balanced_heights(constant, height)]
    else:
        parts = symbolic_heights(tree, node, height)
    return partition_tiles(tree, node, parts)


def symbolic_heights(tree: Tree, node: For, height: int) -> list[tuple[Expr, Expr]]:
    """Counts of tiles of heights h, h - 1 and 1 that make up an extent n that is not known: n = h*a + (h-1)*b + c."""
    an = tree.analyzer(node)
    n = node.extent
    if an.prove_equal(tir.floormod(n, height), 0):
        return [(an.simplify(n // height), tir.const(height, n.dtype))]
    if height <= 2:
        return [
            (an.simplify(n // height), tir.const(height, n.dtype)),
            (an.simplify(n % height), tir.const(1, n.dtype)),
        ]
    tiles = (n + (height - 1)) // height  # tiles of heights h and h-1 reach n when n >= (h-1)*(h-2); fewer rows go one by one
    enough = n >= (height - 1) * (height - 2)
    small = tiles * height - n
    zero = tir.const(0, n.dtype)
    a = tir.select(enough, tiles - small, zero)
    b = tir.select(enough, small, zero)
    rest = tir.select(enough, zero, n)
    return [(a, tir.const(height, n.dtype)), (b, tir.const(height - 1, n.dtype)), (rest, tir.const(1, n.dtype))]


def partition_tiles(tree: Tree, node: For, parts: list[tuple[Expr, Expr]]) -> Change:
    """Sibling nests ``count x height`` that walk the loop's range one after another."""
    if not parts:
        refuse(tree, node, f"cannot cut loop {node.loop_var.name}", "it has no iteration")
    if len(parts) > 1:
        require_no_init(tree, node, "cut")
    name, begin = node.loop_var.name, node.min
    stmts: list[Stmt] = []
    made: list[Token] = []
    for k, (count, height) in enumerate(parts):
        suffix = "" if k == 0 else f"_{k}"
        nested = [serial(f"{name}{suffix}_0", count, node.loop_var), serial(f"{name}{suffix}_1", height, node.loop_var)]
        at = begin + nested[0].loop_var * height + nested[1].loop_var
        body = node.body if k == 0 else copy_blocks(tree, node.body, stmts)
        stmts.append(wrap(nested, rebind(tree, node, body, {node.loop_var: at}, nested)))
        made += [x.token for x in nested]
        begin = tree.analyzer(node).simplify(begin + count * height)
    return Change(tree.edit({node: tir.seq(*stmts)}), made, {node.token: "split into sibling loops"})


def require_no_init(tree: Tree, node: For, doing: str) -> None:
    """A reduction cut into pieces would run its init in each."""
    for r in tree.realizes(node.body):
        reducing = [v for iv, v in zip(r.block.iter_vars, r.iter_values) if iv.kind is IterKind.REDUCE]
        if r.block.init is not None and any(node.loop_var in free_vars(v) for v in reducing):
            refuse(
                tree,
                node,
                f"cannot {doing} loop {node.loop_var.name}",
                f"block {r.block.name} reduces over it",
                hint="decompose_reduction first",
            )


def copy_blocks(tree: Tree, body: Stmt, others: list[Stmt]) -> Stmt:
    """A copy of a loop body whose blocks have names that are not in use in the program or in ``others``."""
    taken = {r.block.name for s in others for r in tree_blocks(s)}

    def rename(block: tir.Block) -> str:
        name, k = unique_block_name(tree, block.name), 1
        while name in taken:
            k += 1
            name = f"{block.name}_{k}"
        taken.add(name)
        return name

    return fresh_copy(body, rename)[0]


def tree_blocks(stmt: Stmt) -> list[tir.BlockRealize]:
    """Every block realize inside a statement, nested ones included."""
    return [n for n in walk(stmt) if type(n) is tir.BlockRealize]


def _plain(value: Any) -> Any:
    return value.value if type(value) is tir.IntImm else value


@primitive
def loop_partition(tree: Tree, loop: Loop, factors: Sequence[Factor], preserve_unit_iters: bool = True) -> Change:
    """Cut a loop's range into consecutive sibling loops with the given extents; one may be None (the rest). What is left over is one more loop.

        for i in range(n):            for i_0 in range(4): S(i_0)
            S(i)                  ->  for i_1 in range(n - 4): S(i_1 + 4)

    Blocks in the later loops are copies with names of their own (``C_1``). Iterations keep their order; no reduction with an init is cut.
    """
    node: For = tree.nodes[loop]
    require_plain(tree, node, "partition")
    an = tree.analyzer(node)
    dtype = node.loop_var.dtype
    known = [tir.cast(tir.as_index(f), dtype) for f in factors if f is not None]
    if len(factors) - len(known) > 1:
        refuse(tree, node, "loop_partition lets one factor at most be None")
    rest = an.simplify(node.extent - tir.sum_of(known))
    if len(known) == len(factors) and not an.prove_equal(rest, 0):
        factors = [*factors, None]
    if not an.prove(rest >= 0):
        refuse(
            tree,
            node,
            f"cannot partition loop {node.loop_var.name} into {list(factors)}",
            f"the extent is {node.extent!r}",
        )
    require_no_init(tree, node, "partition")
    begin: Expr = node.min
    stmts: list[Stmt] = []
    made: list[Token] = []
    for k, f in enumerate(factors):
        extent = rest if f is None else tir.cast(tir.as_index(f), dtype)
        if an.bounds(extent)[1] <= 0:
            refuse(tree, node, f"cannot partition loop {node.loop_var.name} into {list(factors)}", "a part would be empty")
        part = serial(f"{node.loop_var.name}_{k}", extent, node.loop_var)
        body = node.body if k == 0 else copy_blocks(tree, node.body, stmts)
        stmts.append(wrap([part], rebind(tree, node, body, {node.loop_var: begin + part.loop_var}, [part])))
        made.append(part.token)
        begin = an.simplify(begin + extent)
    return Change(tree.edit({node: tir.seq(*stmts)}), made, {loop: "partitioned into sibling loops"})


@primitive
def fuse(tree: Tree, *loops: Loop, preserve_unit_iters: bool = True) -> Change:
    """Fuse directly nested loops, outermost first, into one.

    for i, j in T.grid(n, m):         for f in range(n * m):
        S(i, j)                   ->      S(f // m, f % m)

    Iterations keep their order; none of the loops, nor what they store, says how far another one runs, and no init is in a loop that repeats it.
    """
    nodes: list[For] = [tree.nodes[t] for t in loops]
    if not nodes:
        refuse(tree, tree.root, "fuse takes at least one loop")
    for outer, inner in pairwise(nodes):
        if outer.body is not inner:
            refuse(
                tree,
                nodes[0],
                f"cannot fuse {outer.loop_var.name} with {inner.loop_var.name}",
                "the second has to be the only statement directly inside the first",
                "reorder first",
            )
    for node in nodes:
        require_plain(tree, node, "fuse")
    bound = {n.loop_var for n in nodes}
    for node in nodes:
        if any(v in bound for e in (node.min, node.extent) for v in free_vars(e)):
            refuse(tree, nodes[0], f"cannot fuse {node.loop_var.name}", "its bounds depend on a loop to be fused with it")
    for r in tree.realizes(nodes[-1].body):
        if len([n for n in nodes if not is_one(n.extent)]) > 1:
            require_no_idle(tree, r, nodes, "fuse loops")
    an = tree.analyzer(nodes[0])
    extent = an.simplify(tir.product_of([n.extent for n in nodes]))
    fused = serial("_".join(n.loop_var.name for n in nodes) + "_fused", extent, nodes[0].loop_var)
    table, rest, inner = {}, fused.loop_var, tir.const(1, nodes[0].loop_var.dtype)
    for k, node in reversed(list(enumerate(nodes))):
        at = _digit(an, rest, inner, node.extent, k == 0)
        table[node.loop_var] = node.min + (at if preserve_unit_iters or not is_one(node.extent) else 0)
        inner = an.simplify(inner * node.extent)
    body = rebind(tree, nodes[0], nodes[-1].body, table, [fused])
    return Change(tree.edit({nodes[0]: wrap([fused], body)}), fused.token, {t: f"fused into {fused.loop_var.name}" for t in loops})


def _digit(an: Analyzer, fused: Expr, below: Expr, extent: Expr, outermost: bool) -> Expr:
    """One loop's part of a fused index (0 where loops are empty, so that nothing divides by 0)."""
    if an.value(below) == 0 or an.value(extent) == 0:
        return tir.const(0, fused.dtype)
    return fused // below if outermost else (fused // below) % extent


@primitive
def reorder(tree: Tree, *ordered_loops: Loop) -> Change:
    """Put loops of one chain into the given order; others of the chain stay where they are.

    for i, j, k in T.grid(n, m, l):          for k, j, i in T.grid(l, m, n):
        S(i, j, k)                       ->      S(i, j, k)            # reorder(k, i) keeps j in the middle

    Iterations that touch one element, one of them storing it, keep their order, but for updates that may come in any order (``C[i] += ...``), whose
    init still comes before all of them.
    """
    nodes: list[For] = [tree.nodes[t] for t in ordered_loops]
    if len(set(ordered_loops)) != len(ordered_loops) or not nodes:
        refuse(tree, tree.root, "reorder takes different loops, at least one")
    chain = _chain(tree, nodes)
    order, wanted = [], iter(nodes)
    for x in chain:
        order.append(next(wanted) if x in nodes else x)
    check_order(tree, chain, order)
    inside = {x.loop_var: k for k, x in enumerate(order)}
    for k, x in enumerate(order):
        for v in free_vars(x.min) | free_vars(x.extent):
            if inside.get(v, -1) >= k:
                refuse(tree, chain[0], f"cannot move loop {x.loop_var.name} outside of {v.name}", "its bounds depend on it")
    return Change(tree.edit({chain[0]: wrap(order, chain[-1].body)}))


def _chain(tree: Tree, nodes: list[For]) -> list[For]:
    """The loops from the outermost to the innermost of ``nodes``, each the only statement of the one before."""
    bottom = max(nodes, key=lambda x: tree.order[x])
    top = min(nodes, key=lambda x: tree.order[x])
    chain: list[Any] = [bottom]
    while chain[-1] is not top:
        up = tree.parents[chain[-1]]
        if type(up) is not For:
            refuse(
                tree,
                top,
                "cannot reorder these loops",
                f"{top.loop_var.name} and {bottom.loop_var.name} are not on one chain of directly nested loops",
            )
        chain.append(up)
    for x in nodes:
        if x not in chain:
            refuse(
                tree,
                top,
                "cannot reorder these loops",
                f"{x.loop_var.name} is not between {top.loop_var.name} and {bottom.loop_var.name}",
            )
    return chain[::-1]


@primitive
def merge(tree: Tree, *loops: Loop) -> Change:
    """Merge sibling loops of equal extent, each alone in its nest below their common parent, into one.

    for i in range(n): A(i)           for m in range(n):
    for j in range(n): B(j)       ->      A(m)
                                          B(m)

    Loops that are each alone in another loop have those merged first: ``merge(i1, j1)`` of ``for i0, i1: A`` and ``for j0, j1: B`` makes
    ``for m0, m1``. No iteration of a loop touches what a later one of a loop before it touches, one of them storing it.
    """
    nodes: list[For] = sorted((tree.nodes[t] for t in loops), key=lambda x: tree.order[x])
    if len(set(nodes)) < len(nodes) or len(nodes) < 2:
        refuse(tree, nodes[0] if nodes else tree.root, "cannot merge these loops", "there are two or more, each given once")
    around = [tree.parents[x] for x in nodes]
    if len(set(around)) == len(nodes) > 1 and all(type(x) is For for x in around):
        outer = merge(tree, *(x.token for x in around))  # type: ignore[union-attr, misc]
        inner = merge(outer.tree, *loops)
        return Change(inner.tree, inner.made, {**outer.forward, **inner.forward})
    an = tree.analyzer(nodes[0])
    parent = tree.parents[nodes[0]]
    for x in nodes[1:]:
        if tree.parents[x] is not parent or type(parent) is not tir.Seq or not an.prove_equal(x.extent, nodes[0].extent):
            refuse(tree, parent or nodes[0], "cannot merge these loops", "they have to be neighbours with one extent")
    places = sorted(parent.stmts.index(x) for x in nodes)
    if places != list(range(places[0], places[-1] + 1)):
        refuse(tree, parent, "cannot merge these loops", "another statement lies between them")
    for x in nodes:
        require_plain(tree, x, "merge")
    merged = serial("_".join(x.loop_var.name for x in nodes) + "_m", nodes[0].extent, nodes[0].loop_var)
    bodies = [rebind(tree, x, x.body, {x.loop_var: x.min + merged.loop_var}, [merged]) for x in nodes]
    made = wrap([merged], tir.seq(*bodies))
    changed = tree.edit({nodes[0]: made, **dict.fromkeys(nodes[1:])})
    check_merged(changed, changed.nodes[merged.token], [{r.block.token for r in tree.realizes(x.body)} for x in nodes])
    return Change(changed, merged.token, {t: f"merged into {merged.loop_var.name}" for t in loops})


@primitive
def add_unit_loop(tree: Tree, block_or_loop: Target) -> Change:
    """Put a loop of one iteration around a loop or block.

    S                ->      for u in range(1): S
    """
    node = tree.nodes[block_or_loop]
    stmt = node if type(node) is For else tree.parents[node]
    unit = serial("u", tir.index_const(1), tir.index_const(0))
    return Change(tree.edit({stmt: wrap([unit], stmt)}), unit.token)
