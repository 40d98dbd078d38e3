# SPDX-License-Identifier: Apache-2.0
"""Sums of products in tiles of one size, whatever the axes are: tile_einsum."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from roundel.arith import Analyzer, inverse_index_map, map_shape
from roundel.ir import Buffer, Rewriter, Var, decl_buffer, free_vars, on, substitute, tir, walk
from roundel.ir.dtype import DType
from roundel.ir.errors import ArithError
from roundel.ir.tir import Block, BlockRealize, BufferLoad, BufferStore, Expr, For, IterKind, IterVar, Range, Stmt

from . import ordering, scopes, sharing
from .layout import as_index_map, loops_are_variables
from .primitive import BlockToken, Change, Map, primitive, refuse
from .rebind import serial, wrap
from .redirect import Redirect
from .regions import with_access
from .tree import TRUE, Tree, is_zero, unique_block_name


@primitive
def tile_einsum(tree: Tree, block: BlockToken, consumer: BlockToken, factor: int, index_map: Map, dtype: str = "") -> Change:
    """Iterate over a sum of products in other variables, which may run over more than there is: factor 0 (or 1) of the products is copied into tiles
    with zeros there. ``consumer`` is the one block that reads the sums, element by element. ``dtype``: a wider type of integers that the tiles hold
    (default: the factor's own type). Gives back the block that makes the tiles.

    for i, j, k in grid(30, 32, 50):            for a, c, i, k: A_tiles[a, c, i, k] = A[a * 16 + i, c * 64 + k] if inside, else 0
        C[i, j] += A[i, k] * B[k, j]      ->    for a, b, i, j, c, k:
    for i, j: D[i, j] = f(C[i, j])                  C_tiles[a, b, i, j] += A_tiles[a, c, i, k] * B[c * 64 + k, b * 16 + j]
                                                for a, b, i, j where inside: D[a * 16 + i, b * 16 + j] = f(C_tiles[a, b, i, j])
    """
    return TileEinsum(tree, block, consumer, factor, index_map, dtype).run()


class TileEinsum:
    """The steps of the primitive."""

    def __init__(self, tree: Tree, block: BlockToken, consumer: BlockToken, factor: int, index_map: Map, dtype: str = "") -> None:
        self.tree, self.block, self.user = tree, tree.nodes[block], tree.nodes[consumer]
        self.realize, self.using = tree.realize(block), tree.realize(consumer)
        self.old = {iv.var: iv for iv in self.block.iter_vars}
        self.check_loops()
        self.total, self.term = self.sum()
        self.factor = self.chosen(factor)
        self.dtype = self.holding(dtype)
        self.map = as_index_map(index_map, len(self.block.iter_vars))
        shape, an = self.extents(), Analyzer()
        try:
            inverse, _ = inverse_index_map(self.map, shape, an)
            extents = new_extents(self.map, shape, an)
        except ArithError as e:
            refuse(tree, self.realize, f"cannot tile block {self.block.name} by this index map", str(e))
        self.axes = tuple(IterVar(Var(f"v{k}", n.dtype), Range.of(n), kind) for k, (n, kind) in enumerate(zip(extents, self.kinds(), strict=True)))
        new = dict(zip(inverse.initial_indices, (iv.var for iv in self.axes), strict=True))
        self.place = {iv.var: substitute(e, new) for iv, e in zip(self.block.iter_vars, inverse.final_indices, strict=True)}
        self.an = Analyzer()
        for iv in self.axes:
            self.an.bind(iv.var, iv.dom)

    def extents(self) -> list[Expr]:
        """Of the old variables, as the index map has them."""
        return [iv.dom.extent for iv in self.block.iter_vars]

    def refuse(self, why: str) -> None:
        """Raises ScheduleError: the block cannot be tiled, and why."""
        refuse(self.tree, self.realize, f"cannot tile block {self.block.name}", why)

    def check_loops(self) -> None:
        """Refuses loops that are not just the variables of the two blocks, and results that others read."""
        for node, realize in ((self.block, self.realize), (self.user, self.using)):
            ordering.require_true_axes(self.tree, node, "tile")
            if scopes.leaves(self.outermost(realize)) != [realize]:
                self.refuse(f"other statements are in the loops of {node.name}")
            if not loops_are_variables(realize, self.tree.loops(realize)[-len(node.iter_vars) :]) or any(not is_zero(iv.dom.min) for iv in node.iter_vars):
                self.refuse(f"the loops of {node.name} are not exactly its variables; tile before splitting")
        result, users = sharing.require_inner_buffer(self.tree, self.block, "tile"), [self.realize, self.using]
        sharing.require_only_users(self.tree, self.realize, result, users, f"tile block {self.block.name}")
        if not scopes.is_reduction(self.block) or any(iv.kind is not IterKind.SPATIAL for iv in self.user.iter_vars):
            self.refuse("it is no reduction with an init, or what reads it is another reduction")

    def sum(self) -> tuple[BufferStore, tir.Mul]:
        """The store, and the product that it adds."""
        store = self.block.body
        if type(store) is BufferStore and type(store.value) is tir.Add:
            before = BufferLoad(store.buffer, store.indices)
            for total, term in ((store.value.a, store.value.b), (store.value.b, store.value.a)):
                if total is before and type(term) is tir.Mul:
                    return store, term
        self.refuse("it is no sum of products")
        raise AssertionError

    def chosen(self, factor: int) -> Expr:
        """The factor that is copied, without a conversion around it."""
        if factor not in (0, 1):
            self.refuse(f"there is no factor {factor}")
        found = (self.term.a, self.term.b)[factor]
        return found.value if type(found) is tir.Cast else found

    def holding(self, dtype: str) -> DType:
        """The type of the tiles."""
        own = self.factor.dtype
        found = DType(dtype) if dtype else own
        if found is not own and not (found.kind == own.kind == "int" and own.bits < found.bits <= self.term.dtype.bits):
            self.refuse(f"tiles of {found} do not stand for {own} in products of {self.term.dtype}")
        return found

    def kinds(self) -> list[IterKind]:
        """Of the new axes: each is of the result or of the sum."""
        out = []
        kind_of = {v: iv.kind for v, iv in zip(self.map.initial_indices, self.block.iter_vars, strict=True)}
        for e in self.map.final_indices:
            found = {kind_of[v] for v in free_vars(e) if v in kind_of}
            if len(found) > 1:
                self.refuse(f"{e.script()} is of a variable of the result and of one that is summed over")
            out.append(found.pop() if found else IterKind.SPATIAL)
        return out

    def inside(self, used: set[Var]) -> Expr:
        """Where variables that the tiles run over are inside of what there is."""
        conditions = []
        for v in (iv.var for iv in self.block.iter_vars if iv.var in used):
            at = self.an.simplify(self.place[v])
            if not self.an.prove(at < self.old[v].dom.extent):
                conditions.append(at < self.old[v].dom.extent)
        return self.an.simplify(tir.logical_and(*conditions))

    def axes_of(self, used: set[Var]) -> list[IterVar]:
        """The new axes along which any of these variables moves."""
        old = {v for v, iv in zip(self.map.initial_indices, self.block.iter_vars, strict=True) if iv.var in used}
        return [iv for e, iv in zip(self.map.final_indices, self.axes, strict=True) if free_vars(e) & old]

    def run(self) -> Change:
        """The schedule in which the factor's tiles are copied, multiplied, and read by the consumer."""
        moving = set(free_vars(self.factor)) & set(self.old)
        padded = {v for v, iv in self.old.items() if not self.an.prove(self.an.simplify(self.place[v]) < iv.dom.extent)}
        if any(self.old[v].kind is not IterKind.SPATIAL and v not in moving for v in padded):
            self.refuse("an axis of the sum is padded along which the copied factor does not move")
        spatial = {v for v, iv in self.old.items() if iv.kind is IterKind.SPATIAL}
        tiles, copying, token = self.tiles(moving)
        sums = self.axes_of(spatial)
        made = decl_buffer([iv.dom.extent for iv in sums], self.total.buffer.dtype, self.total.buffer.name + "_tiles", scope=self.total.buffer.scope)
        at = tuple(iv.var for iv in sums)
        product = self.product(tiles, moving, made, at)
        reading = self.read(made, at, sums, spatial)
        changes: dict[Stmt, Stmt | None] = {self.outermost(self.realize): tir.seq(copying, product), self.outermost(self.using): reading}
        changed = self.tree.edit(changes)
        scope: Block = changed.nodes[self.tree.scope(self.realize).token]
        kept = tuple(b for b in scope.alloc_buffers if b is not self.total.buffer)
        return Change(changed.edit({scope: scope.replace(alloc_buffers=(*kept, tiles, made))}), token, recorded={"index_map": self.map})

    def outermost(self, realize: BlockRealize) -> Stmt:
        """The outermost loop of a block's own variables, or the block where it has none."""
        loops = self.tree.loops(realize)[-len(realize.block.iter_vars) :]
        return loops[0] if loops else realize

    def tiles(self, moving: set[Var]) -> tuple[Buffer, Stmt, object]:
        """The buffer of tiles, the nest that fills it, and its block's token."""
        axes = self.axes_of(moving)
        fresh = {iv.var: IterVar(Var(f"v{k}", iv.var.dtype), iv.dom, IterKind.SPATIAL) for k, iv in enumerate(axes)}
        there = {v: iv.var for v, iv in fresh.items()}
        name = next((n.buffer.name for n in walk(self.factor) if type(n) is BufferLoad), "factor")
        made = decl_buffer([iv.dom.extent for iv in axes], self.dtype, name + "_tiles")
        value = tir.cast(self.moved(self.factor), self.dtype)
        inside = self.inside(moving)
        if not self.an.prove(inside):
            value = tir.if_then_else(inside, value, tir.const(0, self.dtype))
        store = BufferStore(made, substitute(value, there), tuple(there.values()))
        block = with_access(self.tree, Block(tuple(fresh.values()), (), (), unique_block_name(self.tree, made.name), store))
        return made, nest(tuple(fresh.values()), block), block.token

    def copied(self, tiles: Buffer, moving: set[Var]) -> BufferLoad:
        """The element of the tiles that a product has for a factor."""
        return BufferLoad(tiles, tuple(iv.var for iv in self.axes_of(moving)))

    def moved(self, e: Expr) -> Expr:
        """An expression in the new variables."""
        return Moved(self.place, self.an).rewrite(e)

    def by_axes(self, factor: Expr) -> Expr:
        """The other factor in the new variables: an index that is one of the map's results is that variable."""
        if type(factor) is not BufferLoad:
            return self.moved(factor)
        old = Analyzer()
        for iv in self.block.iter_vars:
            old.bind(iv.var, iv.dom)
        results = self.map.map_indices([iv.var for iv in self.block.iter_vars])
        axis_of = lambda i, m: next((iv.var for e, iv in zip(results, self.axes, strict=True) if free_vars(i) and old.prove_equal(e, i)), m)
        moved = self.moved(factor)
        assert isinstance(moved, BufferLoad)
        return moved.replace(indices=tuple(axis_of(i, m) for i, m in zip(factor.indices, moved.indices, strict=True)))

    def product(self, tiles: Buffer, moving: set[Var], made: Buffer, at: tuple[Var, ...]) -> Stmt:
        """The sum of products in the new variables."""
        copied = self.copied(tiles, moving)
        parts = []
        for part in (self.term.a, self.term.b):
            inner = part.value if type(part) is tir.Cast else part
            if inner is self.factor:
                new: Expr = copied
            else:
                new = self.by_axes(inner)
                self.check_bounds(new)
            parts.append(tir.cast(new, part.dtype))
        value = tir.Add(BufferLoad(made, at), tir.Mul(*parts))
        init = self.block.init
        assert type(init) is BufferStore
        new_block = self.block.replace(iter_vars=self.axes, body=BufferStore(made, value, at), init=BufferStore(made, substitute(init.value, self.place), at))
        return nest(self.axes, with_access(self.tree, new_block))

    def check_bounds(self, factor: Expr) -> None:
        """The other factor is read as it is, so nothing may be read beyond its end."""
        for n in walk(factor):
            if type(n) is BufferLoad and not all(self.an.prove(i >= 0) and self.an.prove(i < size) for i, size in zip(n.indices, n.buffer.shape, strict=True)):
                self.refuse(f"{n.buffer.name} would be read beyond its end; pad its layout first (transform_layout)")

    def read(self, made: Buffer, at: tuple[Var, ...], sums: list[IterVar], spatial: set[Var]) -> Stmt:
        """The block that reads the sums, in the new variables."""
        own = self.own_variables()
        fresh = [IterVar(Var(f"v{k}", iv.var.dtype), iv.dom, IterKind.SPATIAL) for k, iv in enumerate(sums)]
        there: Mapping[Var, Expr] = dict(zip(at, (iv.var for iv in fresh), strict=True))
        place = {e: self.an.simplify(self.place[v]) if v is not None else tir.index_const(0) for e, v in own.items()}
        body = _Sums(self.total.buffer, made, at).rewrite(Moved(place, self.an).rewrite(self.user.body))
        block = with_access(self.tree, self.user.replace(iter_vars=tuple(fresh), body=substitute(body, there)))
        inside = self.inside(spatial)
        return nest(fresh, block, TRUE if self.an.prove(inside) else substitute(inside, there))

    def own_variables(self) -> dict[Var, Var | None]:
        """For each variable of the block that reads the sums the one that is its own; None for one that is 0."""
        reads = {n.indices for n in walk(self.user.body) if type(n) is BufferLoad and n.buffer is self.total.buffer}
        if len(reads) != 1:
            self.refuse(f"{self.user.name} does not read its sums at one place")
        found: dict[Var, Var | None] = {iv.var: None for iv in self.user.iter_vars if self.an.prove_equal(iv.dom.extent, 1)}
        for mine, theirs in zip(self.total.indices, reads.pop(), strict=True):
            if type(mine) is Var and type(theirs) is Var and mine in self.old and not is_zero(self.old[mine].dom.extent - 1):
                found[theirs] = mine
        if any(iv.var not in found for iv in self.user.iter_vars) or any(
                iv.kind is IterKind.SPATIAL and v not in found.values() and not self.an.prove_equal(iv.dom.extent, 1) for v, iv in self.old.items()):
            self.refuse(f"{self.user.name} does not read them by the variables of the sums")
        return found


def new_extents(index_map: tir.IndexMap, shape: Sequence[Expr], an: Analyzer) -> list[Expr]:
    """How far each new axis runs. Raises ArithError."""
    once = {v for v, n in zip(index_map.initial_indices, shape, strict=True) if n is tir.index_const(1)}
    return [_whole(e, n, once) for e, n in zip(index_map.final_indices, map_shape(index_map, shape, an), strict=True)]


def _whole(e: Expr, extent: Expr, once: Collection[Var]) -> Expr:
    """How far a new axis runs: all of ``k % 64`` and ``k % 64 // 4``, however few there are of k (but for one, of variables that run ``once``)."""
    step = 1
    if type(e) is tir.FloorDiv and type(e.b) is tir.IntImm:
        e, step = e.a, e.b.value
    if type(e) is not tir.FloorMod or type(e.b) is not tir.IntImm or free_vars(e) <= set(once):
        return extent
    return tir.index_const(-(-e.b.value // step))


class _Sums(Redirect):
    """Reads of the sums are of tiles."""

    def __init__(self, old: Buffer, new: Buffer, place: tuple[Expr, ...]) -> None:
        self.old, self.new, self.place = old, new, place

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        return self.place


class Moved(Rewriter):
    """An expression in other variables, with indices in canonical form."""

    def __init__(self, place: Mapping[Var, Expr], an: Analyzer) -> None:
        self.place, self.an = place, an

    @on(Var)
    def _var(self, v: Var) -> Expr:
        return self.place.get(v, v)

    @on(BufferLoad)
    def _load(self, load: BufferLoad) -> Expr:
        return load.replace(indices=tuple(self.an.simplify(self.rewrite(i)) for i in load.indices))


def nest(axes: tuple[IterVar, ...] | list[IterVar], block: Block, predicate: Expr = TRUE) -> Stmt:
    """Loops over whole axes around a block."""
    loops: list[For] = [serial(f"ax{k}", iv.dom.extent, iv.var) for k, iv in enumerate(axes)]
    at = {iv.var: x.loop_var for iv, x in zip(axes, loops, strict=True)}
    return wrap(loops, BlockRealize(tuple(at.values()), substitute(predicate, at), block))
