# SPDX-License-Identifier: Apache-2.0
"""New stages: where a copy goes between the blocks that write a buffer and those that read it, and the copying nest."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from roundel.arith import Analyzer, end, estimate_region, union
from roundel.ir import Buffer, Token, Var, free_vars, substitute, tir
from roundel.ir.dataclass import dataclass
from roundel.ir.tir import Block, BlockRealize, BufferRegion, BufferStore, Expr, For, IterKind, IterVar, Range, Stmt

from .accesses import loads_of
from .copyable import require_seen
from .primitive import refuse
from .rebind import serial, wrap
from .regions import Region, inner_loops, regions_of, run_domain, touched, within_buffers
from .tree import TRUE, Tree, is_true, unique_block_name


@dataclass(frozen=True)
class Site:
    """A place for a stage: in ``holder``, a statement in the body of the loop or scope ``top``, in front of part ``position``."""

    tree: Tree
    scope: Block
    top: For | Block
    position: int
    holder: Stmt

    @property
    def loop(self) -> For | None:
        """The loop in whose iterations the stage runs; None at the top of the scope."""
        return self.top if isinstance(self.top, For) else None

    def insert(self, stmt: Stmt, changes: Mapping[Stmt, Stmt | None], buffer: Buffer | None) -> Tree:
        """The program with the stage, changes, and a buffer allocated in the scope."""
        parts = list(parts_of(self.holder))
        parts.insert(self.position, stmt)
        changed = self.tree.edit({self.holder: tir.seq(*parts)})
        changed = changed.edit(changes) if changes else changed
        if buffer is None:
            return changed
        scope = changed.nodes[self.scope.token]
        return changed.edit({scope: scope.replace(alloc_buffers=(*scope.alloc_buffers, buffer))})


def parts_of(holder: Stmt) -> tuple[Stmt, ...]:
    """The statements of a sequence, or one alone."""
    return holder.stmts if type(holder) is tir.Seq else (holder,)


def _holder(tree: Tree, top: For | Block, at: Stmt) -> Stmt:
    """The body of ``top``, or of what is declared in it around a statement: a copy there sees what the statement sees."""
    holder = top.body
    while True:
        part = next(p for p in parts_of(holder) if tree.under(at, p))
        if type(part) not in (tir.Allocate, tir.DeclBuffer, tir.Let, tir.AttrStmt):
            return holder
        holder = part.body  # type: ignore[attr-defined]


def place(tree: Tree, first: Sequence[BlockRealize], then: Sequence[BlockRealize], at: BlockRealize, *, early: bool = False) -> Site:
    """The place after the blocks ``first`` and right before ``then`` (at the end without any; ``early``: right after ``first``), as deep as some
    pair of them shares a loop.

    Raises ScheduleError (shown at ``at``) where they are interleaved.
    """
    scope = tree.scope(at)
    shared = [x for a in first for b in then for x in tree.loops(a) if x in tree.loops(b)]
    top: For | Block = max(shared, key=lambda x: len(tree.loops(x)), default=scope)
    holder = _holder(tree, top, at) if tree.under(at, top) else top.body
    parts = parts_of(holder)
    holds = lambda blocks: [k for k, p in enumerate(parts) if any(tree.under(b, p) for b in blocks)]
    low, high = 1 + max(holds(first), default=-1), min(holds(then), default=len(parts))
    if low > high:
        refuse(tree, at, "there is no place for a copy", "blocks that write and blocks that read are interleaved")
    return Site(tree, scope, top, low if early else high, holder)


def after(site: Site, blocks: Sequence[BlockRealize]) -> list[BlockRealize]:
    """Those of the blocks that run after the site in its loop or scope."""
    parts = parts_of(site.holder)[site.position :]
    return [b for b in blocks if any(site.tree.under(b, p) for p in parts)]


def copied_region(site: Site, users: Sequence[BlockRealize], buffer: Buffer, *, written: bool) -> Region:
    """What blocks touch of a buffer in one iteration of the site's loop, or in the scope."""
    an = site.tree.analyzer(site.top, inside=True)
    found = [(u, touched(site.tree, u, r, site.loop, an)) for u in users for r in regions_of(u.block, buffer, written=written)]
    for u, region in found:
        require_known_place(site.tree, u, buffer, region, site.loop)
        require_seen(site.tree, u, buffer, region, {x.loop_var for x in inner_loops(site.tree, u, site.loop)}, f"copy {buffer.name} here")
    return functools.reduce(lambda a, b: union(a, b, an), [region for _, region in found])


def require_known_place(tree: Tree, user: BlockRealize, buffer: Buffer, region: Region, loop: For | None) -> None:
    """What a block touches of a buffer in an iteration of a loop (None: in its scope) can be told before it runs, also where memory tells it."""
    told = [e for r in region for e in (r.min, r.extent)]
    loads = loads_of(*told)
    if not loads:
        return
    top = loop or tree.scope(user)
    an, cannot = tree.analyzer(top, inside=True), f"cannot prepare what block {user.block.name} touches of {buffer.name}"
    if not is_true(user.predicate) or tree.conditions(user, loop):
        refuse(tree, user, cannot, "memory says which part that is, and the block need not run")
    of = tree.memory(user)
    if any(of(w.buffer) is of(a.buffer) for r in tree.realizes(top.body) for w in r.block.writes for a in loads):
        refuse(tree, user, cannot, "memory says which part that is, and changes there")
    if not within_buffers(an, told):
        refuse(tree, user, cannot, "memory says which part that is, and may end before, where a condition in the block leaves it out")


