# SPDX-License-Identifier: Apache-2.0
"""Searches that learn nothing: at random, one after another, and what a database has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..space import Candidate, Space
from .search import SEARCHES, Search

TRIES = 20  # draws for each candidate that is asked for, where most were seen already


class Random(Search):
    """Each candidate as likely as any other."""

    def propose(self, count: int) -> Sequence[Candidate]:
        """As `Search`."""
        found: list[Candidate] = []
        bounds = [way.size for way in self.space.ways]
        total = sum(bounds)
        for _ in range(TRIES * count):
            at, way = int(self.rng.integers(total)), 0
            while at >= bounds[way]:
                at, way = at - bounds[way], way + 1
            candidate = Candidate(way, tuple(self.space.ways[way].random(1, self.rng)[0].tolist()))
            if candidate not in self.seen:
                self.seen.add(candidate)
                found.append(candidate)
                if len(found) == count:
                    return found
        return [*found, *_unseen(self, self.space, count - len(found))] if total <= TRIES * count else found


class Exhaustive(Search):
    """All candidates, sketch by sketch in the order of the rules, those that are expected to be fast first: for small spaces."""

    def __init__(self, space: Space, seed: int = 0) -> None:
        super().__init__(space, seed)
        self._order = (Candidate(k, tuple(rows)) for k, way in enumerate(space.ways) for rows in way.ranked(way.size).tolist())

    def propose(self, count: int) -> Sequence[Candidate]:
        """As `Search`."""
        return _unseen(self, self._order, count)


class Replay(Search):
    """What was measured before, the fastest first: `learn` is told of it, and nothing else is proposed. To measure a database again, on a machine
    like the one that it came from."""

    def __init__(self, space: Space, seed: int = 0) -> None:
        super().__init__(space, seed)
        self._done: set[Candidate] = set()

    def propose(self, count: int) -> Sequence[Candidate]:
        """As `Search`."""
        found = [c for c in self.best(len(self.times)) if c not in self._done][:count]
        self._done.update(found)
        return found


def _unseen(search: Search, candidates: Iterable[Candidate], count: int) -> list[Candidate]:
    found: list[Candidate] = []
    rest: Iterator[Candidate] = iter(candidates)
    while len(found) < count and (c := next(rest, None)) is not None:
        if c not in search.seen:
            search.seen.add(c)
            found.append(c)
    return found


SEARCHES |= {"random": Random, "exhaustive": Exhaustive, "replay": Replay}
