# SPDX-License-Identifier: Apache-2.0
"""Regions of buffers that blocks touch, seen from loops around them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from types import MappingProxyType

from roundel.arith import Analyzer, block_access, detect_iter_map, end, estimate_region, estimate_region_lower
from roundel.arith.compare import SLACK
from roundel.arith.int_set import interval
from roundel.ir import Buffer, Var, free_vars, substitute
from roundel.ir.errors import ArithError
from roundel.ir.tir import LE, LT, And, Block, BlockRealize, BufferRegion, Expr, For, IntImm, IterKind, Range, Stmt, const, floordiv, min_

from .accesses import loads_of, variables_of
from .limits import exact_box, has_iterations, independent, outer_box
from .tree import Tree, conjuncts, is_true

Region = tuple[Range, ...]
NOTHING: Mapping[Var, Range] = MappingProxyType({})


def inner_loops(tree: Tree, realize: BlockRealize, top: Stmt | None) -> list[For]:
    """The loops of the scope strictly inside ``top`` (None: all) around a realize, outermost first."""
    loops = tree.loops(realize)
    return loops if top is None else [x for x in loops if x is not top and tree.under(x, top)]


def bindings(realize: BlockRealize) -> dict[Var, Expr]:
    """Block variables to their values."""
    return {iv.var: v for iv, v in zip(realize.block.iter_vars, realize.iter_values)}


def domain(loops: list[For]) -> dict[Var, Range]:
    """Loop variables to their ranges."""
    return {x.loop_var: Range(x.min, x.extent) for x in loops}


def touched(tree: Tree, realize: BlockRealize, region: BufferRegion, top: Stmt | None, an: Analyzer | None = None) -> Region:
    """The box that a block's region makes during one iteration of the loop ``top`` (None: during the whole scope)."""
    an = an or tree.analyzer(top if top is not None else tree.scope(realize), inside=True)
    values = bindings(realize)
    at = BufferRegion(region.buffer, tuple(substitute(r, values) for r in region.region))
    return estimate_region(at, _bounded(domain(inner_loops(tree, realize, top)), realize.predicate, an), an=an)


def touched_under_limits(tree: Tree, realize: BlockRealize, region: BufferRegion, top: For, an: Analyzer) -> Region:
    """The same without what limits cut off the last iteration of a loop that was split."""
    values = bindings(realize)
    ranges = [Range(substitute(r.min, values), substitute(r.extent, values)) for r in region.region]
    limits = conjuncts(realize.predicate)
    box = outer_box(ranges, domain(inner_loops(tree, realize, top)), limits, an) if limits else None
    return touched(tree, realize, region, top, an) if box is None else tuple(box)


def surely_touched(tree: Tree, realize: BlockRealize, region: Region, top: For | None, an: Analyzer | None = None, given: Collection[Expr] = (),
                   inside: Mapping[Var, Range] = NOTHING) -> Region | None:
    """A box of which a block touches every element as it touches ``region``, during one iteration of the loop ``top`` (None: during the whole scope) where
    the conditions ``given`` hold; None where none is known. What other conditions leave out is not in it. ``inside``: the loops in the block."""
    if tree.conditions(realize, top):
        return None
    an = an or tree.analyzer(top if top is not None else tree.scope(realize), inside=True)
    loops, values = domain(inner_loops(tree, realize, top)), bindings(realize)
    ranges = [Range(substitute(r.min, values), substitute(r.extent, values)) for r in region]
    exact = exact_box(ranges, {**loops, **inside}, [c for c in conjuncts(realize.predicate) if c not in given], an)
    if exact is not None:
        return tuple(exact)
    box = _mapped_domain(realize, list(values), loops, an)
    return None if box is None else estimate_region_lower(region, {**box, **inside}, an=an)


