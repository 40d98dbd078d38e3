# SPDX-License-Identifier: Apache-2.0
"""Stages of random programs in which nothing is dense: loops that begin anywhere and end where other loops or memory say, variables of blocks with
any values, several blocks in one nest, blocks in blocks, views of parts that overlap. See ``irregular``.

They change in place what earlier stages stored, so that no element is read that was never stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from roundel.arith import Analyzer, block_access
from roundel.ir import Buffer, Var, decl_buffer, tir
from roundel.ir.dtype import DType
from roundel.ir.tir import Block, BlockRealize, BufferLoad, BufferRegion, BufferStore, Expr, For, ForKind, IterKind, IterVar, Range, Stmt

from .primitive_parts import Program, R, S, nested, new_var

KINDS = (S,) * 9 + (R,) * 5 + (IterKind.SCAN, IterKind.OPAQUE)


def _const(n: int) -> Expr:
    return tir.index_const(n)


class Nest:
    """Where a stage stands: the variables around it and their bounds, and the views that are to be had there."""

    def __init__(self, p: Program, known: Sequence[tuple[Var, int, int]] = (), views: Sequence[Buffer] = ()) -> None:
        self.p, self.random, self.known, self.views = p, p.random, list(known), list(views)
        self.an = Analyzer()
        for v, low, n in known:
            self.an.bind(v, Range(_const(low), _const(n)))

    def inside(self, more: Sequence[tuple[Var, int, int]], views: Sequence[Buffer] = ()) -> Nest:
        """With more variables: their first value, and how many at most."""
        return Nest(self.p, [*self.known, *more], [*self.views, *views])

    def within(self, e: Expr, size: int) -> Expr:
        """An expression as an index of ``size`` elements."""
        low, high = self.an.bounds(e)
        if low >= 0 and high < size:
            return e
        return tir.floormod(e, size) if self.random.random() < 0.7 else tir.max_(tir.min_(e, size - 1), 0)

    def number(self, depth: int = 1) -> Expr:
        """An index expression of the variables around."""
        v: Expr = self.random.choice([v for v, _, _ in self.known]) if self.known else _const(self.random.choice((0, 1)))
        if self.random.random() < 0.5 or not depth:
            return v
        other = lambda: self.number(depth - 1)
        return self.random.choice((
            lambda: v + self.random.choice((1, 2, -1)),
            lambda: v * self.random.choice((2, 3)),
            lambda: tir.floordiv(v, self.random.choice((2, 3))),
            lambda: tir.floormod(v, self.random.choice((2, 3))),
            lambda: tir.floormod(v + self.random.choice((1, 2)), self.p.n),
            lambda: (self.p.n - 1) - v,
            lambda: v + other(),
            lambda: v - other(),
            lambda: v * 2 + other(),
            lambda: v * other(),
            lambda: tir.max_(v, other()),
            lambda: tir.min_(v, other()),
            lambda: tir.if_then_else(v < self.random.choice((1, 2)), v, other()),
            lambda: _const(self.random.choice((0, 0, 1))),
            lambda: self.told(3) if self.random.random() < 0.4 else v + 0,
        ))()  # fmt: skip

    def told(self, size: int) -> Expr:
        """A number below ``size`` that memory tells."""
        return tir.floormod(tir.cast(self.load(plain=False), "int64"), size)

    def buffer(self, stored: bool) -> Buffer:
        """A buffer whose elements are all there: to be changed, or any."""
        if self.views and self.random.random() < 0.6:
            return self.random.choice(self.views)
        p = self.p
        return self.random.choice([*p.outputs, *p.inner[-3:]] if stored else [*p.inputs, *p.outputs, *p.inner[-3:]])

    def at(self, buffer: Buffer, plain: bool = True) -> tuple[Expr, ...]:
        """Where in a buffer: mostly by the innermost variables, in their order."""
        sizes = [n.value for n in buffer.shape]
        if plain and len(self.known) >= len(sizes) and self.random.random() < 0.6:
            return tuple(self.within(v, n) for (v, _, _), n in zip(self.known[-len(sizes) :], sizes))
        return tuple(self.within(self.number(int(plain)), n) for n in sizes)

    def load(self, buffer: Buffer | None = None, plain: bool = True) -> Expr:
        """An element of some buffer."""
        b = buffer or self.buffer(stored=False)
        return tir.cast(BufferLoad(b, self.at(b, plain)), "int32")

    def condition(self) -> Expr:
        """Of the variables, or of memory."""
        e, other = self.number(), self.number()
        return self.random.choice((e < self.p.n, e < 2, e >= 1, e <= other, tir.eq(tir.floormod(e, 2), 0), tir.ne(e, other), self.load() > 0))


# --- loops


def _loops(nest: Nest, most: int = 3) -> tuple[list[tuple[Var, Expr, Expr]], Nest]:
    """Loops, each with its minimum and extent, and what is known in them."""
    p, out = nest.p, []
    for k in range(p.random.choice((1, 1, 2, 2, 3)[: most + 2])):
        v, n = new_var(f"i{len(nest.known)}{k}"), p.random.choice((p.n, p.m, 2, 3, 1))
        first: Expr = _const(p.random.choice((0,) * 12 + (1, 2, -2)))
        low = first.value
        extent: Expr = _const(n)
        around = [x for x in nest.known if x[1] >= 0]
        if around and p.random.random() < 0.35:
            u, u_low, u_n = p.random.choice(around)
            most_of = u_low + u_n
            way = p.random.choice(("lower", "upper", "least", "chosen", "told") + ("up to", "half") * (most_of > 1))  # (none that never runs)
            extent, n = {
                "lower": (u + 1, most_of),
                "upper": (_const(most_of) - u, most_of),
                "up to": (u + 0, most_of),
                "least": (tir.min_(u + 1, n), n),
                "chosen": (tir.if_then_else(u < 1, _const(n), _const(1)), n),
                "told": (nest.told(n) + p.random.choice((0, 1)), n),
                "half": (tir.floordiv(u + 1, 2), (most_of + 1) // 2),
            }[way]
            if way == "upper" and p.random.random() < 0.5:
                first, low, n = u + 0, u_low, most_of
        elif p.random.random() < 0.06:
            extent, n = nest.told(n) + p.random.choice((0, 1)), n
        out.append((v, first, extent))
        nest = nest.inside([(v, low, max(n, 1))])
    return out, nest


def _around(body: Stmt, loops: Sequence[tuple[Var, Expr, Expr]]) -> Stmt:
    for v, first, extent in reversed(loops):
        body = For(v, first, extent, ForKind.SERIAL, body)
    return body


# --- blocks


def _block(nest: Nest, depth: int) -> Stmt:
    """A block with variables that have any values, and any body."""
    p = nest.p
    p.blocks += 1
    name, axes, values = f"b{p.blocks}", [], []
    dense = p.random.random() < 0.4
    loops = [v for v, _, _ in nest.known][-3:]
    for k in range(len(loops) if dense else p.random.choice((1, 1, 2, 2, 3))):
        value = loops[k] if dense else nest.number()
        low, high = nest.an.bounds(value)
        if not (-8 <= low and high <= 24):
            value = tir.floormod(value, p.n)
            low, high = 0, p.n - 1
        if low > 0 and p.random.random() < 0.5:
            low = 0
        axes.append((IterVar(new_var(f"v{k}"), Range(_const(int(low)), _const(int(high - low) + 1)), p.random.choice(KINDS)), int(low), int(high - low) + 1))
        values.append(value)
    ivs = tuple(iv for iv, _, _ in axes)
    own = Nest(p, [(iv.var, low, n) for iv, low, n in axes], nest.views)
    predicate = nest.condition() if p.random.random() < 0.2 else tir.const(True)
    if type(nest.an.simplify(predicate)) is tir.IntImm:  # (a reduction that never runs, over nothing, would have its init or not)
        predicate = tir.const(True)
    make = p.random.choice([_store, _store, _update, _update, _reduce, _reduce, _greatest, _two, _row, _chosen] + [_deeper, _views] * (depth > 0))
    block = make(own, Block(ivs, (), (), name, tir.Evaluate(tir.const(0))), depth)
    reads, writes = block_access(block)
    return BlockRealize(tuple(values), predicate, block.replace(reads=reads, writes=writes))


def _to(nest: Nest) -> tuple[Buffer, tuple[Expr, ...], Expr]:
    b = nest.buffer(stored=True)
    at = nest.at(b)
    return b, at, BufferLoad(b, at)


def _value(nest: Nest) -> Expr:
    a, b, c = nest.load(), nest.load(), nest.load()
    return nest.random.choice((a, a + 1, a + b, tir.max_(a, b), a * 2 - b, tir.if_then_else(nest.condition(), a, c + 1)))


def _stored(b: Buffer, at: tuple[Expr, ...], value: Expr) -> Stmt:
    return BufferStore(b, tir.cast(value, b.dtype), at)


def _store(nest: Nest, block: Block, depth: int) -> Block:
    b, at, _ = _to(nest)
    return block.replace(body=_stored(b, at, _value(nest)))


def _update(nest: Nest, block: Block, depth: int) -> Block:
    b, at, old = _to(nest)
    x = tir.cast(_value(nest), b.dtype)
    return block.replace(body=BufferStore(b, nest.random.choice((old + x, old + x, tir.max_(old, x), old * 2 + x, x - old)), at))


def _reduce(nest: Nest, block: Block, depth: int) -> Block:
    """A reduction with an init, as a rule over what the variables say that reduce."""
    spatial = [(iv.var, nest.an.bounds(iv.var)) for iv in block.iter_vars if iv.kind is S]
    mine = Nest(nest.p, [(v, int(low), int(high - low) + 1) for v, (low, high) in spatial], nest.views) if nest.random.random() < 0.85 else nest
    b, at, old = _to(mine)
    x, start = tir.cast(nest.load(), b.dtype), tir.cast(nest.random.choice((tir.const(0), tir.const(0), tir.const(-7), mine.load())), b.dtype)
    body = BufferStore(b, nest.random.choice((old + x, old + x, old + x, tir.max_(old, x), tir.min_(old, x), old * 2 + x)), at)
    return block.replace(body=body, init=BufferStore(b, start, at))


def _greatest(nest: Nest, block: Block, depth: int) -> Block:
    """Two results of one reduction, the second of which follows the first."""
    p = nest.p
    pairs = [(a, b) for a in (*p.outputs, *p.inner[-3:]) for b in (*p.outputs, *p.inner[-3:])
             if a is not b and [n.value for n in a.shape] == [n.value for n in b.shape] and a.dtype == b.dtype == DType("int32")]
    if not pairs:
        return _update(nest, block, depth)
    value, where = p.random.choice(pairs)
    at = nest.at(value)
    x, keep = nest.load(), Var("keep", DType("bool"))
    a, b = (Var(n, DType("int32")) for n in ("a", "b"))
    place = tir.Select(keep, BufferLoad(where, at), tir.cast(nest.number(0), "int32"))
    both = tir.seq(BufferStore(where, a, at), BufferStore(value, b, at))
    compare = p.random.choice((BufferLoad(value, at) >= x, BufferLoad(value, at) > x))
    body = tir.Let(keep, compare, tir.Let(a, place, tir.Let(b, tir.Select(keep, BufferLoad(value, at), x), both)))
    init = tir.seq(BufferStore(where, tir.const(-1, "int32"), at), BufferStore(value, tir.const(-99, "int32"), at)) if p.random.random() < 0.6 else None
    return block.replace(body=body, init=init)


def _two(nest: Nest, block: Block, depth: int) -> Block:
    """Two or three stores, which may read each other's elements."""
    parts = [(_store if nest.random.random() < 0.5 else _update)(nest, block, depth).body for _ in range(nest.random.choice((2, 2, 3)))]
    return block.replace(body=tir.seq(*parts))


