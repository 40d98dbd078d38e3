# SPDX-License-Identifier: Apache-2.0
"""Whether a schedule is faster than the default, after all the noise: a paired test over rounds in which both were measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from statistics import median
from typing import TypeVar

T = TypeVar("T")
GAIN = 0.01       # least share of the time that a winner must save
CONFIDENCE = 0.95


def upper_bound(ratios: Sequence[float], confidence: float = CONFIDENCE) -> float:
    """What the median of ratios is at most, with that confidence: an order statistic, which asks nothing of how they are distributed (the interval of
    the sign test; Conover, Practical Nonparametric Statistics, section 3.2). Infinite where there are too few."""
    ordered, count = sorted(ratios), len(ratios)
    below = 0.0
    for k in range(count):  # the median is above the k-th with the probability that at most k of the others are below it
        below += comb(count, k) / 2**count
        if below >= confidence:
            return ordered[k]
    return float("inf")


def is_faster(ratios: Sequence[float]) -> bool:
    """Whether times relative to the default's show a gain that is large enough and sure."""
    return upper_bound(ratios) <= 1 - GAIN


def faster_inside(winners: Sequence[T], measured: Callable[[Sequence[T]], Sequence[float]]) -> tuple[list[T], Sequence[float]]:
    """Those of what won by itself, what saves most first, by which a model as a whole is faster, all or the first half or half as many, and so on; and
    what its run takes with them, relative to one without any, by round. ``measured`` gives that (nothing where it cannot be measured: all are kept)."""
    kept = list(winners)
    while kept:
        ratios = measured(kept)
        if not ratios or is_faster(ratios):
            return kept, ratios
        kept = kept[: len(kept) // 2]
    return [], ()


def combined(history: Sequence[Sequence[float]], weights: Sequence[float], seconds: Sequence[float]) -> list[float]:
    """Ratios by round of several cases as one: of the sums of their times, ``seconds`` being those of the default."""
    whole = sum(w * s for w, s in zip(weights, seconds, strict=True))
    return [sum(w * s * r for w, s, r in zip(weights, seconds, row, strict=True)) / whole for row in zip(*history, strict=True)]


def spread_of(ratios: Sequence[float]) -> float:
    """Median distance from the median, as a share of it."""
    middle = median(ratios)
    return median(abs(r - middle) for r in ratios) / middle
