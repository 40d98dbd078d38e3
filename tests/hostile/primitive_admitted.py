# SPDX-License-Identifier: Apache-2.0
"""Stages of random programs that admit the primitives which most programs do not: triangles and borders that are neutral, values that are chosen,
what each iteration makes again, sums of products with one reader. See ``irregular``."""

from __future__ import annotations

from roundel.arith import block_access
from roundel.ir import tir
from roundel.ir.tir import Block, BlockRealize, BufferLoad, BufferStore, Expr, For, ForKind, IterVar, Range, Stmt

from .primitive_parts import Program, R, S, new_var
from .primitive_stages import FURTHER

DOWN = (1, 1, 2, 3)


def _zero(b, where: int = 1):
    """The start of a sum, at the first variables."""
    return lambda at: BufferStore(b, tir.const(0, b.dtype), tuple(at[:where]))


def _begun(p: Program, b, extents: list[int], add) -> Stmt:
    """A sum with its start in a block of its own."""
    start = p.block([S], extents[:1], _zero(b), full=True)
    return tir.seq(start, p.block([S, R], extents, add, full=True))


def _triangle(p: Program) -> Stmt:
    """A sum over what is zero from somewhere on."""
    e, c, reach = p.new(p.m, p.n, dtype="float32"), p.new(p.n, dtype="float32"), p.random.choice((-1, 0, 1, 2))
    source = p.random.choice([b for b in (*p.inputs, *p.outputs) if b.ndim == 2])

    def make(at: list[Expr]) -> Stmt:
        k, i = at
        value = tir.cast(BufferLoad(source, (i, k)), "float32")
        choose = p.random.choice((tir.select, tir.if_then_else))
        return BufferStore(e, choose(k <= i + reach, value, tir.const(p.random.choice((0, 0, 0, 1)), "float32")), (k, i))

    def add(at: list[Expr]) -> Stmt:
        i, k = at
        part: Expr = BufferLoad(e, (k, i))
        if p.random.random() < 0.5:
            part = part * tir.cast(p.load([k], p.outputs[2]), "float32")
        return BufferStore(c, BufferLoad(c, (i,)) + part, (i,))

    made = p.block([S, S], [p.m, p.n], make, full=True)
    return tir.seq(made, _begun(p, c, [p.n, p.m], add), _seen(p, c))


def _seen(p: Program, b) -> Stmt:
    """An output takes in what was made."""
    y = p.outputs[1] if b.ndim == 1 and b.shape[0].value == p.n else p.outputs[0]
    sizes = [n.value for n in y.shape]
    return p.block([S] * len(sizes), sizes, lambda at: BufferStore(y, BufferLoad(y, tuple(at)) + p.load(at, b), tuple(at)), full=True)


def _border(p: Program) -> Stmt:
    """A sum, or the greatest, of neighbours, with nothing around."""
    c, steps, shift = p.new(p.n), p.random.choice((2, 3)), p.random.choice((0, 1))
    operation = p.random.choice(("sum", "product", "max"))
    least = -(2**31) if operation == "max" else 0

    def add(at: list[Expr]) -> Stmt:
        i, k = at
        inside = tir.logical_and(i + k >= shift, i + k < p.n + shift)
        x = tir.if_then_else(inside, BufferLoad(p.inputs[1], (i + k - shift,)), tir.const(p.random.choice((least, least, least, 1)), "int32"))
        old = BufferLoad(c, (i,))
        return BufferStore(c, {"sum": old + x, "product": old + x * p.load([k], p.outputs[2]), "max": tir.max_(old, x)}[operation], (i,))

    start = p.block([S], [p.n], lambda at: BufferStore(c, tir.const(least, "int32"), tuple(at)), full=True)
    return tir.seq(start, p.block([S, R], [p.n, steps], add, full=True), _seen(p, c))


