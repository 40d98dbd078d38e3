# SPDX-License-Identifier: Apache-2.0
"""Inlining: a producer into its consumers (compute_inline), a consumer into its producer (reverse_compute_inline)."""

from __future__ import annotations

from typing import Any

from roundel.arith import Analyzer, end, inverse_index_map
from roundel.ir import Buffer, Rewriter, Var, free_vars, on, substitute, tir, walk
from roundel.ir.errors import ArithError
from roundel.ir.tir import Block, BlockRealize, BufferLoad, BufferStore, Expr
from roundel.ir.visit import walk_data

from . import ordering, scopes, sharing
from .accesses import memory_of
from .copyable import require_told_by_loops
from .handed_on import covered
from .primitive import BlockToken, Change, primitive, refuse
from .regions import bindings, regions_of, run_domain, surely_touched, with_access
from .tree import Tree, child_stmts


@primitive
def compute_inline(tree: Tree, block: BlockToken) -> Change:
    """Compute a block's value where it is used, and drop the block.

    for i: B[i] = A[i] + 1
    for i: C[i] = B[i] * 2    ->    for i: C[i] = (A[i] + 1) * 2
    """
    node: Block = tree.nodes[block]
    realize = tree.realize(block)
    buffer = sharing.require_inner_buffer(tree, node, "inline")
    store = _single_store(tree, realize, "inline")
    ordering.require_pure(tree, node, "inline")
    sharing.require_no_alias(tree, realize, scopes.writes_of(node) | scopes.reads_of(node), f"inline block {node.name}")
    variables = _index_variables(tree, realize, store.indices, "inline")
    loose = free_vars(store.value) & {iv.var for iv in node.iter_vars} - set(variables)
    if node.init is not None or loose:
        refuse(
            tree,
            realize,
            f"cannot inline block {node.name}",
            "it is a reduction" if node.init is not None else "its value depends on variables that are not in the index",
        )
    sharing.require_inner_buffers(tree, node, "inline")
    _require_no_loops_used(tree, realize, store.value)
    scope = tree.scope(realize)
    _require_inputs_unchanged(tree, realize, buffer)
    inliner = _Inline(tree, buffer, {v: k for k, v in enumerate(store.indices)}, store.value)
    changed = tree.edit({realize: None})
    inside = changed.nodes[scope.token]
    changed = changed.edit({inside.body: inliner.rewrite(inside.body)})
    _require_untouched(changed, scope, buffer, realize, f"cannot inline block {node.name}", "uses a view or a pointer of")
    for r in changed.children(changed.nodes[scope.token]):
        if r is tree.realize(r.block.token):
            continue
        if scopes.writes_of(r.block) & scopes.reads_of(node):
            sharing.require_own_elements(changed, r, f"inline block {node.name}")
    return Change(_without(changed, scope, buffer), None, {block: "inlined into its consumers"})


def _require_untouched(changed: Tree, scope: Block, buffer: Buffer, realize: BlockRealize, cannot: str, how: str) -> None:
    """Nothing in a scope touches a buffer any more."""
    left = _touching(changed.nodes[scope.token].body, buffer)
    if left:
        who = f"block {left[0].block.name}" if type(left[0]) is BlockRealize else "a statement outside of blocks"
        refuse(changed, realize, cannot, f"{who} {how} {buffer.name}")


def _require_no_loops_used(tree: Tree, realize: BlockRealize, value: Expr) -> None:
    """The value is made of the block's variables alone, not of loops around it."""
    around = {x.loop_var.name for x in tree.loops(realize) if x.loop_var in free_vars(value)}
    if around:
        refuse(tree, realize, f"cannot inline block {realize.block.name}", f"its value uses loop {', '.join(around)} without a variable bound to it")


def _touching(stmt: tir.Stmt, buffer: Buffer) -> list[tir.Stmt]:
    """The statements of a scope that touch a buffer, through a view or its pointer too, in order. Blocks are not entered."""
    out, stack = [], [stmt]
    while stack:
        s = stack.pop()
        if _touches(s, buffer):
            out.append(s)
        if type(s) is not BlockRealize:
            stack.extend(reversed(child_stmts(s)))
    return out


