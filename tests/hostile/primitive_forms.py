# SPDX-License-Identifier: Apache-2.0
"""Stages of random programs whose instances leave elements out, which memory tells, or which touch one memory under two names. See ``copies``."""

from __future__ import annotations

from roundel.arith import block_access
from roundel.ir import Var, decl_buffer, tir
from roundel.ir.tir import Block, BlockRealize, BufferLoad, BufferRegion, BufferStore, Expr, IterKind, IterVar, Range, Stmt

from .primitive_parts import Loop, Program, R, S, nested, new_var


def _all(n: int) -> Range:
    return Range(tir.index_const(0), tir.index_const(n))


def _block(p: Program, axes: list[tuple[Var, int, IterKind]], values: list[Expr], loops: list[Loop], body: Stmt) -> Stmt:
    """A block with axes of some extents, which have values in loops."""
    p.blocks += 1
    block = Block(tuple(IterVar(v, _all(n), kind) for v, n, kind in axes), (), (), f"b{p.blocks}", body)
    reads, writes = block_access(block)
    return nested(BlockRealize(tuple(values), tir.const(True), block.replace(reads=reads, writes=writes)), loops)


def _sparse(p: Program) -> Stmt:
    """Every second element, all but one, backwards, or each twice."""
    y = p.random.choice(p.outputs)
    sizes = [n.value for n in y.shape]
    axes, values, loops = [], [], []
    for k, n in enumerate(sizes):
        i, v = new_var(f"i{k}"), new_var(f"v{k}")
        p.extent.update({i: n, v: n})
        first = p.random.choice((0, 1))
        way = p.random.choice((("all", n, i), ("half", (n + 1) // 2, i * 2), ("but one", n - 1, i + first), ("back", n, (n - 1) - i), ("twice", n * 2, i // 2)))
        way = way if way[1] else ("all", n, i)
        axes.append((v, n, S))
        loops.append((i, way[1]))
        values.append(way[2])
    at = [v for v, _, _ in axes]
    return _block(p, axes, values, loops, BufferStore(y, p.value(at), tuple(at)))


def _told(p: Program) -> Stmt:
    """Memory tells which instance runs."""
    y, source = (p.random.choice([b for b in found if b.ndim == 1]) for found in (p.outputs, (*p.inputs, *p.outputs)))
    n, rows, m = y.shape[0].value, source.shape[0].value, p.random.choice((2, 3))
    i, j, v, w = (new_var(name) for name in ("i", "j", "v0", "v1"))
    p.extent.update({v: n, w: m, i: rows})
    x = p.load([v, w], p.random.choice(p.inputs))
    store = BufferStore(y, BufferLoad(y, (v,)) + x if p.random.random() < 0.5 else x, (v,))
    which = tir.floormod(tir.cast(BufferLoad(source, (i,)), "int64"), n)
    return _block(p, [(v, n, S), (w, m, p.random.choice((S, R)))], [which, j], [(i, rows), (j, m)], store)


def _ragged(p: Program) -> Stmt:
    """Memory tells how far a loop runs."""
    i, j, v, w = (new_var(name) for name in ("i", "j", "v0", "v1"))
    p.extent.update({v: p.n, w: p.m, i: p.n})
    end = tir.floormod(tir.cast(p.load([i], p.random.choice((p.inputs[1], p.outputs[1]))), "int64"), p.m) + 1
    return _block(p, [(v, p.n, S), (w, p.m, S)], [i, j], [(i, p.n), (j, end)], BufferStore(p.outputs[0], p.value([v, w]), (v, w)))


def _several(p: Program) -> Stmt:
    """An instance stores several elements of a row: all, every second, a triangle, some, the first and the last, or one of them often."""
    y, i, v, j = p.outputs[0], new_var("i"), new_var("v"), new_var("j")
    p.extent.update({v: p.n, j: p.m, i: p.n})
    x = p.load([v, j], p.random.choice((p.inputs[0], y)))
    store, one = BufferStore(y, x + 1, (v, j)), p.load([v], p.inputs[1])
    body = p.random.choice((
        nested(store, [(j, p.m)]),
        nested(BufferStore(y, x, (v, tir.floormod(j * 2, p.m))), [(j, (p.m + 1) // 2)]),
        nested(store, [(j, tir.min_(v + 1, p.m))]),
        nested(tir.If(p.load([v, j], p.inputs[0]) > 0, store), [(j, p.m)]),
        tir.seq(*(BufferStore(y, one, (v, tir.index_const(k))) for k in (0, p.m - 1))),
        nested(BufferStore(y, BufferLoad(y, (v, tir.index_const(0))) + x, (v, tir.index_const(0))), [(j, p.m)]),
    ))  # fmt: skip
    return _block(p, [(v, p.n, S)], [i], [(i, p.n)], body)


def _two_names(p: Program) -> Stmt:
    """Blocks in a block touch a buffer, a view of it, and a row of the block's own."""
    p.blocks += 1
    name, y, i, v = f"b{p.blocks}", p.outputs[0], new_var("i"), new_var("vi")
    p.extent.update({i: p.n, v: p.n})
    row, own = (decl_buffer((tir.index_const(p.m),), "int32", n) for n in ("row", "own"))

    def place(at: list[Expr]) -> tuple:
        b, j = p.random.choice((row, row, row, y)), p.random.choice((at[-1], at[-1], tir.floormod(at[-1] + 1, p.m)))
        return b, ((v, j) if b is y else (j,))

    def change(at: list[Expr]) -> Stmt:
        (target, there), (source, here) = place(at), place(at)
        x = BufferLoad(source, here)
        value = p.random.choice((x + 1, p.load([v, *at], p.inputs[0]), BufferLoad(own, tuple(at)) + x))
        return BufferStore(own, value, tuple(at)) if p.random.random() < 0.3 else BufferStore(target, value, there)

    parts = [p.block([S], [p.m], lambda at: BufferStore(own, p.load([v, *at], p.inputs[0]), tuple(at)), full=True)]
    parts += [p.block([S], [p.m], change) for _ in range(p.random.choice((1, 2, 2, 3)))]
    view = tir.MatchBufferRegion(row, BufferRegion(y, (Range(v, tir.index_const(1)), _all(p.m))))
    outer = Block((IterVar(v, _all(p.n), S),), (), (), name, tir.seq(*parts), alloc_buffers=(own,), match_buffers=(view,))
    reads, writes = block_access(outer)
    return nested(BlockRealize((i,), tir.const(True), outer.replace(reads=reads, writes=writes)), [(i, p.n)])


FORMS = [_sparse, _told, _ragged, _several, _several, _two_names, _two_names]
