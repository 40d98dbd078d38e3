# SPDX-License-Identifier: Apache-2.0
"""A rule's free choices as a table: a column for each decision, a row for each candidate, and the cycles that the model expects.

A program's attribute ``decisions`` (a mapping from names to numbers) makes the choice for the rule; names that it leaves out are
chosen by the model. This is how a user forces a decision, and how tuning tries one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.errors import ScheduleError
from .parallelism import GRAIN

Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Candidates:
    """``columns[name][k]`` is decision ``name`` of candidate ``k``, ``cycles[k]`` what the model expects it to take on one core."""

    columns: dict[str, np.ndarray]
    cycles: np.ndarray

    def __len__(self) -> int:
        return len(self.cycles)

    def decisions(self, k: int) -> dict[str, int]:
        """Those of candidate ``k``."""
        return {name: int(column[k]) for name, column in self.columns.items()}

    def ranking(self) -> np.ndarray:
        """Candidates, the fastest first."""
        return np.argsort(self.cycles, kind="stable")

    def best(self) -> dict[str, int]:
        """The decisions of the fastest."""
        return self.decisions(int(np.argmin(self.cycles)))

    def expected(self, decisions: Mapping[str, Any]) -> float:
        """Cycles of the candidate with these decisions."""
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


def chosen(sch: Any, candidates: Candidates) -> dict[str, int]:
    """What the program's attribute ``decisions`` says, or else the model (the grain of parallel loops aside: ``parallelism`` decides on it).
    Raises ScheduleError for what is no candidate."""
    given = {n: v for n, v in (sch.func.attrs.get("decisions") or {}).items() if n != GRAIN}
    if not given:
        return candidates.best()
    fitting = np.ones(len(candidates), dtype=bool)
    for name, value in given.items():
        if name not in candidates.columns:
            raise ScheduleError(f"there is no decision {name!r} here", hint=f"one of {', '.join(candidates.columns)}")
        fitting &= candidates.columns[name] == value
    if not fitting.any():
        raise ScheduleError("no candidate has these decisions", why=", ".join(f"{k}={v}" for k, v in given.items()))
    return candidates.decisions(int(np.argmin(np.where(fitting, candidates.cycles, np.inf))))
