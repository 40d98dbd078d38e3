# SPDX-License-Identifier: Apache-2.0
"""What is added to a sum becomes its start: fuse_reduction_epilogue."""

from __future__ import annotations

from typing import NoReturn

from roundel.ir import Buffer, Var, free_vars, substitute, tir, walk
from roundel.ir.tir import Block, BlockRealize, BufferLoad, BufferStore, Expr

from . import inits, ordering, scopes, sharing
from .primitive import BlockToken, Change, primitive, refuse
from .regions import run_domain, with_access
from .rfactor import starts_neutral
from .tree import Tree
from .updates import family


@primitive
def fuse_reduction_epilogue(tree: Tree, reduction_block: BlockToken, epilogue_block: BlockToken) -> Change:
    """Let a sum start at what a later block adds to it, and drop that block.

        for i, k:                                 for i, k:
            init: C[i] = 0                            init: D[i] = bias[i]
            C[i] = C[i] + A[i, k]         ->          D[i] = D[i] + A[i, k]
        for i: D[i] = C[i] + bias[i]

    The block alone reads the sum. Floating-point numbers are added in another order. What is not added to the sum (a maximum, a clip) would
    hold for every partial sum instead of the last, which is another result: refused.
    """
    return _Epilogue(tree, tree.realize(reduction_block), tree.realize(epilogue_block)).run()


class _Epilogue:
    def __init__(self, tree: Tree, reduction: BlockRealize, epilogue: BlockRealize) -> None:
        self.tree, self.reduction, self.epilogue = tree, reduction, epilogue
        self.sum, self.end = reduction.block.body, epilogue.block.body

    def refuse(self, why: str) -> NoReturn:
        refuse(self.tree, self.epilogue, f"cannot fuse block {self.epilogue.block.name} into block {self.reduction.block.name}", why)

    def run(self) -> Change:
        """The reduction into the epilogue's result, without the epilogue."""
        temp = self.check_sum()
        rest, table = self.check_end(temp)
        out = self.end.buffer  # type: ignore[union-attr]
        at = tuple(substitute(i, table) for i in self.end.indices)  # type: ignore[union-attr]
        partial, total = BufferLoad(temp, self.sum.indices), BufferLoad(out, at)  # type: ignore[union-attr]
        value = self.sum.value  # type: ignore[union-attr]
        body = BufferStore(out, value.replace(**{side: total if getattr(value, side) is partial else getattr(value, side) for side in "ab"}), at)
        block = self.reduction.block.replace(reads=(), writes=(), body=body, init=BufferStore(out, substitute(rest, table), at))
        passed = [r for r in scopes.passed(self.tree, self.epilogue, self.reduction) if r is not self.reduction]
        sharing.require_no_conflict(self.tree, self.epilogue, passed, "fuse")
        changed = self.tree.edit({self.epilogue: None, self.reduction: self.reduction.replace(block=with_access(self.tree, block))})
        scope: Block = changed.nodes[self.tree.scope(self.reduction).token]
        kept = tuple(b for b in scope.alloc_buffers if b is not temp)
        gone = {self.epilogue.block.token: f"fused into {self.reduction.block.name}"}
        return Change(changed.edit({scope: scope.replace(alloc_buffers=kept)}), forward=gone)  # type: ignore[arg-type]

    def check_sum(self) -> Buffer:
        """The buffer of the sum, which only the two blocks touch."""
        tree, block = self.tree, self.reduction.block
        if not scopes.is_reduction(block) or type(self.sum) is not BufferStore or type(block.init) is not BufferStore:
            self.refuse("that is not one reduction with an init")
        assert isinstance(self.sum, BufferStore) and isinstance(block.init, BufferStore)
        if family(self.sum, block) != "Add" or type(self.sum.value) is not tir.Add or not starts_neutral("Add", block.init.value):
            self.refuse("that is no sum that starts at 0")
        partial = BufferLoad(self.sum.buffer, self.sum.indices)
        if [self.sum.value.a, self.sum.value.b].count(partial) != 1:
            self.refuse("that is no sum of one term after another")
        doing = f"fuse block {self.epilogue.block.name} into"
        temp = sharing.require_inner_buffer(tree, block, doing)
        ordering.require_true_axes(tree, block, doing)
        inits.require_single_updates(tree, self.reduction, "fuse")
        inits.require_init_first(tree, self.reduction, "fuse")
        scope = tree.scope(self.reduction)
        if scopes.writers(tree, scope, temp) != [self.reduction] or tree.order[self.epilogue] < tree.order[self.reduction]:
            self.refuse(f"other blocks write {temp.name} too, or the sum comes after")
        sharing.require_only_users(tree, self.reduction, temp, [self.reduction, self.epilogue], f"{doing} block {block.name}")
        return temp

    def check_end(self, temp: Buffer) -> tuple[Expr, dict[Var, Expr]]:
        """What the epilogue adds, and its variables in terms of the reduction's."""
        tree, block, end = self.tree, self.epilogue.block, self.end
        ordering.require_pure(tree, block, "fuse")
        if not scopes.is_complete(block) or type(end) is not BufferStore or type(end.value) is not tir.Add:
            self.refuse("it does not store the sum plus something: anything else would be done to every partial sum")
        assert isinstance(end, BufferStore) and isinstance(self.sum, BufferStore)
        a, b = end.value.a, end.value.b  # type: ignore[attr-defined]
        load, rest = (a, b) if type(a) is BufferLoad and a.buffer is temp else (b, a)
        variables = [iv.var for iv in block.iter_vars]
        if type(load) is not BufferLoad or load.buffer is not temp or any(type(n) is BufferLoad and n.buffer in (temp, end.buffer) for n in walk(rest)):
            self.refuse("it does not store the sum plus something that does not depend on it")
        plain = [i for i in load.indices if type(i) is Var]
        others = [k for k, i in enumerate(load.indices) if type(i) is not Var]
        if set(plain) != set(variables) or len(plain) != len(variables) or any(load.indices[k] is not self.sum.indices[k] for k in others):
            self.refuse(f"its variables are not the indices of {temp.name}")
        table = {i: s for i, s in zip(load.indices, self.sum.indices) if type(i) is Var}
        self.check_domains(table)
        if end.buffer in scopes.reads_of(self.reduction.block):
            self.refuse(f"the reduction reads {end.buffer.name}")
        if scopes.writers(tree, tree.scope(self.epilogue), end.buffer) != [self.epilogue] or free_vars(rest) - set(variables) - set(self.tree.func.params):
            self.refuse(f"other blocks store {end.buffer.name}, or it uses a loop without a variable bound to it")
        return rest, table

    def check_domains(self, table: dict[Var, Expr]) -> None:
        ours, theirs = run_domain(self.tree, self.reduction), run_domain(self.tree, self.epilogue)
        an = self.tree.analyzer(self.tree.scope(self.reduction), inside=True)
        for v, at in table.items():
            same = ours is not None and theirs is not None and type(at) is Var and at in ours
            if not same or not (an.prove_equal(ours[at].min, theirs[v].min) and an.prove_equal(ours[at].extent, theirs[v].extent)):  # type: ignore[index]
                self.refuse("the two do not run on one domain")
