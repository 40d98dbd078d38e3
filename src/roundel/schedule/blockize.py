# SPDX-License-Identifier: Apache-2.0
"""blockize: a loop nest becomes one block with a block inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roundel.arith import Analyzer, Division, subspace_divide
from roundel.ir import Rewriter, Var, free_vars, substitute, tir
from roundel.ir.errors import ArithError
from roundel.ir.tir import Block, BlockRealize, Expr, For, IterKind, IterVar, Range, Stmt

from .accesses import loads_of, variables_of
from .inits import may_be_idle, require_no_idle, require_own_results, require_separate_results, require_start
from .limits import independent
from .ordering import require_steady_bounds
from .primitive import BlockToken, Change, Target, primitive, refuse
from .rebind import serial, wrap
from .regions import domain, with_access
from .scopes import bare_statements, writes_of
from .sharing import require_own_condition
from .stages import parts_of
from .tree import TRUE, Tree, is_one, is_true, is_zero, unique_block_name


@primitive
def blockize(tree: Tree, target: Target | Sequence[BlockToken], preserve_unit_iters: bool = True) -> Change:
    """Make the nest at a loop a block of its own, whose instances are tiles; gives back that block.

        for i0, j0, i1, j1:                          for i0, j0:
            with block("B"):                             with block("B_o"):
                vi = i0 * 16 + i1               ->           vi_o, vj_o = i0, j0
                vj = j0 * 16 + j1                            for i1, j1:
                B(vi, vj)                                        with block("B"):
                                                                     B(vi_o * 16 + vi_i, vj_o * 16 + vj_i)

    Given a block, it is wrapped into one that does a single instance. An init goes to the outer block. With
    ``preserve_unit_iters`` loops of one iteration stay bound to the outer block's variables. Given a list of blocks, their statements below
    the innermost loop around all of them become one block. Everything keeps its order but inits, which go before their tile: its results are its
    own, its reduction starts in it, and no condition cuts it.
    """
    if isinstance(target, list | tuple):
        return _blockize_together(tree, [tree.realize(t) for t in target], preserve_unit_iters)
    node = tree.nodes[target]
    top: Stmt = node if type(node) is For else tree.realize(target)
    found = tree.realizes(top)
    if len(found) != 1:
        refuse(tree, top, "cannot blockize this loop", f"it holds {len(found)} blocks and not just one")
    realize = found[0]
    loops = tree.loops(realize)
    inner = loops[loops.index(top) :] if type(top) is For else []
    if any(tree.parents[x] is not y for x, y in zip([*inner[1:], realize], inner)):
        refuse(tree, top, "cannot blockize this loop", "there are other statements between it and the block")
    if inner:
        require_steady_bounds(tree, inner, "blockize this loop")
    divisions, outer_predicate, inner_predicate = _divide(tree, realize, loops, inner, top)
    if inner and {a.buffer for a in loads_of(outer_predicate)} & writes_of(realize.block):  # it is asked once for a tile
        require_own_condition(tree, realize, "blockize this loop")
    made = _outer_block(tree, realize, divisions, inner, inner_predicate)
    used = [x.loop_var.name for x in loops if x not in inner and x.loop_var in variables_of(made)]
    if used:
        refuse(tree, top, "cannot blockize this loop", f"block {realize.block.name} uses loop {', '.join(used)} without a variable bound to it")
    outside = [x for x in loops if x not in inner] if preserve_unit_iters else []
    values = tuple(_outer_value(d.outer, v, outside) for v, d in zip(realize.iter_values, divisions))
    return Change(tree.edit({top: BlockRealize(values, outer_predicate, made)}), made.token)


def _outer_value(outer: Expr, value: Expr, outside: list[For]) -> Expr:
    """What the outer block's variable is bound to: also a loop of one iteration, where the block's own variable was bound to that."""
    found = [x for x in outside if x.loop_var in free_vars(value)]
    return found[0].loop_var if is_zero(outer) and len(found) == 1 and is_one(found[0].extent) and is_zero(found[0].min) else outer


def _divide(tree: Tree, realize: BlockRealize, loops: list[For], inner: list[For], top: Stmt) -> tuple[tuple[Division, ...], Expr, Expr]:
    an = tree.analyzer(tree.scope(realize), inside=True)
    try:
        found = subspace_divide(realize.iter_values, domain(loops), [x.loop_var for x in inner], realize.predicate, an)
    except ArithError as e:
        refuse(tree, top, f"cannot divide block {realize.block.name} into tiles here", str(e))
    inside = {x.loop_var for x in inner}
    if any(free_vars(d.outer) & inside for d in found.bindings):
        refuse(tree, top, f"cannot divide block {realize.block.name} into tiles here", "the tile is cut by a condition")
    return found.bindings, found.outer_predicate, found.inner_predicate


def _outer_block(
    tree: Tree, realize: BlockRealize, divisions: tuple[Division, ...], inner: list[For], predicate: Expr
) -> Block:
    block = realize.block
    outer_ivs = tuple(IterVar(Var(iv.var.name + "_o", iv.var.dtype), _domain(iv, d), iv.kind) for iv, d in zip(block.iter_vars, divisions))
    update, table, inner_ivs = _tile(tree, realize, divisions, outer_ivs, inner, predicate, together=False)
    require_no_idle(tree, realize, inner, "blockize")
    if block.init is not None and not is_true(predicate):
        why = f"its init would run outside of the condition {realize.predicate.script()}"
        refuse(tree, realize, f"cannot divide block {block.name} into tiles here", why, "decompose_reduction first")
    if block.init is not None and not independent(domain(inner)):
        refuse(tree, realize, f"cannot divide block {block.name} into tiles here", "it has an init, and a loop of the tile says how far another one runs")
    idle = [x.loop_var.name for x in inner if may_be_idle(tree, x)] if block.init is not None else []
    if idle:
        refuse(tree, realize, f"cannot divide block {block.name} into tiles here", f"it has an init, and loop {idle[0]} may have no iteration")
    if block.init is not None:
        require_own_results(tree, realize, "blockize")
        require_separate_results(tree, realize, inner, "blockize")
        require_start(tree, realize, "blockize")
    init = None if block.init is None else _init_nest(tree, block, table, inner_ivs)
    outer = Block(outer_ivs, (), (), unique_block_name(tree, block.name + "_o"), wrap(inner, update), init)
    return with_access(tree, outer)


def _tile(
    tree: Tree, realize: BlockRealize, divisions: Sequence[Division], outer_ivs: Sequence[IterVar], inner: list[For], predicate: Expr, together: bool
) -> tuple[BlockRealize, dict[Var, Expr], list[IterVar]]:
    """The block in terms of the outer block's variables and those of its own; what its variables were; and its own variables."""
    block = realize.block
    inner_ivs, values = [], []
    table: dict[Var, Expr] = {}
    for iv, outer_iv, d in zip(block.iter_vars, outer_ivs, divisions):
        v = outer_iv.var
        alone = is_one(d.inner_extent) and not (together and is_zero(d.outer))
        at = v * d.inner_extent if not is_one(d.outer_extent) or alone else tir.const(0, iv.var.dtype)
        if not is_one(d.inner_extent):
            v = Var(iv.var.name + "_i", iv.var.dtype)
            inner_ivs.append(IterVar(v, Range.of(d.inner_extent), iv.kind))
            base = _base(tree, realize, d, inner)
            values.append(tree.analyzer(realize).simplify(d.inner - base))
            at = at + base + v
        table[iv.var] = at
    body = block.replace(iter_vars=(), reads=(), writes=(), init=block.init if together else None)
    update = with_access(tree, substitute(body, table).replace(iter_vars=tuple(inner_ivs)))
    seen = {d.outer: iv.var for iv, d in zip(outer_ivs, divisions)}
    predicate = _Replace(seen).rewrite(predicate)
    hidden = {x.loop_var for x in tree.loops(realize) if x not in inner} & free_vars(predicate)
    if hidden:
        refuse(
            tree,
            realize,
            f"cannot divide block {block.name} into tiles here",
            f"its condition {realize.predicate.script()} mixes loops of the tile with others",
        )
    return BlockRealize(tuple(values), predicate, update), table, inner_ivs