def _touches(s: tir.Stmt, buffer: Buffer) -> bool:
    """Whether a statement does so by itself, the statements in it aside."""
    own: tuple[Any, ...] = (s,)
    if type(s) is BlockRealize:
        if buffer.data in memory_of(s.block):
            return True
        own = (*s.iter_values, s.predicate)
    elif type(s) is tir.For:
        own = (s.min, s.extent)
    elif child_stmts(s):
        own = tuple(getattr(s, name) for name in s._children)
    own = tuple(e for e in own if e is s or (isinstance(e, Expr) and not e.is_index))
    return bool(own) and any(n.buffer is buffer if type(n) in (BufferLoad, BufferStore) else n is buffer.data for e in own for n in walk_data(e))


def _single_store(tree: Tree, realize: BlockRealize, doing: str) -> BufferStore:
    body = realize.block.body
    if type(body) is not BufferStore or realize.block.alloc_buffers or realize.block.match_buffers:
        refuse(tree, realize, f"cannot {doing} block {realize.block.name}", "its body is not one plain store")
    return body


def _index_variables(tree: Tree, realize: BlockRealize, indices: tuple[Expr, ...], doing: str) -> list[Var]:
    """The block variables that are the indices; other indices have to be constants."""
    mine = {iv.var for iv in realize.block.iter_vars}
    variables = [i for i in indices if type(i) is Var and i in mine]
    if len(set(variables)) != len(variables) or any(free_vars(i) & mine for i in indices if i not in variables):
        refuse(
            tree,
            realize,
            f"cannot {doing} block {realize.block.name}",
            "its index is not a list of different block variables and constants",
            hint="transform_layout or reindex first",
        )
    return variables


def _require_inputs_unchanged(tree: Tree, realize: BlockRealize, buffer: Buffer) -> None:
    """What the block reads is the same where its value is used, and each use is after it."""
    inputs = scopes.reads_of(realize.block)
    what = f"cannot inline block {realize.block.name}"
    for s in _touching(tree.scope(realize).body, buffer):
        if s is realize:
            continue
        if tree.order[s] < tree.order[realize]:
            refuse(tree, realize, what, f"{buffer.name} is read before it is computed")
        for r in scopes.passed(tree, realize, s):
            if scopes.writes_of(r.block) & inputs:
                refuse(tree, realize, what, f"block {r.block.name} overwrites its inputs before they would be read")
        around = [x for x in tree.loops(realize) if x in tree.loops(s) and any(scopes.writes_of(r.block) & inputs for r in tree.realizes(x))]
        if around and not (type(s) is BlockRealize and covered(tree, around, buffer, [realize, s])):
            why = f"what is read of {buffer.name} may come from another iteration of {around[-1].loop_var.name}, in which its inputs were others"
            refuse(tree, realize, what, why)
    stored = {n.buffer for s in scopes.bare_statements(tree.scope(realize).body) for n in walk(s) if type(n) is BufferStore}
    if stored & inputs:
        refuse(tree, realize, what, "statements outside of blocks overwrite its inputs")


class _Inline(Rewriter):
    """Loads of a buffer become its defining value at their indices. Expressions are shared, and each is rewritten once."""

    def __init__(self, tree: Tree, buffer: Buffer, where: dict[Expr, int], value: Expr) -> None:
        self.tree, self.target, self.where, self.value = tree, buffer, where, value
        self.known: dict[Expr, Any] = {}

    def rewrite(self, node: Any) -> Any:
        """What a node becomes."""
        if not isinstance(node, Expr):
            return super().rewrite(node)
        if node.is_index:  # which loads nothing
            return node
        if node not in self.known:
            self.known[node] = super().rewrite(node)
        return self.known[node]

    @on(BlockRealize)
    def _realize(self, realize: BlockRealize) -> BlockRealize:
        return self.generic(realize) if _touches(realize, self.target) else realize

    @on(Block)
    def _block(self, block: Block) -> Block:
        new = self.generic(block)
        return new if new is block else with_access(self.tree, new)

    @on(BufferLoad)
    def _load(self, load: BufferLoad) -> Expr:
        load = self.generic(load)
        if load.buffer is not self.target:
            return load
        return substitute(self.value, {v: load.indices[k] for v, k in self.where.items() if type(v) is Var})


