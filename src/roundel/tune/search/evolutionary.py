# SPDX-License-Identifier: Apache-2.0
"""The default search: many candidates are judged by what the model of the machine and earlier measurements say, and the best few are measured.

The candidates that are judged are those that the model puts first, mutations of the fastest that were measured, and some at random; a share of
what is proposed is drawn from them without looking at the judgement (epsilon-greedy), so that a wrong model is found out. As Ansor searches (Zheng et
al., 2020, https://arxiv.org/abs/2006.06762), with prices in place of a model that begins without any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ..learned import Learned
from ..space import Candidate, Space
from .search import SEARCHES, Search

RANKED = 20_000   # candidates of each sketch that the model puts first
ELITE = 8         # measured candidates that are mutated,
MUTATIONS = 64    # ... each so often
STRANGERS = 512   # candidates of each sketch at random
MOST = 1024       # candidates of each sketch that are looked at after they were judged
EPSILON = 0.25    # share of what is proposed that the judgement does not decide: one half draws, the other values that were measured least
FAR = 3.0         # times the best expectation from which on a sketch is tried once
HOPE = 1.7        # times the best judgement up to which a value that was never measured is worth a look


class Evolutionary(Search):
    """Judges by ``learned``, a `Learned` (default: one with trees)."""

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
        pool = self._pool()
        curious = round(EPSILON * count)
        self._take(found, (c for _, c in pool), count - curious)
        self._take(found, self._least_known(pool), count - curious // 2)
        self._take(found, (pool[k][1] for k in self._draws(len(pool), 2 * count)), count)
        self._take(found, (c for _, c in pool), count)
        self.seen.update(found)
        return found

    def _take(self, found: list[Candidate], candidates: Iterable[Candidate], count: int) -> None:
        """Add the first candidates that were not seen, until there are so many."""
        rest = iter(candidates)
        while len(found) < count and (c := next(rest, None)) is not None:
            if c not in self.seen and c not in found:
                found.append(c)

    def _least_known(self, pool: Sequence[tuple[float, Candidate]]) -> Iterator[Candidate]:
        """Those of a pool with a decision whose value was measured least, the most promising first: what trees say of it is a guess."""
        if not pool:
            return
        near = [c for score, c in pool if score <= pool[0][0] + np.log(HOPE)]
        measured = Counter((c.way, n, v) for c in self.times for n, v in self.space.choice(c).items())

        def times_measured(c: Candidate) -> int:
            return min((measured[c.way, n, v] for n, v in self.space.choice(c).items()), default=len(self.times))

        yield from sorted(near, key=times_measured)

    def _first_of_each(self) -> list[Candidate]:
        """The most promising candidate of each sketch that may be worth it."""
        firsts = [Candidate(k, tuple(rows[0].tolist())) for k, rows in enumerate(self._ranked) if len(rows)]
        least = min(map(self.space.cycles, firsts), default=0.0)
        found = [c for c in sorted(firsts, key=self.space.cycles) if c not in self.seen and self.space.cycles(c) <= FAR * least]
        return found

    def _draws(self, size: int, count: int) -> Sequence[int]:
        """Positions in a pool, those in front more likely."""
        if size == 0 or count <= 0:
            return []
        weights = 1.0 / np.arange(1, size + 1)
        return self.rng.choice(size, min(count, size), replace=False, p=weights / weights.sum()).tolist()

    def _pool(self) -> list[tuple[float, Candidate]]:
        """Candidates that may be worth measuring, each with the logarithm of what it is judged to take, the most promising first."""
        scored: list[tuple[np.ndarray, np.ndarray]] = []
        for k, way in enumerate(self.space.ways):
            if not way.size:
                continue
            parts = [self._ranked[k]]
            parts += [way.mutated(c.rows, MUTATIONS, self.rng) for c in self.best(ELITE) if c.way == k and way.tables]
            if way.size > RANKED:
                parts.append(way.random(STRANGERS, self.rng))
            rows = np.unique(np.concatenate(parts), axis=0) if len(parts) > 1 else parts[0]
            score = np.log(np.maximum(way.cycles(rows), 1.0)) + self.learned.residual(k, rows)
            best = np.argsort(score, kind="stable")[:MOST]
            scored.append((score[best], np.concatenate([np.full((len(best), 1), k), rows[best]], axis=1)))
        flat = [(float(s), Candidate(int(row[0]), tuple(row[1:].tolist()))) for scores, rows in scored for s, row in zip(scores, rows, strict=True)]
        return sorted(pair for pair in flat if pair[1] not in self.seen)


SEARCHES["evolutionary"] = Evolutionary