def _blockize_together(tree: Tree, realizes: list[BlockRealize], keep_units: bool) -> Change:
    """The statements that hold some blocks, below the innermost loop around all of them, become one block."""
    if not realizes or len({tree.scope(r) for r in realizes}) > 1:
        refuse(tree, realizes[0] if realizes else tree.root, "cannot blockize these blocks", "they are not in the same block scope")
    shared = [x for x in tree.loops(realizes[0]) if all(x in tree.loops(r) for r in realizes)]
    top: For | Block = shared[-1] if shared else tree.scope(realizes[0])
    parts = parts_of(top.body)
    mine = [k for k, p in enumerate(parts) if any(tree.under(r, p) for r in realizes)]
    first, last = mine[0], mine[-1]
    others = [r.block.name for p in parts[first : last + 1] for r in tree.realizes(p) if r not in realizes]
    if others or any(bare_statements(p) for p in parts[first : last + 1]):
        refuse(tree, realizes[0], "cannot blockize these blocks", f"{', '.join(others) or 'a statement outside of blocks'} stands among them")
    outer_ivs: list[IterVar] = []
    outer_values: list[Expr] = []
    changes: dict[Stmt, Stmt | None] = {}
    for realize in sorted(realizes, key=lambda r: tree.order[r]):
        loops = tree.loops(realize)
        inner = loops[len(shared) :]
        if inner:
            require_steady_bounds(tree, inner, "blockize these blocks")
        divisions, outside, inside = _divide(tree, realize, loops, inner, realize)
        if not is_true(outside):
            refuse(tree, realize, "cannot blockize these blocks", f"block {realize.block.name} runs in some iterations only: {outside.script()}")
        require_no_idle(tree, realize, inner, "blockize")
        kept = shared if keep_units else []
        values = [_outer_value(d.outer, v, kept) for v, d in zip(realize.iter_values, divisions)]
        ivs = _bound(realize.block, divisions, values, outer_ivs, outer_values)
        reducing = any(iv.kind is IterKind.REDUCE and not is_one(d.outer_extent) for iv, d in zip(realize.block.iter_vars, divisions))
        if realize.block.init is not None and reducing:
            refuse(tree, realize, "cannot blockize these blocks", f"block {realize.block.name} is reducing in the loops around", "decompose_reduction first")
        if realize.block.init is not None:
            require_start(tree, realize, "blockize these blocks")
        changes[realize] = _tile(tree, realize, divisions, ivs, inner, inside, together=True)[0]
    changed = tree.edit(changes)
    body = (changed.root if top is tree.root else changed.nodes[top.token]).body
    parts = parts_of(body)
    name = unique_block_name(tree, "outer_" + "".join(f"{r.block.name}_" for r in realizes))
    outer = with_access(tree, Block(tuple(outer_ivs), (), (), name, tir.seq(*parts[first : last + 1])))
    used = [x.loop_var.name for x in shared if x.loop_var in variables_of(outer)]
    if used:
        refuse(tree, realizes[0], "cannot blockize these blocks", f"they use loop {', '.join(used)} without a variable bound to it")
    made = BlockRealize(tuple(outer_values), TRUE, outer)
    return Change(changed.edit({body: tir.seq(*parts[:first], made, *parts[last + 1 :])}), outer.token)


