# SPDX-License-Identifier: Apache-2.0
"""Zero padding of a convolution as a condition on its loops, in place of a padded copy of its operand.

The loops over the window stand outside of the other loops of the reduction. Rows of the image that lie in the padding make the loop over the
window shorter. Where elements of a row lie in the padding, the register tiles at the edge leave out the rows of the tile that would read them
(``lower/partition_loops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir import tir
from ...ir.annotations import EDGE, WINDOW
from ...ir.visit import free_vars
from ...schedule.schedule import Schedule
from .accesses import BlockInfo, conditional
from .contraction import Contraction


def zero_borders(infos: Sequence[BlockInfo], c: Contraction) -> dict[str, tuple[int, ...]]:
    """Of the blocks before a contraction those that put zeros around its broadcast operand, by name, and the axes of the window that meet
    them. None where the row axis of the tile has no known size, as its edge has no code of its own then."""
    if not c.rows or c.extent(c.rows[-1]) is None:
        return {}
    found = {i.name: _window(i, c) for i in infos if i.stores[0].buffer is c.broadcast.buffer and _is_border(i)}
    return {name: window for name, window in found.items() if len(window) < len(c.reduce)}


def _is_border(info: BlockInfo) -> bool:
    value = info.block.body.value
    return (
        type(value) is tir.IfThenElse
        and type(value.true_value) is tir.BufferLoad
        and type(value.false_value) is tir.FloatImm
        and value.false_value.value == 0.0
    )


def _window(info: BlockInfo, c: Contraction) -> tuple[int, ...]:
    asked = conditional(info)
    indices = [index for index, axis in zip(c.broadcast.indices, info.spatial, strict=True) if axis.var in asked]
    return tuple(k for k in c.reduce if any(c.info.block.iter_vars[k].var in free_vars(i) for i in indices))


def meets_rows(c: Contraction, window: int) -> bool:
    """Whether an axis of the window moves along the same dimension of the operand as the rows of the tile."""
    step, row = c.info.block.iter_vars[window].var, c.info.block.iter_vars[c.rows[-1]].var
    return any({step, row} <= free_vars(i) for i in c.broadcast.indices)


def leave_out_borders(sch: Schedule, block: Any, c: Contraction, loops: Sequence[Any]) -> None:
    """Have a contraction, whose init is a block of its own, make the iterations that read the image alone; ``loops`` are those of its axes."""
    if not c.windows:
        return
    sch.skip_zeros(block)
    for k in c.windows:
        sch.annotate(loops[k], WINDOW, True)
        if not meets_rows(c, k):
            sch.annotate(loops[k], EDGE, True)
