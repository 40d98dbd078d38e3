# SPDX-License-Identifier: Apache-2.0
"""Which task is worked on next: the one whose next trials promise to save a run of the model the most time.

What trials promise is what the last ones of the task gave, or, as long as few were made, that they will give something: gradient-based as in Ansor
(Zheng et al., 2020, https://arxiv.org/abs/2006.06762, section 6). Tasks that are new come first, those that take the most time before others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ..ir.dataclass import dataclass

HOPE = 0.3      # share of its time that the first trials of a task may save; those after n batches 1/n of that
RECENT = 3      # batches whose gains tell what the next one gives
LITTLE = 0.002  # share of the model's time that is too little for a new task to come first


@dataclass
class Share:
    """What the scheduler knows of a task. ``weight``: calls in a run of the model. ``seconds``: what the best schedule takes so far, or is expected to
    take. ``bests`` are the seconds after each batch of trials. ``is_done``: nothing is left to try."""

    weight: float
    seconds: float
    bests: list[float] = field(default_factory=list)
    is_done: bool = False

    @property
    def contribution(self) -> float:
        """Seconds of a run of the model."""
        return self.weight * self.seconds

    @property
    def promise(self) -> float:
        """Seconds of a run of the model that the next batch may save."""
        last = self.bests[-RECENT - 1:]
        gained = (last[0] - last[-1]) / (len(last) - 1) / last[0] if len(last) > 1 and last[0] else 0.0
        return self.contribution * max(gained, HOPE / (1 + len(self.bests)) ** 2)

    def tell(self, seconds: float) -> None:
        """After a batch: what the best takes."""
        self.seconds = seconds
        self.bests.append(seconds)


def choose_task(shares: Sequence[Share]) -> int | None:
    """The position of the task that is worked on next; None where nothing is left to do."""
    open_ = [k for k, s in enumerate(shares) if not s.is_done]
    if not open_:
        return None
    total = sum(s.contribution for s in shares)
    new = [k for k in open_ if not shares[k].bests and shares[k].contribution >= LITTLE * total]
    if new:
        return max(new, key=lambda k: shares[k].contribution)
    return max(open_, key=lambda k: shares[k].promise)
