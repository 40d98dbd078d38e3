# SPDX-License-Identifier: Apache-2.0
"""The roles of axes and operands in a reduction over products of two operands.

An axis is a *column* axis when it moves only the operand that is read in vectors, a *row* axis when it moves only the one that
is broadcast, a *batch* axis when it moves both. The innermost column axis is contiguous in the result and in the vector
operand; it becomes vectors.
"""

from __future__ import annotations

from ...ir import tir
from ...ir.dataclass import dataclass
from .accesses import Access, BlockInfo, extent_of


@dataclass(frozen=True)
class Contraction:
    """The roles of a block's axes and operands; axes as positions in ``block.iter_vars``. ``windows``: reduction axes with conditions on
    the broadcast operand, which run outside of the others."""

    info: BlockInfo
    broadcast: Access
    vector: Access
    vector_axis: int
    columns: tuple[int, ...]
    rows: tuple[int, ...]
    batch: tuple[int, ...]
    reduce: tuple[int, ...]
    windows: tuple[int, ...] = ()
    is_data: bool = True  # the vector operand is no constant

    def extent(self, axis: int) -> int | None:
        """The extent of an axis where it is a number."""
        return extent_of(self.info.block.iter_vars[axis])

    def is_split(self, lanes: int) -> bool:
        """Whether vectors of so many lanes are pieces of the vector axis, rather than all of it."""
        return self.extent(self.vector_axis) != lanes

    @property
    def row_bytes(self) -> int | None:
        """From one row of the broadcast operand to the next, where it is a number."""
        step = self.broadcast.stride(self.info.block.iter_vars[self.rows[-1]].var) if self.rows else None
        return step * self.broadcast.buffer.dtype.bits // 8 if isinstance(step, int) else None


def match(info: BlockInfo) -> Contraction | None:
    """The block as a contraction, or None."""
    if not info.is_plain or not info.reduce or not sums_products(info):
        return None
    loads = info.loads
    if len(loads) != 2:
        return None
    store, axes = info.stores[0], info.block.iter_vars
    for broadcast, vector in ((loads[0], loads[1]), (loads[1], loads[0])):
        columns: list[int] = []
        rows: list[int] = []
        batch: list[int] = []
        found = None
        for k, it in enumerate(axes):
            if it.kind is not tir.IterKind.SPATIAL:
                continue
            still, vector_still = broadcast.steps(it.var, 0), vector.steps(it.var, 0)
            if still and vector.steps(it.var, 1) and store.steps(it.var, 1):
                found = k
            (columns if still and not vector_still else rows if vector_still and not still else batch).append(k)
        if found is not None:
            reduce = tuple(k for k, it in enumerate(axes) if it.kind is tir.IterKind.REDUCE)
            return Contraction(
                info,
                broadcast,
                vector,
                found,
                tuple(k for k in columns if k != found),
                tuple(rows),
                tuple(batch),
                reduce,
            )
    return None


def sums_products(info: BlockInfo) -> bool:
    """Whether the body is ``C = C + a * b`` (casts allowed)."""
    value = info.block.body.value
    if type(value) is not tir.Add:
        return False
    term = value.b if type(value.a) is tir.BufferLoad and value.a.buffer is info.stores[0].buffer else value.a
    return type(term) is tir.Mul
