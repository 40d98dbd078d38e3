# SPDX-License-Identifier: Apache-2.0
"""Whether another sketch takes a program from the rule that fits it first: both are scheduled, and the model of the target judges the results.

The first rule that fits a program is mostly the one that was written for it, so there is no contest where its schedule is close to the least time
that the program can take, where the program takes so little time that nothing can be gained, or where the rule knows an algorithm that the others
do not (attention, Winograd, products of 8-bit integers). The search for generic candidates takes several times as long as scheduling by a rule, so
these cheap tests come first, and the generic sketch is the last that is asked. Scheduled programs are compared, so that padding, what is fused
behind a reduction and tails count alike for all.
"""

from __future__ import annotations

from dataclasses import field

from ..ir import tir
from ..ir.dataclass import dataclass
from ..target import Target
from .cost import expected_cycles, least_cycles
from .sketch import Sketch

GENERAL = frozenset({"contraction", "matvec", "columns", "windows", "rows", "totals", "points", "fallback", "as_written"})
"""Rules that schedule what the program says, as a generic schedule does."""
CONTENDERS = ("contraction", "matvec", "columns", "windows", "rows", "generic", "generic_padding")
"""Rules that may take a program from one of these, in the order in which they are asked."""
OF_ANY_SIZE = ("generic",)
"""The same for programs with symbolic sizes: rules are kept there to what they were measured for, since the model does not see what their guards and
tails cost where only the run tells how often they are met (windows were expected to be faster than contraction, and took up to 1.4 times as long)."""
LITTLE = 0.6     # of the work that pays for a parallel region, in which there is nothing to gain
NEAR = 1.25      # times what a program must take at least, up to which there is nothing to gain
MARGIN = 1.12    # times that another schedule must be expected to be faster: the order of the rules was tuned by measurements, the model was not


@dataclass(frozen=True)
class Champion:
    """What a rule has made of a program."""

    rule: str
    scheduled: tir.PrimFunc
    _known: dict[tuple[Target, int], float] = field(default_factory=dict, compare=False, repr=False)

    def cycles(self, target: Target, cores: int = 1) -> float:
        """Of the scheduled program; worked out once, as every contender is compared with it."""
        if (target, cores) not in self._known:
            self._known[target, cores] = expected_cycles(self.scheduled, target, cores=cores)
        return self._known[target, cores]


def is_contested(champion: Champion, func: tir.PrimFunc, target: Target) -> bool:
    """Whether a program that a rule has scheduled may be much faster otherwise."""
    if champion.rule not in GENERAL or "decisions" in func.attrs:
        return False
    spent = champion.cycles(target)
    return spent > LITTLE * target.region_cycles and spent > NEAR * least_cycles(func, target)


def contenders(func: tir.PrimFunc) -> tuple[str, ...]:
    """The rules that may take a program from the first that fits it, in the order in which they are asked."""
    return CONTENDERS if all(type(n) is tir.IntImm for b in func.buffer_params for n in b.shape) else OF_ANY_SIZE


def is_promising(sketch: Sketch, champion: Champion, least: float, target: Target) -> bool:
    """Whether a sketch expects its best candidate to take fewer cycles than what was scheduled so far, and so many fewer than the first rule's schedule
    that it may take its place: then scheduling it may be worth while."""
    expected = sketch.expected(sketch.best())
    return expected is None or (expected < least and MARGIN * expected < champion.cycles(target))


def is_faster(other: tir.PrimFunc, champion: Champion, least: float, target: Target) -> bool:
    """Whether another schedule is expected to be so much faster than that of the first rule, on one core and on all, that it takes its place, and takes
    fewer cycles of one core than what took it before."""
    spent = expected_cycles(other, target, cores=1)
    return spent < least and all(MARGIN * expected_cycles(other, target, cores=n) < champion.cycles(target, n) for n in {1, target.cores})
