# SPDX-License-Identifier: Apache-2.0
"""Times of a function, in the form in which TVM's ``time_evaluator`` gives them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from ..ir.dataclass import dataclass
from ..ir.errors import CallError


@dataclass(frozen=True)
class Times:
    """``results`` are the seconds that one call took, one for each repetition."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Seconds of a call, the mean of all repetitions."""
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        """Seconds of a call, the median of all repetitions."""
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        """Seconds of a call in the fastest repetition."""
        return min(self.results)

    @property
    def max(self) -> float:
        """Seconds of a call in the slowest repetition."""
        return max(self.results)

    @property
    def std(self) -> float:
        """Standard deviation of the repetitions, in seconds."""
        return statistics.pstdev(self.results)

    def __str__(self) -> str:
        names = ("mean", "median", "max", "min", "std")
        return "\n".join("".join(f"{text:>13}" for text in row) for row in (
            [f"{n} (ms)" for n in names], [f"{getattr(self, n) * 1e3:.4f}" for n in names]))


def time_evaluator(function: Callable[..., Any], number: int = 10, repeat: int = 1, min_repeat_ms: float = 0) -> Callable[..., Times]:
    """A function of the same arguments that gives the times of ``function`` instead of its result.

    It is called once to warm up, then ``repeat`` times over: ``number`` calls in a row, of which the mean counts, and more of them
    where they take less than ``min_repeat_ms`` milliseconds together. Raises CallError for counts below 1.
    """
    if number < 1 or repeat < 1:
        raise CallError(f"a function cannot be timed {number} times in {repeat} repetitions", hint="both are at least 1")

    def timed(*args: Any, **kwargs: Any) -> Times:
        function(*args, **kwargs)
        count = number
        found: list[float] = []
        while len(found) < repeat:
            begin = time.perf_counter()
            for _ in range(count):
                function(*args, **kwargs)
            seconds = time.perf_counter() - begin
            if seconds * 1e3 < min_repeat_ms:
                count = max(count + 1, int(count * min(100.0, min_repeat_ms / 1e3 / max(seconds, 1e-7)) * 1.1))
            else:
                found.append(seconds / count)
        return Times(tuple(found))

    return timed
