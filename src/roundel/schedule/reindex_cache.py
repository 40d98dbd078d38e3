# SPDX-License-Identifier: Apache-2.0
"""Copies of buffers at indices of one's own: reindex_cache_read and reindex_cache_write."""

from __future__ import annotations

from typing import Any

from roundel.arith import Analyzer, map_shape
from roundel.ir import Buffer, Token, Var, decl_buffer, free_vars, substitute, tir
from roundel.ir.errors import ArithError
from roundel.ir.tir import Block, BlockRealize, BufferLoad, BufferStore, Expr, For, IndexMap, IterKind, Range, Stmt

from . import inits, ordering, scopes, sharing
from .copyable import require_fixed_domain, require_single_elements, require_spatial, require_told_by_loops, require_told_places
from .distance import meet
from .kinds import known_scope, read_buffer, written_buffer
from .layout import Reindexed, as_index_map
from .primitive import BlockToken, Change, Map, primitive, refuse
from .rebind import wrap
from .regions import regions_of, with_access
from .stages import Site, place
from .stored import stores_all
from .tree import Tree, conjuncts, is_one, unique_block_name


@primitive
def reindex_cache_read(tree: Tree, block: BlockToken, read_buffer_index: int | str, storage_scope: str, index_map: Map) -> Change:
    """Copy what a block reads of a buffer to places given by a map of the block's variables, and read it there; gives back the copying block.

        for i, j: B[i, j] = A[i, j]    ->    for i, j: A_local[j, i] = A[i, j]          # lambda vi, vj: (vj, vi)
                                             for i, j: B[i, j] = A_local[j, i]

    The block reads one element of the buffer at a time; the copy runs in loops like the block's own. Other readers keep to the buffer.
    """
    node: Block = tree.nodes[block]
    buffer = read_buffer(tree, node, read_buffer_index)
    work = _Stage(tree, node, buffer, storage_scope, index_map, written=False)
    scope = tree.scope(work.realize)
    sharing.require_only_blocks(tree, work.realize, set(), {buffer}, f"cache {buffer.name} of block {node.name}")
    made = scopes.writers(tree, scope, buffer)
    if work.realize in made:
        refuse(tree, work.realize, f"cannot cache {buffer.name}", f"block {node.name} also writes it")
    return work.insert(place(tree, made, [work.realize], work.realize))


@primitive
def reindex_cache_write(tree: Tree, block: BlockToken, write_buffer_index: int | str, storage_scope: str, index_map: Map) -> Change:
    """Let a block write to places given by a map of its variables, and copy that to the buffer after; gives back the copying block.

        for i, j: B[i, j] = A[i, j]    ->    for i, j: B_local[j, i] = A[i, j]          # lambda vi, vj: (vj, vi)
                                             for i, j: B[i, j] = B_local[j, i]

    The block writes one element of the buffer at a time; the copy runs in loops like the block's own, without those that only reduce.
    """
    node: Block = tree.nodes[block]
    buffer = written_buffer(tree, node, write_buffer_index)
    work = _Stage(tree, node, buffer, storage_scope, index_map, written=True)
    scope, realize = tree.scope(work.realize), work.realize
    others = [w for w in scopes.writers(tree, scope, buffer) if w is not realize]
    sharing.require_no_conflict(tree, realize, others, f"cache {buffer.name} of")
    if buffer in scopes.reads_of(node) and not scopes.is_reduction(node):
        refuse(tree, realize, f"cannot cache {buffer.name}", f"block {node.name} also reads it")
    if node.init is not None:
        inits.require_own_results(tree, realize, f"cache {buffer.name}")
    if not stores_all(tree, realize, buffer):
        refuse(tree, realize, f"cannot cache {buffer.name}", f"block {node.name} may leave out elements that would be copied back")
    return work.insert(place(tree, [realize], scopes.later_readers(tree, realize, buffer), realize))


