# SPDX-License-Identifier: Apache-2.0
"""The roles of axes and operands in a product of 8-bit integers: which are rows, columns and sums, and which operand is constant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...ir import tir
from .accesses import Access, BlockInfo, extent_of

GROUP = 4  # products that one lane sums


@dataclass(frozen=True)
class Product:
    """The block, its operands, and its axes: ``column`` runs along vectors of weights, ``columns`` move the weights otherwise, ``rows``
    the data; ``group`` is summed by fours, ``reduce`` are the other axes of the sum."""

    info: BlockInfo
    data: Access
    weight: Access
    column: int
    columns: tuple[int, ...]
    rows: tuple[int, ...]
    group: int
    reduce: tuple[int, ...]

    def extent(self, axis: int) -> int | None:
        """Of an axis, where it is a number."""
        return extent_of(self.info.block.iter_vars[axis])

    def is_split(self, lanes: Any) -> Any:
        """Whether columns are cut into vectors of so many lanes (else one vector holds them all), for each of an array of numbers."""
        return self.extent(self.column) != lanes


def match(info: BlockInfo, is_constant: Callable[[tir.Buffer], bool]) -> Product | None:
    """The axes of such a product, or None. ``is_constant`` tells whether a buffer is known at compile time."""
    body, axes = info.block.body, info.block.iter_vars
    if type(body) is not tir.BufferStore or type(body.value) is not tir.Add or body.buffer.dtype != "int32" or type(body.value.b) is not tir.Mul:
        return None
    sides = [f.value if type(f) is tir.Cast else None for f in (body.value.b.a, body.value.b.b)]
    if not all(type(s) is tir.BufferLoad for s in sides) or [s.buffer.dtype for s in sides] != ["uint8", "int8"]:
        return None
    data, weight = (next(a for a in info.loads if a.buffer is s.buffer and a.indices == s.indices) for s in sides)
    if not is_constant(weight.buffer):
        return None
    place = {i.var: k for k, i in enumerate(axes)}
    at = [place.get(i) for i in weight.indices]
    plain = all(k is not None or (isinstance(i, tir.IntImm) and i.value == 0) for k, i in zip(at, weight.indices, strict=True))
    spatial = [k for k, i in enumerate(axes) if i.kind is tir.IterKind.SPATIAL]
    if not plain or at[-1] not in spatial or len({k for k in at if k is not None}) < len([k for k in at if k is not None]):
        return None
    moves = {k: (not data.steps(axes[k].var, 0), k in at) for k in spatial}
    group = next((k for k, i in enumerate(axes) if k not in spatial and k in at and data.steps(i.var, 1)), None)
    if group is None or any(all(m) for m in moves.values()) or (extent_of(axes[group]) or 1) % GROUP or extent_of(axes[at[-1]]) is None:
        return None
    if not info.stores[0].steps(axes[at[-1]].var, 1):
        return None
    columns = tuple(k for k in spatial if k != at[-1] and moves[k][1])
    rows = tuple(k for k in spatial if not moves[k][1])
    reduce = tuple(k for k in range(len(axes)) if k not in (*spatial, group))
    return Product(info, data, weight, at[-1], columns, rows, group, reduce)
