# SPDX-License-Identifier: Apache-2.0
"""rfactor: partial results of a reduction along one of its loops, and a second reduction over those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roundel.ir import Buffer, Rewriter, Token, Var, decl_buffer, free_vars, on, substitute, tir, walk
from roundel.ir.tir import (
    Block,
    BlockRealize,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Expr,
    For,
    ForKind,
    IterKind,
    IterVar,
    Range,
    Stmt,
)

from .inits import require_init_first, require_single_updates
from .layout import sole_loops
from .limits import independent
from .ordering import require_steady_bounds, require_true_axes
from .primitive import Change, Loop, primitive, refuse
from .rebind import wrap
from .regions import bindings, domain, with_access
from .scopes import is_reduction, mixed_loops
from .tree import Tree, conjuncts, is_one, unique_block_name
from .updates import family


@primitive
def rfactor(tree: Tree, loop: Loop, factor_axis: int = 0) -> Change:
    """Make a reduction loop spatial: its iterations have partial results in ``C_rf``, reduced in a second block.

        for i, k0, k1:                            for i, k0, k1:
            C[i] += A[i, k0 * 8 + k1]       ->        C_rf[k1, i] += A[i, k0 * 8 + k1]     # rfactor(k1, 0)
                                                  for i, k1:
                                                      C[i] += C_rf[k1, i]

    ``factor_axis`` is where the loop's dimension goes in ``C_rf``. Gives back the block of partial results; the handle
    of the reduction's block keeps to the second stage's block, those of its loops to the first stage's. The reduction may be done in any order
    and starts at its neutral element; each instance has results of its own; its loops run over a box.
    """
    target: For = tree.nodes[loop]
    found = tree.realizes(target)
    if len(found) != 1 or not is_reduction(found[0].block):
        refuse(
            tree,
            target,
            f"cannot rfactor loop {target.loop_var.name}",
            "there is not just one reduction with an init inside",
        )
    require_true_axes(tree, found[0].block, f"rfactor loop {target.loop_var.name} of")
    require_init_first(tree, found[0], f"rfactor loop {target.loop_var.name}")
    require_single_updates(tree, found[0], "rfactor")
    work = _Rfactor(tree, found[0], target, factor_axis)
    return work.run()


class _Rfactor:
    def __init__(self, tree: Tree, realize: BlockRealize, target: For, axis: int) -> None:
        self.tree, self.realize, self.target = tree, realize, target
        self.block = _without_single_let(realize.block)
        self.values = bindings(realize)
        self.chain = sole_loops(tree, realize)
        self.lets: dict[Var, Expr] = {}
        self.stores = self._stores()
        rank = self.stores[0].buffer.ndim
        if not -rank - 1 <= axis <= rank:
            self.refuse(f"factor_axis {axis} is out of range for {rank} dimensions")
        self.axis = axis if axis >= 0 else axis + rank + 1
        self._check()

    def refuse(self, why: str) -> None:
        refuse(self.tree, self.realize, f"cannot rfactor loop {self.target.loop_var.name} of block {self.block.name}", why)

    def _stores(self) -> list[BufferStore]:
        """The stores of results: one, or one for each of several values that are all computed before (``Let``)."""
        body: Stmt = self.block.body
        while type(body) is tir.Let:
            self.lets[body.var] = body.value
            body = body.body
        stores = list(body.stmts) if type(body) is tir.Seq else [body]
        if any(type(s) is not BufferStore for s in stores):
            self.refuse("its body is not just stores of its results")
        if ((len(stores) > 1 or self.lets) and {s.value for s in stores} != set(self.lets)) or len({s.buffer for s in stores}) < len(stores):
            self.refuse("of several results, each has to be stored once, as a value that was computed before any of them is stored")
        an = self.tree.analyzer(self.realize)
        first = stores[0]
        if any(s.indices != first.indices or not all(map(an.prove_equal, s.buffer.shape, first.buffer.shape)) for s in stores):
            self.refuse("its results are not stored at one index of buffers of one shape")
        reduce = {iv.var for iv in self.block.iter_vars if iv.kind is IterKind.REDUCE}
        if any(free_vars(i) & reduce for i in first.indices):
            self.refuse("where its result is stored depends on what it reduces over")
        return stores

    def _inits(self) -> list[BufferStore]:
        """The stores of the init, in the order of the results."""
        init = self.block.init
        found = list(init.stmts) if type(init) is tir.Seq else [init]
        if any(type(s) is not BufferStore for s in found) or len(found) != len(self.stores):
            self.refuse("its init is not one store for each result")
        ordered = [next((x for x in found if x.buffer is s.buffer and x.indices == s.indices), None) for s in self.stores]
        if None in ordered:
            self.refuse("its init does not store the elements that its body does")
        return ordered  # type: ignore[return-value]

    def _check(self) -> None:
        v = self.target.loop_var
        if mixed_loops(self.realize) & {x.loop_var for x in self.chain}:
            self.refuse("a loop is part of a spatial and of a reduce variable")
        for s, init in zip(self.stores, self._inits()):
            operation = family(s.replace(value=self.lets.get(s.value, s.value)), self.block)  # type: ignore[call-overload]
            if not starts_neutral(operation, init.value):
                self.refuse(f"each part of {s.buffer.name} would start at {init.value.script()}, which is not neutral")
        kinds = {iv.kind for iv in self.block.iter_vars if v in free_vars(self.values[iv.var])}
        if kinds != {IterKind.REDUCE}:
            self.refuse("the loop does not reduce" if IterKind.REDUCE not in kinds else "the loop is also part of a spatial variable")
        require_steady_bounds(self.tree, self.chain, f"rfactor loop {self.target.loop_var.name}")
        if not independent(domain(self.chain)):
            self.refuse("a loop around it says how far another one runs")
        if not all(x.size for e in (self.target.min, self.target.extent) for x in free_vars(e)):
            self.refuse("loops around it say how often it runs, and so how large the partial results are")
        reducing = self._reducing()
        if reducing & {x.loop_var for x in self.tree.loops(self.realize) if x not in self.chain}:
            self.refuse("loops of the reduction hold other statements too")
        if any(x.kind in (ForKind.PARALLEL, ForKind.VECTORIZED) for x in self.chain if x.loop_var in reducing):
            self.refuse("a loop of the reduction does not run in order")

    def _reducing(self) -> set[Var]:
        return {x for iv in self.block.iter_vars if iv.kind is IterKind.REDUCE for x in free_vars(self.values[iv.var])}

    def run(self) -> Change:
        """Both stages in place of the nest."""
        factor = Var("v" + self.target.loop_var.name, self.target.loop_var.dtype)
        buffers = [self._partial(s.buffer) for s in self.stores]
        first = self._first(factor, buffers)
        second = self._second(buffers)
        top = self.chain[0]
        nest = wrap(self.chain, first)
        changed = self.tree.edit({top: tir.seq(nest, second)})
        scope = changed.nodes[self.tree.scope(self.realize).token]
        changed = changed.edit({scope: scope.replace(alloc_buffers=(*scope.alloc_buffers, *buffers))})
        return Change(changed, first.block.token)

    def _partial(self, buffer: Buffer) -> Buffer:
        shape = (*buffer.shape[: self.axis], self.target.extent, *buffer.shape[self.axis :])
        return decl_buffer(shape, buffer.dtype, buffer.name + "_rf", scope=buffer.scope)

    def _at(self, indices: tuple[Expr, ...], factor: Expr) -> tuple[Expr, ...]:
        return (*indices[: self.axis], tir.sub(factor, self.target.min), *indices[self.axis :])

    def _first(self, factor: Var, buffers: list[Buffer]) -> BlockRealize:
        spatial = [iv for iv in self.block.iter_vars if iv.kind is IterKind.SPATIAL]
        ivs = [IterVar(factor, Range(self.target.min, self.target.extent), IterKind.SPATIAL), *spatial]
        values: list[Expr] = [self.target.loop_var, *(self.values[iv.var] for iv in spatial)]
        table: dict[Var, Expr] = {self.target.loop_var: factor}
        reduce = [iv for iv in self.block.iter_vars if iv.kind is IterKind.REDUCE]
        used = frozenset().union(*(free_vars(self.values[iv.var]) for iv in reduce))
        for x in self.chain:
            if x.loop_var in used and x is not self.target:
                v = Var("v" + x.loop_var.name, x.loop_var.dtype)
                table[x.loop_var] = v
                ivs.append(IterVar(v, Range(x.min, x.extent), IterKind.REDUCE))
                values.append(x.loop_var)
        inside = {iv.var: substitute(self.values[iv.var], table) for iv in reduce}
        partial = dict(zip((s.buffer for s in self.stores), buffers))
        swap = _Swap(partial, lambda at: self._at(at, factor))
        assert self.block.init is not None
        predicate, guard = self._split_predicate(ivs, values)
        alone = guard is None and all(iv.kind is IterKind.SPATIAL for iv in ivs)  # a partial result is one value
        body = substitute(self._values_alone(swap) if alone else swap.rewrite(self.block.body), inside)
        block = Block(
            tuple(ivs),
            self.block.reads,
            tuple(BufferRegion(partial[w.buffer], w.region) for w in self.block.writes),
            unique_block_name(self.tree, self.block.name + "_rf"),
            body if guard is None else tir.If(guard, body),
            None if alone else swap.rewrite(self.block.init),
            annotations=self.block.annotations,
        )
        return BlockRealize(tuple(values), predicate, with_access(self.tree, block))

    def _values_alone(self, swap: _Swap) -> Stmt:
        """The body where nothing is combined: each partial result is its value."""
        return tir.seq(*(swap.rewrite(s.replace(value=p)) for s, p in zip(self.stores, _partial_values(self))))

    def _split_predicate(self, ivs: list[IterVar], values: list[Expr]) -> tuple[Expr, Expr | None]:
        """What stays a predicate, and what guards the body: every partial result needs its init."""
        reduce = {v for iv, v in zip(ivs, values) if iv.kind is IterKind.REDUCE} | {self.target.loop_var}
        parts = conjuncts(self.realize.predicate)
        rest = tir.logical_and(*(c for c in parts if not free_vars(c) & reduce))
        of_reduction = tir.logical_and(*(c for c in parts if free_vars(c) & reduce))
        starts = {x.loop_var: x.min for x in self.chain if x.loop_var in reduce and x is not self.target}
        if self.tree.analyzer(self.realize).prove(substitute(of_reduction, starts)):
            return self.realize.predicate, None
        inside = {v: iv.var for iv, v in zip(ivs, values) if type(v) is Var}
        if (free_vars(of_reduction) & {x.loop_var for x in self.tree.loops(self.realize)}) - inside.keys():
            self.refuse("its predicate mixes loops of the reduction with others")
        return rest, substitute(of_reduction, inside)

    def _second(self, buffers: list[Buffer]) -> Stmt:
        spatial = [iv for iv in self.block.iter_vars if iv.kind is IterKind.SPATIAL]
        factor = Var("v" + self.target.loop_var.name, self.target.loop_var.dtype)
        at = self._at(self.stores[0].indices, factor)
        parts = _partial_values(self)
        loads = {p: BufferLoad(b, at) for p, b in zip(parts, buffers)}
        body = _with_own_lets(_Replace(loads).rewrite(self.block.body))
        fresh = {iv.var: Var(iv.var.name, iv.var.dtype) for iv in spatial}
        ivs = (
            IterVar(factor, Range(self.target.min, self.target.extent), IterKind.REDUCE),
            *(iv.replace(var=fresh[iv.var]) for iv in spatial),
        )
        partial = dict(zip((s.buffer for s in self.stores), buffers))
        reads = tuple(BufferRegion(partial[w.buffer], w.region) for w in self.block.writes)
        new = self.block.replace(iter_vars=(), reads=reads, body=substitute(body, fresh), init=substitute(self.block.init, fresh))
        block = with_access(self.tree, new.replace(iter_vars=ivs))
        used = frozenset().union(*(free_vars(self.values[iv.var]) for iv in spatial), {self.target.loop_var})
        used |= {x.loop_var for x in self.chain if is_one(x.extent)} - self._reducing()
        loops = [
            x.replace(loop_var=Var(x.loop_var.name, x.loop_var.dtype), token=Token(), kind=ForKind.SERIAL, thread=None)
            for x in self.chain
            if x.loop_var in used
        ]
        table = dict(zip((x.loop_var for x in self.chain if x.loop_var in used), (x.loop_var for x in loops)))
        loops = [x.replace(min=substitute(x.min, table), extent=substitute(x.extent, table)) for x in loops]
        gone = {x.loop_var for x in self.chain} - used
        predicate = tir.logical_and(*(substitute(c, table) for c in conjuncts(self.realize.predicate) if not free_vars(c) & (gone | {self.target.loop_var})))
        values = tuple(substitute(v, table) for v in (self.target.loop_var, *(self.values[iv.var] for iv in spatial)))
        return wrap(loops, BlockRealize(values, predicate, block))


def _without_single_let(block: Block) -> Block:
    """A block whose one value is not computed by a statement before its store."""
    body = block.body
    if type(body) is not tir.Let or type(body.body) is not BufferStore:
        return block
    return block.replace(body=substitute(body.body, {body.var: body.value}))


def _with_own_lets(body: Stmt) -> Stmt:
    """A body whose values computed before its stores have variables of their own."""
    if type(body) is not tir.Let:
        return body
    var = Var(body.var.name, body.var.dtype)
    return body.replace(var=var, body=_with_own_lets(substitute(body.body, {body.var: var})))


class _Swap(Rewriter):
    """Accesses of buffers go to others, with another dimension in their indices."""

    def __init__(self, table: dict[Buffer, Buffer], at: Callable[[tuple[Expr, ...]], tuple[Expr, ...]]) -> None:
        self.table, self.at = table, at

    @on(BufferLoad)
    def _load(self, load: BufferLoad) -> Expr:
        load = self.generic(load)
        return BufferLoad(self.table[load.buffer], self.at(load.indices)) if load.buffer in self.table else load

    @on(BufferStore)
    def _store(self, store: BufferStore) -> Stmt:
        store = self.generic(store)
        return store.replace(buffer=self.table[store.buffer], indices=self.at(store.indices)) if store.buffer in self.table else store


class _Replace(Rewriter):
    """Some expressions become others."""

    def __init__(self, table: dict[Any, Expr]) -> None:
        self.table = table

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, Expr) and node in self.table:
            return self.table[node]
        return super().rewrite(node)


def starts_neutral(operation: str | None, value: Expr) -> bool:
    """Whether partial results may each start at a value: sums at 0, products at 1, what picks one of its operands anywhere."""
    if operation in ("Add", "Mul", "bitwise_xor"):
        return type(value) in (tir.IntImm, tir.FloatImm) and value.value == (operation == "Mul")  # type: ignore[attr-defined]
    return operation in ("Min", "Max", "And", "Or", "bitwise_or", "bitwise_and", "choice")


_COMMUTATIVE = (tir.Add, tir.Mul, tir.Min, tir.Max, tir.And, tir.Or)
_COMMUTATIVE_CALLS = ("bitwise_or", "bitwise_and", "bitwise_xor")


def _partial_values(work: _Rfactor) -> list[Expr]:
    """Per store the expression that is combined with the accumulator."""
    own = {BufferLoad(s.buffer, s.indices) for s in work.stores}
    out = []
    for s in work.stores:
        value = work.lets.get(s.value, s.value) if type(s.value) is Var else s.value
        part = _other_side(value, BufferLoad(s.buffer, s.indices))
        if part is None or any(n in own for n in walk(part)):
            work.refuse(f"the way it combines values of {s.buffer.name} is not known")
        out.append(part)
    return out  # type: ignore[return-value]


def _other_side(value: Expr, acc: Expr) -> Expr | None:
    """What is combined with the accumulator: the other operand, or the other choice."""
    if type(value) in _COMMUTATIVE:
        return value.b if value.a is acc else value.a if value.b is acc else None  # type: ignore[attr-defined]
    if type(value) is tir.Call and value.op in _COMMUTATIVE_CALLS and acc in value.args:
        return value.args[1] if value.args[0] is acc else value.args[0]
    if type(value) in (tir.Select, tir.IfThenElse):
        yes, no = value.true_value, value.false_value  # type: ignore[attr-defined]
        return no if yes is acc else yes if no is acc else None
    return None
