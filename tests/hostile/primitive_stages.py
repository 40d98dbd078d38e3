# SPDX-License-Identifier: Apache-2.0
"""Stages of random programs in the forms that primitives look for: products, windows, padding, the greatest with its place, blocks in blocks,
two stores that read each other's buffers. See ``primitives``."""

from __future__ import annotations

from roundel.arith import block_access
from roundel.ir import Var, decl_buffer, tir
from roundel.ir.dtype import DType
from roundel.ir.tir import Block, BlockRealize, BufferLoad, BufferStore, Expr, IterVar, Range, Stmt

from .primitive_parts import Program, R, S, nested, new_var


def _product(p: Program) -> Stmt:
    """A sum of products over exactly the elements of its operands: matrix times vector, matrix times its transpose, or outer product."""
    x = p.random.choice([b for b in (*p.inputs, *p.outputs, *p.inner) if b.ndim == 2])
    n, m = (s.value for s in x.shape)
    way = p.random.choice(("vector", "transposed", "outer"))
    if way == "outer":
        y = p.new(n, m, 2)
        mine = p.random.choice([(0, 1), (0, 1), (0, 0) if n == m else (0, 1)])
        return p.block([S, S, S], [n, m, 2], lambda at: BufferStore(y, _of(x, at[mine[0]], at[mine[1]]) * _of(x, at[0], at[1]), tuple(at)), full=True)
    y, v = p.new(*((n,) if way == "vector" else (n, n))), None
    vectors = [b for b in (*p.inputs, *p.outputs, *p.inner[:-1]) if b.ndim == 1 and b.shape[0].value == m]
    v = p.random.choice(vectors) if vectors else x

    def make(at: list[Expr]) -> Stmt:
        *rows, k = at
        other = _of(x, rows[-1], k) if way == "transposed" or v is x else _of(v, k)
        return BufferStore(y, BufferLoad(y, tuple(rows)) + _of(x, rows[0], k) * other, tuple(rows))

    extents = [n] * y.ndim + [m]
    return p.block([S] * y.ndim + [R], extents, make, lambda at: BufferStore(y, tir.const(0, "int32"), tuple(at[:-1])), full=True)


def _of(buffer, *at: Expr) -> Expr:
    return tir.cast(BufferLoad(buffer, at), "int32")


def _window(p: Program) -> Stmt:
    """Neighbours are added up, by one expression or over a variable; what is at the border may be padded before."""
    t, steps = p.new(p.n + 2, p.m), p.random.choice((2, 3))
    border = p.random.choice((0, 0, 1))
    source = p.random.choice([p.inputs[0], p.outputs[0]])
    rows = lambda i: p.within(i, p.n)
    if p.random.random() < 0.5:  # zeros around
        inside = lambda i: tir.logical_and(i >= 1, i < p.n + 1)
        first = lambda at: tir.if_then_else(inside(at[0]), BufferLoad(source, (at[0] - 1, at[1])), tir.const(border and -5, "int32"))
    else:
        first = lambda at: BufferLoad(source, (rows(at[0]), at[1])) + 1
    made = p.block([S, S], [p.n + 2, p.m], lambda at: BufferStore(t, first(at), tuple(at)), full=True)
    y = p.random.choice([p.outputs[0], None]) or p.new(p.n, p.m)
    if p.random.random() < 0.5:
        use = p.block([S, S], [p.n, p.m], lambda at: BufferStore(y, BufferLoad(t, tuple(at)) + BufferLoad(t, (at[0] + steps - 1, at[1])), tuple(at)), full=True)
    else:

        def add(at: list[Expr]) -> Stmt:
            return BufferStore(y, BufferLoad(y, tuple(at[:2])) + BufferLoad(t, (at[0] + at[2], at[1])), tuple(at[:2]))

        use = p.block([S, S, R], [p.n, p.m, steps], add, lambda at: BufferStore(y, tir.const(0, "int32"), tuple(at[:2])), full=True)
    return tir.seq(made, use)


def _greatest(p: Program) -> Stmt:
    """The greatest of each row and where it is."""
    source, value, where = p.random.choice([p.inputs[0], p.outputs[0]]), p.new(p.n), p.new(p.n)

    def make(at: list[Expr]) -> Stmt:
        i, k = at
        x = BufferLoad(source, (i, k))
        keep = BufferLoad(value, (i,)) >= x
        a, b = (Var(name, DType("int32")) for name in ("a", "b"))
        place = tir.Select(keep, BufferLoad(where, (i,)), tir.cast(k, "int32"))
        both = tir.seq(BufferStore(where, a, (i,)), BufferStore(value, b, (i,)))
        return tir.Let(a, place, tir.Let(b, tir.Select(keep, BufferLoad(value, (i,)), x), both))

    start = lambda at: tir.seq(BufferStore(where, tir.const(-1, "int32"), (at[0],)), BufferStore(value, tir.const(-(2**31), "int32"), (at[0],)))
    return p.block([S, R], [p.n, p.m], make, start, full=True)


