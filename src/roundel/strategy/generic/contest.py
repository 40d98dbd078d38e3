# SPDX-License-Identifier: Apache-2.0
"""Whether a generic schedule takes a program from the rule that fits it: both are scheduled, and the model of the target judges the results.

That is not asked where a rule's result is near what the program must take at least, or so little that nothing can be gained; nor of rules
that know an algorithm (attention, Winograd, products of 8-bit integers) which a generic schedule does not. Looking for candidates takes
several times as long as scheduling by a rule, so cheap questions stand before it.
"""

from __future__ import annotations

from ...ir import tir
from ...target import Target
from ..cost import expected_cycles, least_cycles
from ..sketch import Sketch

GENERAL = frozenset({"contraction", "matvec", "columns", "windows", "rows", "totals", "points", "fallback", "as_written"})
"""Rules that schedule what the program says, as a generic schedule does."""
NEAR = 1.25      # times what a program must take at least, up to which there is nothing to gain
MARGIN = 1.12    # times that a generic schedule must be expected to be faster: rules were tuned by measurements, the model was not
LITTLE = 20_000  # cycles, in which there is nothing to gain


def is_contested(rule: str, scheduled: tir.PrimFunc, func: tir.PrimFunc, target: Target) -> bool:
    """Whether a program that a rule has scheduled may be much faster otherwise."""
    if rule not in GENERAL or "decisions" in func.attrs:
        return False
    spent = expected_cycles(scheduled, target, cores=1)
    return spent > LITTLE and spent > NEAR * least_cycles(func, target)


def is_promising(sketch: Sketch, scheduled: tir.PrimFunc, target: Target) -> bool:
    """Whether a generic sketch expects its best candidate to be faster than what a rule has made, so that scheduling it may be worth while."""
    expected = sketch.expected(sketch.best())
    return expected is None or expected < expected_cycles(scheduled, target, cores=1)


def is_faster(generic: tir.PrimFunc, scheduled: tir.PrimFunc, target: Target) -> bool:
    """Whether a generic schedule is expected to be so much faster than a rule's, on one core and on all, that it takes its place."""
    return all(MARGIN * expected_cycles(generic, target, cores=n) < expected_cycles(scheduled, target, cores=n) for n in {1, target.cores})
