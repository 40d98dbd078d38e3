# SPDX-License-Identifier: Apache-2.0
"""Sums of exponentials relative to a maximum that is not known yet: what was summed up so far is scaled when it grows (online softmax)."""

from __future__ import annotations

from typing import NoReturn

from roundel.ir import Buffer, Var, decl_buffer, free_vars, substitute, tir, walk
from roundel.ir.dataclass import dataclass
from roundel.ir.tir import Block, BlockRealize, BufferLoad, BufferStore, Expr, For, IterKind, Stmt

from . import scopes
from .loops import require_plain
from .primitive import Change, Loop, primitive, refuse
from .rebind import rebind, serial, wrap
from .regions import bindings, inner_loops, with_access
from .tree import Tree, fresh_copy, is_one, unique_block_name


@primitive
def merge_online(tree: Tree, largest: Loop, sums: Loop) -> Change:
    """Merge a loop that finds maxima with the next one, which sums up exponentials relative to them.

    for i: T[i] = lowest                                     for i: T[i] = lowest
    for k:                                                   for k:
        for i, m: T[i] = max(T[i], S[k * 8 + m, i])              for i: last[i] = T[i]
    for k:                                                       for i, m: T[i] = max(T[i], S[k * 8 + m, i])
        for m, i: E[k * 8 + m, i] = exp(S[..] - T[i])    ->      for i: scale[i] = exp(last[i] - T[i])
        for i: P[k, i] = 0                                       for m, i: E[k * 8 + m, i] = exp(S[..] - T[i])
        for m, i: P[k, i] += E[k * 8 + m, i] * V[..]             ...
        for i: C[i] += P[k, i]                                   for i: C[i] = C[i] * scale[i] + P[k, i]

    The maximum starts at a finite number, so that differences to it are numbers. Exponentials are used only in sums of products with
    them that an iteration finishes (``P``), and these only in sums over the loop (``C``, whose init is elsewhere: 0).
    """
    return _Online(tree, tree.nodes[largest], tree.nodes[sums]).run()


@dataclass(frozen=True)
class _Made:
    """What a block writes, in terms of the variables of its indices: which maximum it is relative to."""

    variables: tuple[Expr, ...]
    top: tuple[Expr, ...]

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The maximum's indices where it is read at these."""
        table = dict(zip(self.variables, indices, strict=True))
        return tuple(substitute(i, table) for i in self.top)


