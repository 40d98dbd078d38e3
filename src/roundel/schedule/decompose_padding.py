# SPDX-License-Identifier: Apache-2.0
"""A pad as a block that fills and a block that copies: decompose_padding."""

from __future__ import annotations

from itertools import takewhile

from roundel.arith import Analyzer, reads_memory
from roundel.arith.compare import SLACK
from roundel.ir import Rewriter, Var, free_vars, on, substitute, tir
from roundel.ir.tir import Block, BlockRealize, BufferLoad, BufferStore, Expr, For, IntImm, Range, Stmt

from . import ordering, scopes, sharing
from .copyable import require_told_by_loops
from .handed_on import covered
from .primitive import BlockToken, Change, Loop, primitive, refuse
from .rebind import wrap
from .regions import bindings, with_access
from .tree import TRUE, Tree, bind_loop, conjuncts, fresh_copy, is_one, is_true, is_zero, unique_block_name


@primitive
def decompose_padding(tree: Tree, block: BlockToken, loop: Loop) -> Change:
    """Split a padding block into a block that fills with the pad value, in front of ``loop``, and a copy of the inside.

    for i in range(n + 2):                                             for i in range(n + 2): P[i] = 0
        P[i] = if_then_else(1 <= i < n + 1, A[i - 1], 0)       ->      for i in range(n): P[i + 1] = A[i]

    The copy runs over the inside alone where its loops are its variables; elsewhere (in tiles) a condition leaves out the rest. Other blocks in
    ``loop`` may read what was padded after it. Gives back the filling block.
    """
    return _Decompose(tree, block, tree.nodes[loop]).run()


