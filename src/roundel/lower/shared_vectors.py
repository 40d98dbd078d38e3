# SPDX-License-Identifier: Apache-2.0
"""Lanes that lie a few elements apart, and those between them: all are picked from the same vectors.

    shuffle((A[ramp(i * 48 + 1, 1, 16)], A[ramp(i * 48 + 17, 1, 16)], A[ramp(i * 48 + 31, 1, 16)]), (0, 3, ...))
    -> shuffle((A[ramp(i * 48, 1, 16)], A[ramp(i * 48 + 16, 1, 16)], A[ramp(i * 48 + 32, 1, 16)]), (1, 4, ...))

A reduction over rows of three elements, written out, loads each vector once then. The vectors begin at a multiple of the distance between lanes and
hold a whole number of such distances, as the dimension does, so that nothing before the first element or behind the last one is read.
"""

from __future__ import annotations

from typing import Any

from roundel.arith import Analyzer
from roundel.arith.effects import somewhere
from roundel.ir import Rewriter, on, tir
from roundel.ir.visit import statements

from .kernel_pass import kernel_pass
from .nearby_lanes import MOST_VECTORS


@kernel_pass("shared_vectors")
def shared_vectors(func: tir.PrimFunc) -> tir.PrimFunc:
    """Vectors of which lanes are picked at equal distances begin where those of the neighbours do."""
    if not any(_picks_lanes(e) for s in statements(func.body) for e in s._below() if isinstance(e, tir.Expr)):
        return func
    body = _Shared().rewrite(func.body)
    return func if body is func.body else func.replace(body=body)


class _Shared(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()

    def rewrite(self, node: Any) -> Any:
        """Expressions that pick no lanes stay as they are."""
        return node if isinstance(node, tir.Expr) and not _picks_lanes(node) else super().rewrite(node)

    @on(tir.Shuffle)
    def _shuffle(self, e: tir.Shuffle) -> tir.Expr:
        found = self._picked(e)
        return e if found is None else found

    def _picked(self, e: tir.Shuffle) -> tir.Expr | None:
        first, lanes = e.vectors[0], len(e.indices)
        if len(e.vectors) < 2 or any(not _is_plain(v) or v.buffer is not first.buffer or v.indices[:-1] != first.indices[:-1] for v in e.vectors):
            return None
        base = first.indices[-1].base
        starts = [self.analyzer.simplify(v.indices[-1].base - base) for v in e.vectors]
        elements = [s + k for s, v in zip(starts, e.vectors, strict=True) for k in range(v.dtype.lanes)]
        places = [self.analyzer.simplify(elements[k]) for k in e.indices]
        if any(type(p) is not tir.IntImm for p in places):
            return None
        step = places[1].value - places[0].value
        if not 1 < step <= MOST_VECTORS or any(p.value != places[0].value + k * step for k, p in enumerate(places)):
            return None
        begin = base + places[0].value
        rest = self.analyzer.simplify(tir.floormod(begin, step))
        length = self.analyzer.simplify(tir.floormod(first.buffer.shape[-1], step))
        if type(rest) is not tir.IntImm or type(length) is not tir.IntImm or length.value:
            return None
        begin = self.analyzer.simplify(begin - rest.value)
        loads = tuple(tir.BufferLoad(first.buffer, (*first.indices[:-1], tir.Ramp(begin + k * lanes, tir.index_const(1), lanes))) for k in range(step))
        return tir.Shuffle(loads, tuple(rest.value + k * step for k in range(lanes)))


def _picks_lanes(e: tir.Expr) -> bool:
    """Whether there is a shuffle in an expression."""
    return somewhere(e, "picks_lanes", type(e) is tir.Shuffle, _picks_lanes)


def _is_plain(e: tir.Expr) -> bool:
    """Whether a vector is one whole load of elements side by side along the last dimension."""
    if type(e) is not tir.BufferLoad or e.predicate is not None or e.buffer.dtype.lanes > 1:
        return False
    last = e.indices[-1]
    return type(last) is tir.Ramp and type(last.stride) is tir.IntImm and last.stride.value == 1
