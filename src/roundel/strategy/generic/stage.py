# SPDX-License-Identifier: Apache-2.0
"""A reduction as a generic schedule sees it: which of its axes each operand moves along, and how far.

Nothing is asked of the value that is reduced, nor of how: sums, products, largest and smallest numbers of any expression of any number
of operands are scheduled alike.
"""

from __future__ import annotations

from collections.abc import Container
from functools import cached_property

from ...ir import tir
from ...ir.dataclass import dataclass
from ...ir.visit import free_vars, walk
from ..match.accesses import Access, BlockInfo, extent_of

ASSUMED = 128  # extent of an axis whose extent is not a number


@dataclass(frozen=True)
class Stage:
    """One reduction block. Axes are positions in ``info.block.iter_vars``."""

    info: BlockInfo

    @cached_property
    def axes(self) -> tuple[tir.IterVar, ...]:
        """Spatial and reduction axes."""
        return self.info.block.iter_vars

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """Of the axes, ``ASSUMED`` where they are no numbers."""
        return tuple(ASSUMED if n is None else n for n in map(extent_of, self.axes))

    @cached_property
    def spatial(self) -> tuple[int, ...]:
        """The axes of the result."""
        return tuple(k for k, a in enumerate(self.axes) if a.kind is tir.IterKind.SPATIAL)

    @cached_property
    def reduce(self) -> tuple[int, ...]:
        """The axes that are reduced."""
        return tuple(k for k, a in enumerate(self.axes) if a.kind is tir.IterKind.REDUCE)

    @property
    def store(self) -> Access:
        """Of the result."""
        return self.info.stores[0]

    @cached_property
    def loads(self) -> tuple[Access, ...]:
        """Of operands."""
        return self.info.loads

    @cached_property
    def _steps(self) -> dict[Access, tuple[int | None, ...]]:
        return {a: tuple(_step(a, axis.var) for axis in self.axes) for a in (*self.loads, self.store)}

    def step(self, access: Access, axis: int) -> int | None:
        """How many elements an access moves along an axis; None where that is no number (of a symbolic size, or looked up)."""
        return self._steps[access][axis]

    def depends(self, access: Access, axis: int) -> bool:
        """Whether an access moves along an axis at all."""
        return self.step(access, axis) != 0

    def runs_along(self, axis: int) -> bool:
        """Whether all operands lie still or side by side along an axis, and some do the latter."""
        steps = [self.step(a, axis) for a in self.loads]
        return all(n in (0, 1) for n in steps) and 1 in steps

    def can_be_turned(self, access: Access, axis: int) -> bool:
        """Whether an operand can be laid out so that neighbours along an axis lie side by side: exactly one index moves along the axis, and
        this index is the axis."""
        var = self.axes[axis].var
        moving = [i for i in access.indices if var in free_vars(i)]
        plain = all(isinstance(i, tir.Var | tir.IntImm) or not any(type(n) is tir.BufferLoad for n in walk(i)) for i in access.indices)
        return len(moving) == 1 and moving[0] is var and plain and sum(a.buffer is access.buffer for a in self.loads) == 1

    def turnable(self, axis: int) -> tuple[Access, ...]:
        """Operands that neighbours along an axis would have to gather, but for a copy in which they lie side by side."""
        return tuple(a for a in self.loads if self.step(a, axis) not in (0, 1) and self.can_be_turned(a, axis))

    def panelled(self, axis: int, turned: int, constants: Container[tir.Buffer]) -> tuple[Access, ...]:
        """Operands that are laid out in panels: none, those that would be gathered (1), also constants whose neighbours lie side by side, but whose rows
        lie far apart (2), or all operands of that kind (3)."""
        far = [a for a in self.loads if self.step(a, axis) == 1 and len(a.indices) > 1 and self.can_be_turned(a, axis)]
        return (*(self.turnable(axis) if turned else ()), *(a for a in far if turned == 3 or (turned == 2 and a.buffer in constants)))


def _step(access: Access, var: tir.Var) -> int | None:
    step = access.stride(var)
    return step if isinstance(step, int) else None
