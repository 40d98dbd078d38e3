# SPDX-License-Identifier: Apache-2.0
"""Layouts of buffers (transform_layout), of iteration domains (transform_block_layout), of accesses (reindex)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

from roundel.arith import Analyzer, inverse_index_map, map_shape, reads_memory, same_region
from roundel.ir import Buffer, Rewriter, Var, decl_buffer, free_vars, on, substitute, tir, walk
from roundel.ir.dtype import INT64
from roundel.ir.errors import ArithError, ConstantError, ScheduleError
from roundel.ir.tir import Block, BlockRealize, BufferLoad, BufferStore, Expr, For, IndexMap, IterKind, Range, Stmt
from roundel.ir.visit import walk_data

from . import inits, ordering, scopes, sharing
from .arguments import applied
from .copyable import require_fixed_domain, require_single_elements, require_spatial, require_told_places
from .kinds import read_buffer, replace_buffers, views_of, written_buffer
from .primitive import BlockToken, BufferName, Change, Fill, Map, primitive, refuse
from .rebind import serial, wrap
from .redirect import Redirect
from .regions import run_domain, with_access, without_told
from .stages import copy_nest, place
from .stored import always_stores
from .tree import Tree, bind_loop, is_true, is_zero, unique_block_name

DECLARING = (tir.DeclBuffer, BufferLoad, BufferStore)


def as_index_map(given: IndexMap | Callable, ndim: int) -> IndexMap:
    """An index map, also from a Python function of ``ndim`` indices; ``lambda *indices, k: ...`` has the last one as ``k``."""
    try:
        found = given if isinstance(given, IndexMap) else _from_function(given, ndim)
    except ArithError as e:
        raise ScheduleError("this is no index map", why=str(e)) from e
    if len(found.initial_indices) != ndim:
        raise ScheduleError(f"an index map of {len(found.initial_indices)} indices where there are {ndim}", why=repr(found))
    return found


def _from_function(given: Callable, ndim: int) -> IndexMap:
    try:
        parameters = inspect.signature(given).parameters.values()
    except ValueError as e:
        raise ArithError(f"{given!r} is no function of indices", why=str(e)) from e
    named = [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    if not named:
        return IndexMap.from_func(given, ndim)
    variables = [Var(f"i{k}", INT64) for k in range(ndim - len(named))] + [Var(n, INT64) for n in named]
    out = applied(given, variables[: -len(named)], "the index map", **dict(zip(named, variables[-len(named) :])))
    return IndexMap(tuple(variables), tuple(map(tir.as_index, out if isinstance(out, list | tuple) else (out,))))


def named_buffer(tree: Tree, block: Block, buffer: Any) -> Buffer:
    """``("read", 0)``, ``("write", 0)``, or a buffer that the block touches or its name."""
    if isinstance(buffer, Buffer):
        if buffer in scopes.writes_of(block) | scopes.reads_of(block):
            return buffer
        refuse(tree, block, f"block {block.name} does not touch buffer {buffer.name}")
    if isinstance(buffer, str):
        found = [b for b in (*scopes.writes_of(block), *scopes.reads_of(block)) if b.name == buffer]
        if found:
            return found[0]
        refuse(tree, block, f"block {block.name} touches no buffer {buffer!r}")
    if len(buffer) != 2 or buffer[0] not in ("read", "write"):
        refuse(tree, block, f"{buffer!r} does not name a buffer", hint='("read", 0), ("write", 0), or its name')
    return (read_buffer if buffer[0] == "read" else written_buffer)(tree, block, buffer[1])


@primitive
def transform_layout(
    tree: Tree, block: BlockToken, buffer: BufferName, index_map: Map, pad_value: Fill = None, assume_injective_transform: bool = False
) -> Change:
    """Store a buffer in another order: every access of it in the function goes through ``index_map``.

        B[i, j]                      ->  B[i // 4, j, i % 4]           # lambda i, j: (i // 4, j, i % 4)

    ``buffer`` is ("read", n), ("write", n), a name or a buffer. A map that makes more elements needs ``pad_value`` (a number that the buffer's type has,
    or a function of the new indices), which fills the padding of buffers made here; a parameter's padding is the caller's. With
    ``assume_injective_transform`` padding may stay unfilled. A parameter's shape changes.
    """
    node: Block = tree.nodes[block]
    old = named_buffer(tree, node, buffer)
    index_map = as_index_map(index_map, old.ndim)
    if index_map.final_indices == index_map.initial_indices and index_map.separators:
        cut = set_axis_separator(tree, block, buffer, index_map.separators)
        return Change(cut.tree, recorded={**cut.recorded, "index_map": index_map})
    an = Analyzer()
    try:
        inverse, padding = inverse_index_map(index_map, old.shape, an)
        shape = map_shape(index_map, old.shape, an)
    except ArithError as e:
        refuse(tree, tree.realize(block), f"cannot lay out {old.name} by this index map", str(e))
    padded = not (type(padding) is tir.IntImm and not padding.value)
    if padded and pad_value is None and not assume_injective_transform:
        refuse(
            tree,
            tree.realize(block),
            f"the layout of {old.name} has padding",
            f"where {padding.script()}",
            hint="give pad_value",
        )
    if any(n is old.data or (type(n) in DECLARING and n.buffer.data is old.data and n.buffer is not old) for n in walk_data(tree.func.body)):
        refuse(tree, tree.realize(block), f"cannot lay out {old.name} differently", "its pointer is used")
    if any(old in (m.buffer, m.source.buffer) for b in tree.blocks() for m in b.match_buffers):
        refuse(tree, tree.realize(block), f"cannot lay out {old.name} differently", "it is a view of another buffer, or has one")
    fill = _padding_value(tree, node, old, pad_value, inverse.initial_indices)
    new = decl_buffer(shape, old.dtype, old.name, scope=old.scope, align=old.align, axis_separators=index_map.separators)
    func = _Relayout(tree, old, new, index_map).rewrite(tree.func)
    changed = tree.with_func(func)
    recorded = {"index_map": index_map, "buffer": (*_numbered(node, old),)}
    if callable(pad_value) and not isinstance(pad_value, IndexMap):
        recorded["pad_value"] = IndexMap(inverse.initial_indices, (fill,))  # type: ignore[assignment]
    if padded and fill is not None and any(new in b.alloc_buffers for b in changed.blocks()):
        changed = _fill_padding(changed, tree.realize(block), new, inverse, padding, fill)
    return Change(changed, None, recorded=recorded if isinstance(buffer, Buffer) else {k: v for k, v in recorded.items() if k != "buffer"})


@primitive
def set_axis_separator(tree: Tree, block: BlockToken, buffer: BufferName, axis_separators: Sequence[int]) -> Change:
    """Cut the dimensions of a buffer into groups, each of which is one dimension of the memory (where memory has several, as textures have).

        B = alloc_buffer((8, 8, 4))    ->    B = alloc_buffer((8, 8, 4), axis_separators=[2])

    ``buffer`` is ("read", n), ("write", n), a name or a buffer. Views of it get as many separators.
    """
    old = named_buffer(tree, tree.nodes[block], buffer)
    cuts = tuple(map(int, axis_separators))
    if list(cuts) != sorted(cuts) or any(not 0 <= k <= old.ndim for k in cuts):
        refuse(tree, block, f"{list(cuts)} are no places to cut {old.ndim} dimensions at", hint="rising, each from 0 to the number of dimensions")
    if any(old is m.buffer for b in tree.blocks() for m in b.match_buffers):
        refuse(tree, block, f"cannot cut the dimensions of {old.name}", "it is a view of another buffer")
    table = {}
    for b in (old, *views_of(tree, old)):
        own = cuts if b.ndim == old.ndim else tuple(min(k, b.ndim) for k in (max(0, k - old.ndim + b.ndim) for k in cuts))
        table[b] = b.replace(axis_separators=own, data=Var(b.data.name, b.data.dtype))
    recorded = {"buffer": _numbered(tree.nodes[block], old)} if isinstance(buffer, Buffer) else {}
    return Change(tree.with_func(replace_buffers(tree.func, table)), recorded=recorded)


def _numbered(block: Block, buffer: Buffer) -> tuple[str, int]:
    """A buffer as ("read", n) or ("write", n)."""
    written = [r.buffer for r in block.writes]
    return ("write", written.index(buffer)) if buffer in written else ("read", [r.buffer for r in block.reads].index(buffer))


def _padding_value(tree: Tree, block: Block, buffer: Buffer, given: Any, at: tuple[Var, ...]) -> Expr | None:
    """What a layout's padding holds, from a number, an expression, or a function of the new indices."""
    if given is None:
        return None
    if isinstance(given, IndexMap):
        given = given.map_indices(at)[0]
    elif callable(given):
        given = applied(given, at, "pad_value")
    if not isinstance(given, Expr | Real):
        refuse(tree, block, f"the padding {given!r} is no number")
    if isinstance(given, float) and not buffer.dtype.is_float:
        refuse(tree, block, f"the padding {given} is no number of {buffer.name}'s type {buffer.dtype}")
    if isinstance(given, Expr) and not free_vars(given) & set(at) and given.dtype is not buffer.dtype:
        refuse(tree, block, f"the padding is of type {given.dtype}, and {buffer.name} of {buffer.dtype}")
    try:
        value = tir.cast(given, buffer.dtype) if isinstance(given, Expr) else tir.const(given, buffer.dtype)
    except ConstantError as e:
        refuse(tree, block, f"the padding {given} is no number of {buffer.name}'s type {buffer.dtype}", str(e))
    if reads_memory(value):
        refuse(tree, block, f"the padding of {buffer.name} cannot be read from memory")
    return value


class _Relayout(Redirect):
    """Accesses of one buffer go to another, through an index map; regions follow."""

    def __init__(self, tree: Tree, old: Buffer, new: Buffer, index_map: IndexMap) -> None:
        self.tree, self.old, self.new, self.map = tree, old, new, index_map
        self.an = Analyzer()

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(i if type(i) is Var else self.an.simplify(i) for i in self.map.map_indices(indices))

    @on(For)
    def _for(self, loop: For) -> Stmt:
        with self.an.scope():
            bind_loop(self.an, loop)
            return self.generic(loop)

    @on(Block)
    def _block(self, block: Block) -> Stmt:
        with self.an.scope():
            for iv in block.iter_vars:
                self.an.bind(iv.var, iv.dom)
            new = self.generic(block)
        touches = any(r.buffer in (self.old, self.new) for r in (*block.reads, *block.writes))
        return with_access(self.tree, without_told(new, self.new)) if touches else new


def _fill_padding(tree: Tree, user: BlockRealize, buffer: Buffer, inverse: IndexMap, padding: Expr, value: Expr) -> Tree:
    """A block in front of the first writer stores ``value`` where the layout has no element."""
    scope = next(b for b in tree.blocks() if buffer in b.alloc_buffers)
    loops = [serial(f"ax{k}", n, n) for k, n in enumerate(buffer.shape)]
    ivs = tuple(tir.IterVar(Var(f"v{k}", n.dtype), Range.of(n), IterKind.SPATIAL) for k, n in enumerate(buffer.shape))
    at = tuple(iv.var for iv in ivs)
    region = tir.BufferRegion(buffer, tuple(Range.point(v) for v in at))
    value = substitute(value, dict(zip(inverse.initial_indices, at)))
    block = Block(ivs, (), (region,), unique_block_name(tree, buffer.name + "_pad"), tir.BufferStore(buffer, value, at))
    table = {v: x.loop_var for v, x in zip(inverse.initial_indices, loops)}
    nest = wrap(loops, BlockRealize(tuple(x.loop_var for x in loops), substitute(padding, table), block))
    writers = scopes.writers(tree, scope, buffer)
    if not writers:
        refuse(tree, user, f"the padding of {buffer.name} cannot be filled", "no block stores it")
    return place(tree, [], writers, writers[0], early=True).insert(nest, {}, None)


@primitive
def transform_block_layout(tree: Tree, block: BlockToken, index_map: Map) -> Change:
    """Iterate over a block's domain in other variables; the loops around it are replaced by one per variable.

    for i, j: B(i, j)           ->  for f in range(n * m): B(f // m, f % m)     # lambda i, j: i * m + j
    """
    node: Block = tree.nodes[block]
    realize = tree.realize(block)
    index_map = as_index_map(index_map, len(node.iter_vars))
    shape = tuple(iv.dom.extent for iv in node.iter_vars)
    ordering.require_true_axes(tree, node, "transform the domain of")
    if any(not is_zero(iv.dom.min) for iv in node.iter_vars):
        refuse(tree, realize, f"cannot transform the domain of block {node.name}", "a variable does not start at 0")
    chain = sole_loops(tree, realize)
    if not loops_are_variables(realize, chain):
        refuse(
            tree,
            realize,
            f"cannot transform the domain of block {node.name}",
            "its loops are not exactly its variables",
            hint="transform_block_layout comes before splitting",
        )
    if any(free_vars(n) & {x.loop_var for x in chain} for n in shape):
        refuse(tree, realize, f"cannot transform the domain of block {node.name}", "how far a variable runs is told by the loops that would be replaced")
    try:
        inverse, padding = inverse_index_map(index_map, shape)
        extents = map_shape(index_map, shape)
    except ArithError as e:
        refuse(tree, realize, f"cannot transform the domain of block {node.name} by this index map", str(e))
    an = tree.analyzer(realize)
    if an.prove(tir.logical_not(padding)) and not an.prove_equal(tir.product_of(extents), tir.product_of(shape)):
        refuse(tree, realize, f"cannot transform the domain of block {node.name} by this index map", "how far the new variables run is not known exactly")
    kinds = _kinds(tree, realize, index_map)
    ivs = tuple(tir.IterVar(Var(f"v{k}", n.dtype), Range.of(n), kind) for k, (n, kind) in enumerate(zip(extents, kinds)))
    loops = [serial(f"ax{k}", n, n) for k, n in enumerate(extents)]
    new_vars = dict(zip(inverse.initial_indices, (iv.var for iv in ivs)))
    plain = {v: iv.var for v, iv in zip(index_map.final_indices, ivs) if type(v) is Var}
    old_vars = dict(zip((iv.var for iv in node.iter_vars), index_map.initial_indices))
    table = {iv.var: plain.get(old_vars[iv.var], substitute(e, new_vars)) for iv, e in zip(node.iter_vars, inverse.final_indices)}
    new = substitute(node.replace(iter_vars=()), table).replace(iter_vars=ivs)
    outside = {v: x.loop_var for v, x in zip(inverse.initial_indices, loops)}
    inside = Analyzer().simplify(tir.logical_not(substitute(padding, outside)))
    nest = BlockRealize(tuple(x.loop_var for x in loops), inside, with_access(tree, new))
    changed = tree.edit({chain[0] if chain else realize: wrap(loops, nest)})
    if node.init is not None:
        inits.require_init_first(changed, nest, f"transform the domain of block {node.name}")
    return Change(changed, None, recorded={"index_map": index_map})


def loops_are_variables(realize: BlockRealize, chain: list[For]) -> bool:
    """Whether exactly these loops, over whole domains, bind to a block's variables one by one."""
    an = Analyzer()
    return (
        is_true(realize.predicate)
        and tuple(x.loop_var for x in chain) == realize.iter_values
        and all(an.prove_equal(x.min, iv.dom.min) and an.prove_equal(x.extent, iv.dom.extent) for x, iv in zip(chain, realize.block.iter_vars))
    )


def _kinds(tree: Tree, realize: BlockRealize, index_map: IndexMap) -> list[IterKind]:
    kind_of = {v: iv.kind for v, iv in zip(index_map.initial_indices, realize.block.iter_vars)}
    out = []
    for e in index_map.final_indices:
        kinds = {kind_of[v] for v in free_vars(e) if v in kind_of}
        if len(kinds) > 1:
            refuse(
                tree,
                realize,
                f"cannot transform the domain of block {realize.block.name}",
                "a new variable would mix spatial and reduce ones",
            )
        out.append(kinds.pop() if kinds else IterKind.SPATIAL)
    return out


def sole_loops(tree: Tree, realize: BlockRealize) -> list[For]:
    """The loops directly around a realize that hold nothing else, outermost first."""
    chain: list[For] = []
    at = tree.parents[realize]
    while type(at) is For:
        chain.append(at)
        at = tree.parents[at]
    return chain[::-1]


@primitive
def reindex(tree: Tree, block: BlockToken, buffer: BufferName) -> Change:
    """Put a stage between a block and a buffer so that the block's own variables index it; gives back its block.

    for i, j: C[i] += A[i + 1, j // 2]    ->    for ax0, ax1: A_reindex[ax0, ax1] = A[ax0 + 1, ax1 // 2]
                                                for i, j: C[i] += A_reindex[i, j]
    """
    node: Block = tree.nodes[block]
    realize = tree.realize(block)
    target = named_buffer(tree, node, buffer)
    writes = target in scopes.writes_of(node)
    reads_back = target in scopes.reads_of(node) and not scopes.is_reduction(node)
    if writes and (reads_back or len(scopes.writers(tree, tree.scope(realize), target)) > 1):
        refuse(tree, realize, f"cannot reindex {target.name}", "the block also reads it, or another writes it too")
    if writes:
        ordering.require_true_axes(tree, node, f"reindex {target.name} of")
    doing = f"reindex {target.name} of block {node.name}"
    sharing.require_only_blocks(tree, realize, {target} if writes else set(), {target}, doing)
    require_told_places(tree, realize, target, doing)
    an = tree.analyzer(node, inside=True, units=False)
    places = [n.indices for n in walk(node) if type(n) in (BufferLoad, BufferStore) and n.buffer is target]
    places += [tuple(r.min for r in n.source.region) for n in walk(node) if type(n) is tir.MatchBufferRegion and n.source.buffer is target]
    found = {tuple(map(an.simplify, at)) for at in places}
    if len(found) != 1:
        refuse(
            tree,
            realize,
            f"cannot reindex {target.name}",
            f"block {node.name} touches it at {len(found)} different places",
        )
    at = found.pop()
    used = frozenset().union(*map(free_vars, at)) if at else frozenset()
    ivs = [iv for iv in node.iter_vars if iv.var in used]
    if not ivs or used - {iv.var for iv in ivs}:
        refuse(tree, realize, f"cannot reindex {target.name}", "its index is not made of the block's variables")
    require_fixed_domain(tree, realize, ivs, doing)
    if writes:
        require_spatial(tree, realize, used, doing)
    an = tree.analyzer(node, inside=True)
    box = run_domain(tree, realize)
    require_single_elements(tree, realize, target, len(ivs), doing)
    if writes and (box is None or not all(same_region([box[iv.var]], [iv.dom], an) for iv in ivs)):
        refuse(tree, realize, f"cannot reindex {target.name}", "the block does not run on the whole domain of its variables")
    if writes and not always_stores(node):
        refuse(tree, realize, f"cannot reindex {target.name}", "the block need not store in each of its instances")
    if not all(an.prove(i >= 0) and an.prove(i < n) for i, n in zip(at, target.shape)):
        refuse(tree, realize, f"cannot reindex {target.name}", "its index may lie outside of the buffer, under a condition")
    new = decl_buffer(tuple(iv.dom.extent for iv in ivs), target.dtype, target.name + "_reindex", scope=target.scope)
    fresh = [iv.replace(var=Var(f"v{k}", iv.var.dtype), kind=IterKind.SPATIAL) for k, iv in enumerate(ivs)]
    there = tuple(substitute(i, {a.var: b.var for a, b in zip(ivs, fresh)}) for i in at)
    here = tuple(iv.var for iv in fresh)
    store = BufferStore(target, new[here], there) if writes else BufferStore(new, target[there], here)
    nest, token = copy_nest(tree, fresh, store, target.name + "_reindex")
    scope = tree.scope(realize)
    changes: dict[Stmt, Stmt | None] = {realize: realize.replace(block=Reindexed(target, new, tuple(iv.var for iv in ivs)).rewrite(node))}
    feeding = [] if writes else scopes.writers(tree, scope, target)
    later = scopes.later_readers(tree, realize, target) if writes else [realize]
    site = place(tree, [realize] if writes else feeding, later, realize)
    if site.loop is not None:
        refuse(tree, realize, f"cannot reindex {target.name}", "it is written and read in one loop nest")
    changed = site.insert(nest, changes, new)
    ordering.require_no_races(changed, new, doing)
    return Change(changed, token)


class Reindexed(Rewriter):
    """Accesses of one buffer become accesses of another at fixed indices."""

    def __init__(self, old: Buffer, new: Buffer, at: tuple[Expr, ...]) -> None:
        self.old, self.new, self.at = old, new, at

    @on(tir.BufferRegion)
    def _region(self, region: tir.BufferRegion) -> tir.BufferRegion:
        if region.buffer is not self.old:
            return self.generic(region)
        return tir.BufferRegion(self.new, tuple(Range.point(i) for i in self.at))

    @on(BufferLoad)
    def _load(self, load: BufferLoad) -> Expr:
        return BufferLoad(self.new, self.at) if load.buffer is self.old else self.generic(load)

    @on(BufferStore)
    def _store(self, store: BufferStore) -> Stmt:
        store = self.generic(store)
        return store.replace(buffer=self.new, indices=self.at) if store.buffer is self.old else store


@primitive
def reorder_block_iter_var(tree: Tree, block: BlockToken, new_order: Sequence[int]) -> Change:
    """Put a block's iteration variables into another order (new_order[k] is the old position of the k-th)."""
    node: Block = tree.nodes[block]
    realize = tree.realize(block)
    if sorted(new_order) != list(range(len(node.iter_vars))):
        refuse(tree, realize, f"{list(new_order)} is no order of the {len(node.iter_vars)} variables of block {node.name}")
    new = node.replace(iter_vars=tuple(node.iter_vars[k] for k in new_order))
    values = tuple(realize.iter_values[k] for k in new_order)
    return Change(tree.edit({realize: realize.replace(iter_values=values, block=new)}))