def _without(tree: Tree, scope: Block, buffer: Buffer) -> Tree:
    """The program without a buffer's allocation."""
    old: Block = tree.nodes[scope.token]  # type: ignore[index]
    return tree.edit({old: old.replace(alloc_buffers=tuple(b for b in old.alloc_buffers if b is not buffer))})


@primitive
def reverse_compute_inline(tree: Tree, block: BlockToken) -> Change:
    """Do in the producer what a block does with each of its values, and drop the block.

    for i: B[i] = A[i] + 1
    for i: C[i] = B[i] * 2    ->    for i: C[i] = (A[i] + 1) * 2
    """
    realize = tree.realize(block)
    store = _single_store(tree, realize, "inline")
    require_told_by_loops(tree, realize, f"inline block {realize.block.name} into its producer")
    producer, buffer = _epilogue_of(tree, realize)
    source = producer.block
    made = _single_store(tree, producer, "inline into")
    loads = {n for n in walk(store.value) if type(n) is BufferLoad and n.buffer is buffer}
    what = f"cannot inline block {realize.block.name} into its producer"
    if len(loads) != 1:
        refuse(tree, realize, what, f"it reads {buffer.name} at more than one place")
    at = next(iter(loads)).indices
    box = run_domain(tree, realize)
    if box is None:
        refuse(tree, realize, what, "the domain it runs on is no box")
    node = realize.block.replace(iter_vars=tuple(iv.replace(dom=box[iv.var]) for iv in realize.block.iter_vars))
    an = tree.analyzer(producer)
    table = _instance_of(tree, realize, node, at, made.indices, an)
    _require_all_made(tree, producer, node, buffer, at)
    value = _Put(next(iter(loads)), made.value, table).rewrite(store.value)
    body = BufferStore(store.buffer, value, tuple(an.simplify(substitute(i, table)) for i in store.indices))
    new = producer.replace(block=with_access(tree, source.replace(body=body)), predicate=_guard(an, producer, node, table, at, made.indices))
    sharing.require_no_conflict(tree, realize, [r for r in scopes.passed(tree, realize, producer) if r is not producer], "inline")
    changed = tree.edit({realize: None, producer: new})
    _require_untouched(changed, tree.scope(realize), buffer, realize, what, "uses")
    if scopes.writes_of(node) & scopes.needed_by(producer):
        sharing.require_own_elements(changed, new, f"inline block {node.name} into its producer")
    return Change(_without(changed, tree.scope(realize), buffer), None, {block: f"inlined into {source.name}"})


def _instance_of(tree: Tree, realize: BlockRealize, node: Block, at: tuple[Expr, ...], made: tuple[Expr, ...], an: Analyzer) -> dict[Var, Expr]:
    """Which instance of the consumer takes the element at ``made``: a value for each of its variables."""
    what = f"cannot inline block {node.name} into its producer"
    unit = {iv.var: iv.dom.min for iv in node.iter_vars if an.value(iv.dom.extent) == 1}
    variables = [iv.var for iv in node.iter_vars if iv.var not in unit]
    plain = [i for i in at if type(i) is Var and i in variables]
    if all(i in plain or not free_vars(i) & set(variables) for i in at) and len(set(plain)) == len(plain):
        missing = [v for v in variables if v not in plain]
        if missing:
            refuse(tree, realize, what, f"its variable {missing[0].name} does not index {_buffer_at(tree, realize, at)}")
        mine = {iv.var for iv in node.iter_vars}
        return unit | {i: k for i, k in zip(at, made) if type(i) is Var and i in mine}
    doms = {iv.var: iv.dom for iv in node.iter_vars}
    if any(not an.prove_equal(doms[v].min, 0) for v in variables):
        refuse(tree, realize, what, "its index is not affine in variables that start at 0")
    try:
        index_map = tir.IndexMap(tuple(variables), tuple(substitute(i, unit) for i in at))
        inverse, _ = inverse_index_map(index_map, tuple(doms[v].extent for v in variables))
    except ArithError as e:
        refuse(tree, realize, what, f"its index does not tell which instance reads an element: {e}")
    there = dict(zip(inverse.initial_indices, made))
    with an.scope():
        return unit | {v: an.simplify(substitute(e, there)) for v, e in zip(variables, inverse.final_indices)}