def _chosen(p: Program) -> Stmt:
    """What is made is used only where memory says so."""
    made, which, y = p.new(p.n, p.m), p.new(p.n), p.outputs[0]
    first = p.block([S], [p.n], lambda at: BufferStore(which, p.load(at, p.inputs[1]), tuple(at)), full=True)
    if p.random.random() < 0.5:
        start = lambda at: BufferStore(made, tir.const(0, "int32"), tuple(at[:2]))
        add = lambda at: BufferStore(made, BufferLoad(made, tuple(at[:2])) + p.load([at[0], at[2]], p.inputs[0]), tuple(at[:2]))
        make = p.block([S, S, R], [p.n, p.m, p.m], add, start, full=True)
    else:
        make = p.block([S, S], [p.n, p.m], lambda at: BufferStore(made, p.value(at), tuple(at)), full=True)

    def choose(at: list[Expr]) -> Stmt:
        sides = [BufferLoad(made, tuple(at)), p.load(at, p.inputs[0])]
        a, b = sides if p.random.random() < 0.5 else sides[::-1]
        return BufferStore(y, p.random.choice((tir.select, tir.if_then_else))(BufferLoad(which, tuple(at[:1])) > 0, a, b), tuple(at))

    return tir.seq(*([first, make] if p.random.random() < 0.8 else [make, first]), p.block([S, S], [p.n, p.m], choose, full=True))



def _again(p: Program) -> Stmt:
    """A row that each iteration makes again, as it was."""
    row, y = p.new(p.m), p.outputs[0]
    i, vi = new_var("i"), new_var("vi")
    p.extent.update({i: p.n, vi: p.n})
    make = p.block([S], [p.m], lambda at: BufferStore(row, p.load(at, p.outputs[2]) + 1, tuple(at)), full=True)
    j, vj = new_var("j"), new_var("vj")
    p.extent.update({j: p.m, vj: p.m})
    p.blocks += 1
    use = Block((IterVar(vi, Range.of(tir.index_const(p.n)), S), IterVar(vj, Range.of(tir.index_const(p.m)), S)), (), (), f"b{p.blocks}",
                BufferStore(y, BufferLoad(row, (vj,)) + p.load([vi, vj], p.inputs[0]), (vi, vj)))
    reads, writes = block_access(use)
    where = i < p.random.choice(DOWN) if p.random.random() < 0.4 else tir.const(True)
    inner = For(j, tir.index_const(0), tir.index_const(p.m), ForKind.SERIAL, BlockRealize((i, j), where, use.replace(reads=reads, writes=writes)))
    return For(i, tir.index_const(0), tir.index_const(p.n), ForKind.SERIAL, tir.seq(make, inner))


def _tiles(p: Program) -> Stmt:
    """A sum of products with one reader."""
    c, a, b = p.new(p.n, p.n), p.random.choice([p.inputs[0], p.outputs[0]]), p.random.choice([p.inputs[0], p.outputs[0]])
    add = lambda at: BufferStore(c, BufferLoad(c, tuple(at[:2])) + BufferLoad(a, (at[0], at[2])) * BufferLoad(b, (at[1], at[2])), tuple(at[:2]))
    made = p.block([S, S, R], [p.n, p.n, p.m], add, _zero(c, 2), full=True)
    y = p.new(p.n, p.n)
    return tir.seq(made, p.block([S, S], [p.n, p.n], lambda at: BufferStore(y, BufferLoad(c, tuple(at)) + p.load(at), tuple(at)), full=True), _seen(p, y))


def _pipeline(p: Program) -> Stmt:
    """One stage after another, each of which reads the one before."""
    b, stages = p.random.choice([p.inputs[0], p.outputs[0]]), []
    for _ in range(p.random.choice((2, 3))):
        t, before = p.new(p.n, p.m), b
        more = p.random.choice((0, 1, 2))
        make = lambda at, t=t, before=before, more=more: BufferStore(t, BufferLoad(before, tuple(at)) + more, tuple(at))
        stages.append(p.block([S, S], [p.n, p.m], make, full=True))
        b = t
    return tir.seq(*stages, _seen(p, b))


FORMS = [_triangle, _triangle, _border, _border, _chosen, _chosen, _again, _again, _tiles, _tiles, _pipeline, _pipeline, *FURTHER]
