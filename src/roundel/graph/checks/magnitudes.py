# SPDX-License-Identifier: Apache-2.0
"""How many elements a tensor may have, and how many iterations a program: a call that no machine could finish is an error at once.

A tensor that is fused away takes no memory, so nothing else would say that `Expand` to 2^31 x 2^31 elements and a sum of them run for
centuries. Products of sizes are compared as floating-point numbers, which do not wrap around.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ...arith.magnitude import magnitude
from ...ir import graph, tir
from ...ir.tir import Expr
from ...ir.visit import free_vars, statements

MOST_ELEMENTS = 1 << 46
"""Elements of a tensor: what processors of today can address."""
MOST_ITERATIONS = 1 << 56
"""Iterations of a program's loops: years of a processor's time."""
_ROOM = 1 << 16  # times as many elements as an argument, which lies in memory, may a tensor of the same dimensions have without being asked about
_Key = frozenset[tuple[frozenset[tir.Var], int]]


class Magnitudes:
    """Products of sizes that are known to be possible: what a set of dimensions may be multiplied by."""

    def __init__(self, known: dict[_Key, int] | None = None) -> None:
        self.known = known or {}

    def copy(self) -> Magnitudes:
        """The same knowledge, to be added to."""
        return Magnitudes(dict(self.known))

    def argument(self, info: graph.StructInfo) -> None:
        """An argument lies in memory."""
        if isinstance(info, graph.TensorInfo) and info.shape is not None:
            count, factors = _factors(info.shape)
            self._know(_key(factors), max(count, 1) * _ROOM)

    def elements(self, shape: Sequence[Expr]) -> Expr | None:
        """The condition that a tensor may have so many elements, None where that is known."""
        return self._within(shape, MOST_ELEMENTS)

    def iterations(self, domain: Sequence[Expr]) -> Expr | None:
        """The condition that a program may have so many iterations, None where that is known."""
        return self._within(domain, MOST_ITERATIONS)

    def _within(self, sizes: Sequence[Expr], most: int) -> Expr | None:
        count, factors = _factors(sizes)
        if count == 0:
            return None
        key, times = _key(factors), most // MOST_ELEMENTS
        if not factors:
            return tir.const(False) if count > most else None
        if any(count <= least * times and _covers(other, key) for other, least in self.known.items()):
            return None
        self._know(key, -(-count // times))
        return tir.le(magnitude(tir.product_of(factors)), tir.const(float(most) / count, "float64"))

    def _know(self, key: _Key, count: int) -> None:
        self.known[key] = max(count, self.known.get(key, 0))


def domains(func: tir.PrimFunc) -> Iterator[tuple[Expr, ...]]:
    """The iteration domains of a program's blocks, where they follow from sizes."""
    sizes = {p for p in func.params if p not in func.buffers}.union(*(free_vars(n) for b in func.buffer_params for n in b.shape))
    for stmt in statements(func.body):
        if isinstance(stmt, tir.Block):
            extents = tuple(v.dom.extent for v in stmt.iter_vars)
            if all(free_vars(n) <= sizes for n in extents):
                yield extents


def _factors(sizes: Sequence[Expr]) -> tuple[int, list[Expr]]:
    """The product of what is known of sizes, and the factors of the others."""
    count, factors, left = 1, [], list(sizes)
    while left:
        size = left.pop()
        if isinstance(size, tir.Mul):
            left += [size.a, size.b]
        elif isinstance(size, tir.IntImm):
            count *= max(size.value, 0)
        else:
            factors.append(size)
    return count, factors


def _key(factors: Sequence[Expr]) -> _Key:
    """What factors depend on: a dimension that is a little longer or shorter than another is taken for alike."""
    return frozenset(Counter(frozenset(free_vars(f)) for f in factors).items())


def _covers(known: _Key, asked: _Key) -> bool:
    counts = dict(known)
    return all(counts.get(variables, 0) >= n for variables, n in asked)
