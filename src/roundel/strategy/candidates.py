# SPDX-License-Identifier: Apache-2.0
"""The free decisions of a sketch as a table: a column for each decision, a row for each candidate, and the cycles that are expected of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.dataclass import dataclass

Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Candidates:
    """``columns[name][k]`` is decision ``name`` of candidate ``k``, ``cycles[k]`` what it is expected to take on one core. Where ``cycles`` is
    None nothing is expected, and the first candidate counts as the best."""

    columns: dict[str, np.ndarray]
    cycles: np.ndarray | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def decisions(self, k: int) -> dict[str, int]:
        """Those of candidate ``k``."""
        return {name: int(column[k]) for name, column in self.columns.items()}

    def ranking(self) -> np.ndarray:
        """Candidates, the fastest first."""
        return np.arange(len(self)) if self.cycles is None else np.argsort(self.cycles, kind="stable")

    def best(self, among: np.ndarray | None = None) -> dict[str, int]:
        """The decisions of the fastest, where ``among`` is given of those candidates for which it holds."""
        cycles = np.zeros(len(self)) if self.cycles is None else self.cycles
        return self.decisions(int(np.argmin(cycles if among is None else np.where(among, cycles, np.inf))))

    def holds(self, decisions: Mapping[str, Any]) -> bool:
        """Whether there is a candidate with these decisions."""
        return all(n in decisions for n in self.columns) and bool(np.logical_and.reduce([self.columns[n] == decisions[n] for n in self.columns]).any())

    def expected(self, decisions: Mapping[str, Any]) -> float | None:
        """Cycles of the candidate with these decisions; None where nothing is expected. Raises IndexError where there is no such candidate."""
        if self.cycles is None:
            return None
        same = np.logical_and.reduce([self.columns[n] == decisions[n] for n in self.columns])
        return float(self.cycles[int(np.flatnonzero(same)[0])])


def combinations(domains: Mapping[str, Sequence[int]], legal: Callable[[Columns], np.ndarray] | None = None) -> dict[str, np.ndarray]:
    """Columns with every combination of the domains' values for which ``legal`` holds."""
    grids = np.meshgrid(*(np.asarray(d, dtype=np.int64) for d in domains.values()), indexing="ij")
    columns = {name: grid.reshape(-1) for name, grid in zip(domains, grids, strict=True)}
    if legal is None:
        return columns
    keep = np.flatnonzero(legal(columns))
    return {name: column[keep] for name, column in columns.items()}
