# SPDX-License-Identifier: Apache-2.0
"""cache_index: what a block computes from its variables alone, computed before and looked up."""

from __future__ import annotations

from collections import Counter
from typing import Any

from roundel.arith import has_effect, reads_memory
from roundel.ir import Buffer, Rewriter, Token, Var, decl_buffer, on, substitute, tir, walk
from roundel.ir.tir import Block, BlockRealize, BufferLoad, BufferRegion, BufferStore, Expr, IterKind, IterVar, Range, Stmt

from .copyable import require_fixed_domain
from .kinds import known_scope
from .primitive import BlockToken, Change, primitive
from .rebind import serial, wrap
from .regions import with_access
from .stages import place
from .tree import TRUE, Tree, unique_block_name

_DIVISIONS = (tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod)
_WIDE = (tir.Ramp, tir.Broadcast)


@primitive
def cache_index(tree: Tree, block: BlockToken, storage_scope: str, cse_thresh: int = 0) -> Change:
    """Compute what a block computes from its variables alone in blocks of their own, and look it up; gives back these blocks.

                                            for ax0: index_var_0[ax0] = ax0 // 4
        for i: B[i] = A[i // 4]     ->      for i: B[i] = A[index_var_0[i]]

    Expressions that occur less than ``cse_thresh`` times are taken apart.
    """
    node: Block = tree.nodes[block]
    realize = tree.realize(block)
    known_scope(tree, realize, storage_scope)
    domains = {iv.var: iv.dom for iv in node.iter_vars}
    require_fixed_domain(tree, realize, node.iter_vars, f"cache indices of block {node.name}")  # (tables stand in front of all loops)
    found = _computed(node, set(domains), int(cse_thresh))
    table: dict[Expr, Expr] = {}
    tokens: list[Token] = []
    regions: list[BufferRegion] = []
    changed = tree
    for k, e in enumerate(found):
        used = list(dict.fromkeys(v for v in walk(e) if type(v) is Var))
        buffer = decl_buffer(tuple(domains[v].extent for v in used), e.dtype, f"index_var_{k}", scope=storage_scope)
        table[e] = BufferLoad(buffer, tuple(used))
        regions.append(BufferRegion(buffer, tuple(Range.point(v) for v in used)))
        here = changed.realize(block)
        nest, token = _index_block(changed, e, used, domains, buffer, f"index_{k}")
        changed = place(changed, [], [here], here).insert(nest, {}, buffer)
        tokens.append(token)
    if not found:
        return Change(tree, [])
    now = changed.nodes[block]
    looked_up = _LookUp(tree, table)
    new = now.replace(body=looked_up.rewrite(now.body), init=None if now.init is None else looked_up.rewrite(now.init), reads=(*now.reads, *regions))
    return Change(changed.edit({now: new}), tokens)


def _index_block(tree: Tree, e: Expr, used: list[Var], domains: dict[Var, Range], buffer: Buffer, name: str) -> tuple[Stmt, Token]:
    ivs = tuple(IterVar(Var(f"v{k}", v.dtype), domains[v], IterKind.SPATIAL) for k, v in enumerate(used))
    at = tuple(iv.var for iv in ivs)
    store = BufferStore(buffer, substitute(e, dict(zip(used, at))), at)
    region = BufferRegion(buffer, tuple(Range.point(v) for v in at))
    block = Block(ivs, (), (region,), unique_block_name(tree, name), store)
    loops = [serial(f"ax{k}", iv.dom.extent, iv.var) for k, iv in enumerate(ivs)]
    return wrap(loops, BlockRealize(tuple(x.loop_var for x in loops), TRUE, block)), block.token  # type: ignore[return-value]


def _computed(block: Block, variables: set[Var], least: int) -> list[Expr]:
    """The largest expressions of a block's variables alone that occur ``least`` times, the largest first."""
    counts: Counter[Expr] = Counter()
    for s in walk(block):
        if type(s) is BufferStore:
            for e in (*s.indices, s.value):
                counts.update(_largest(e, variables))
    size = lambda e: sum(1 for _ in walk(e))
    kept: list[Expr] = []
    while counts:
        e = max(counts, key=size)  # what is taken apart adds to what is smaller
        n = counts.pop(e)
        if n >= least:
            kept.append(e)
            continue
        for part in _parts(e):
            for inner in _largest(part, variables):
                counts[inner] += n
    return kept


def _largest(e: Expr, variables: set[Var]) -> list[Expr]:
    """The largest parts of an expression that are made of the variables alone, and can be computed whatever they are."""
    if type(e) is Var or not _parts(e):
        return []
    if _alone(e, variables):
        return [e]
    return [x for part in _parts(e) for x in _largest(part, variables)]


def _alone(e: Expr, variables: set[Var]) -> bool:
    inside = list(walk(e))
    used = {n for n in inside if type(n) is Var}
    divides = any(type(n) in _DIVISIONS and type(n.b) is not tir.IntImm for n in inside)  # type: ignore[attr-defined]
    plain = not divides and not any(type(n) in _WIDE for n in inside)
    return bool(used) and used <= variables and plain and not reads_memory(e) and not has_effect(e)


def _parts(e: Expr) -> list[Expr]:
    return [c for c in e._below() if isinstance(c, Expr)]


class _LookUp(Rewriter):
    """Expressions become loads, which the blocks inside then read."""

    def __init__(self, tree: Tree, table: dict[Expr, Expr]) -> None:
        self.tree, self.table = tree, table

    @on(Block)
    def _block(self, block: Block) -> Block:
        new = self.generic(block)
        return new if new is block else with_access(self.tree, new)

    def rewrite(self, node: Any) -> Any:
        return self.table[node] if isinstance(node, Expr) and node in self.table else super().rewrite(node)
