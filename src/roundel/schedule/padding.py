# SPDX-License-Identifier: Apache-2.0
"""Padding of an einsum's domain to multiples of a tile: pad_einsum."""

from __future__ import annotations

from collections.abc import Sequence

from roundel.ir import Buffer, Var, decl_buffer, tir, walk
from roundel.ir.tir import Block, BlockRealize, BufferLoad, BufferStore, Expr, For, IterKind, IterVar, Range, Stmt

from . import inits, ordering, scopes, sharing
from .copyable import plain_stores
from .kinds import replace_buffers
from .layout import loops_are_variables, sole_loops
from .primitive import BlockToken, Change, primitive, refuse
from .regions import with_access
from .stages import copy_nest
from .tree import Tree


@primitive
def pad_einsum(tree: Tree, block: BlockToken, padding: Sequence[int]) -> Change:
    """Round the extents of a block's variables up to multiples of ``padding`` (one number per variable).

    for i, j, k in grid(127, 127, 127):       A_pad[i, k] = A[i, k] if inside, else 0     # and B_pad
        C[i, j] += A[i, k] * B[k, j]    ->    for i, j, k in grid(128, 128, 128):
                                                      C_pad[i, j] += A_pad[i, k] * B_pad[k, j]
                                                C[i, j] = C_pad[i, j]                       # over 127 x 127
    """
    return _PadEinsum(tree, block, [int(p) for p in padding]).run()


DIVIDING = (tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod)


