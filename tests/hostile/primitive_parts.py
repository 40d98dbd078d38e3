# SPDX-License-Identifier: Apache-2.0
"""What random small tensor programs are made of: buffers, indices, values, loops around blocks. See ``primitives``.

Every element of an inner buffer is stored before it is read. Indices are within bounds (taken modulo the size where they could be outside).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from roundel.arith import block_access
from roundel.ir import Buffer, Var, decl_buffer, tir
from roundel.ir.dtype import INT64
from roundel.ir.tir import Block, BlockRealize, BufferLoad, Expr, For, ForKind, IterKind, IterVar, Range, Stmt

S, R = IterKind.SPATIAL, IterKind.REDUCE
SIZES = (2, 2, 3, 3, 4, 4, 6, 6, 5, 1)
TYPES = ("int32",) * 8 + ("int8", "float32", "int64")  # of what elementwise stages store


Loop = tuple  # the variable, how many iterations, and the first value where that is not 0


def new_var(name: str) -> Var:
    """An index variable."""
    return Var(name, INT64)


class Program:
    """Buffers of a program, and what is made of them at random."""

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

    def new(self, *shape: int, dtype: str = "int32") -> Buffer:
        """A new inner buffer."""
        b = decl_buffer(tuple(map(tir.index_const, shape)), dtype, f"T{len(self.inner)}")
        self.inner.append(b)
        return b

    def readable(self) -> Buffer:
        """Any buffer whose elements are all stored."""
        return self.random.choice([*self.inputs, *self.outputs, *self.inner * 2, *self.inner[-2:] * 2])

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
        elif way == 5 and self.random.random() < 0.4:  # where memory says
            i = tir.cast(self.load(at, self.random.choice([b for b in (*self.inputs, *self.outputs) if b.ndim == 1])), "int64")
        return self.within(i, size)

    def load(self, at: list[Expr], source: Buffer | None = None) -> Expr:
        """A load of some buffer at some place; mostly the plain one."""
        b = source or self.readable()
        sizes = [n.value for n in b.shape]
        plain = [i for i, _ in zip(at, sizes)] if len(at) >= len(sizes) and self.random.random() < 0.6 else None
        indices = [self.within(i, n) for i, n in zip(plain, sizes)] if plain else [self.index(at, n) for n in sizes]
        return tir.cast(BufferLoad(b, tuple(indices)), "int32")

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
              full: bool = False, first: int = 0) -> Stmt:
        """A block in loops, bound in one of several ways; its variables begin at ``first``."""
        self.blocks += 1
        vs = [new_var(f"v{k}") for k in range(len(kinds))]
        self.extent.update((v, n + first) for v, n in zip(vs, extents))
        loops, values, predicate = self.bindings(extents)
        if not full and len(loops) > 1 and self.random.random() < 0.06:  # the lower triangle
            (outer, *_), (inner, n, *begin) = loops[:2]
            loops[1] = (inner, tir.min_(n, outer + 1), *begin)
        values = [v + first if first else v for v in values]
        ivs = tuple(IterVar(v, Range(tir.index_const(first), tir.index_const(n)), kind) for v, n, kind in zip(vs, extents, kinds))
        where = []
        if not full and self.random.random() < 0.06:
            where = [self.load(list(values)) > 0]
        stmt = Block(ivs, (), (), f"b{self.blocks}", make(list(vs)), None if init is None else init(list(vs)))
        reads, writes = block_access(stmt)
        realize = BlockRealize(tuple(values), tir.logical_and(predicate, *where), stmt.replace(reads=reads, writes=writes))
        if not full and init is None and self.random.random() < 0.04:  # (a condition inside of the loops)
            return nested(tir.If(self.load(list(values)) > 0, realize), loops)
        return nested(realize, loops)

    def bindings(self, extents: list[int]) -> tuple[list[Loop], list[Expr], Expr]:
        """Loops, values of variables, and a predicate: one loop per variable, split ones, fused ones, other orders."""
        loops: list[Loop] = []
        values: list[Expr] = []
        predicate: Expr = tir.const(True)
        if len(extents) > 1 and self.random.random() < 0.1:
            f = new_var("f")
            rest = [(new_var("x"), n) for n in extents[2:]]
            return [(f, extents[0] * extents[1]), *rest], [f // extents[1], f % extents[1], *(v for v, _ in rest)], predicate
        for k, n in enumerate(extents):
            a, b = new_var(f"i{k}"), new_var(f"j{k}")
            way = self.random.random()
            if way < 0.12:
                loops += [(a, -(-n // 2)), (b, 2)]
                values.append(a * 2 + b)
                predicate = predicate if n % 2 == 0 else tir.logical_and(predicate, a * 2 + b < n)
            elif way < 0.15:
                loops.append((a, n, 2))
                values.append(a - 2)
            else:
                loops.append((a, n))
                values.append(a)
        if self.random.random() < 0.2:
            self.random.shuffle(loops)
        if self.random.random() < 0.08:
            loops.insert(self.random.randrange(len(loops) + 1), (new_var("t"), 2))  # repeats everything
        return loops, values, predicate


def nested(body: Stmt, loops: list[Loop]) -> Stmt:
    """Loops around a statement, the first outermost."""
    for v, n, *first in reversed(loops):
        body = For(v, tir.index_const(*first or (0,)), n if isinstance(n, Expr) else tir.index_const(n), ForKind.SERIAL, body)
    return body