def _row(nest: Nest, block: Block, depth: int) -> Block:
    """A loop within the block."""
    loops, inner = _loops(nest, 1)
    return block.replace(body=_around(nest.random.choice((_store, _update, _chosen))(inner, block, depth).body, loops))


def _chosen(nest: Nest, block: Block, depth: int) -> Block:
    """A condition within the block."""
    otherwise = _store(nest, block, depth).body if nest.random.random() < 0.4 else None
    return block.replace(body=tir.If(nest.condition(), nest.random.choice((_store, _update))(nest, block, depth).body, otherwise))


def _deeper(nest: Nest, block: Block, depth: int) -> Block:
    """Blocks in the block, which may have a buffer of its own, filled first."""
    p = nest.p
    if p.random.random() < 0.5:
        return block.replace(body=_stage(nest, depth - 1))
    row = decl_buffer((_const(p.m),), "int32", "row", scope=p.random.choice(("global", "local", "shared")))
    fill = p.block([S], [p.m], lambda at: BufferStore(row, nest.inside([(at[0], 0, p.m)]).load(), (at[0],)), full=True)
    inner = nest.inside([], [row])
    init = None
    if p.random.random() < 0.2 and any(iv.kind is R for iv in block.iter_vars):
        init = _store(nest, block, depth).body
    return block.replace(body=tir.seq(fill, _stage(inner, depth - 1)), alloc_buffers=(row,), init=init)