def _bounded(loops: dict[Var, Range], predicate: Expr, an: Analyzer) -> dict[Var, Range]:
    """The ranges of loops in which a condition of the form ``variable * 8 + rest < limit`` may hold, for the variable that steps furthest."""
    parts = [predicate.a, predicate.b] if type(predicate) is And else [predicate]
    if len(parts) == 2:
        return _bounded(_bounded(loops, parts[0], an), parts[1], an)
    if type(predicate) not in (LT, LE) or not predicate.is_index:
        return loops
    slack = SLACK[type(predicate)](predicate)
    steps = {v: an.simplify(substitute(slack, {v: v + 1}) - slack) for v in free_vars(predicate.a)}
    if not steps or not all(type(n) is IntImm for n in steps.values()):
        return loops
    v = min(steps, key=lambda v: steps[v].value)
    most = interval(an, substitute(slack, {v: const(0, v.dtype)}), {w: r for w, r in loops.items() if w is not v}).max
    if v not in loops or steps[v].value >= 0 or most is None or v in free_vars(most):
        return loops
    limit = floordiv(most, -steps[v].value) + 1 - loops[v].min
    return loops if an.prove(limit >= loops[v].extent) else {**loops, v: Range(loops[v].min, an.simplify(min_(loops[v].extent, limit)))}


def within_buffers(an: Analyzer, exprs: Collection[Expr]) -> bool:
    """Whether all that expressions load is known to lie in the buffers."""
    return all(an.prove(r.min >= 0) and an.prove(end(r) <= n) for a in loads_of(*exprs) for r, n in zip(a.region, a.buffer.shape))


def regions_of(block: Block, buffer: Buffer, *, written: bool) -> list[BufferRegion]:
    """The regions of one buffer that a block reads or writes."""
    return [r for r in (block.writes if written else regions_read(block)) if r.buffer is buffer]


@lru_cache(maxsize=4096)
def regions_read(block: Block) -> tuple[BufferRegion, ...]:
    """What a block says that it reads, and what it has to read to know where: a block that touches ``A[index[i]]`` reads ``index[i]``."""
    said = {r.buffer for r in block.reads}
    where = [e for r in (*block.reads, *block.writes) for x in r.region for e in (x.min, x.extent) if not e.is_index]
    return (*block.reads, *(BufferRegion(a.buffer, a.region) for a in loads_of(*where) if a.buffer not in said))


def with_access(tree: Tree, block: Block) -> Block:
    """The block with ``reads`` and ``writes`` as its body has them, buffers in the order in which the block had them
    where it gets no others."""
    found = block_access(block, [b for _, b in tree.func.buffer_map])
    (reads, of_reads), (writes, of_writes) = (_as_told(block, kind, _in_order(new, old)) for kind, new, old in
                                              (("read", found[0], block.reads), ("write", found[1], block.writes)))
    said = block.annotations.without(*TOLD.values()) | of_reads | of_writes if any(k in block.annotations for k in TOLD.values()) else block.annotations
    return block.replace(reads=reads, writes=writes, annotations=said)


def _in_order(new: tuple[BufferRegion, ...], old: tuple[BufferRegion, ...]) -> tuple[BufferRegion, ...]:
    place = {r.buffer: k for k, r in enumerate(old)}
    return tuple(sorted(new, key=lambda r: place[r.buffer])) if all(r.buffer in place for r in new) else tuple(new)


TOLD = {"read": "explicit_read_region", "write": "explicit_write_region"}
"""The annotations with the numbers of the regions that ``annotate_buffer_access`` has told."""


def _as_told(block: Block, kind: str, found: tuple[BufferRegion, ...]) -> tuple[tuple[BufferRegion, ...], dict[str, tuple[Expr, ...]]]:
    """The regions found, but for those that were told and still are regions of these buffers in the block's variables; with the annotation that says so."""
    old, known = block.reads if kind == "read" else block.writes, {iv.var for iv in block.iter_vars} | variables_of(block.body)
    told = {r.buffer: r for r in (old[k] for k in _numbers(block, kind) if k < len(old))
            if len(r.region) == r.buffer.ndim and all(v.size or v in known for x in r.region for e in (x.min, x.extent) for v in free_vars(e))}
    numbers = tuple(const(k, "int32") for k, r in enumerate(found) if r.buffer in told)
    return tuple(told.get(r.buffer, r) for r in found), {TOLD[kind]: numbers} if numbers else {}


def _numbers(block: Block, kind: str) -> list[int]:
    return [int(k.value if isinstance(k, IntImm) else k) for k in block.annotations.get(TOLD[kind], ())]


