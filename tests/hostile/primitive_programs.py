# SPDX-License-Identifier: Apache-2.0
"""Random small tensor programs over whole numbers, in which anything valid may stand: see ``primitives``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from roundel.arith import block_access
from roundel.ir import Rewriter, Var, decl_buffer, on, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import INT64, DType
from roundel.ir.tir import Block, BlockRealize, BufferLoad, BufferRegion, BufferStore, Expr, For, ForKind, IterVar, PrimFunc, Range, Stmt
from roundel.schedule.kinds import replace_buffers

from .primitive_parts import SIZES, TYPES, Program, R, S, nested, new_var
from .primitive_stages import FURTHER


def draw(seed: int, forms: Sequence[Callable[[Program], Stmt]] = ()) -> PrimFunc:
    """One program; equal seeds give equal programs. Half of its stages are of further ``forms``, where there are such."""
    random = Random(seed)
    func = _func(Program(random), [*_STAGES, *forms * max(1, len(_STAGES) // len(forms))] if forms else _STAGES)
    return func if random.random() < 0.88 else _symbolic(func)


def _func(p: Program, kinds: Sequence[Callable[[Program], Stmt]]) -> PrimFunc:
    """One to four stages."""
    stages = [p.random.choice(kinds)(p) for _ in range(p.random.choice((1, 2, 2, 3, 3, 4)))]
    root = Block((), (), (), "root", tir.seq(*stages), alloc_buffers=tuple(p.inner))
    params = [*p.inputs, *p.outputs]
    handles = [Var(b.name.lower(), DType("handle")) for b in params]
    body = BlockRealize((), tir.const(True), root)
    return PrimFunc(tuple(handles), body, tuple(zip(handles, params)), attrs=Attrs({"global_symbol": "main"}))


def _symbolic(func: PrimFunc) -> PrimFunc:
    """The same program with the number of rows of its parameters as a variable, whose name says what it is (``n4``)."""
    rows = func.buffer_params[0].shape[0].value
    n = Var(f"n{rows}", INT64, size=True)
    made = _Rows(rows, n)
    root = func.root_block
    table = {b: b.replace(shape=tuple(map(made.size, b.shape)), data=Var(b.data.name, b.data.dtype)) for b in (*func.buffer_params, *root.alloc_buffers)}
    func = replace_buffers(func, table)
    return func.replace(body=made.rewrite(func.body))


class _Rows(Rewriter):
    """Loops and block variables of ``rows`` iterations have ``n`` iterations."""

    def __init__(self, rows: int, n: Var) -> None:
        self.rows, self.n = rows, n

    def size(self, e: Expr) -> Expr:
        return self.n if type(e) is tir.IntImm and e.value == self.rows else e

    @on(For)
    def _loop(self, loop: For) -> Stmt:
        new = self.generic(loop)
        return new.replace(extent=self.size(new.extent))

    @on(Block)
    def _block(self, block: Block) -> Block:
        new = self.generic(block)
        new = new.replace(iter_vars=tuple(iv.replace(dom=Range(iv.dom.min, self.size(iv.dom.extent))) for iv in new.iter_vars))
        reads, writes = block_access(new)
        return new.replace(reads=reads, writes=writes) if new.name != "root" else new


# --- stages


def _elementwise(p: Program) -> Stmt:
    """All of a new buffer, or of an output."""
    target = None if p.random.random() < 0.6 else p.random.choice(p.outputs)
    shape = [n.value for n in target.shape] if target is not None else p.random.choice([[p.n, p.m], [p.n, p.m], [p.n], [p.m], [p.m, 2, p.n]])
    first = int(target is not None and min(shape) > 1 and p.random.random() < 0.1)  # some outputs are stored but for the first row and column
    let = p.random.random() < 0.06

    def make(at: list[Expr]) -> Stmt:
        value = p.value(at)
        to = target if target is not None else p.new(*shape, dtype=p.random.choice(TYPES))
        x = Var("x", DType("int32"))
        store = BufferStore(to, tir.cast(x * 2 + x if let else value, to.dtype), tuple(at))
        return tir.Let(x, value, store) if let else store

    return p.block([S] * len(shape), [n - first for n in shape], make, full=target is None, first=first)


def _reduction(p: Program) -> Stmt:
    """A reduction with an init, of all kinds of operations."""
    rows, k = p.random.choice(((p.n, p.m), (p.m, p.n), (p.n, 3)))
    operation = p.random.choice(("add", "add", "add", "max", "min", "odd", "sub"))
    start = p.random.choice((0, 0, 0, 1)) if operation in ("add", "sub", "odd") else p.random.choice((-(2**31), 0))
    source = p.readable()
    fits = [b for b in p.outputs if b.ndim == 1 and b.shape[0].value == rows and (b is not source or p.random.random() < 0.3)]
    target = p.random.choice(fits) if fits and p.random.random() < 0.4 else None

    def make(at: list[Expr]) -> Stmt:
        x = p.load(at, source)
        nonlocal target
        target = target or p.new(rows)
        old = BufferLoad(target, (at[0],))
        new = {"add": old + x, "max": tir.max_(old, x), "min": tir.min_(old, x), "odd": old * 2 + x, "sub": old - x}[operation]
        return BufferStore(target, new, (at[0],))

    return p.block([S, R], [rows, k], make, lambda at: BufferStore(target, tir.const(start, "int32"), (at[0],)), full=target is None)


def _scan(p: Program) -> Stmt:
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


def _update(p: Program) -> Stmt:
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


def _scatter(p: Program) -> Stmt:
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


def _staged(p: Program) -> Stmt:
    """A row is made and used in each iteration of a loop; sometimes it is used after the loop, too, or reaches beyond the iteration."""
    t = p.new(p.m)
    y = p.outputs[0]
    i = new_var("i")
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


def _second(p: Program, i: Var, make: Callable[[list[Expr]], Stmt]) -> Stmt:
    """A block over (i, j) in a loop over j only."""
    p.blocks += 1
    vi, vj, j = (new_var(n) for n in ("vi", "vj", "j"))
    p.extent.update({vi: p.n, vj: p.m})
    full = lambda n: Range(tir.index_const(0), tir.index_const(n))
    block = Block((IterVar(vi, full(p.n), S), IterVar(vj, full(p.m), S)), (), (), f"b{p.blocks}", make([vi, vj]))
    reads, writes = block_access(block)
    return nested(BlockRealize((i, j), tir.const(True), block.replace(reads=reads, writes=writes)), [(j, p.m)])


def _bare(p: Program) -> Stmt:
    """Statements outside of blocks."""
    i, j = new_var("i"), new_var("j")
    y = p.random.choice(p.outputs)
    p.extent.update({i: p.n, j: p.m})
    at = [p.within(v, n.value) for v, n in zip((i, j), y.shape)]
    store: Stmt = BufferStore(y, p.load([i, j], p.random.choice(p.inputs)) + (BufferLoad(y, tuple(at)) if p.random.random() < 0.4 else 0), tuple(at))
    if p.random.random() < 0.3:
        store = tir.If(p.load([i, j], p.inputs[0]) > 0, store)
    return nested(store, [(i, p.n), (j, p.m)])


def _view(p: Program) -> Stmt:
    """A block that works on a view of a row."""
    p.blocks += 1
    y, i, vi, j = p.outputs[0], new_var("i"), new_var("vi"), new_var("j")
    p.extent.update({vi: p.n, j: p.m})
    row = decl_buffer((tir.index_const(p.m),), "int32", "row")
    source = BufferRegion(y, (Range(vi, tir.index_const(1)), Range(tir.index_const(0), tir.index_const(p.m))))
    whole = p.random.random() < 0.5
    store = BufferStore(row, p.load([vi, j], p.inputs[0]) + (BufferLoad(row, (j,)) if p.random.random() < 0.4 else 1), (j,))
    iv = IterVar(vi, Range(tir.index_const(0), tir.index_const(p.n)), S)
    if whole:
        body: Stmt = nested(store, [(j, p.m)])
        block = Block((iv,), (), (), f"b{p.blocks}", body, match_buffers=(tir.MatchBufferRegion(row, source),))
        reads, writes = block_access(block)
        return nested(BlockRealize((i,), tir.const(True), block.replace(reads=reads, writes=writes)), [(i, p.n)])
    vj = new_var("vj")
    p.extent[vj] = p.m
    one = decl_buffer((tir.index_const(1),), "int32", "one")
    point = BufferRegion(y, (Range(vi, tir.index_const(1)), Range(vj, tir.index_const(1))))
    ivs = (iv, IterVar(vj, Range(tir.index_const(0), tir.index_const(p.m)), S))
    body = BufferStore(one, p.load([vi, vj], p.inputs[0]), (tir.index_const(0),))
    block = Block(ivs, (), (), f"b{p.blocks}", body, match_buffers=(tir.MatchBufferRegion(one, point),))
    reads, writes = block_access(block)
    return nested(BlockRealize((i, j), tir.const(True), block.replace(reads=reads, writes=writes)), [(i, p.n), (j, p.m)])


def _pair(p: Program) -> Stmt:
    """A block with two stores, the second of which may use the first."""
    y, z = p.outputs[0], p.new(p.n, p.m)

    def make(at: list[Expr]) -> Stmt:
        first = BufferStore(z, p.load(at, p.inputs[0]), tuple(at))
        value = BufferLoad(z, tuple(at)) * 2 if p.random.random() < 0.6 else p.load(at, p.random.choice(p.inputs))
        return tir.seq(first, BufferStore(y, value, tuple(at)))

    return p.block([S, S], [p.n, p.m], make, full=True)


def _under(p: Program) -> Stmt:
    """Blocks under a condition that reads memory, or in a loop that repeats them."""
    if p.random.random() < 0.5:
        inner = tir.seq(*(p.random.choice(_IN_PLACE)(p) for _ in range(p.random.choice((1, 2)))))
        return tir.If(p.load([tir.index_const(0)], p.random.choice((*p.inputs, *p.outputs))) > p.random.choice((-3, 0, 3)), inner)
    return nested(tir.seq(*(p.random.choice(_SIMPLE)(p) for _ in range(p.random.choice((1, 2, 2, 3))))), [(new_var("t"), 2)])


_IN_PLACE = [_update, _scan, _scatter, _bare, _view]  # (what they store has values before)
_SIMPLE = [_elementwise] * 8 + [_reduction] * 6 + [_pair, _staged, _staged, *_IN_PLACE, *FURTHER]
_STAGES = [*_SIMPLE, _update, _under]
