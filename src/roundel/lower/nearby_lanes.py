# SPDX-License-Identifier: Apache-2.0
"""Vectors whose elements lie near each other but not side by side: whole vectors are loaded and their lanes shuffled.

    A[ramp(i * 32, 2, 16)]          ->   shuffle((A[ramp(i * 32, 1, 16)], A[ramp(i * 32 + 15, 1, 16)]), (0, 2, ..., 14, 17, 19, ..., 31))
    A[ramp(i * 16, 1, 16) // 2]     ->   shuffle((A[ramp(i * 8, 1, 8)],), (0, 0, 1, 1, ..., 7, 7))

Nothing before the first element or behind the last one is read.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from roundel.arith import Analyzer
from roundel.ir import tir

FEW_VECTORS = 4   # that are always loaded for one
MOST_VECTORS = 8  # ... where it has as many lanes; of more, each lane is loaded alone

Lanes = tuple[tir.Expr, tuple[int, ...]]  # what all lanes share, and what each adds to it


def lane_offsets(index: tir.Expr, analyzer: Analyzer) -> Lanes | None:
    """A vector of indices as a base and constant offsets, or None where these are not known."""
    kind = type(index)
    if kind is tir.Ramp:
        return (index.base, tuple(k * index.stride.value for k in range(index.lanes))) if type(index.stride) is tir.IntImm else None
    if kind is tir.Broadcast:
        return index.value, (0,) * index.lanes
    if kind not in (tir.Add, tir.Sub, tir.Mul, tir.FloorDiv, tir.FloorMod):
        return None
    a, b = lane_offsets(index.a, analyzer), lane_offsets(index.b, analyzer)
    if a is None or b is None:
        return None
    if kind is tir.Add:
        return a[0] + b[0], tuple(x + y for x, y in zip(a[1], b[1], strict=True))
    if kind is tir.Sub:
        return a[0] - b[0], tuple(x - y for x, y in zip(a[1], b[1], strict=True))
    by = b[0].value if type(b[0]) is tir.IntImm and not any(b[1]) else None
    if by is None:
        return None
    if kind is tir.Mul:
        return a[0] * by, tuple(x * by for x in a[1])
    return _divided(kind, a, by, analyzer)


def _divided(kind: type, a: Lanes, by: int, analyzer: Analyzer) -> Lanes | None:
    """Quotient or remainder by a number, where the remainder of the base is known."""
    rest = analyzer.simplify(tir.floormod(a[0], by)) if by > 0 else None
    if type(rest) is not tir.IntImm:
        return None
    if kind is tir.FloorMod:
        return tir.index_const(0), tuple((rest.value + x) % by for x in a[1])
    return tir.floordiv(a[0], by), tuple((rest.value + x) // by for x in a[1])


def are_near(offsets: Sequence[int]) -> bool:
    """Whether a few whole vectors hold all of the elements, and these are neither consecutive nor all the same one."""
    span = max(offsets) - min(offsets) + 1
    most = max(FEW_VECTORS * len(offsets), min(MOST_VECTORS, len(offsets)) * (len(offsets) - 1) + 1)
    return 1 < span <= most and tuple(offsets) != tuple(range(offsets[0], offsets[0] + len(offsets)))


def load_nearby(buffer: tir.Buffer, indices: tuple[tir.Expr, ...], mask: tir.Expr | None, analyzer: Analyzer) -> tir.Expr | None:
    """The load of elements along the last dimension as a shuffle of whole vectors, or None where they are not near."""
    *scalars, index = indices
    one = not buffer.strides or (type(buffer.strides[-1]) is tir.IntImm and buffer.strides[-1].value == 1)
    if not one or buffer.scope == "local" or not 8 <= buffer.dtype.bits <= 64 or any(i.dtype.lanes > 1 for i in scalars):
        return None
    found = lane_offsets(index, analyzer)
    if found is None or not are_near(found[1]):
        return None
    base, offsets = found
    low, span = min(offsets), max(offsets) - min(offsets) + 1
    width = min(span, len(offsets))
    starts = [min(k * width, span - width) for k in range(-(-span // width))]
    part = [min((o - low) // width, len(starts) - 1) for o in offsets]
    places = tuple(p * width + o - low - starts[p] for p, o in zip(part, offsets, strict=True))
    masks = [None] * len(starts) if mask is None else [_wanted(mask, places, range(k * width, (k + 1) * width)) for k in range(len(starts))]
    begin = analyzer.simplify(base + low)
    at = [tir.Ramp(begin + s, tir.index_const(1), width) for s in starts]
    return tir.Shuffle(tuple(tir.BufferLoad(buffer, (*scalars, i), m) for i, m in zip(at, masks, strict=True)), places)


def _wanted(mask: tir.Expr, places: Sequence[int], elements: range) -> tir.Expr:
    """Which elements of a loaded vector the active lanes use."""
    takers = [[k for k, place in enumerate(places) if place == e] for e in elements]
    none = tir.Broadcast(tir.const(False, "bool"), len(places))
    picks = [tuple(t[n] if n < len(t) else len(places) for t in takers) for n in range(max(map(len, takers)) or 1)]
    masks = [tir.Shuffle((mask, none), p) for p in picks]
    return functools.reduce(tir.Or, masks)