def _bound(block: Block, divisions: Sequence[Division], values: Sequence[Expr], ivs: list[IterVar], bound: list[Expr]) -> list[IterVar]:
    """The outer variables for those of a block: what is bound already to the same values, and new ones (which are added)."""
    found: list[IterVar] = []
    for iv, d, value in zip(block.iter_vars, divisions, values):
        dom = Range.of(d.outer_extent) if is_zero(d.outer) else _domain(iv, d)
        known = [o for o, v in zip(ivs, bound) if v is value and o.kind is iv.kind and o.dom.extent is dom.extent and o not in found]
        if not known:
            known = [IterVar(Var(iv.var.name + "_o", iv.var.dtype), dom, iv.kind)]
            ivs += known
            bound.append(value)
        found += known[:1]
    return found


def _base(tree: Tree, realize: BlockRealize, d: Division, inner: list[For]) -> Expr:
    """The first value of the inner part; it takes all values from there."""
    an = Analyzer()
    base = an.simplify(substitute(d.inner, {x.loop_var: x.min for x in inner}))
    for x in inner:
        an.bind(x.loop_var, Range(x.min, x.extent))
    if free_vars(base) or not an.prove(d.inner - base >= 0) or not an.prove(d.inner - base < d.inner_extent):
        refuse(
            tree,
            realize,
            f"cannot divide block {realize.block.name} into tiles here",
            f"the tile's part {d.inner.script()} of a variable is not a range",
        )
    return base


class _Replace(Rewriter):
    """Values of outer bindings become the variables bound to them."""

    def __init__(self, table: dict[Expr, Var]) -> None:
        self.table = table

    def rewrite(self, node: Any) -> Any:
        return self.table[node] if isinstance(node, Expr) and node in self.table else super().rewrite(node)


def _domain(iv: IterVar, d: Division) -> Range:
    return iv.dom if is_one(d.inner_extent) else Range.of(d.outer_extent)


def _init_nest(tree: Tree, block: Block, table: dict[Var, Expr], inner_ivs: list[IterVar]) -> Stmt:
    spatial = [iv for iv in inner_ivs if iv.kind is not IterKind.REDUCE]
    loops = [serial(f"{iv.var.name}_init", iv.dom.extent, iv.var) for iv in spatial]
    fresh = {iv.var: Var(iv.var.name, iv.var.dtype) for iv in spatial}
    body = substitute(substitute(block.init, table), fresh)
    ivs = tuple(iv.replace(var=fresh[iv.var]) for iv in spatial)
    init = with_access(tree, Block(ivs, (), (), unique_block_name(tree, block.name + "_init"), body))
    return wrap(loops, BlockRealize(tuple(x.loop_var for x in loops), TRUE, init))