def without_told(block: Block, buffer: Buffer) -> Block:
    """The block with the regions of a buffer not told any more, since its elements lie elsewhere."""
    said = block.annotations
    for kind, regions in (("read", block.reads), ("write", block.writes)):
        if TOLD[kind] in said:
            said = said | {TOLD[kind]: tuple(const(k, "int32") for k in _numbers(block, kind) if regions[k].buffer is not buffer)}
    return block if said is block.annotations else block.replace(annotations=said)


def run_domain(tree: Tree, realize: BlockRealize, within: For | None = None, an: Analyzer | None = None) -> dict[Var, Range] | None:
    """The box of variables for which a block really runs in its scope (in one iteration of the loop ``within``); None where that is not known
    to be a box. ``an``: what is known there.

    Loops that were partitioned, and conditions, make it smaller than the variables' domains.
    """
    if tree.conditions(realize, within):
        return None
    an = an or tree.analyzer(tree.scope(realize) if within is None else within, inside=True)
    return _box(realize, domain(inner_loops(tree, realize, within)), an)


def init_domain(tree: Tree, realize: BlockRealize, within: For | None = None) -> dict[Var, Range] | None:
    """The box of spatial variables for which the init of a reduction runs, as ``run_domain`` has it: at the start of all loops that reduce."""
    if tree.conditions(realize, within):
        return None
    an = tree.analyzer(tree.scope(realize) if within is None else within, inside=True)
    loops, block = domain(inner_loops(tree, realize, within)), realize.block
    reducing = [k for k, iv in enumerate(block.iter_vars) if iv.kind is not IterKind.SPATIAL]
    starts = {v: loops[v].min for k in reducing for v in free_vars(realize.iter_values[k]) if v in loops}
    if not all(an.prove_equal(substitute(realize.iter_values[k], starts), block.iter_vars[k].dom.min) for k in reducing):
        return None
    rest = {v: r for v, r in loops.items() if v not in starts}
    if any((free_vars(r.min) | free_vars(r.extent)) & starts.keys() for r in rest.values()) or not _all_begin(loops, starts, rest, an):
        return None
    own = [k for k in range(len(block.iter_vars)) if k not in reducing]
    values = tuple(realize.iter_values[k] for k in own)
    if any(free_vars(v) & starts.keys() for v in values):
        return None
    begun = realize.replace(iter_values=values, predicate=an.simplify(substitute(realize.predicate, starts)),
                            block=block.replace(iter_vars=tuple(block.iter_vars[k] for k in own)))
    return _box(begun, rest, an, once=False)


def _all_begin(loops: Mapping[Var, Range], starts: Collection[Var], rest: Mapping[Var, Range], an: Analyzer) -> bool:
    """Whether loops that others say how far they run (``starts``) have an iteration everywhere in ``rest``."""
    told = [loops[v].extent for v in starts if not free_vars(loops[v].extent).isdisjoint(loops)]
    if not told:
        return True
    with an.scope():
        for v, r in rest.items():
            an.bind(v, r)
        return all(an.prove(extent >= 1) for extent in told)


def _box(realize: BlockRealize, loops: dict[Var, Range], an: Analyzer, once: bool = True) -> dict[Var, Range] | None:
    """What a block's variables are in loops, where that is a box."""
    variables = [iv.var for iv in realize.block.iter_vars]
    exact = exact_box([Range(v, const(1)) for v in realize.iter_values], loops, conjuncts(realize.predicate), an, once=once)
    return dict(zip(variables, exact, strict=True)) if exact is not None else _mapped_domain(realize, variables, loops, an)


def _mapped_domain(realize: BlockRealize, variables: list[Var], loops: dict[Var, Range], an: Analyzer) -> dict[Var, Range] | None:
    """The same where several variables are digits of one loop."""
    if not independent(loops) or not all(has_iterations(r.extent, an) for r in loops.values()):
        return None
    try:
        found = detect_iter_map(realize.iter_values, loops, realize.predicate, an=an)
    except ArithError:
        return None
    box: dict[Var, Range] = {}
    for v, s, extent in zip(variables, found.indices, found.extents(), strict=True):
        if s.splits and not an.prove_equal(s.splits[0].scale, 1):
            return None
        box[v] = Range(an.simplify(s.base), an.simplify(extent))
    if is_true(realize.predicate):
        return box
    with an.scope():
        for v, r in loops.items():
            an.bind(v, r)
        for v, value in bindings(realize).items():
            an.assume(value < end(box[v]))
        return box if an.prove(realize.predicate) else None