class _PadEinsum:
    def __init__(self, tree: Tree, block: BlockToken, padding: list[int]) -> None:
        self.tree, self.block, self.realize = tree, tree.nodes[block], tree.realize(block)
        self.loops = sole_loops(tree, self.realize)
        self.check(padding)
        an = tree.analyzer(self.realize)
        extents = [an.simplify(tir.ceildiv(iv.dom.extent, p) * p) for iv, p in zip(self.block.iter_vars, padding)]
        self.new = {iv.var: n for iv, n in zip(self.block.iter_vars, extents)}
        self.grown = {iv.var for iv, n in zip(self.block.iter_vars, extents) if not an.prove_equal(iv.dom.extent, n)}
        self.check_results()
        self.check_zeros()
        self.places = self.padded_places()

    def refuse(self, why: str) -> None:
        refuse(self.tree, self.realize, f"cannot pad block {self.block.name}", why)

    def check(self, padding: list[int]) -> None:
        block, mine = self.block, {iv.var for iv in self.block.iter_vars}
        if len(padding) != len(block.iter_vars) or min(padding, default=1) < 1:
            self.refuse(f"it has {len(block.iter_vars)} variables, and the padding is {padding}")
        if not scopes.is_reduction(block) and not scopes.is_complete(block):
            self.refuse("it is neither complete nor a reduction with an init")
        ordering.require_true_axes(self.tree, block, "pad")
        sharing.require_no_alias(self.tree, self.realize, {n.buffer for n in self.touching()}, f"pad block {block.name}")
        if not plain_stores(block):
            self.refuse("it is more than one store of an element")
        if any(type(n) in DIVIDING and not n.dtype.is_float for n in walk(block.body)):
            self.refuse("it divides, and the padding might be what it divides by")
        if not loops_are_variables(self.realize, self.loops[-len(mine) :]):
            self.refuse("its loops are not exactly its variables; pad before splitting")
        doms, an = {iv.var: iv.dom for iv in block.iter_vars}, self.tree.analyzer(self.realize)
        for n in self.touching():
            if any(type(i) is not Var or i not in mine for i in n.indices):
                self.refuse(f"{n.buffer.name} is not indexed by its variables alone")
            if not all(an.prove_equal(doms[i].extent, size) for i, size in zip(n.indices, n.buffer.shape)):
                self.refuse(f"its variables do not run over exactly {n.buffer.name}")

    def touching(self) -> list[BufferLoad | BufferStore]:
        """The loads and stores of the block, those of its init last."""
        return [n for part in (self.block.body, self.block.init) if part is not None for n in walk(part) if type(n) in (BufferLoad, BufferStore)]

    def check_results(self) -> None:
        """What is computed besides is stored besides: each result is indexed by all spatial variables that grow, and no result is read elsewhere."""
        mine = {iv.var for iv in self.block.iter_vars if iv.kind is IterKind.SPATIAL} & self.grown
        for s in (n for n in self.touching() if type(n) is BufferStore):
            missing = mine - set(s.indices)
            if missing:
                self.refuse(f"its variable {missing.pop().name} does not index {s.buffer.name}, so that padding would be computed into the results")
        if self.block.init is not None:
            inits.require_own_results(self.tree, self.realize, f"pad block {self.block.name}")

    def check_zeros(self) -> None:
        """Along a padded reduction every term has a factor that is padded with 0. (Numbers with infinity need it in all factors: 0 * inf is no 0.)"""
        reduce = {iv.var for iv in self.block.iter_vars if iv.kind is IterKind.REDUCE} & self.grown
        if not reduce:
            return
        store = self.block.body
        acc = BufferLoad(store.buffer, store.indices) if type(store) is BufferStore else None
        if acc is None or type(store.value) is not tir.Add or acc not in (store.value.a, store.value.b):
            self.refuse("a padded reduction has to be one sum")
        term = store.value.b if store.value.a is acc else store.value.a
        factors = [f for f in map(_uncast, _product(term)) if not isinstance(f, tir.IntImm | tir.FloatImm)]
        found = [set(f.indices) if type(f) is BufferLoad else set() for f in factors]
        enough = all if term.dtype.is_float else any
        if any(not enough(v in at for at in found) for v in reduce):
            self.refuse("its terms are not products of elements that padding makes 0")

    def padded_places(self) -> dict[Buffer, tuple[Expr, ...]]:
        """The buffers that grow, each with indices at which the block touches it, all of which grow alike. What is only read comes first."""
        written = {s.buffer for s in walk(self.block.body) if type(s) is BufferStore}
        found: dict[Buffer, tuple[Expr, ...]] = {}
        for n in self.touching():
            grown = [self.new[v] if v in self.grown else None for v in n.indices]
            if grown != [self.new[v] if v in self.grown else None for v in found.setdefault(n.buffer, n.indices)]:
                self.refuse(f"{n.buffer.name} is touched at places of which one would be padded, and the other not, or not as far")
        return {b: at for b, at in sorted(found.items(), key=lambda item: item[0] in written) if set(at) & self.grown}

    def run(self) -> Change:
        """Pads in front, the block on padded buffers, a copy of the part that counts behind."""
        written = {s.buffer for s in walk(self.block.body) if type(s) is BufferStore}
        table: dict[Buffer, Buffer] = {}
        front, back = [], []
        tree = self.tree
        for b, at in self.places.items():
            new = table[b] = decl_buffer(tuple(self.new[v] for v in at), b.dtype, b.name + "_pad", scope=b.scope)
            if b in written:
                back.append(self._copy(new, b, at))
            else:
                front.append(self._pad(b, new, at))
        ivs = tuple(iv.replace(dom=Range(iv.dom.min, self.new[iv.var])) for iv in self.block.iter_vars)
        block = with_access(tree, replace_buffers(self.block, table).replace(iter_vars=ivs))
        if not table:
            return Change(tree)
        inner = self.loops[-len(ivs) :]
        nest: Stmt = self.realize.replace(block=block)
        for x, iv in zip(reversed(inner), reversed(ivs)):
            nest = x.replace(extent=iv.dom.extent, body=nest)
        changed = tree.edit({inner[0]: tir.seq(*front, nest, *back)})
        scope: Block = changed.nodes[tree.scope(self.realize).token]
        changed = changed.edit({scope: scope.replace(alloc_buffers=(*scope.alloc_buffers, *table.values()))})
        for b in table.values():
            ordering.require_no_races(changed, b, f"pad block {self.block.name}")
        return Change(changed)

    def _vars(self, at: tuple[Expr, ...], *, padded: bool) -> list[IterVar]:
        doms = {iv.var: iv.dom for iv in self.block.iter_vars}
        return [IterVar(Var(f"v{k}", v.dtype), Range(doms[v].min, self.new[v]) if padded else doms[v], IterKind.SPATIAL) for k, v in enumerate(at)]

    def _pad(self, source: Buffer, target: Buffer, at: tuple[Expr, ...]) -> Stmt:
        ivs = self._vars(at, padded=True)
        doms = {iv.var: iv.dom for iv in self.block.iter_vars}
        here = tuple(iv.var for iv in ivs)
        inside = tir.logical_and(*(v < doms[o].extent for v, o in zip(here, at) if o in self.grown))
        store = BufferStore(target, source[here], here)
        nest, _ = copy_nest(self.tree, ivs, store, target.name)
        value = tir.if_then_else(inside, source[here], tir.const(0, source.dtype))
        return _with_value(nest, store, value)

    def _copy(self, source: Buffer, target: Buffer, at: tuple[Expr, ...]) -> Stmt:
        ivs = self._vars(at, padded=False)
        here = tuple(iv.var for iv in ivs)
        return copy_nest(self.tree, ivs, BufferStore(target, source[here], here), target.name + "_unpad")[0]


def _with_value(nest: Stmt, store: BufferStore, value: Expr) -> Stmt:
    if type(nest) is For:
        return nest.replace(body=_with_value(nest.body, store, value))
    assert type(nest) is BlockRealize
    return nest.replace(block=nest.block.replace(body=store.replace(value=value)))


def _product(e: Expr) -> list[Expr]:
    return [*_product(e.a), *_product(e.b)] if type(e) is tir.Mul else [e]


def _uncast(e: Expr) -> Expr:
    return _uncast(e.value) if type(e) is tir.Cast else e
