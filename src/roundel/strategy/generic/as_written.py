# SPDX-License-Identifier: Apache-2.0
"""The program as it stands, for when every other strategy has failed."""

from __future__ import annotations

from collections.abc import Iterator

from ...schedule.schedule import Schedule
from ..program import Program
from ..sketch import Applied, Sketch, rule


@rule
def as_written(program: Program) -> Iterator[Sketch]:
    """Fits every program. It takes no step, so that it fits whatever the others fail on."""
    yield Sketch("as_written", program.schedule, _scheduled)


def _scheduled(sch: Schedule, choice: dict[str, int]) -> Applied:
    return Applied(sch)
