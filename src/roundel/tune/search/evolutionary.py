# SPDX-License-Identifier: Apache-2.0
"""The default search: many candidates are judged by what the model of the machine and earlier measurements say, and the best few are measured.

The candidates that are judged are those that the model puts first, mutations of the fastest that were measured, and some at random, as in Ansor (Zheng et
al., 2020, https://arxiv.org/abs/2006.06762). Of them those are measured that may be the fastest: by how long they are expected to take less how unsure that
is, where what is proposed already counts as known, so that not all of a batch are alike (Desautels et al., 2014, Parallelizing exploration-exploitation
tradeoffs in Gaussian process bandit optimization, https://jmlr.org/papers/v15/desautels14a.html). A few are drawn without looking at how sure the
judgement is, so that a wrong model is found out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...ir.dataclass import dataclass
from ..gaussian import Among
from ..learned import Learned
from ..space import Candidate, Space
from .search import SEARCHES, Search

RANKED = 20_000   # candidates of each sketch that the model puts first
ELITE = 8         # measured candidates that are mutated,
MUTATIONS = 64    # ... each so often
STRANGERS = 512   # candidates of each sketch at random
MOST = 1024       # candidates of each sketch that are looked at after they were judged
CURIOSITY = 1.0   # standard deviations by which a candidate may be faster than it is judged
DRAWN = 0.125     # share of what is proposed that is drawn
FAR = 3.0         # times the best expectation from which on a sketch is tried once


@dataclass
class _Judged:
    """Unseen candidates of a sketch: ``scores`` are logarithms of what each is judged to take."""

    way: int
    scores: np.ndarray
    among: Among

    def candidate(self, k: int) -> Candidate:
        return Candidate(self.way, tuple(self.among.rows[k].tolist()))

    def first(self) -> tuple[float, int]:
        """The candidate that may be the fastest, and what it may take."""
        hoped = self.scores - CURIOSITY * self.among.spread
        k = int(np.argmin(hoped))
        return float(hoped[k]), k

    def take(self, k: int) -> Candidate:
        """Count a candidate as proposed."""
        self.among.expect(k)
        self.scores[k] = np.inf
        return self.candidate(k)


class Evolutionary(Search):
    """Judges by ``learned``, a `Learned` (default: one that looks at decisions)."""

    def __init__(self, space: Space, seed: int = 0, learned: Learned | None = None) -> None:
        super().__init__(space, seed)
        self.learned = learned if learned is not None else Learned(space)
        self._ranked = [way.ranked(RANKED) for way in space.ways]

    def learn(self, candidate: Candidate, seconds: float | None) -> None:
        """As `Search`."""
        super().learn(candidate, seconds)
        self.learned.add(candidate, seconds)

    def propose(self, count: int) -> Sequence[Candidate]:
        """As `Search`."""
        found: list[Candidate] = self._first_of_each()[:count] if len(self.times) <= 1 else []  # the default was measured
        self.seen.update(found)
        judged = [j for k in range(len(self.space.ways)) if (j := self._judged(k)) is not None]
        left = count - len(found)
        for judge, k in self._drawn(judged, round(DRAWN * left)):
            found.append(judge.take(k))
        while len(found) < count and judged:
            (least, k), judge = min(((j.first(), j) for j in judged), key=lambda x: x[0][0])
            if not np.isfinite(least):
                break
            found.append(judge.take(k))
        self.seen.update(found)
        return found

    def _first_of_each(self) -> list[Candidate]:
        """The most promising candidate of each sketch that may be worth it."""
        firsts = [Candidate(k, tuple(rows[0].tolist())) for k, rows in enumerate(self._ranked) if len(rows)]
        least = min(map(self.space.cycles, firsts), default=0.0)
        found = [c for c in sorted(firsts, key=self.space.cycles) if c not in self.seen and self.space.cycles(c) <= FAR * least]
        return found

    def _drawn(self, judged: Sequence[_Judged], count: int) -> list[tuple[_Judged, int]]:
        """Some of all that were judged, those in front more likely."""
        order = sorted((float(s), n, k) for n, j in enumerate(judged) for k, s in enumerate(j.scores))
        if not order or count <= 0:
            return []
        weights = 1.0 / np.arange(1, len(order) + 1)
        at = self.rng.choice(len(order), min(count, len(order)), replace=False, p=weights / weights.sum()).tolist()
        return [(judged[order[k][1]], order[k][2]) for k in at]

    def _judged(self, k: int) -> _Judged | None:
        """Candidates of a sketch that may be worth measuring; None where all were seen."""
        way = self.space.ways[k]
        if not way.size:
            return None
        parts = [self._ranked[k]]
        parts += [way.mutated(c.rows, MUTATIONS, self.rng) for c in self.best(ELITE) if c.way == k and way.tables]
        if way.size > RANKED:
            parts.append(way.random(STRANGERS, self.rng))
        rows = np.unique(np.concatenate(parts), axis=0) if len(parts) > 1 else parts[0]
        rows = rows[[(k, tuple(r)) not in self.seen for r in rows.tolist()]]
        if not len(rows):
            return None
        expected = np.log(np.maximum(way.cycles(rows), 1.0))
        best = np.argsort(expected + self.learned.residual(k, rows), kind="stable")[:MOST]
        among = self.learned.among(k, rows[best])
        return _Judged(k, expected[best] + among.mean, among)


SEARCHES["evolutionary"] = Evolutionary
