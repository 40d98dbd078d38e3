# SPDX-License-Identifier: Apache-2.0
"""The boundaries between kernels as choices: which nodes became one kernel, and where somebody asked for kernels of their own."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.choice import Choices, Choosing

FUSED, SEPARATE = "fused", "separate"
_BOTH: dict[str, float | str | None] = {FUSED: None, SEPARATE: None}
_LONELY: dict[str, float | str | None] = {SEPARATE: None, FUSED: "nothing around it can be computed in one kernel with it"}


class Boundaries:
    """Of the kernels of a module, while ``fuse`` draws them."""

    def __init__(self, before: Choices | None = None) -> None:
        self._choosing = Choosing(before or Choices(), "kernel")

    def is_alone(self, site: str) -> bool:
        """Whether a kernel of its own is asked for at a node."""
        return self._choosing.asked(site, _BOTH) == SEPARATE

    def record(self, site: str, program: str, together: Sequence[str]) -> None:
        """Keep that a program of a node is computed in one kernel ``together`` with others, or alone."""
        others = [name for name in together if name != program]
        possible = len(together) > 1 or self.is_alone(site)
        subject = f"kernel of {program}" + (f" and {', '.join(others)}" if others else "")
        self._choosing.decide(site, subject, _BOTH if possible else _LONELY, FUSED if len(together) > 1 else SEPARATE)

    def choices(self) -> Choices:
        """Those from before and these."""
        return self._choosing.choices()