class _Decompose:
    def __init__(self, tree: Tree, block: BlockToken, loop: For) -> None:
        self.tree, self.loop = tree, loop
        self.block: Block = tree.nodes[block]
        self.realize = tree.realize(block)
        store = self.block.body
        if type(store) is not BufferStore or type(store.value) not in (tir.IfThenElse, tir.Select) or not scopes.is_complete(self.block):
            self.refuse("it does not store if_then_else(inside, value, pad)")
        self.store, self.condition = store, store.value.condition  # type: ignore[attr-defined]
        self.value, self.pad = store.value.true_value, store.value.false_value  # type: ignore[attr-defined]
        ordering.require_true_axes(tree, self.block, "decompose")
        if free_vars(self.pad) or reads_memory(self.pad):
            self.refuse("the value outside is not a constant")
        if reads_memory(self.condition):
            self.refuse("its condition reads memory")
        if tree.analyzer(self.block, inside=True).prove(self.condition):
            self.refuse("its condition always holds, so nothing is padded")
        loops = tree.loops(self.realize)
        if loop not in loops:
            refuse(tree, self.realize, f"loop {loop.loop_var.name} is not around block {self.block.name} in its scope")
        between = list(takewhile(lambda s: s is not loop, tree.ancestors(self.realize)))
        if any(type(s) not in (For, tir.Seq) for s in between):
            self.refuse("there are conditions or declarations between it and the loop")
        doing = f"decompose block {self.block.name}"
        require_told_by_loops(tree, self.realize, doing)
        sharing.require_only_blocks(tree, self.realize, {store.buffer}, set(), doing)
        self.inner = loops[loops.index(loop) :]
        self.require_filled_first()

    def refuse(self, why: str) -> None:
        refuse(self.tree, self.realize, f"block {self.block.name} is no padding that can be decomposed here", why)

    def require_filled_first(self) -> None:
        """Whatever else in the loop touches the result reads it, after it is made."""
        of = self.tree.memory(self.realize)
        target = of(self.store.buffer)
        for s in scopes.leaves(self.loop):
            if s is self.realize:
                continue
            if type(s) is not BlockRealize:
                self.refuse("there are statements outside of blocks in the loop")
            assert type(s) is BlockRealize
            stores = any(of(w.buffer) is target for w in s.block.writes)
            reads = any(of(r.buffer) is target for r in s.block.reads)
            if stores or (reads and self.tree.order[s] < self.tree.order[self.realize]):
                self.refuse(f"block {s.block.name} touches {self.store.buffer.name} in the loop before it would be padded, or stores it")
            chain = [x for x in self.inner if x in self.tree.loops(s)]
            if (reads or any(of(b) is target for b in scopes.asked_of(s))) and not covered(self.tree, chain, self.store.buffer, [self.realize, s]):
                self.refuse(f"block {s.block.name} may read elements of {self.store.buffer.name} that are not made there yet")

    def run(self) -> Change:
        """The fill in front of the loop, the copy in place of the block."""
        tree = self.tree
        an = tree.analyzer(self.loop)
        settled = self.realize.replace(iter_values=tuple(map(an.simplify, self.realize.iter_values)))
        fill = with_access(tree, self.block.replace(body=self.store.replace(value=self.pad), name=unique_block_name(tree, self.block.name + "_pad_const")))
        front, _ = fresh_copy(wrap(self.inner, settled.replace(block=fill)))
        copy, shrunk = self.copy(settled)
        changed = tree.edit({self.realize: copy})
        for x in shrunk:
            now = changed.nodes[x.token]
            changed = changed.edit({now: now.replace(extent=x.extent)})
        outer = changed.nodes[self.loop.token]
        changed = changed.edit({outer: tir.seq(front, outer)})
        ordering.require_no_races(changed, self.store.buffer, f"decompose block {self.block.name}")
        return Change(changed, next(b.token for b in changed.blocks() if b.token not in tree.nodes))

    def copy(self, realize: BlockRealize) -> tuple[BlockRealize, list[For]]:
        """The block on the inside alone, and the loops that run over just that."""
        limits = self.limits()
        values = bindings(realize)
        left = [] if limits is not None else [self.condition]
        box = limits or {}
        single = is_true(realize.predicate) and all(self.tree.parents[b] is a for a, b in zip(self.inner, [*self.inner[1:], self.realize]))
        direct = {x.loop_var: x for x in self.inner if single and is_zero(x.min)}
        shift: dict[Var, Expr] = {}
        ivs, at, checks, shrunk = [], [], [], []
        for iv in self.block.iter_vars:
            value, dom = values[iv.var], box.get(iv.var)
            if dom is None:
                ivs.append(iv)
                at.append(value)
                continue
            v = Var(iv.var.name, iv.var.dtype)
            shift[iv.var] = v + dom.min
            ivs.append(iv.replace(var=v, dom=Range(tir.const(0, v.dtype), dom.extent)))
            alone = type(value) is Var and value in direct and not any(value in free_vars(o) for u, o in values.items() if u is not iv.var)
            if alone:
                shrunk.append(direct[value].replace(extent=dom.extent))
                at.append(value)
            else:
                at.append(self.shifted(value, dom))
                checks += [dom.min <= value, value < dom.min + dom.extent]
        body = _Shift(shift).rewrite(self.store.replace(value=self.value))
        block = with_access(self.tree, self.block.replace(iter_vars=tuple(ivs), body=body))
        kept = [c for c in (*checks, *(substitute(c, values) for c in left), *conjuncts(realize.predicate)) if not self.holds(c)]
        return BlockRealize(tuple(at), tir.logical_and(*kept) if kept else TRUE, block), shrunk

    def shifted(self, value: Expr, dom: Range) -> Expr:
        return self.tree.analyzer(self.realize, units=False).simplify(value - dom.min)

    def holds(self, condition: Expr) -> bool:
        an = self.tree.analyzer(self.loop, inside=True)
        for x in self.inner[1:]:
            bind_loop(an, x)
        return an.prove(condition)

    def limits(self) -> dict[Var, Range] | None:
        """The domain of each limited variable where the condition holds; None where that is no box."""
        doms = {iv.var: iv.dom for iv in self.block.iter_vars}
        low: dict[Var, Expr] = {}
        high: dict[Var, Expr] = {}
        an = Analyzer()
        for c in conjuncts(self.condition):
            found = _limit(an, c)
            if found is None or found[0] not in doms:
                return None
            v, least, bound = found
            mine = low if least else high
            if v in mine:
                return None
            mine[v] = bound
        box = {}
        for v in dict.fromkeys((*low, *high)):
            start, stop = low.get(v, doms[v].min), high.get(v, doms[v].min + doms[v].extent)
            inside = self.tree.analyzer(self.block)
            if not (inside.prove(start >= doms[v].min) and inside.prove(stop <= doms[v].min + doms[v].extent) and inside.prove(start < stop)):
                return None
            box[v] = Range(an.simplify(start), an.simplify(stop - start))
        return {v: r for v, r in box.items() if not (is_zero(r.min) and an.prove_equal(r.extent, doms[v].extent)) or not is_one(r.extent)}


def _limit(an: Analyzer, condition: Expr) -> tuple[Var, bool, Expr] | None:
    """The variable that a condition limits, whether from below, and its least value or the one after its greatest."""
    if type(condition) not in SLACK or not condition.is_index:
        return None
    slack = SLACK[type(condition)](condition)
    for v in free_vars(slack):
        if v.size:
            continue
        step = an.simplify(substitute(slack, {v: v + 1}) - slack)
        rest = an.simplify(substitute(slack, {v: tir.const(0, v.dtype)}))
        if type(step) is IntImm and step.value in (1, -1) and all(w.size for w in free_vars(rest)):
            return v, step.value == 1, an.simplify(tir.const(0, v.dtype) - rest if step.value == 1 else rest + 1)
    return None


class _Shift(Rewriter):
    """Block variables become others plus an offset; indices follow in simple form."""

    def __init__(self, table: dict[Var, Expr]) -> None:
        self.table, self.an = table, Analyzer()

    @on(Var)
    def _variable(self, v: Var) -> Expr:
        return self.table.get(v, v)

    @on(BufferLoad)
    def _load(self, load: BufferLoad) -> Expr:
        return load.replace(indices=tuple(self.an.simplify(self.rewrite(i)) for i in load.indices))

    @on(BufferStore)
    def _store(self, store: BufferStore) -> Stmt:
        indices = tuple(self.an.simplify(self.rewrite(i)) for i in store.indices)
        return store.replace(value=self.rewrite(store.value), indices=indices)
