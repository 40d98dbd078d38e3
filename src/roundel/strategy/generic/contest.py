# SPDX-License-Identifier: Apache-2.0
"""Whether a generic schedule takes a program from the rule that fits it: both are scheduled, and the model of the target judges the results.

There is no contest where the rule's schedule is close to the least time that the program can take, where the program takes so little time that
nothing can be gained, or where the rule knows an algorithm that a generic schedule does not (attention, Winograd, products of 8-bit
integers). The search for generic candidates takes several times as long as scheduling by a rule, so these cheap tests come first.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir import tir
from ...target import Target
from ..cost import expected_cycles, least_cycles
from ..sketch import Sketch

GENERAL = frozenset({"contraction", "matvec", "columns", "windows", "rows", "totals", "points", "fallback", "as_written"})
"""Rules that schedule what the program says, as a generic schedule does."""
NEAR = 1.25      # times what a program must take at least, up to which there is nothing to gain
MARGIN = 1.12    # times that a generic schedule must be expected to be faster: rules were tuned by measurements, the model was not
LITTLE = 20_000  # cycles, in which there is nothing to gain


@dataclass(frozen=True)
class Champion:
    """What a rule has made of a program."""

    rule: str
    scheduled: tir.PrimFunc

    def cycles(self, target: Target, cores: int = 1) -> float:
        """Of the scheduled program."""
        return expected_cycles(self.scheduled, target, cores=cores)


def is_contested(champion: Champion, func: tir.PrimFunc, target: Target) -> bool:
    """Whether a program that a rule has scheduled may be much faster otherwise."""
    if champion.rule not in GENERAL or "decisions" in func.attrs:
        return False
    spent = champion.cycles(target)
    return spent > LITTLE and spent > NEAR * least_cycles(func, target)


def is_promising(sketch: Sketch, champion: Champion, target: Target) -> bool:
    """Whether a generic sketch expects its best candidate to be faster than what a rule has made, so that scheduling it may be worth while."""
    expected = sketch.expected(sketch.best())
    return expected is None or expected < champion.cycles(target)


def is_faster(generic: tir.PrimFunc, champion: Champion, target: Target) -> bool:
    """Whether a generic schedule is expected to be so much faster than a rule's, on one core and on all, that it takes its place."""
    return all(MARGIN * expected_cycles(generic, target, cores=n) < champion.cycles(target, n) for n in {1, target.cores})