def _inside(p: Program) -> Stmt:
    """A block of rows that holds loops, or blocks which hand each other a row of its own."""
    p.blocks += 1
    name, i, vi, y = f"b{p.blocks}", new_var("i"), new_var("vi"), p.random.choice([p.outputs[0], p.outputs[1]])
    p.extent.update({i: p.n, vi: p.n})
    row = decl_buffer((tir.index_const(p.m),), "int32", "row")
    source = p.readable()
    first = p.block([S], [p.m], lambda at: BufferStore(row, p.load([vi, *at], source), tuple(at)), full=True)
    if y.ndim == 2:
        last = p.block([S], [p.m], lambda at: BufferStore(y, p.load(at, row) + p.load([vi, *at], p.inputs[0]), (vi, *at)))
    else:
        zero = lambda at: BufferStore(y, tir.const(0, "int32"), (vi,))
        last = p.block([R], [p.m], lambda at: BufferStore(y, BufferLoad(y, (vi,)) + BufferLoad(row, tuple(at)), (vi,)), zero)
    body = tir.seq(first, last) if p.random.random() < 0.9 else tir.seq(first, last, first)
    outer = Block((IterVar(vi, Range.of(tir.index_const(p.n)), S),), (), (), name, body, alloc_buffers=(row,))
    reads, writes = block_access(outer)
    return nested(BlockRealize((i,), tir.const(True), outer.replace(reads=reads, writes=writes)), [(i, p.n)])


def _crossed(p: Program) -> Stmt:
    """A block with two stores, each of which may read any buffer, those that they store included."""
    shapes = [[p.n, p.m], [p.n]]
    y = p.random.choice(p.outputs[:2])
    shape = shapes[y.ndim == 1]
    z = p.random.choice([b for b in (*p.outputs, *p.inner) if b is not y and b.ndim == len(shape) and [s.value for s in b.shape] == shape] or [None])

    def make(at: list[Expr]) -> Stmt:
        values = [p.value(at), p.value(at)]
        other = z if z is not None else p.new(*shape)
        stores = [BufferStore(y, values[0], tuple(at)), BufferStore(other, tir.cast(values[1], other.dtype), tuple(at))]
        return tir.seq(*(stores if p.random.random() < 0.5 else stores[::-1]))

    return p.block([S] * len(shape), shape, make, full=True)


def _begun(p: Program) -> Stmt:
    """A reduction whose start is a block of its own, or a change in place of what is there."""
    y = p.random.choice(p.outputs[1:])
    n, k = y.shape[0].value, p.m if y is p.outputs[1] else p.n
    start = p.block([S], [n], lambda at: BufferStore(y, p.random.choice((tir.const(0, "int32"), p.load(at, p.inputs[1]))), tuple(at)))
    source = p.readable()
    add = p.block([S, R], [n, k], lambda at: BufferStore(y, BufferLoad(y, (at[0],)) + p.load(at, source), (at[0],)))
    return tir.seq(start, add)


def _added(p: Program) -> Stmt:
    """A sum, and what is added to it after."""
    t, y = p.new(p.n), p.random.choice([p.outputs[1], None])
    source, operation = p.random.choice([p.inputs[0], p.outputs[0]]), p.random.choice(("plain", "plain", "scaled", "relu"))

    def add(at: list[Expr]) -> Stmt:
        return BufferStore(t, BufferLoad(t, (at[0],)) + BufferLoad(source, tuple(at)) * 2, (at[0],))

    first = p.block([S, R], [p.n, p.m], add, lambda at: BufferStore(t, tir.const(0, "int32"), (at[0],)), full=True)
    y = y or p.new(p.n)

    def after(at: list[Expr]) -> Stmt:
        mine, other = BufferLoad(t, tuple(at)), p.load(at, p.inputs[1])
        value = {"plain": mine + other, "scaled": mine * 2 + other, "relu": tir.max_(mine + other, 0)}[operation]
        return BufferStore(y, value, tuple(at))

    return tir.seq(first, p.block([S], [p.n], after, full=True))


FURTHER = [_added, _product, _product, _window, _window, _greatest, _inside, _inside, _crossed, _crossed, _begun]