def _buffer_at(tree: Tree, realize: BlockRealize, at: tuple[Expr, ...]) -> str:
    return next(n.buffer.name for n in walk(realize.block.body) if type(n) is BufferLoad and n.indices == at)


def _epilogue_of(tree: Tree, realize: BlockRealize) -> tuple[BlockRealize, Buffer]:
    """The finished producer whose values the block takes one by one, and the buffer between them."""
    node = realize.block
    if not scopes.is_complete(node):
        refuse(tree, realize, f"cannot inline block {node.name} into its producer", "it reduces, or reads back what it writes")
    ordering.require_true_axes(tree, node, "inline into its producer")
    producer, buffer = _only_producer(tree, realize)
    if not scopes.is_complete(producer.block):
        refuse(
            tree,
            producer,
            f"cannot inline block {node.name} into block {producer.block.name}",
            "that block is still reducing",
            hint="cache_write the reduction, and inline into the copy",
        )
    return producer, buffer


def _require_all_made(tree: Tree, producer: BlockRealize, node: Block, buffer: Buffer, at: tuple[Expr, ...]) -> None:
    """The producer makes every element that the consumer's domain asks for (a guarded read may ask for more)."""
    an = tree.analyzer(tree.scope(producer), inside=True)
    doms = {iv.var: iv.dom for iv in node.iter_vars}
    made = surely_touched(tree, producer, regions_of(producer.block, buffer, written=True)[0].region, None, an)
    if made is None:
        refuse(tree, producer, f"cannot inline block {node.name} into block {producer.block.name}", f"what it makes of {buffer.name} is not known")
    for iv in node.iter_vars:
        an.bind(iv.var, iv.dom)
    for i, have in zip(at, made):
        if free_vars(i).isdisjoint(doms):
            continue
        if not (an.prove(have.min <= i) and an.prove(i < end(have))):
            refuse(
                tree,
                producer,
                f"cannot inline block {node.name} into block {producer.block.name}",
                f"it also runs where no element of {buffer.name} is made",
            )


def _only_producer(tree: Tree, realize: BlockRealize) -> tuple[BlockRealize, Buffer]:
    scope, block = tree.scope(realize), realize.block
    found = [p for p in scopes.producers(tree, block) if scopes.writes_of(p.block) & scopes.reads_of(block)]
    inner = [(p, b) for p in found for b in scopes.writes_of(p.block) & scopes.reads_of(block) if b in scope.alloc_buffers]
    usable = [(p, b) for p, b in inner if len(scopes.writers(tree, scope, b)) == 1 and len(scopes.readers(tree, scope, b)) == 1]
    if len(usable) == 1:
        return usable[0]
    last = max(usable, key=lambda u: tree.order[u[0]], default=None)
    if last is None:
        refuse(
            tree,
            realize,
            f"cannot inline block {block.name} into its producer",
            "there is no block that is the only writer of an inner buffer which this block alone reads",
        )
    return last


class _Put(Rewriter):
    """The consumer's value with the producer's in place of the load, and variables replaced elsewhere."""

    def __init__(self, load: BufferLoad, value: Expr, table: dict[Var, Expr]) -> None:
        self.load, self.value, self.table = load, value, table

    def rewrite(self, node: Any) -> Any:
        if node is self.load:
            return self.value
        return self.table.get(node, node) if type(node) is Var else super().rewrite(node)


def _guard(
    an: Analyzer,
    producer: BlockRealize,
    node: Block,
    table: dict[Var, Expr],
    at: tuple[Expr, ...],
    made: tuple[Expr, ...],
) -> Expr:
    """Where the consumer computes less than the producer, only that part remains."""
    values = bindings(producer)
    checks = [producer.predicate]
    with an.scope():
        for iv in producer.block.iter_vars:
            an.bind(iv.var, iv.dom)
        for iv in node.iter_vars:
            here = table[iv.var]
            for c in (here >= iv.dom.min, here < iv.dom.min + iv.dom.extent):
                checks += [] if an.prove(c) else [substitute(c, values)]
        for i, k in zip(at, made):
            here = substitute(i, table)
            if not an.prove_equal(here, k):
                checks.append(substitute(tir.eq(here, k), values))
    return an.simplify(tir.logical_and(*checks))
