# SPDX-License-Identifier: Apache-2.0
"""What a search is. One of one's own is a class with the method ``propose``:

    class Shortest(Search):
        def propose(self, count):
            return [c for c in self.space if c not in self.seen][:count]

    rd.tune(program, search=Shortest)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir import escape
from ...ir.errors import OptionError
from ..space import Candidate, Space


class Search:
    """Proposes candidates of a space. ``seen`` has those that were proposed or measured, by this search or by an earlier session, ``times`` their
    seconds (None: failed). The same ``seed`` and the same times lead to the same proposals."""

    def __init__(self, space: Space, seed: int = 0) -> None:
        self.space = space
        self.rng = np.random.default_rng(seed)
        self.seen: set[Candidate] = set()
        self.times: dict[Candidate, float | None] = {}

    def propose(self, count: int) -> Sequence[Candidate]:
        """Up to so many candidates to measure next, none that was seen; none at all where the search is at its end."""
        raise NotImplementedError

    def learn(self, candidate: Candidate, seconds: float | None) -> None:
        """What was measured of a candidate, in seconds; None where it failed."""
        self.seen.add(candidate)
        self.times[candidate] = seconds

    def best(self, count: int) -> list[Candidate]:
        """The fastest that were measured."""
        known = [(t, c) for c, t in self.times.items() if t is not None]
        return [c for _, c in sorted(known)[:count]]


SEARCHES: dict[str, Callable[[Space, int], Search]] = {}


def search_named(given: Any) -> Callable[[Space, int], Search]:
    """What makes a search: one of `SEARCHES` by its name, or a class of one's own. Raises OptionError."""
    if callable(given):
        return given
    if given not in SEARCHES:
        raise OptionError(f"there is no search {escape.value(given)}", hint=f"one of {', '.join(SEARCHES)}, or a class derived from roundel.tune.Search")
    return SEARCHES[given]