def stored_region(site: Site, realize: BlockRealize, buffer: Buffer) -> Region:
    """What a block stores of a buffer in one iteration of the site's loop, or in the scope; conditions on its variables make it smaller."""
    region, box = copied_region(site, [realize], buffer, written=True), run_domain(site.tree, realize, site.loop)
    found = regions_of(realize.block, buffer, written=True)
    if box is None or len(found) != 1:
        return region
    an = site.tree.analyzer(site.top, inside=True)
    exact = estimate_region(found[0], box, an=an)
    return tuple(r if an.prove(x.min <= r.min) and an.prove(end(r) <= end(x)) else x for r, x in zip(region, exact))


def scope_region(site: Site, buffer: Buffer, region: Region, *, written: bool) -> Region | None:
    """What of a buffer the scope says it touches in one of its instances, where that is a smaller box of a size of its own around ``region``."""
    found = regions_of(site.scope, buffer, written=written)
    if len(found) != 1 or site.scope is site.tree.root:
        return None
    box, an = found[0].region, site.tree.analyzer(site.top, inside=True)
    if any(not v.size for r in box for v in free_vars(r.extent)) or all(map(an.prove_equal, (r.extent for r in box), buffer.shape)):
        return None
    if not all(an.prove(o.min <= r.min) and an.prove(end(r) <= end(o)) for o, r in zip(box, region)):
        return None
    return tuple(Range(r.min, tir.index_const(r.extent.value) if type(r.extent) is tir.IntImm else r.extent) for r in box)


def copy_part(site: Site, source: Buffer, target: Buffer, region: Region, box: Region, name: str) -> tuple[Stmt, Token]:
    """A nest that copies a region of a buffer between it and a buffer of the size of ``box`` around; and its block's token."""
    an = site.tree.analyzer(site.top, inside=True)
    extents = [o.extent if an.prove_equal(r.extent, o.extent) else an.simplify(r.extent) for r, o in zip(region, box)]
    loops = [serial(f"ax{k}", n, n) for k, n in enumerate(extents)]
    ivs = [IterVar(Var(f"v{k}", o.extent.dtype), Range.of(o.extent), IterKind.SPATIAL) for k, o in enumerate(box)]
    values = tuple(an.simplify(r.min - o.min) + x.loop_var for r, o, x in zip(region, box, loops))
    part = tuple(iv.var for iv in ivs)
    whole = tuple(tir.add(an.simplify(o.min), v) for o, v in zip(box, part))
    outer = target if len(target.shape) and all(map(an.prove_equal, source.shape, (o.extent for o in box))) else source
    store = BufferStore(target, source[part], whole) if outer is target else BufferStore(target, source[whole], part)
    block = _copy_block(site.tree, ivs, store, name)
    inside = [c for i, n in zip(whole, outer.shape) for c in (i >= 0, i < n)]
    at = dict(zip(part, values))
    for x in loops:
        an.bind(x.loop_var, Range(x.min, x.extent))
    predicate = an.simplify(tir.logical_and(*(substitute(c, at) for c in inside)))
    return wrap(loops, BlockRealize(values, TRUE if an.prove(predicate) else predicate, block)), block.token  # type: ignore[return-value]


def copy_region(site: Site, source: Buffer, target: Buffer, region: Region, name: str) -> tuple[Stmt, Token]:
    """A nest that copies what of a region lies in the buffer, element by element; and its block's token."""
    an = site.tree.analyzer(site.top, inside=True)
    loops, ivs, values, checks = [], [], [], []
    for k, (r, size) in enumerate(zip(region, source.shape)):
        moving = any(not v.size for v in free_vars(r.min) | free_vars(r.extent))
        dom = Range.of(size) if moving else _clip(an, r, size)
        extent = r.extent if moving else dom.extent
        loops.append(serial(f"ax{k}", extent, extent))
        an.bind(loops[-1].loop_var, Range.of(extent))
        values.append(tir.add(an.simplify(r.min if moving else dom.min), loops[-1].loop_var))
        checks += [values[-1] >= 0, values[-1] < size] if moving else []
        ivs.append(IterVar(Var(f"v{k}", extent.dtype), dom, IterKind.SPATIAL))
    at = tuple(iv.var for iv in ivs)
    block = _copy_block(site.tree, ivs, BufferStore(target, source[at], at), name)
    predicate = an.simplify(tir.logical_and(*checks))
    realize = BlockRealize(tuple(values), TRUE if an.prove(predicate) else predicate, block)
    return wrap(loops, realize), block.token  # type: ignore[return-value]


def _clip(an: Analyzer, r: Range, size: Expr) -> Range:
    """The part of a range in [0, size)."""
    low = r.min if an.prove(r.min >= 0) else an.simplify(tir.max_(r.min, 0))
    high = end(r) if an.prove(end(r) <= size) else tir.min_(end(r), size)
    return Range(low, an.simplify(high - low))


def copy_nest(tree: Tree, ivs: Sequence[IterVar], store: BufferStore, name: str) -> tuple[Stmt, Token]:
    """A nest of loops over the variables around a block that stores one loaded element; and the block's token."""
    loops = [serial(f"ax{k}", iv.dom.extent, iv.var) for k, iv in enumerate(ivs)]
    block = _copy_block(tree, ivs, store, name)
    values = tuple(tir.add(iv.dom.min, x.loop_var) for iv, x in zip(ivs, loops))
    return wrap(loops, BlockRealize(values, TRUE, block)), block.token  # type: ignore[return-value]


def _copy_block(tree: Tree, ivs: Sequence[IterVar], store: BufferStore, name: str) -> Block:
    region = lambda x: BufferRegion(x.buffer, tuple(Range.point(i) for i in x.indices))
    return Block(tuple(ivs), (region(store.value),), (region(store),), unique_block_name(tree, name), store)