class _Online:
    def __init__(self, tree: Tree, first: For, second: For) -> None:
        self.tree, self.first, self.second = tree, first, second
        parent, an = tree.parents[first], tree.analyzer(first)
        if tree.parents[second] is not parent or type(parent) is not tir.Seq or parent.stmts.index(second) != parent.stmts.index(first) + 1:
            self.refuse("they are not neighbours")
        if not an.prove_equal(first.extent, second.extent):
            self.refuse("their extents differ")
        for loop in (first, second):
            require_plain(tree, loop, "merge")
        self.before = parent.stmts[: parent.stmts.index(first)]

    def refuse(self, why: str) -> NoReturn:
        """Raise, with the first loop shown."""
        refuse(self.tree, self.first, f"cannot merge loops {self.first.loop_var.name} and {self.second.loop_var.name}", why)

    def run(self) -> Change:
        """Both loops as one."""
        top = self.maximum()
        start = self.start(top)
        sums = self.sums(top)
        last, scale = (decl_buffer(top.shape, top.dtype, f"{top.name}_{what}", scope=top.scope) for what in ("last", "scale"))
        index = start.block.body.indices
        now, then = BufferLoad(top, index), BufferLoad(last, index)
        copy = self.elementwise(start, BufferStore(last, now, index), last.name)
        ratio = self.elementwise(start, BufferStore(scale, tir.Call("exp_flushed", (then - now,), top.dtype), index), scale.name)
        merged = serial(f"{self.first.loop_var.name}_{self.second.loop_var.name}_m", self.first.extent, self.first.loop_var)
        scaled = self.tree.edit({r: self.scaled(r, BufferLoad(scale, at)) for r, at in sums.items()})
        second = scaled.nodes[self.second.token]
        bodies = [rebind(scaled, x, x.body, {x.loop_var: x.min + merged.loop_var}, [merged]) for x in (scaled.nodes[self.first.token], second)]
        made = wrap([merged], tir.seq(copy, bodies[0], ratio, bodies[1]))
        changed = scaled.edit({scaled.nodes[self.first.token]: made, second: None})
        scope = changed.scope(changed.nodes[merged.token])
        changed = changed.edit({scope: scope.replace(alloc_buffers=(*scope.alloc_buffers, last, scale))})
        return Change(changed, merged.token, {x.token: f"merged into {merged.loop_var.name}" for x in (self.first, self.second)})

    def maximum(self) -> Buffer:
        """What the first loop reduces: one maximum, which the second loop only reads."""
        inside = self.tree.realizes(self.first.body)
        reducing = [r for r in inside if _carries(r, self.first.loop_var)]
        store = reducing[0].block.body if len(reducing) == 1 and reducing[0].block.init is None else None
        if type(store) is not BufferStore or not _is_maximum(store):
            self.refuse("the first does not just find maxima, with their init elsewhere")
        written = {b for r in inside for b in scopes.writes_of(r.block)}
        there = [r.block for r in self.tree.realizes(self.second.body)]
        if any(written & scopes.writes_of(b) for b in there) or written & {b for x in there for b in scopes.reads_of(x)} - {store.buffer}:
            self.refuse("the second uses more of the first than the maxima")
        if any(scopes.writes_of(b) & scopes.reads_of(r.block) for b in there for r in inside):
            self.refuse("the first reads what the second writes")
        return store.buffer

    def start(self, top: Buffer) -> BlockRealize:
        """The init of the maximum, right before."""
        found = [r for s in self.before for r in self.tree.realizes(s) if top in scopes.writes_of(r.block)]
        store = found[0].block.body if len(found) == 1 else None
        if type(store) is not BufferStore or type(store.value) is not tir.FloatImm or abs(store.value.value) == float("inf"):
            self.refuse(f"{top.name} does not start at one finite number")
        return found[0]

    def sums(self, top: Buffer) -> dict[BlockRealize, tuple[Expr, ...]]:
        """Blocks that sum up over the second loop what is relative to a maximum, and which."""
        made: dict[Buffer, _Made] = {}
        found: dict[BlockRealize, tuple[Expr, ...]] = {}
        inside = self.tree.realizes(self.second.body)
        for r in inside:
            used = [made[b].at(load.indices) for load in _loads(r.block) if (b := load.buffer) in made]
            if top in scopes.reads_of(r.block):
                made[_store(self, r).buffer] = self.exponential(r, top)
            elif _carries(r, self.second.loop_var):
                if len(used) == 1:
                    found[r] = self.sum_of(r, used[0])
            elif used:
                if any(u != used[0] for u in used):
                    self.refuse(f"block {r.block.name} takes together what is relative to different maxima")
                made[_store(self, r).buffer] = self.product(r, used[0], made)
        users = [r for b in made for r in scopes.readers(self.tree, self.tree.scope(self.second), b)]
        finished = {b for r in found for b in scopes.writes_of(r.block)}
        if any(r not in inside for r in users) or any(finished & scopes.reads_of(r.block) for r in inside if r not in found):
            self.refuse("what is relative to a maximum is used elsewhere too")
        if any(_carries(r, self.second.loop_var) and r not in found for r in inside):
            self.refuse("the second sums up something else too")
        return found

    def exponential(self, realize: BlockRealize, top: Buffer) -> _Made:
        """``exp(x - T[..])``, or zero by a condition."""
        store = _store(self, realize)
        value = store.value.true_value if type(store.value) is tir.Select and _is_zero(store.value.false_value) else store.value
        shift = value.args[0] if type(value) is tir.Call and value.op in ("exp", "exp_flushed") else None
        if type(shift) is not tir.Sub or type(shift.b) is not BufferLoad or shift.b.buffer is not top or not scopes.is_complete(realize.block):
            self.refuse(f"block {realize.block.name} is no exponential of a difference to a maximum")
        if sum(type(n) is BufferLoad and n.buffer is top for n in walk(store.value)) != 1:
            self.refuse(f"block {realize.block.name} uses a maximum twice")
        return _Made(store.indices, shift.b.indices)

    def product(self, realize: BlockRealize, top: tuple[Expr, ...], made: dict[Buffer, _Made]) -> _Made:
        """A sum, finished within an iteration, of what is relative to a maximum, times something else."""
        store = _store(self, realize)
        term = _added(store)
        parts = [term.a, term.b] if type(term) is tir.Mul else [term]
        if term is None or sum(any(type(n) is BufferLoad and n.buffer in made for n in walk(p)) for p in parts) > 1:
            self.refuse(f"block {realize.block.name} is no sum of products with exponentials")
        if not all(free_vars(i) <= {v for v in store.indices} for i in top):
            self.refuse(f"block {realize.block.name} sums up what is relative to different maxima")
        return _Made(store.indices, top)

    def sum_of(self, realize: BlockRealize, top: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The maximum for ``C += P``, once for each element of C in an iteration."""
        values, block = bindings(realize), realize.block
        reduce = [iv.var for iv in block.iter_vars if iv.kind is not IterKind.SPATIAL]
        spatial = frozenset().union(*(free_vars(values[iv.var]) for iv in block.iter_vars if iv.kind is IterKind.SPATIAL))
        idle = [x for x in inner_loops(self.tree, realize, self.second) if x.loop_var not in spatial and not is_one(x.extent)]
        if block.init is not None or idle or type(_added(_store(self, realize))) is not BufferLoad:
            self.refuse(f"block {block.name} does not just add what an iteration has finished")
        if any(free_vars(i) & set(reduce) for i in top):
            self.refuse(f"block {block.name} adds what is relative to different maxima")
        return top

    def scaled(self, realize: BlockRealize, scale: Expr) -> BlockRealize:
        """``C = C * scale + P``, in the order of the loop."""
        block, store = realize.block, _store(self, realize)
        own = BufferLoad(store.buffer, store.indices)
        kinds = tuple(iv if iv.kind is IterKind.SPATIAL else iv.replace(kind=IterKind.SCAN) for iv in block.iter_vars)
        body = BufferStore(store.buffer, own * scale + _added(store), store.indices)
        return realize.replace(block=with_access(self.tree, block.replace(iter_vars=kinds, body=body)))

    def elementwise(self, start: BlockRealize, store: BufferStore, name: str) -> Stmt:
        """A copy of the nest that starts the maximum, with another body."""
        outside = self.tree.loops(self.first)
        block: Block = start.block.replace(body=store, name=unique_block_name(self.tree, name))
        inside = [x for x in self.tree.loops(start) if x not in outside]
        return fresh_copy(wrap(inside, start.replace(block=with_access(self.tree, block))))[0]


def _store(work: _Online, realize: BlockRealize) -> BufferStore:
    if type(realize.block.body) is not BufferStore:
        work.refuse(f"block {realize.block.name} is more than one store")
    return realize.block.body


def _loads(block: Block) -> list[BufferLoad]:
    own = scopes.writes_of(block)
    return list(dict.fromkeys(n for n in walk(block.body) if type(n) is BufferLoad and n.buffer not in own))


def _carries(realize: BlockRealize, v: Var) -> bool:
    return any(iv.kind is not IterKind.SPATIAL and v in free_vars(e) for iv, e in zip(realize.block.iter_vars, realize.iter_values, strict=True))


def _is_zero(e: Expr) -> bool:
    return type(e) is tir.FloatImm and e.value == 0


def _is_own(e: Expr, store: BufferStore) -> bool:
    return type(e) is BufferLoad and e.buffer is store.buffer and e.indices == store.indices


def _added(store: BufferStore) -> Expr | None:
    """What a store adds to its own element."""
    value = store.value
    return value.b if type(value) is tir.Add and _is_own(value.a, store) else None


def _is_maximum(store: BufferStore) -> bool:
    """``select(T < x, x, T)`` or ``max(T, x)``."""
    value = store.value
    if type(value) is tir.Max:
        return _is_own(value.a, store)
    return (type(value) is tir.Select and type(value.condition) is tir.LT and _is_own(value.false_value, store)
            and value.condition.a is value.false_value and value.condition.b is value.true_value)
