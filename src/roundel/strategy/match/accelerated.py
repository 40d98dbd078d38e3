# SPDX-License-Identifier: Apache-2.0
"""The instructions of an accelerator that compute products of tiles, whatever the order of their operands' axes is.

    C[j, i] += A[i, k] * B[k, j]      rows i move one operand, columns j the other, k both
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

from ...intrinsics import TensorIntrin
from ...ir import tir
from ...ir.dataclass import dataclass
from .accesses import BlockInfo, extent_of
from .mappings import Described, described
from .tile_product import TileInstruction, TileProduct, arranged, factors

if TYPE_CHECKING:
    from ...intrinsics.accelerators import Accelerator

ROW, COLUMN, SUM = "row", "column", "sum"


@dataclass(frozen=True)
class ChipInstruction(TileInstruction):
    """``axes``: what each axis of the description is, and its extent; ``data_axes``, ``weight_axes`` and ``sum_axes``: the axes by which each operand is
    indexed, in the order in which they lie in memory. ``order``: all axes, those of the sums as they lie in memory first. The scopes of the three operands
    are ``memories``."""

    axes: tuple[tuple[str, int], ...]
    data_axes: tuple[int, ...]
    weight_axes: tuple[int, ...]
    sum_axes: tuple[int, ...]
    order: tuple[int, ...]
    memories: tuple[str, str, str]

    def within(self, m: tir.Expr, n: tir.Expr, k: tir.Expr, axes: Sequence[int]) -> list[tir.Expr]:
        """Where a place of the whole product, by its row, column and step of the sum, is in a tile, along these axes."""
        at = {ROW: m, COLUMN: n, SUM: k}
        out = []
        for axis in axes:
            kind, extent = self.axes[axis]
            inner = prod(n for other, n in self.axes[axis + 1 :] if other == kind)
            place = at[kind] % (inner * extent)
            out.append(tir.index_const(0) if extent == 1 else place // inner if inner > 1 else place)
        return out


def chip_instructions(chip: Accelerator) -> Iterator[ChipInstruction]:
    """Those of the products that a chip computes whose data may be either of the two factors."""
    for intrin in chip.products:
        what = described(intrin)
        if what is not None:
            yield from _instructions(intrin, what)


def _instructions(intrin: TensorIntrin, what: Described) -> Iterator[ChipInstruction]:
    total = what.store.buffer
    operands = [b for b in what.indices if b is not total]
    place = {a.var: k for k, a in enumerate(what.axes)}
    if len(operands) != 2 or not all(isinstance(i, tir.Var) and i in place for indices in what.indices.values() for i in indices) or not _sums(what):
        return
    axes_of = {b: tuple(place[i] for i in indices) for b, indices in what.indices.items()}  # type: ignore[index]
    for data, weight in (operands, operands[::-1]):
        kinds = []
        for k, axis in enumerate(what.axes):
            moves = (k in axes_of[data], k in axes_of[weight], k in axes_of[total])
            kind = {(True, False, True): ROW, (False, True, True): COLUMN, (True, True, False): SUM}.get(moves)
            if kind is None:
                return
            kinds.append((kind, extent_of(axis) or 1))
        order = (*axes_of[total], *(k for k in range(len(kinds)) if k not in axes_of[total]))
        rows, columns, products = (prod(n for kind, n in kinds if kind == wanted) for wanted in (ROW, COLUMN, SUM))
        types = (str(data.dtype), str(weight.dtype), str(total.dtype))
        yield ChipInstruction(intrin, rows, columns, products, 1, types, tuple(kinds), axes_of[data], axes_of[weight], axes_of[total], order,
                              (data.scope, weight.scope, total.scope))


def _sums(what: Described) -> bool:
    """Whether what is stored is what was there before and a product."""
    value = what.store.value
    return isinstance(value, tir.Add) and any(isinstance(term, tir.Mul) for term in (value.a, value.b))


def matches(info: BlockInfo, is_constant: Callable[[tir.Buffer], bool], chip: Accelerator) -> Iterator[TileProduct | tuple[str, str]]:
    """The products that a block is on a chip, or for each of its instructions why that cannot be arranged."""
    found = factors(info)
    if found is None:
        return
    total = str(info.stores[0].buffer.dtype)
    for instruction in chip_instructions(chip):
        for factor in (0, 1):
            types = (str(found[factor].dtype), str(found[1 - factor].dtype), total)
            if types != instruction.types:
                yield instruction.intrin.name, f"it multiplies {instruction.types[0]} by {instruction.types[1]}, and not {types[0]} by {types[1]}"
                continue
            made = arranged(info, instruction, factor, is_constant)
            if isinstance(made, TileProduct) and not made.rows:
                made = "it has one row, for which the processor need not wait for the chip"
            yield (instruction.intrin.name, made) if isinstance(made, str) else made
