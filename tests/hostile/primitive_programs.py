# SPDX-License-Identifier: Apache-2.0
"""Random small tensor programs over whole numbers, in which anything valid may stand: see ``primitives``.

Every element of an inner buffer is stored before it is read. Indices are within bounds (taken modulo the size where they could be outside).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from roundel.arith import block_access
from roundel.ir import Buffer, Var, decl_buffer, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import INT64, DType
from roundel.ir.tir import Block, BlockRealize, BufferLoad, BufferRegion, BufferStore, Expr, For, ForKind, IterKind, IterVar, PrimFunc, Range, Stmt

S, R = IterKind.SPATIAL, IterKind.REDUCE
SIZES = (2, 3, 4, 6)


def _var(name: str) -> Var:
    return Var(name, INT64)


def draw(seed: int) -> PrimFunc:
    """One program; equal seeds give equal programs."""
    return _Program(Random(seed)).func()


class _Program:
    def __init__(self, random: Random) -> None:
        self.random = random
        size = lambda: random.choice(SIZES)
        self.n, self.m = size(), size()
        make = lambda name, *shape: decl_buffer(tuple(map(tir.index_const, shape)), "int32", name)
        self.inputs = [make("A", self.n, self.m), make("V", self.n)]
        self.outputs = [make("Y", self.n, self.m), make("Z", self.n), make("W", self.m)]
        self.inner: list[Buffer] = []
        self.blocks = 0
        self.extent: dict[Expr, int] = {}

    def func(self) -> PrimFunc:
        """One to four stages."""
        stages = []
        for _ in range(self.random.choice((1, 1, 2, 2, 3, 4))):
            stages.append(self.random.choice(_STAGES)(self))
        root = Block((), (), (), "root", tir.seq(*stages), alloc_buffers=tuple(self.inner))
        params = [*self.inputs, *self.outputs]
        handles = [Var(b.name.lower(), DType("handle")) for b in params]
        body = BlockRealize((), tir.const(True), root)
        return PrimFunc(tuple(handles), body, tuple(zip(handles, params)), attrs=Attrs({"global_symbol": "main"}))

    # --- parts

    def new(self, *shape: int) -> Buffer:
        """A new inner buffer."""
        b = decl_buffer(tuple(map(tir.index_const, shape)), "int32", f"T{len(self.inner)}")
        self.inner.append(b)
        return b

    def readable(self) -> Buffer:
        """Any buffer whose elements are all stored."""
        return self.random.choice([*self.inputs, *self.outputs, *self.inner, *self.inner])

    def within(self, i: Expr, size: int) -> Expr:
        """An index modulo the size, where it could be outside."""
        return i if self.extent.get(i, size + 1) <= size else tir.floormod(i, size)

    def index(self, at: list[Expr], size: int) -> Expr:
        """Some index from variables, within ``size``."""
        i = self.random.choice([*at, *at, tir.index_const(0)])
        way = self.random.randrange(14)
        if way == 0:
            i = i + self.random.choice((1, 2, -1))
        elif way == 1:
            i = i // 2
        elif way == 2 and len(at) > 1:
            i = at[0] + at[1]
        elif way == 3:
            i = (size - 1) - i
        elif way == 4:
            i = i * 2
        return self.within(i, size)

    def load(self, at: list[Expr], source: Buffer | None = None) -> Expr:
        """A load of some buffer at some place; mostly the plain one."""
        b = source or self.readable()
        sizes = [n.value for n in b.shape]
        plain = [i for i, _ in zip(at, sizes)] if len(at) >= len(sizes) and self.random.random() < 0.6 else None
        indices = [self.within(i, n) for i, n in zip(plain, sizes)] if plain else [self.index(at, n) for n in sizes]
        return BufferLoad(b, tuple(indices))

    def value(self, at: list[Expr]) -> Expr:
        """Some expression of loads."""
        a = self.load(at)
        way = self.random.randrange(7)
        if way < 2:
            return a + self.load(at)
        if way == 2:
            return a * 2 - self.load(at)
        if way == 3:
            return tir.max_(a, self.load(at))
        if way == 4:
            return tir.if_then_else(self.random.choice(at) < 2, a, self.load(at) + 1)
        return a + 1

    def block(self, kinds: list[IterKind], extents: list[int], make: Callable[[list[Expr]], Stmt], init: Callable[[list[Expr]], Stmt] | None = None,
              full: bool = False) -> Stmt:
        """A block in loops, bound in one of several ways."""
        self.blocks += 1
        vs = [_var(f"v{k}") for k in range(len(kinds))]
        self.extent.update(zip(vs, extents))
        loops, values, predicate = self.bindings(extents)
        ivs = tuple(IterVar(v, Range(tir.index_const(0), tir.index_const(n)), kind) for v, n, kind in zip(vs, extents, kinds))
        where = []
        if not full and self.random.random() < 0.06:
            where = [self.load(list(values)) > 0]
        stmt = Block(ivs, (), (), f"b{self.blocks}", make(list(vs)), None if init is None else init(list(vs)))
        reads, writes = block_access(stmt)
        realize = BlockRealize(tuple(values), tir.logical_and(predicate, *where), stmt.replace(reads=reads, writes=writes))
        return _nest(realize, loops)

    def bindings(self, extents: list[int]) -> tuple[list[tuple[Var, int]], list[Expr], Expr]:
        """Loops, values of variables, and a predicate: one loop per variable, split ones, fused ones, other orders."""
        loops: list[tuple[Var, int]] = []
        values: list[Expr] = []
        predicate: Expr = tir.const(True)
        if len(extents) > 1 and self.random.random() < 0.1:
            f = _var("f")
            rest = [(_var("x"), n) for n in extents[2:]]
            return [(f, extents[0] * extents[1]), *rest], [f // extents[1], f % extents[1], *(v for v, _ in rest)], predicate
        for k, n in enumerate(extents):
            a, b = _var(f"i{k}"), _var(f"j{k}")
            way = self.random.random()
            if way < 0.12:
                loops += [(a, -(-n // 2)), (b, 2)]
                values.append(a * 2 + b)
                predicate = predicate if n % 2 == 0 else tir.logical_and(predicate, a * 2 + b < n)
            else:
                loops.append((a, n))
                values.append(a)
        if self.random.random() < 0.2:
            self.random.shuffle(loops)
        if self.random.random() < 0.08:
            loops.insert(self.random.randrange(len(loops) + 1), (_var("t"), 2))  # repeats everything
        return loops, values, predicate


def _nest(body: Stmt, loops: list[tuple[Var, int]]) -> Stmt:
    for v, n in reversed(loops):
        body = For(v, tir.index_const(0), tir.index_const(n), ForKind.SERIAL, body)
    return body


# --- stages


def _elementwise(p: _Program) -> Stmt:
    """All of a new buffer, or of an output."""
    target = None if p.random.random() < 0.6 else p.random.choice(p.outputs)
    shape = [n.value for n in target.shape] if target is not None else p.random.choice([[p.n, p.m], [p.n, p.m], [p.n], [p.m]])
    made: list[Stmt] = []
    value: list = []

    def make(at: list[Expr]) -> Stmt:
        value.append(p.value(at))
        return BufferStore(target or p.new(*shape), value[0], tuple(at))

    made.append(p.block([S] * len(shape), shape, make, full=target is None))
    return made[0]


def _reduction(p: _Program) -> Stmt:
    """A reduction with an init, of all kinds of operations."""
    rows, k = p.random.choice(((p.n, p.m), (p.m, p.n), (p.n, 3)))
    operation = p.random.choice(("add", "add", "add", "max", "min", "odd", "sub"))
    start = p.random.choice((0, 0, 0, 1)) if operation in ("add", "sub", "odd") else p.random.choice((-(2**31), 0))
    source = p.readable()
    fits = [b for b in p.outputs if b.ndim == 1 and b.shape[0].value == rows and b is not source]
    target = p.random.choice(fits) if fits and p.random.random() < 0.4 else None

    def make(at: list[Expr]) -> Stmt:
        x = p.load(at, source)
        nonlocal target
        target = target or p.new(rows)
        old = BufferLoad(target, (at[0],))
        new = {"add": old + x, "max": tir.max_(old, x), "min": tir.min_(old, x), "odd": old * 2 + x, "sub": old - x}[operation]
        return BufferStore(target, new, (at[0],))

    return p.block([S, R], [rows, k], make, lambda at: BufferStore(target, tir.const(start, "int32"), (at[0],)), full=target is None)


def _scan(p: _Program) -> Stmt:
    """Y[i, j] = Y[i - 1, j] + ..., whatever its axes say."""
    y = p.random.choice(p.outputs)
    sizes = [n.value for n in y.shape]
    axis = p.random.randrange(len(sizes))

    def make(at: list[Expr]) -> Stmt:
        before = [tir.max_(i - 1, 0) if k == axis else i for k, i in enumerate(at)]
        if p.random.random() < 0.4:
            before = [tir.floormod(i + p.random.choice((1, 2)), n) if k == axis else i for (k, i), n in zip(enumerate(at), sizes)]
        return BufferStore(y, BufferLoad(y, tuple(before)) + p.value(at), tuple(at))

    return p.block([p.random.choice((S, S, R)) if k == axis else S for k in range(len(sizes))], sizes, make)


def _update(p: _Program) -> Stmt:
    """An output is changed in place, over one more axis that it does not have: a race, or a reduction without an init."""
    y = p.random.choice(p.outputs)
    sizes = [n.value for n in y.shape]
    more = p.random.choice(([], [], [p.random.choice(SIZES)]))
    kind = p.random.choice((S, R))
    first = p.random.random() < 0.5

    def make(at: list[Expr]) -> Stmt:
        mine = at[len(more) :] if first else at[: len(sizes)]
        old, x = BufferLoad(y, tuple(mine)), p.load(at, p.random.choice(p.inputs))
        value = p.random.choice((old + x, old + x, old * 2 + x, tir.max_(old, x), x))
        return BufferStore(y, value, tuple(mine))

    kinds = [kind] * len(more) + [S] * len(sizes)
    extents = more + sizes
    return p.block(kinds if first else kinds[::-1], extents if first else sizes + more, make)


def _scatter(p: _Program) -> Stmt:
    """Stores at places that are no permutation."""
    y = p.random.choice(p.outputs)
    sizes = [n.value for n in y.shape]
    domain = [p.n, p.m]
    update = p.random.random() < 0.5

    def make(at: list[Expr]) -> Stmt:
        where = tuple(p.index(at, n) for n in sizes)
        x = p.load(at, p.random.choice(p.inputs))
        return BufferStore(y, BufferLoad(y, where) + x if update else x, where)

    return p.block([S, p.random.choice((S, R))], domain, make)


def _staged(p: _Program) -> Stmt:
    """A row is made and used in each iteration of a loop; sometimes it is used after the loop, too, or reaches beyond the iteration."""
    t = p.new(p.m)
    y = p.outputs[0]
    i = _var("i")
    first = _second(p, i, lambda at: BufferStore(t, p.load(at, p.inputs[0]) + p.random.choice((0, 1)), (at[1],)))
    if p.random.random() < 0.3:
        first = p.block([S], [p.m], lambda at: BufferStore(t, p.load([at[0]], p.inputs[1]), (at[0],)), full=True)
    p.extent[i] = p.n
    reach = p.random.choice((0, 0, 0, 1))
    use = _second(p, i, lambda at: BufferStore(y, BufferLoad(t, (p.within(at[1] + reach if reach else at[1], p.m),)) + 1, (at[0], at[1])))
    nest = For(i, tir.index_const(0), tir.index_const(p.n), ForKind.SERIAL, tir.seq(*([first, use] if p.random.random() < 0.9 else [use, first])))
    before = after = None
    if nest.body.stmts[0] is use or p.random.random() < 0.2:
        before = p.block([S], [p.m], lambda at: BufferStore(t, tir.const(5, "int32"), (at[0],)), full=True)
    if p.random.random() < 0.25:
        after = p.block([S], [p.m], lambda at: BufferStore(p.outputs[2], BufferLoad(t, (at[0],)), (at[0],)))
    return tir.seq(before, nest, after)


def _second(p: _Program, i: Var, make: Callable[[list[Expr]], Stmt]) -> Stmt:
    """A block over (i, j) in a loop over j only."""
    p.blocks += 1
    vi, vj, j = (_var(n) for n in ("vi", "vj", "j"))
    p.extent.update({vi: p.n, vj: p.m})
    full = lambda n: Range(tir.index_const(0), tir.index_const(n))
    block = Block((IterVar(vi, full(p.n), S), IterVar(vj, full(p.m), S)), (), (), f"b{p.blocks}", make([vi, vj]))
    reads, writes = block_access(block)
    return _nest(BlockRealize((i, j), tir.const(True), block.replace(reads=reads, writes=writes)), [(j, p.m)])


def _bare(p: _Program) -> Stmt:
    """Statements outside of blocks."""
    i, j = _var("i"), _var("j")
    y = p.random.choice(p.outputs)
    p.extent.update({i: p.n, j: p.m})
    at = [p.within(v, n.value) for v, n in zip((i, j), y.shape)]
    store: Stmt = BufferStore(y, p.load([i, j], p.random.choice(p.inputs)) + (BufferLoad(y, tuple(at)) if p.random.random() < 0.4 else 0), tuple(at))
    if p.random.random() < 0.3:
        store = tir.If(p.load([i, j], p.inputs[0]) > 0, store)
    return _nest(store, [(i, p.n), (j, p.m)])


def _view(p: _Program) -> Stmt:
    """A block that works on a view of a row."""
    p.blocks += 1
    y, i, vi, j = p.outputs[0], _var("i"), _var("vi"), _var("j")
    p.extent.update({vi: p.n, j: p.m})
    row = decl_buffer((tir.index_const(p.m),), "int32", "row")
    source = BufferRegion(y, (Range(vi, tir.index_const(1)), Range(tir.index_const(0), tir.index_const(p.m))))
    whole = p.random.random() < 0.5
    store = BufferStore(row, p.load([vi, j], p.inputs[0]) + (BufferLoad(row, (j,)) if p.random.random() < 0.4 else 1), (j,))
    iv = IterVar(vi, Range(tir.index_const(0), tir.index_const(p.n)), S)
    if whole:
        body: Stmt = _nest(store, [(j, p.m)])
        block = Block((iv,), (), (), f"b{p.blocks}", body, match_buffers=(tir.MatchBufferRegion(row, source),))
        reads, writes = block_access(block)
        return _nest(BlockRealize((i,), tir.const(True), block.replace(reads=reads, writes=writes)), [(i, p.n)])
    vj = _var("vj")
    p.extent[vj] = p.m
    one = decl_buffer((tir.index_const(1),), "int32", "one")
    point = BufferRegion(y, (Range(vi, tir.index_const(1)), Range(vj, tir.index_const(1))))
    ivs = (iv, IterVar(vj, Range(tir.index_const(0), tir.index_const(p.m)), S))
    body = BufferStore(one, p.load([vi, vj], p.inputs[0]), (tir.index_const(0),))
    block = Block(ivs, (), (), f"b{p.blocks}", body, match_buffers=(tir.MatchBufferRegion(one, point),))
    reads, writes = block_access(block)
    return _nest(BlockRealize((i, j), tir.const(True), block.replace(reads=reads, writes=writes)), [(i, p.n), (j, p.m)])


def _pair(p: _Program) -> Stmt:
    """A block with two stores, the second of which may use the first."""
    y, z = p.outputs[0], p.new(p.n, p.m)

    def make(at: list[Expr]) -> Stmt:
        first = BufferStore(z, p.load(at, p.inputs[0]), tuple(at))
        value = BufferLoad(z, tuple(at)) * 2 if p.random.random() < 0.6 else p.load(at, p.random.choice(p.inputs))
        return tir.seq(first, BufferStore(y, value, tuple(at)))

    return p.block([S, S], [p.n, p.m], make, full=True)


_STAGES = [_elementwise] * 6 + [_reduction] * 5 + [_update, _update, _scan, _scatter, _staged, _staged, _bare, _view, _pair]