def _views(nest: Nest, block: Block, depth: int) -> Block:
    """One or two views of parts of a buffer."""
    p, y, made = nest.p, nest.buffer(stored=True), []
    for _ in range(p.random.choice((1, 2))):
        region = []
        for n in (n.value for n in y.shape):
            size = p.random.choice((1, n, max(1, n // 2)))
            first = nest.within(nest.number(), n - size + 1) if size < n else _const(0)
            region.append(Range(first, _const(size)))
        shape = [r.extent for r in region]
        while len(shape) > 1 and shape[0].value == 1 and p.random.random() < 0.5:
            shape.pop(0)
        made.append(tir.MatchBufferRegion(decl_buffer(tuple(shape), y.dtype, f"view{len(made)}", scope=y.scope), BufferRegion(y, tuple(region))))
    inner = nest.inside([], [m.buffer for m in made])
    body = _stage(inner, depth - 1) if p.random.random() < 0.5 else p.random.choice((_store, _update, _two, _row))(inner, block, depth).body
    return block.replace(body=body, match_buffers=tuple(made))


# --- stages


def _stage(nest: Nest, depth: int) -> Stmt:
    """One to three blocks in a nest of loops, some of them further inside; conditions and statements beside them."""
    p = nest.p
    loops, inner = _loops(nest)
    parts: list[Stmt] = []
    for _ in range(p.random.choice((1, 1, 1, 2, 2, 3))):
        if p.random.random() < 0.06:
            parts.append(_store(inner, Block((), (), (), "", tir.Evaluate(tir.const(0))), 0).body)
            continue
        more, place = _loops(inner, 1) if p.random.random() < 0.35 else ([], inner)
        part = _block(place, depth)
        if p.random.random() < 0.06:
            part = tir.If(place.condition(), part)
        parts.append(_around(part, more))
    return _around(tir.seq(*parts), loops)


def _in_order(p: Program) -> Stmt:
    """What is in an inner buffer becomes an output, so that it is seen."""
    b = p.random.choice([*p.inner[-3:], *p.outputs])
    y = p.random.choice([y for y in p.outputs if y.ndim <= b.ndim] or p.outputs)
    sizes = [n.value for n in y.shape]
    return p.block([S] * len(sizes), sizes, lambda at: BufferStore(y, BufferLoad(y, tuple(at)) + p.load(at, b), tuple(at)), full=True)


def _sparse(p: Program) -> Stmt:
    return _stage(Nest(p), 2)


def _made(p: Program) -> Stmt:
    """A buffer is filled and then changed sparsely."""
    t = p.new(p.n, p.m) if p.random.random() < 0.6 else p.new(p.n)
    if p.random.random() < 0.3:
        p.inner[-1] = t = t.replace(scope=p.random.choice(("local", "shared")))
    sizes = [n.value for n in t.shape]
    fill = p.block([S] * len(sizes), sizes, lambda at: BufferStore(t, p.load(at, p.random.choice(p.inputs)), tuple(at)), full=True)
    return tir.seq(fill, _stage(Nest(p, (), [t, t, t]), 1), _in_order(p))


def _repeated(p: Program) -> Stmt:
    """Stages in a loop that repeats them."""
    t = new_var("t")
    nest = Nest(p, [(t, 0, 2)] if p.random.random() < 0.5 else [])
    return nested(tir.seq(_stage(nest, 1), _in_order(p), *([_stage(nest, 0)] if p.random.random() < 0.5 else [])), [(t, 2)])


FORMS = [_sparse, _sparse, _sparse, _made, _made, _repeated, _in_order]
