# SPDX-License-Identifier: Apache-2.0
"""Which schedules of a program with symbolic sizes share the work: a few, each for the sizes up to a bound, where that is surely worth it.

The sizes that were measured are in order, and each schedule gets a run of them, so that a guard is one comparison. Between two sizes the bound
is their geometric mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import isqrt
from statistics import median
from typing import Any

from ..ir.dataclass import dataclass
from .task import Case
from .verdict import combined, is_faster

MOST = 3  # schedules of a program


@dataclass(frozen=True, eq=False)
class Finalist:
    """A schedule that raced against the default: of each case what it takes relative to the default, by round."""

    entry: Any
    history: tuple[tuple[float, ...], ...]

    def relative_to(self, other: Finalist) -> tuple[tuple[float, ...], ...]:
        """What it takes relative to another one, by case and round."""
        return tuple(tuple(a / b for a, b in zip(own, others)) for own, others in zip(self.history, other.history, strict=True))


def varying_size(cases: Sequence[Case]) -> str | None:
    """The name of the only size that differs between cases; None where there is none, or several."""
    names = {n for c in cases for n in c.sizes}
    varying = [n for n in names if len({c.sizes.get(n) for c in cases}) > 1]
    return varying[0] if len(varying) == 1 else None


def shared(cases: Sequence[Case], seconds: Sequence[float], winner: Finalist, others: Sequence[Finalist], size: str) -> list[tuple[int | None, Finalist]]:
    """Up to `MOST` schedules that take the least time together, each with the most that ``size`` may be for it (None for the last one). A schedule takes the
    winner's place only for sizes at which it is surely faster. ``seconds``: of the default, by case."""
    order = sorted(range(len(cases)), key=lambda k: cases[k].sizes[size])
    costs = [cases[k].weight * seconds[k] for k in order]
    everyone = [winner, *others]
    ratios = [[median(f.history[k]) for k in order] for f in everyone]

    def cheapest(begin: int, end: int) -> tuple[float, int]:
        return min((sum(costs[k] * own[k] for k in range(begin, end)), f) for f, own in enumerate(ratios))

    best: tuple[float, list[tuple[int, int, int]]] = (float("inf"), [])
    for parts in range(1, min(MOST, len(order)) + 1):
        for cuts in combinations(range(1, len(order)), parts - 1):
            bounds = list(zip((0, *cuts), (*cuts, len(order))))
            taken = [cheapest(*b) for b in bounds]
            if (total := sum(cost for cost, _ in taken)) < best[0]:
                best = total, [(*b, f) for b, (_, f) in zip(bounds, taken)]
    found: list[tuple[int | None, Finalist]] = []
    for begin, end, f in best[1]:
        chosen = everyone[f] if f and _is_worth_it(everyone[f], winner, [order[k] for k in range(begin, end)], cases, seconds) else winner
        most = isqrt(cases[order[end - 1]].sizes[size] * cases[order[end]].sizes[size]) if end < len(order) else None
        if found and found[-1][1] is chosen:
            found[-1] = most, chosen
        else:
            found.append((most, chosen))
    return found


def _is_worth_it(finalist: Finalist, winner: Finalist, which: Sequence[int], cases: Sequence[Case], seconds: Sequence[float]) -> bool:
    history = finalist.relative_to(winner)
    return is_faster(combined([history[k] for k in which], [cases[k].weight for k in which], [seconds[k] * median(winner.history[k]) for k in which]))