class _Stage:
    """The copy between a block and a buffer, through the map."""

    def __init__(self, tree: Tree, block: Block, buffer: Buffer, scope: str, index_map: Any, *, written: bool) -> None:
        self.tree, self.block, self.realize, self.buffer, self.written = tree, block, tree.realize(block.token), buffer, written  # type: ignore[arg-type]
        known_scope(tree, self.realize, scope)
        regions = regions_of(block, buffer, written=written)
        if len(regions) != 1 or not all(is_one(r.extent) for r in regions[0].region):
            self.refuse("it does not touch a single element of it at a time")
        doing = f"cache {buffer.name} of block {block.name} by a map"
        require_told_by_loops(tree, self.realize, doing)
        require_told_places(tree, self.realize, buffer, doing)
        require_fixed_domain(tree, self.realize, block.iter_vars, doing)
        self.at = tuple(r.min for r in regions[0].region)
        self.map = as_index_map(index_map, len(block.iter_vars))
        self.used = frozenset().union(*map(free_vars, self.at)) if self.at else frozenset()
        self.ivs = [iv for iv in block.iter_vars if iv.var in self.used]
        if self.used - {iv.var for iv in self.ivs}:
            self.refuse("its index is not made of the block's variables alone")
        if written:
            require_spatial(tree, self.realize, self.used, doing)
        place = {v: iv.var for v, iv in zip(self.map.initial_indices, block.iter_vars)}
        self.there = tuple(substitute(e, place) for e in self.map.final_indices)
        self.check_map()
        an = Analyzer()
        try:
            shape = map_shape(IndexMap(tuple(place.values()), self.there), [iv.dom.extent for iv in block.iter_vars], an)
        except ArithError as e:
            self.refuse(f"the shape of the copy is not known: {e}")
        require_single_elements(tree, self.realize, buffer, len(shape), doing)
        self.cache = decl_buffer(shape, buffer.dtype, f"{buffer.name}_{scope}", scope=scope)

    def refuse(self, why: str) -> None:
        refuse(self.tree, self.realize, f"cannot cache {self.buffer.name} of block {self.block.name} by this map", why)

    def check_map(self) -> None:
        """Different elements go to different places, within the copy."""
        an, copies = Analyzer(), {iv.var: Var(iv.var.name, iv.var.dtype) for iv in self.block.iter_vars}
        for iv in self.block.iter_vars:
            an.bind(iv.var, iv.dom)
            an.bind(copies[iv.var], iv.dom)
        one = [Range.point(i) for i in self.there]
        met = meet(an, one, [Range(substitute(r.min, copies), r.extent) for r in one], copies)
        if not all(an.prove(i >= 0) and an.prove(i < n) for i, n in zip(self.at, self.buffer.shape)):
            self.refuse("its index may lie outside of the buffer, under a condition")
        missing = [iv.var.name for iv in self.ivs if iv.var not in met.equal and an.bounds(iv.dom.extent)[1] > 1]
        if missing or frozenset().union(*map(free_vars, self.there)) - self.used:
            self.refuse(f"it has to tell elements apart by {', '.join(missing) or 'the variables in its index'} alone")

    def insert(self, site: Site) -> Change:
        """The program with the copy at a place."""
        copy, token = self.copy(site)
        target = Reindexed(self.buffer, self.cache, self.there).rewrite(self.block)
        changes: dict[Stmt, Stmt | None] = {self.realize: self.realize.replace(block=target)}
        changed = site.insert(copy, changes, self.cache)
        ordering.require_no_races(changed, self.cache, f"cache {self.buffer.name}")
        return Change(changed, token, recorded={"index_map": self.map})

    def copy(self, site: Site) -> tuple[Stmt, Token]:
        """A nest like the block's own below the place, around a block with those of its variables that index the buffer."""
        values = dict(zip((iv.var for iv in self.block.iter_vars), self.realize.iter_values))
        used = frozenset().union(*(free_vars(values[iv.var]) for iv in self.ivs)) if self.ivs else frozenset()
        loops, table = [], {}
        inner = [x for x in self.tree.loops(self.realize) if self.tree.under(x, site.top) and x is not site.top]
        hidden = {x.loop_var for x in inner} - used
        for x in inner:
            if x.loop_var in used:
                table[x.loop_var] = Var(x.loop_var.name, x.loop_var.dtype)
                bounds = (substitute(x.min, table), substitute(x.extent, table))
                if any(v in hidden for e in bounds for v in free_vars(e)):
                    self.refuse(f"the range of loop {x.loop_var.name} depends on loops that the copy has not")
                loops.append(For(table[x.loop_var], bounds[0], bounds[1], tir.ForKind.SERIAL, tir.Seq(())))
        fresh = {iv.var: Var(iv.var.name, iv.var.dtype) for iv in self.ivs}
        ivs = tuple(iv.replace(var=fresh[iv.var], kind=IterKind.SPATIAL) for iv in self.ivs)
        here, there = (tuple(substitute(e, fresh) for e in index) for index in (self.at, self.there))
        store = BufferStore(self.buffer, BufferLoad(self.cache, there), here) if self.written else BufferStore(self.cache, BufferLoad(self.buffer, here), there)
        block = with_access(self.tree, Block(ivs, (), (), unique_block_name(self.tree, self.cache.name), store))
        asked = [c for c in conjuncts(self.realize.predicate) if free_vars(c).isdisjoint(hidden)]
        an = self.tree.analyzer(site.top, inside=True)
        for x in loops:
            an.bind(x.loop_var, Range(x.min, x.extent))
        at = [(substitute(values[iv.var], table), iv.dom.extent) for iv in self.ivs]
        inside = [c for i, n in at for c in (i >= 0, i < n)]  # (conditions with other loops are left out)
        predicate: Expr = tir.logical_and(*(substitute(c, table) for c in asked), *(c for c in inside if not an.prove(c)))
        return wrap(loops, BlockRealize(tuple(substitute(values[iv.var], table) for iv in self.ivs), predicate, block)), block.token  # type: ignore[return-value]


