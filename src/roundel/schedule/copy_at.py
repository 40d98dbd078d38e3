# SPDX-License-Identifier: Apache-2.0
"""Copies in each iteration of a loop: read_at and write_at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from roundel.arith import detect_iter_map, end, estimate_region, union
from roundel.ir import Attrs, Buffer, Var, decl_buffer, free_vars, substitute, tir, walk
from roundel.ir.dataclass import dataclass
from roundel.ir.errors import ArithError
from roundel.ir.tir import Block, BlockRealize, BufferRegion, BufferStore, Expr, For, IterKind, IterVar, Range, Stmt

from . import inits, scopes, sharing
from .copyable import require_seen
from .handed_on import covered
from .kinds import known_scope, read_buffer, replace_buffers, written_buffer
from .limits import has_iterations, independent
from .move import running_together
from .primitive import BlockToken, Change, Loop, primitive, refuse
from .rebind import serial, wrap
from .regions import Region, domain, inner_loops, regions_of, touched
from .stages import parts_of, require_known_place
from .stored import stores_all
from .tree import TRUE, Tree, conjuncts, is_one, unique_block_name

AUTO_COPY = "auto_copy"  # the block is one copy, which lowering for a GPU may spread over threads


@primitive
def read_at(tree: Tree, loop: Loop, block: BlockToken, read_buffer_index: int | str, storage_scope: str) -> Change:
    """In each iteration of a loop, copy what is read there of a buffer, and read the copy; gives back the copying block, which is one instance.

        for i:                              for i:
            for j: B[i, j] = A[i, j]   ->       with block("A_shared"): for ax0: A_shared[i, ax0] = A[i, ax0]
                                                for j: B[i, j] = A_shared[i, j]

    Threads that have memory of the scope together copy what all of them read.
    """
    at = _At(tree, loop, block, read_buffer(tree, tree.nodes[block], read_buffer_index), storage_scope)
    return at.read()


@primitive
def write_at(tree: Tree, loop: Loop, block: BlockToken, write_buffer_index: int | str, storage_scope: str) -> Change:
    """In each iteration of a loop, write a buffer's elements in a copy first, and copy that after; gives back the copying block, which is one
    instance.

        for i:                              for i:
            for j: B[i, j] = A[i, j]   ->       for j: B_shared[i, j] = A[i, j]
                                                with block("B_shared"): for ax0: B[i, ax0] = B_shared[i, ax0]

    Threads that have memory of the scope together copy what all of them write.
    """
    at = _At(tree, loop, block, written_buffer(tree, tree.nodes[block], write_buffer_index), storage_scope)
    return at.write()


@dataclass
class _At:
    """A loop, a block under it and a buffer of which each iteration is to have a copy."""

    tree: Tree
    loop_token: Loop
    token: BlockToken
    buffer: Buffer
    storage_scope: str

    def __post_init__(self) -> None:
        tree = self.tree
        self.loop: For = tree.nodes[self.loop_token]
        self.realize = tree.realize(self.token)
        self.scope = tree.scope(self.realize)
        if not tree.under(self.realize, self.loop):
            self.refuse(f"loop {self.loop.loop_var.name} is not around block {self.realize.block.name}")
        self.an = tree.analyzer(self.loop, inside=True)
        self.parts: Sequence[Stmt] = parts_of(self.loop.body)
        self.copy = decl_buffer(self.buffer.shape, self.buffer.dtype, f"{self.buffer.name}_{self.storage_scope}",
                                scope=known_scope(tree, self.realize, self.storage_scope))
        self.together = running_together(tree, self.loop, self.copy)
        sharing.require_only_blocks(tree, self.realize, {self.buffer}, {self.buffer}, f"copy {self.buffer.name} of block {self.realize.block.name}")
        if any(self.buffer in scopes.asked_of(r) for r in tree.realizes(self.loop)):
            self.refuse("it decides whether blocks run")

    def refuse(self, why: str) -> NoReturn:
        """Raise, with the block shown."""
        refuse(self.tree, self.realize, f"cannot copy {self.buffer.name} in each iteration of loop {self.loop.loop_var.name}", why)

    def users(self, written: bool) -> list[BlockRealize]:
        """The blocks under the loop that read the buffer, or write it, in order."""
        found = scopes.writers if written else scopes.readers
        return [r for r in found(self.tree, self.scope, self.buffer) if self.tree.under(r, self.loop)]

    def touching_in_threads(self) -> list[BlockRealize]:
        """The blocks that read or write the buffer in threads that have the copy together."""
        around = [x for x in self.together if not is_one(x.extent)][:1]
        return [r for x in around for r in self.tree.realizes(x) if self.buffer in scopes.writes_of(r.block) | scopes.needed_by(r)]

    def part(self, realize: BlockRealize) -> int:
        """The number of the loop's statement that a block is in."""
        return next(k for k, p in enumerate(self.parts) if self.tree.under(realize, p))

    def read(self) -> Change:
        """The program with a copy in front of the first part that reads."""
        readers = self.users(written=False)
        at = min(map(self.part, readers))
        late = [w for w in self.users(written=True) if self.part(w) >= at]
        if late:
            self.refuse(f"block {late[0].block.name} writes it where it would be read in the copy")
        if self.together and any(self.tree.under(w, self.together[0]) for w in scopes.writers(self.tree, self.scope, self.buffer)):
            self.refuse("threads would copy what others of them are still to write")
        region: Region | None = None
        for r in readers:
            loops = [self.loop, *inner_loops(self.tree, r, self.loop)]
            inits.require_told_init(self.tree, r, self.buffer, loops, f"copy {self.buffer.name} in each iteration of {self.loop.loop_var.name}")
            for read in regions_of(r.block, self.buffer, written=False):
                part = touched(self.tree, r, read, self.loop, self.an)
                require_known_place(self.tree, r, self.buffer, part, self.together[0] if self.together else self.loop)
                box = self.relaxed(BufferRegion(self.buffer, part), domain(self.together))
                region = box if region is None else union(region, box, self.an)
        assert region is not None
        parts = [*self.parts[:at], *(replace_buffers(p, {self.buffer: self.copy}) for p in self.parts[at:])]
        return self.insert(parts, at, self.copied(self.buffer, self.copy, region))

    def write(self) -> Change:
        """The program with a copy behind the last part that writes."""
        writers, readers = self.users(written=True), self.users(written=False)
        at = max(map(self.part, writers)) + 1
        early = [r for r in readers if self.part(r) < at]
        if len(writers) > 1:
            self.refuse(f"blocks {writers[0].block.name} and {writers[1].block.name} write it")
        sharing.require_own_condition(self.tree, self.realize, f"copy {self.buffer.name}")
        others = [r for r in self.touching_in_threads() if r is not self.realize and r not in early]
        if others:
            self.refuse(f"threads would overwrite with their copies what block {others[0].block.name} reads or writes")
        chain = [x for x in self.tree.loops(self.realize) if x is self.loop or self.tree.under(self.loop, x)]
        if not covered(self.tree, chain, self.buffer, list(dict.fromkeys((*writers, *early)))):
            self.refuse("what is read of it in an iteration is not all stored there before")
        box = self.stored_box()
        if box is None or not stores_all(self.tree, self.realize, self.buffer, box=box):
            self.refuse(f"block {self.realize.block.name} may leave out elements that would be copied")
        written = regions_of(self.realize.block, self.buffer, written=True)
        require_known_place(self.tree, self.realize, self.buffer, written[0].region, self.loop)
        region = self.relaxed(BufferRegion(self.buffer, written[0].region), box)
        parts = [*(replace_buffers(p, {self.buffer: self.copy}) for p in self.parts[:at]), *self.parts[at:]]
        return self.insert(parts, at, self.copied(self.copy, self.buffer, region))

    def relaxed(self, region: BufferRegion, over: dict[Var, Range]) -> Region:
        """A region in all of what some variables are."""
        return tuple(Range(self.an.simplify(r.min), self.an.simplify(r.extent)) for r in estimate_region(region, over, an=self.an)) if over else region.region

    def stored_box(self) -> dict[Var, Range] | None:
        """What the block's variables are in one iteration of the loop, in all threads that have the copy together; None where that is no box."""
        loops = domain([*self.together, *inner_loops(self.tree, self.realize, self.loop)])
        if not independent(loops) or not all(has_iterations(r.extent, self.an) for r in loops.values()):
            return None
        try:
            found = detect_iter_map(self.realize.iter_values, loops, self.realize.predicate, an=self.an)
        except ArithError:
            return None
        plain = all(not s.splits or self.an.prove_equal(s.splits[0].scale, 1) for s in found.indices)
        limits = len(conjuncts(self.realize.predicate))
        if not plain or limits:
            return None
        return {iv.var: Range(self.an.simplify(s.base), self.an.simplify(n)) for iv, s, n in zip(self.realize.block.iter_vars, found.indices, found.extents())}

    def copied(self, source: Buffer, target: Buffer, region: Region) -> BlockRealize:
        """A block that copies a region, in terms of the loops around."""
        inner = {x.loop_var for r in self.tree.realizes(self.loop) for x in inner_loops(self.tree, r, self.loop)}
        require_seen(self.tree, self.realize, self.buffer, region, inner, f"copy {self.buffer.name} in each iteration of {self.loop.loop_var.name}")
        around = {x.loop_var: x for x in self.tree.loops(self.loop)} | {self.loop.loop_var: self.loop}
        used = dict.fromkeys(v for r in region for e in (r.min, r.extent) for v in _in_order(e) if v in around)
        ivs = [IterVar(Var(f"v{k}", v.dtype), Range(around[v].min, around[v].extent), IterKind.SPATIAL) for k, v in enumerate(used)]
        table = {v: iv.var for v, iv in zip(used, ivs)}
        region = tuple(Range(substitute(r.min, table), substitute(r.extent, table)) for r in region)
        loops = [serial(f"ax{k}", r.extent, r.min) for k, r in enumerate(region)]
        at = tuple(tir.add(r.min, x.loop_var) for r, x in zip(region, loops))
        store: Stmt = BufferStore(target, source[at], at)
        with self.an.scope() as an:
            for iv in ivs:
                an.bind(iv.var, iv.dom)
            inside = [c for r, n in zip(region, self.buffer.shape) for c in (tir.le(tir.const(0, r.min.dtype), r.min), tir.le(end(r), n)) if not an.prove(c)]
        if inside:
            limits = [c for i, n in zip(at, self.buffer.shape) for c in (i >= 0, i < n)]
            store = tir.If(tir.logical_and(*limits), store)
        name = unique_block_name(self.tree, self.copy.name)
        block = Block(tuple(ivs), (BufferRegion(source, region),), (BufferRegion(target, region),), name, wrap(loops, store),
                      annotations=Attrs({AUTO_COPY: True}))
        return BlockRealize(tuple(used), TRUE, block)

    def insert(self, parts: list[Stmt], at: int, copy: BlockRealize) -> Change:
        """The program with a copy at a position of the loop's statements."""
        changed = self.tree.edit({self.loop.body: tir.seq(*parts[:at], copy, *parts[at:])})
        scope = changed.nodes[self.scope.token]
        return Change(changed.edit({scope: scope.replace(alloc_buffers=(*scope.alloc_buffers, self.copy))}), copy.block.token)


def _in_order(e: Expr) -> list[Var]:
    """The variables of an expression, as they occur."""
    known = free_vars(e)
    return [n for n in walk(e) if type(n) is Var and n in known]
