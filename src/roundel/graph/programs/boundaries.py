# SPDX-License-Identifier: Apache-2.0
"""The boundaries between kernels as choices: which nodes became one kernel, and where somebody asked for kernels of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir import tir
from ...ir.choice import Alternatives, Choices, Choosing, Later
from ...strategy.expected import Setting, expected_of_all

FUSED, SEPARATE = "fused", "separate"
_BOTH: Alternatives = {FUSED: None, SEPARATE: None}
_LONELY = "nothing around it can be computed in one kernel with it"
Programs = Sequence[tuple[tir.PrimFunc, Sequence[int]]]
"""Tensor programs, each with the positions of the operands that are constants."""
Times = tuple[Later, Later | None]


class Boundaries:
    """Of the kernels of a module, while ``fuse`` draws them."""

    def __init__(self, setting: Setting, before: Choices | None = None) -> None:
        self._setting, self._choosing = setting, Choosing(before or Choices(), "kernel")

    def around(self, program: tir.PrimFunc, producers: Sequence[tir.PrimFunc | None], users: Sequence[tir.PrimFunc]) -> Any:
        """What a boundary is known by among measurements: a program, those that compute its operands and those that read its results."""
        return self._choosing.programs(program, *producers, len(producers), *users)

    def is_alone(self, site: str, around: Any) -> bool:
        """Whether a kernel of its own is asked for at a node, or was measured to be the best ``around`` there."""
        return self._choosing.wanted(site, _BOTH, around) == SEPARATE

    def times(self, parts: Callable[[], Programs], whole: Callable[[], Programs] | None) -> Times:
        """What is expected of programs as they are, and of the one that they become (``whole``; None where they are not one). The programs are
        collected when somebody asks for it."""
        setting = self._setting
        return Later(lambda: expected_of_all(parts(), setting)), None if whole is None else Later(lambda: expected_of_all(whole(), setting))

    def record(self, site: str, program: str, together: Sequence[str], times: Times, is_alone: bool, around: Any) -> None:
        """Keep that a program of a node is computed in one kernel ``together`` with others, or alone (``is_alone``: because that was decided for), with
        the ``times`` of them all."""
        others, (separate, fused) = [name for name in together if name != program], times
        alone: Alternatives = {SEPARATE: separate, FUSED: None if is_alone else _LONELY}
        subject = f"kernel of {program}" + (f" and {', '.join(others)}" if others else "")
        self._choosing.decide(site, subject, {FUSED: fused, SEPARATE: separate} if fused else alone, FUSED if fused else SEPARATE,
                              of=around)

    def choices(self) -> Choices:
        """Those from before and these."""
        return self._choosing.choices()
